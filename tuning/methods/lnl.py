"""LNL: a predictor learns the bias from the features, and the features learn to prevent this.

The predictor minimises its cross-entropy. The gradient that reaches the features is reversed. The features
also maximise the entropy of the predictions; this term does not train the predictor.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from contrasweep.data import DatasetSpec
from contrasweep.losses.adversarial import negative_entropy, reverse_gradient
from contrasweep.models import Encoder, Tap
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.debiasing import bias_of
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import EndToEndClassifier, plain_loss
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData

READS = ("features", "middle")
"""What the predictor may read: the encoder's features, or the maps in its middle."""


class LearningNotToLearn(EndToEndClassifier):
    """`L_c + entropy_weight * sum p log p`, and a predictor's cross-entropy with its gradient reversed.

    The released code takes two steps on a batch: the network on the first two terms, then the network and the
    predictor on the third. Here one step has the sum of both gradients. The reported loss is the first two
    terms.

    Attributes:
        predictor: maps what `tap` kept to scores of the bias `(B, A)`.
        reversal: how strongly the reversed gradient reaches the encoder.
    """

    def __init__(
        self,
        encoder: Encoder,
        classes: int,
        predictor: nn.Module,
        tap: Tap,
        entropy_weight: float,
        reversal: float,
    ) -> None:
        super().__init__(encoder, classes, plain_loss)
        self.predictor = predictor
        self.tap = tap
        self.entropy_weight = entropy_weight
        self.reversal = reversal

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss of one view of each image, its metrics, and the gradients of all three terms."""
        loss, metrics = super().compute(batch, gather)
        read = self.tap.output.to(self.classifier.weight.dtype)
        fixed = {name: weight.detach() for name, weight in self.predictor.named_parameters()}
        seen = gather(functional_call(self.predictor, fixed, (read,)), 0)
        learned = gather(self.predictor(reverse_gradient(read, self.reversal)), 0)
        entropy = negative_entropy(seen)
        prediction = functional.cross_entropy(learned, bias_of(batch.gathered(gather)))
        total = loss + self.entropy_weight * entropy + (prediction - prediction.detach())
        return total, {**metrics, "bias_loss": prediction.detach(), "bias_entropy": -entropy.detach()}


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return the network with its predictor of the bias.

    Raises:
        InputError: the predictor shall read the middle of an encoder that states none.
    """
    settings, biases = experiment.hyperparameters, data.spec.bias_classes
    assert biases is not None, "checked when the experiment was resolved"
    if settings["reads"] == "features":
        tap, predictor = Tap(encoder), linear_predictor(encoder.width, biases)
    elif encoder.middle is None:
        raise InputError(f"reads middle: encoder {experiment.encoder.name} states none; give features")
    else:
        tap = Tap(encoder.body.get_submodule(encoder.middle))
        predictor = map_predictor(_channels(encoder, tap, data.spec), biases)
    return LearningNotToLearn(
        encoder,
        data.spec.classes,
        predictor,
        tap,
        float(settings["entropy_weight"]),
        float(settings["reversal"]),
    )


def linear_predictor(width: int, biases: int) -> nn.Module:
    """Return one linear layer: features `(B, width)` to scores `(B, biases)`."""
    return nn.Linear(width, biases)


def map_predictor(channels: int, biases: int) -> nn.Module:
    """Return two 7 x 7 convolutions and a linear layer: maps `(B, channels, S, S)` to scores `(B, biases)`.

    Source: Hong and Yang 2021, released code, networks/simple_conv_lnl.py.
    """
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((channels, 64, 128)):
        layers += [nn.Conv2d(inputs, outputs, 7, padding=3), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, biases))


@torch.no_grad()
def _channels(encoder: Encoder, tap: Tap, spec: DatasetSpec) -> int:
    """Return the channels of the maps that `tap` keeps."""
    encoder.eval()(torch.zeros(1, spec.channels, spec.view_size, spec.view_size))
    encoder.train()
    return tap.output.shape[1]


METHOD = Method(
    name="lnl",
    summary="features from which a predictor cannot learn the bias, by gradient reversal and entropy",
    paper="LNL (Kim et al. 2019)",
    equation="the min-max objective of section 3",
    hyperparameters={
        "entropy_weight": Hyperparameter("the weight of their negative entropy", Number(at_least=0)),
        "reversal": Hyperparameter(
            "how much of the predictor's reversed gradient reaches the encoder", Number(at_least=0)
        ),
        "reads": Hyperparameter("what the predictor reads of the encoder", OneOf(READS)),
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
    train_metrics=("bias_loss", "bias_entropy"),
)
