"""The facts of a dataset: what is known of it before it is loaded. Nothing here imports torch."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

COLOUR_NAME = "background RGB colour, 0..255"
"""The `condition_name` of a background colour, which probes regress from the features."""

TOP_FIVE_FROM = 21
"""Classes from which accuracy is reported of five guesses too: of fewer, they would say little."""


@dataclass(frozen=True, kw_only=True)
class SharedFacts:
    """What every dataset states before it is loaded, be it of images or transductive.

    Attributes:
        name: the name users type, with its options.
        summary: one sentence.
        classes: number of labels, which are 0..classes-1 (of a multi-label set: columns of 0 and 1).
        multi_label: whether an image or object has any number of labels.
        class_names: the labels' names by number; empty where they are not known.
        licence: terms of use.
        source: where the data come from.
        folder: what the data root must hold, None for an embedded dataset.
        revision: rises when a version of contrasweep makes other images or objects under the same name, whose
            runs do not compare with those before.
        fingerprint: changes with the images, labels and conditions, where others than we decide what the name
            stands for: on the Hugging Face hub, and in the user's own files; "" where all are published ones.
    """

    name: str
    summary: str
    classes: int
    multi_label: bool = False
    class_names: tuple[str, ...] = ()
    licence: str
    source: str
    folder: str | None
    revision: int = 1
    fingerprint: str = ""

    @property
    def told_classes(self) -> tuple[str, ...]:
        """The names of the classes, or their numbers where no names are known."""
        return self.class_names or tuple(map(str, range(self.classes)))

    @property
    def embedded(self) -> bool:
        """Whether it is shipped with an installed library, so that no file is needed."""
        return self.folder is None


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(SharedFacts):
    """The facts of a dataset of images, known without loading them.

    Attributes:
        channels: 1 greyscale, 3 RGB.
        image_size: stored height and width in pixels, of square images.
        view_size: height and width in pixels that the network sees.
        train_size: training images, before a validation split is cut off.
        test_size: test images.
        condition_dim: width of the conditioning variable, None where there is none.
        condition_name: what the conditioning variable is, with its unit.
        condition_spread: the mean squared distance of two images in the condition, where a file holds it.
        bias_classes: number of values of the bias label, None where there is none.
        bias_names: what these values are, by number; empty where their names are not known.
        unlabelled_size: training images without a label (`UNLABELLED`), which are among `train_size`. If they
            are all of them, there are 0 classes, and the test images have no label either.
        groupings: clusterings of the test images that an unbiased accuracy is averaged over; 0: none.
        recolourable: whether training images can be made again with another bias.
        cut: whether classes were cut to unequal sizes, and probes can learn from the images before that.
        folds: the number of draws of the training data: one, the same images for every seed.
        has_images: whether an encoder takes images, not vectors of features.
        has_labels: whether any training image has a label.
        probed: whether probes are fitted on the encoder's features; else a method's own classifier is scored.
        classifier_prefix: the prefix of the scores of a method's own classifier; those of a probe have none.
    """

    channels: int
    image_size: int
    view_size: int
    train_size: int
    test_size: int
    condition_dim: int | None = None
    condition_name: str | None = None
    condition_spread: float | None = None
    bias_classes: int | None = None
    bias_names: tuple[str, ...] = ()
    unlabelled_size: int = 0
    groupings: int = 0
    recolourable: bool = False
    cut: bool = False

    folds: ClassVar[int] = 1
    has_images: ClassVar[bool] = True
    classifier_prefix: ClassVar[str] = "classifier_"

    @property
    def told_biases(self) -> tuple[str, ...]:
        """The names of the values of the bias label, or their numbers where no names are known."""
        return self.bias_names or tuple(map(str, range(self.bias_classes or 0)))

    @property
    def has_labels(self) -> bool:
        """Whether any training image has a label."""
        return self.unlabelled_size < self.train_size

    @property
    def probed(self) -> bool:
        """Whether probes are fitted: they learn from the images that have a label."""
        return self.has_labels

    @property
    def has_colour(self) -> bool:
        """Whether the conditioning variable is a background colour."""
        return self.condition_name == COLOUR_NAME

    @property
    def offers(self) -> frozenset[str]:
        """What a method can ask for: "images", "labels", "condition", "bias"."""
        there = {
            "images": True,
            "labels": not self.unlabelled_size,
            "condition": self.condition_dim is not None,
            "bias": self.bias_classes is not None,
        }
        return frozenset(name for name, is_there in there.items() if is_there)

    @property
    def headline(self) -> str:
        """The measure that decides unless the user says otherwise: accuracy; without labels, RankMe.

        On biased data it is averaged over (class, bias), because plain accuracy prefers the biased model.
        """
        if not self.has_labels:
            return "rankme"
        return "accuracy" if self.bias_classes is None else "balanced_accuracy"

    def measures(self, *, test: bool) -> tuple[str, ...]:
        """Return the scores of predicted labels on test images, which alone have groupings, or others."""
        if not self.has_labels:
            return ()
        there = {
            "accuracy": True,
            "balanced_accuracy": self.bias_classes is not None,
            "worst_group_accuracy": self.bias_classes is not None,
            "top5_accuracy": self.classes >= TOP_FIVE_FROM,
            "unbiased_accuracy": bool(self.groupings) and test,
        }
        return tuple(name for name, is_there in there.items() if is_there)

    @property
    def splits(self) -> tuple[str, ...]:
        """The values of `validation.split` for the dataset; the first is the default, see `held_out_rows`."""
        biased = ("group", "class") if self.bias_classes is not None else ("class",)
        return ("recoloured", *biased) if self.recolourable else biased

    def at_view_size(self, size: int | None) -> Self:
        """Return the facts where views are made in `size` pixels, None: in the dataset's own size."""
        return replace(self, view_size=size or self.view_size)

    def validation_size(self, share: float) -> int:
        """Return the number of images that a validation split of this share holds out.

        They are labelled ones, unless no image has a label.
        """
        return round(share * self._divided)

    def trained_size(self, share: float) -> int | None:
        """Return the number of images that a run trains on beside a validation split of this share."""
        return self.train_size - self.validation_size(share)

    def check_validation(self, share: float) -> None:
        """Raise ValueError where a validation split of this share is too small for its scores."""
        if share and not self.has_labels and self.validation_size(share) < 2:
            images = f"{self.train_size} images of {self.name}"
            raise ValueError(f"{share:g} of the {images} holds out fewer than 2")
        if share and self.validation_size(share) < self.classes:
            images = f"{self.train_size - self.unlabelled_size} labelled images of {self.name}"
            held_out = self.validation_size(share)
            raise ValueError(
                f"{share:g} of the {images} holds out {held_out}, fewer than its {self.classes} classes"
            )

    @property
    def _divided(self) -> int:
        """The number of images that a validation split is a share of."""
        return self.train_size - self.unlabelled_size if self.has_labels else self.train_size


