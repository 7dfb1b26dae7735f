"""The sections of an experiment's settings, and what each field allows."""

import os
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from contrasweep.tuning.limits import LARGEST_SEED, MOST

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=MOST)]
CountOrNone = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]


class Settings(BaseModel):
    """Frozen settings that refuse unknown keys, NaN and Inf."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_bool_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        # Python's True is an int; it would silently become the number 1. The field is looked up last: this
        # runs for every setting of every experiment.
        values = value if isinstance(value, list | tuple) else (value,)
        if bool in map(type, values) and cls.model_fields[str(info.field_name)].annotation is not bool:
            raise ValueError("true or false is not allowed here")
        return value


class ViewSettings(Settings):
    """The random views of an image; `data.RandomViews` describes each setting.

    `size` is in pixels a side; null means the size of the dataset. `padding` is in pixels of the view.

    Multi-crop: beside its views, an image has `local_crops` more of `local_size` pixels a side (null: the
    size of the views), each with `local_min_crop` to `local_max_crop` of its area. Few methods use them.
    """

    size: Count | None = None
    min_crop: Annotated[float, Field(gt=0, le=1)] = 0.2
    max_crop: Annotated[float, Field(gt=0, le=1)] = 1.0
    flip: Share = 0.5
    brightness: NotNegative = 0.0
    contrast: NotNegative = 0.0
    saturation: NotNegative = 0.0
    hue: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    jitter_probability: Share = 0.8
    grayscale: Share = 0.0
    blur: Share = 0.0
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    padding: CountOrNone = 0
    local_crops: CountOrNone = 0
    local_size: Count | None = None
    local_min_crop: Annotated[float, Field(gt=0, le=1)] = 0.05
    local_max_crop: Annotated[float, Field(gt=0, le=1)] = 0.14

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for kind in ("", "local_"):
            low, high = (getattr(self, f"{kind}{end}_crop") for end in ("min", "max"))
            if low > high:
                raise ValueError(f"views.{kind}min_crop {low} is above views.{kind}max_crop {high}")
        return self


class EncoderSettings(Settings):
    """The backbone, and the normalisation of its images.

    `mean` and `std` have one number for each channel, or one for all, for images in 0..1. Without them,
    images are not normalised. In training, the `views` of a batch pass encoder and head `together`, so that
    batch norm normalises all of them at once, or `apart`.

    The encoder starts from the file `weights`, if one is named: safetensors, or a state dict of torch. Its
    SHA-256 is `weights_sha256`, which is found out where it is not given; another file under the same path is
    refused.
    """

    name: str = "lenet5"
    mean: tuple[float, ...] = ()
    std: tuple[Positive, ...] = ()
    views: Literal["together", "apart"] = "together"
    weights: str | None = None
    weights_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None

    @property
    def control(self) -> str | None:
        """What the untrained encoder is where it starts from a file, as a sentence; None: it is random."""
        return None if self.weights is None else f"Untrained means as loaded from {self.weights}."

    @field_validator("weights")
    @classmethod
    def _whole_path(cls, value: str | None) -> str | None:
        # Workers have other working directories than the command that names the file.
        return None if value is None else os.path.abspath(os.path.expanduser(value))

    @model_validator(mode="after")
    def _digest_of_a_file(self) -> Self:
        if self.weights is None and self.weights_sha256 is not None:
            raise ValueError("encoder.weights_sha256 goes with encoder.weights")
        return self

    @model_validator(mode="after")
    def _mean_and_std(self) -> Self:
        if len(self.mean) != len(self.std):
            raise ValueError(
                f"encoder.mean {list(self.mean)} and encoder.std {list(self.std)} differ in length"
            )
        # Images are in 0..1 when the mean is subtracted.
        for name, given in (("mean", self.mean), ("std", self.std)):
            if any(not 0 <= one <= 1 for one in given):
                levels = "; divide levels of 0 to 255 by 255" if max(given) > 2 else ""
                raise ValueError(f"encoder.{name} {list(given)}: allowed: 0 to 1, as images are{levels}")
        return self


class HeadSettings(Settings):
    """The projection head. `hidden` null means the encoder's width; `linear` and `none` do not use it."""

    name: Literal["cclk", "linear", "mlp", "mlp-bn", "mlp3", "none"] = "cclk"
    hidden: Count | None = None
    width: Count = 128


