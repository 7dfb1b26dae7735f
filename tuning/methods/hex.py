"""HEX: an encoder and a texture network; what texture alone explains is projected out of the loss.

The loss takes the logits of both, and projects those of texture alone out over the batch. Predictions are
the logits of the encoder alone.
"""

import torch
from torch import Tensor, nn

from contrasweep.data import luma_of
from contrasweep.losses.projection import project_out
from contrasweep.models import Encoder, NeuralGlcm
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import repeated_cross_entropy
from contrasweep.tuning.objectives.objective import (
    Batch,
    Gather,
    Metrics,
    Objective,
    channels_last,
    of_every_image,
    of_views,
)
from contrasweep.tuning.objectives.prepared import PreparedData

SCALES = ("batch", "none")
"""How features are scaled before the classifier: to a sum of squares of 1 over the batch, or not."""

SMALLEST_SQUARES = 1e-12
KEPT = 0.9
"""How much of the running sums of squares stays in a step."""


class ProjectedClassifier(Objective):
    """`CE((I - P_G) F_A)` with `F_A = [h, g] W + b`, `F_G = [0, g] W + b`, and `[h, 0] W + b` to predict.

    h are the encoder's features, g those of texture, and P_G projects on the columns of F_G (Eq. 3 and 4).
    The released code divides every feature by its length over the batch, in testing too. Here predictions
    take a running mean of the squared lengths, so that they do not depend on the images around.
    """

    squares: Tensor

    def __init__(self, encoder: Encoder, texture: NeuralGlcm, width: int, classes: int, scale: str) -> None:
        super().__init__(encoder)
        self.texture = texture
        self.classifier = nn.Linear(encoder.width + width, classes)
        self.scaled = scale == "batch"
        self.register_buffer("squares", torch.ones(encoder.width))

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the cross-entropy of the projected logits, over all views of the whole batch."""
        h = gather(self._encode(batch.views), 1).flatten(0, 1)
        g = gather(of_views(self._texture_of, batch.views, apart=False), 1).flatten(0, 1)
        if self.scaled:
            self._follow(h.detach().square().sum(0))
            h, g = (x * x.square().sum(0).clamp_min(SMALLEST_SQUARES).rsqrt() for x in (h, g))
        everything = self.classifier(torch.cat([h, g], 1))
        superficial = self.classifier(torch.cat([torch.zeros_like(h), g], 1))
        logits = project_out(everything, superficial).view(len(batch.views), -1, everything.shape[1])
        loss = repeated_cross_entropy(logits, batch.gathered(gather).labels)
        return of_every_image(loss, {})

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Return the scores `(N, C)` of `images` `(N, C', S, S)` without texture, in evaluation mode."""
        h = self._evaluated(lambda: self.encoder(channels_last(images)))
        if self.scaled:
            h = h * self.squares.clamp_min(SMALLEST_SQUARES).rsqrt()
        weight = self.classifier.weight[:, : h.shape[1]]
        return nn.functional.linear(h, weight, self.classifier.bias)

    def _texture_of(self, images: Tensor) -> Tensor:
        grey = luma_of(images) if images.shape[1] == 3 else images.mean(1, keepdim=True)
        features: Tensor = self.texture(grey[:, 0])
        return features

    @torch.no_grad()
    def _follow(self, squares: Tensor) -> None:
        self.squares.lerp_(squares.to(self.squares.dtype), 1 - KEPT)


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return the classifier with its texture network.

    Raises:
        InputError: a batch has no more images than there are classes: nothing is left after projection.
    """
    settings, classes = experiment.hyperparameters, data.spec.classes
    if min(experiment.batch_size, len(data.train)) <= classes:
        raise InputError(
            f"hex projects {classes} columns of logits out: batch_size must be above {classes}, "
            f"given {experiment.batch_size}, of {len(data.train)} training images"
        )
    width = int(settings["texture_width"])
    texture = NeuralGlcm(int(settings["levels"]), width)
    return ProjectedClassifier(encoder, texture, width, classes, str(settings["scale"]))


METHOD = Method(
    name="hex",
    summary="a classifier whose logits exclude what the texture of an image explains",
    paper="HEX (Wang et al. 2019)",
    equation="Eq. 3, 4",
    hyperparameters={
        "levels": Hyperparameter("the grey levels of the texture network", Number(at_least=2, whole=True)),
        "texture_width": Hyperparameter("the texture network's features", Number(at_least=1, whole=True)),
        "scale": Hyperparameter("whether features are scaled over the batch", OneOf(SCALES)),
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels"}),
    classifies=True,
)