@dataclass(frozen=True, kw_only=True)
class TransductiveSpec(SharedFacts):
    """The facts of a transductive dataset, known without loading it.

    Its objects have labels and views of their own: no other views can be made, no object has a conditioning
    variable, and the method's own classifier is scored, no probe.

    Attributes:
        views: shape of one object in each view: ``(d,)`` float32 features or ``(C, H, W)`` uint8 images.
        labelled: labelled objects of each fold.
        unlabelled: unlabelled objects of each fold, which are its test set.
    """

    views: tuple[tuple[int, ...], ...]
    labelled: tuple[int, ...]
    unlabelled: tuple[int, ...]

    offers: ClassVar[frozenset[str]] = frozenset({"labels", "own views"})
    splits: ClassVar[tuple[str, ...]] = ("class", "folds")
    condition_dim: ClassVar[None] = None
    condition_name: ClassVar[None] = None
    condition_spread: ClassVar[None] = None
    has_colour: ClassVar[bool] = False
    has_labels: ClassVar[bool] = True
    probed: ClassVar[bool] = False
    cut: ClassVar[bool] = False
    classifier_prefix: ClassVar[str] = ""

    @property
    def folds(self) -> int:
        """The number of draws of the labelled objects; a run takes the fold that belongs to its seed."""
        return len(self.labelled)

    @property
    def has_images(self) -> bool:
        """Whether the views are images, not vectors of features."""
        return len(self.views[0]) == 3

    @property
    def channels(self) -> int:
        """Channels of the views that are images; 0 of vectors."""
        return self.views[0][0] if self.has_images else 0

    @property
    def view_size(self) -> int:
        """Height and width of the views that are images; the width of vectors."""
        return self.views[0][-1]

    @property
    def train_size(self) -> int:
        """Labelled objects of the first fold."""
        return self.labelled[0]

    @property
    def test_size(self) -> int:
        """Unlabelled objects of the first fold."""
        return self.unlabelled[0]

    @property
    def headline(self) -> str:
        """Accuracy; of a multi-label set, F1."""
        return self.measures(test=False)[0]

    def measures(self, *, test: bool) -> tuple[str, ...]:
        """Return the scores of predicted labels: the same on a validation split and on the test set."""
        return ("f1", "auc") if self.multi_label else ("accuracy", "f1", "auc")

    def at_view_size(self, size: int | None) -> Self:
        """Return the same facts: the views come with the data."""
        return self

    def validation_size(self, share: float) -> int:
        """Return the number of labelled objects that a run holds out, of the first fold."""
        return round(share * self.train_size)

    def trained_size(self, share: float) -> int | None:
        """Return None: a batch is filled with unlabelled objects, whatever the number of labelled ones."""
        return None

    def check_validation(self, share: float) -> None:
        """Raise ValueError unless `share` is in 0..0.5 and holds an object out of every fold."""
        if not 0.0 <= share <= 0.5:
            raise ValueError(f"must be in 0..0.5 for {self.name}, got {share}")
        if share and round(1.0 / share) > min(self.labelled):
            objects = f"{min(self.labelled)} labelled objects of {self.name}"
            raise ValueError(f"{share:g} of the {objects} holds out no object")


DatasetFacts = DatasetSpec | TransductiveSpec
"""The facts of any dataset; code that plans, trains or reports uses what both kinds have, and no branches."""