class OptimizerSettings(Settings):
    """The optimizer. LARS and LARC use `trust`, all but Adam and AdamW use `momentum`.

    Only SGD uses `nesterov`. LARC gives a tensor the smaller of `lr` and the tensor's own rate; with
    `larc_clip` false, the product of the two (`training.optimizers.LARC`). AdamW decouples `weight_decay`
    from the gradient (Loshchilov and Hutter 2019), the others add it to the gradient. With
    `decay_norm_and_bias` false it leaves out one-dimensional tensors: biases, and the scales and shifts of
    norm layers. With `exclude_norm_and_bias`, LARS neither decays these tensors nor adapts their rate: it is
    `norm_and_bias_lr_factor` times `lr`.

    `clip_norm` is the largest norm that the gradient of all weights together may have; a larger gradient is
    scaled down to it. With `ema` above 0, an exponential moving average of the weights, with this decay for
    each step, is evaluated and exported. At 0 both do nothing.
    """

    name: Literal["lars", "larc", "sgd", "adam", "adamw"] = "sgd"
    lr: Positive = 0.1
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: NotNegative = 1e-4
    trust: Positive = 1e-3
    exclude_norm_and_bias: bool = True
    norm_and_bias_lr_factor: Positive = 1.0
    larc_clip: bool = True
    nesterov: bool = False
    decay_norm_and_bias: bool = True
    clip_norm: NotNegative = 0.0
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @model_validator(mode="after")
    def _decay_of_lars(self) -> Self:
        if self.name == "lars" and not self.decay_norm_and_bias:
            raise ValueError(
                "optimizer.decay_norm_and_bias has no effect with lars: see exclude_norm_and_bias"
            )
        return self

    @model_validator(mode="after")
    def _rates_of_lars_and_larc(self) -> Self:
        if self.norm_and_bias_lr_factor != 1 and not (self.name == "lars" and self.exclude_norm_and_bias):
            raise ValueError(
                "optimizer.norm_and_bias_lr_factor goes with lars and optimizer.exclude_norm_and_bias true"
            )
        if not self.larc_clip and self.name != "larc":
            raise ValueError(f"optimizer.larc_clip false goes with larc, given optimizer.name {self.name}")
        return self

    @model_validator(mode="after")
    def _nesterov_of_sgd(self) -> Self:
        if self.nesterov and (self.name != "sgd" or self.momentum == 0):
            raise ValueError("optimizer.nesterov goes with sgd and a momentum above 0")
        return self


class ScheduleSettings(Settings):
    """The learning rate: a linear ramp, then a cosine to `final_fraction` of the peak, constant, or steps.

    `step` multiplies the rate by `factor` at each milestone; `milestones` are shares of the epochs.
    `cosine-min-ramp` is the smaller of a ramp and a cosine that both begin at the first epoch; it changes
    between epochs only.
    """

    name: Literal["cosine", "cosine-min-ramp", "constant", "step"] = "cosine"
    warmup_epochs: NotNegative = 0.0
    final_fraction: Share = 0.0
    milestones: tuple[Share, ...] = ()
    factor: Annotated[float, Field(gt=0, le=1)] = 0.1

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.name == "step" and not self.milestones:
            raise ValueError("schedule.name step needs schedule.milestones, shares of the epochs")
        if self.name == "cosine-min-ramp" and not self.warmup_epochs:
            raise ValueError("schedule.name cosine-min-ramp needs schedule.warmup_epochs, the ramp's length")
        if list(self.milestones) != sorted(self.milestones):
            raise ValueError(f"schedule.milestones {list(self.milestones)} must rise")
        return self


class ValidationSettings(Settings):
    """The split cut from the training set: its share of the training set and the seed that chooses it.

    `split` says what the share is of: of each `class`, of each `group` of (class, bias), or of the classes'
    largest groups, whose images are then `recoloured` (see `data.splits.held_out_rows`). Of transductive
    data, a part of the labelled objects is held out, with a share of each class: by `class` the part that
    `seed` chooses of the fold that the run's seed chooses, by `folds` the other way round.

    With `halves`, the split is cut in two halves with the same shares of every class and bias. The search
    sees the scores on one half (`val.accuracy`). Those on the other (`val.report_accuracy`) are computed
    before training and at the end: no choice depends on them, so they do not flatter what was chosen.
    """

    split: Literal["class", "group", "recoloured", "folds"] = "class"
    fraction: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    seed: Seed = 0
    halves: bool = False

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.halves and not self.fraction:
            raise ValueError("validation.halves needs validation.fraction, the part that is cut in two")
        return self

    @property
    def rounds(self) -> int:
        """The number of seeds whose runs hold each labelled object out once; 1 where there are no folds."""
        return round(1 / self.fraction) if self.split == "folds" and self.fraction else 1


class ProbeSettings(Settings):
    """The probes that score an encoder.

    `classifier` gives the reported score: `logistic`, solved by at most `max_steps` steps of L-BFGS with
    `penalty` (on standardised or raw features); the minibatch recipe of a paper; or `knn`. If `neighbours`
    and `temperature` are null, `knn` chooses them on held-out training rows. `epoch_rows` is the number of
    rows of the fast ridge probe. `threshold` is the lowest probability at which a label of a multi-label set
    is predicted.

    `images` says which images all probes learn from: those of the `training`; or, where a dataset cuts its
    classes to unequal sizes, the `uncut` ones, all but the validation split.

    `views` says what a minibatch recipe trains on: `whole` images, random `crops` of at least `min_crop` of
    the area (null: that of the training) mirrored at random, or the views of the `training`. `centre` is the
    share of the sides of whole images that the encoder sees: 0.875 resizes to 256 pixels and cuts out 224.
    The reported score is computed before training, after the last epoch, and after the epochs `at_epochs`.

    With `kmeans_starts` above 0, the held-out images are clustered too, into as many clusters as there are
    classes: by k-means, the best of so many starts.

    With `label_free_views` above 0, scores that need no label are computed after every epoch too: RankMe,
    LiDAR, alignment, uniformity and the deviation of the features. Alignment and LiDAR compare so many random
    views of a held-out image. Images without labels have these scores in any case.

    `metrics` names metrics of plug-ins, which are computed after every epoch too.
    """

    classifier: Literal["logistic", "moco", "cl-infonce", "cacr", "knn"] = "logistic"
    neighbours: Count | None = None
    temperature: Positive | None = None
    penalty: NotNegative = 1e-6
    standardise: bool = True
    max_steps: Count = 500
    epoch_rows: Annotated[int, Field(ge=1, le=1_000 * MOST)] = 10_000
    threshold: Share = 0.4
    images: Literal["training", "uncut"] = "training"
    views: Literal["whole", "crops", "training"] = "whole"
    min_crop: Annotated[float, Field(gt=0, le=1)] | None = None
    centre: Annotated[float, Field(gt=0, le=1)] = 1.0
    at_epochs: tuple[Count, ...] = ()
    kmeans_starts: CountOrNone = 0
    label_free_views: CountOrNone = 0
    metrics: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _settings_of_the_classifier(self) -> Self:
        if self.views != "whole" and self.classifier in ("logistic", "knn"):
            raise ValueError(f"probes.views {self.views} goes with the classifiers moco, cl-infonce and cacr")
        given = (self.neighbours, self.temperature) != (None, None)
        if given and self.classifier != "knn":
            raise ValueError("probes.neighbours and probes.temperature go with probes.classifier knn")
        if (self.neighbours is None) != (self.temperature is None):
            raise ValueError("probes.neighbours and probes.temperature are both given, or both chosen (null)")
        if self.label_free_views == 1:
            raise ValueError("probes.label_free_views: given 1; allowed: 0, or 2 and more views of an image")
        return self


class ComputeSettings(Settings):
    """How results are computed. A value other than the default changes results, at least in the last digits.

    `precision` is that of training. `float32` is float32 on every device. With `tf32`, a GPU that has TF32
    rounds the factors of convolutions and matrix products to 10 bits, those of heads and losses too; other
    GPUs and CPUs compute in float32. With `bf16`, the backbone computes in bfloat16; heads and losses stay in
    float32. Weights and scores are in float32 in every case.

    With `compile`, torch compiles the backbone. `deterministic` refuses operations that give different
    results from run to run on one GPU, in training and in scores; on a CPU all operations are repeatable.
    """

    precision: Literal["float32", "tf32", "bf16"] = "float32"
    compile: bool = False
    deterministic: bool = False
