"""Classifiers trained together with the encoder: cross-entropy, and four that should not learn a bias."""

from collections.abc import Callable

from torch import Tensor

from contrasweep.losses import BiasBal, BiasCon, EnD, SoftCon
from contrasweep.losses.debiasing import log_class_prior
from contrasweep.losses.validation import POSITIVE
from contrasweep.models import Encoder
from contrasweep.rules import OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import EndToEndClassifier, plain_loss, repeated_cross_entropy
from contrasweep.tuning.objectives.objective import Batch, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData

CLASSIFIER_INPUT = Hyperparameter(
    "whether the classifier reads L2-normalised features, or features as they are",
    OneOf(("normalised", "raw")),
)
"""What the classifier of a method with a regulariser of directions reads."""

ALPHA = Hyperparameter("the weight of the classifier's loss", POSITIVE)

BASES = ("cross-entropy", "biasbal")
"""The losses of BiasCon's classifier."""


def bias_of(batch: Batch) -> Tensor:
    """Return the bias labels `(B,)` of a batch whose method needs them."""
    assert batch.bias is not None, "checked when the experiment was resolved"
    return batch.bias


def _cross_entropy(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    return EndToEndClassifier(encoder, data.spec.classes, plain_loss)


def _biasbal(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return cross-entropy of logits plus log p(class | bias), counted on the training images."""
    balanced = _balanced(data)

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        return balanced(logits, batch), {}

    return EndToEndClassifier(encoder, data.spec.classes, loss)


def _balanced(data: PreparedData) -> Callable[[Tensor, Batch], Tensor]:
    """Return BiasBal of logits `(V, B, C)`, with the prior of the training images."""
    train, spec = data.train, data.spec
    assert train.bias is not None, "checked when the experiment was resolved"
    assert spec.bias_classes is not None, "checked when the experiment was resolved"
    balanced = BiasBal(log_class_prior(train.labels, train.bias, spec.classes, spec.bias_classes))

    def loss(logits: Tensor, batch: Batch) -> Tensor:
        labels, bias = (values.repeat(len(logits)) for values in (batch.labels, bias_of(batch)))
        value: Tensor = balanced.to(logits.device)(logits.flatten(0, 1), labels, bias)
        return value

    return loss


def _biascon(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return BiasCon of two views' features plus `alpha` times the classifier's loss."""
    settings = experiment.hyperparameters
    contrast, alpha = BiasCon(float(settings["temperature"])), float(settings["alpha"])
    balanced = _balanced(data) if settings["base"] == "biasbal" else None

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        plain = repeated_cross_entropy(logits, batch.labels) if balanced is None else balanced(logits, batch)
        return contrast(features, batch.labels, bias_of(batch)) + alpha * plain, {}

    return EndToEndClassifier(encoder, data.spec.classes, loss)


def _softcon(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return SoftCon of two views' features plus `alpha` times cross-entropy."""
    settings = experiment.hyperparameters
    contrast, alpha = SoftCon(float(settings["temperature"])), float(settings["alpha"])

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        assert batch.condition is not None, "checked when the experiment was resolved"
        soft = contrast(features, batch.labels, batch.condition)
        return soft + alpha * repeated_cross_entropy(logits, batch.labels), {}

    return EndToEndClassifier(encoder, data.spec.classes, loss)


def _end(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return cross-entropy plus EnD's regulariser of the encoder's features."""
    settings = experiment.hyperparameters
    end = EnD(float(settings["alpha"]), float(settings["beta"]))

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        regulariser = end(features, batch.labels, bias_of(batch))
        return repeated_cross_entropy(logits, batch.labels) + regulariser, {"regulariser": regulariser}

    normalised = settings["classifier_input"] == "normalised"
    return EndToEndClassifier(encoder, data.spec.classes, loss, normalised=normalised)


CROSS_ENTROPY = Method(
    name="cross-entropy",
    summary="a linear classifier trained together with the encoder",
    paper="the supervised baseline of every paper",
    equation="softmax cross-entropy",
    hyperparameters={},
    build=_cross_entropy,
    feed=single_view,
    needs=frozenset({"labels"}),
    classifies=True,
)
BIASBAL = Method(
    name="biasbal",
    summary="cross-entropy corrected by how often a class comes with a bias value",
    paper="Hong and Yang 2021",
    equation="bias-balanced regression",
    hyperparameters={},
    build=_biasbal,
    feed=single_view,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
)
BIASCON = Method(
    name="biascon",
    summary="SupCon whose positives share the class and differ in the bias",
    paper="Hong and Yang 2021",
    equation="bias-contrastive loss",
    hyperparameters={
        **hyperparameters_of(BiasCon, {"temperature": TEMPERATURE}),
        "alpha": ALPHA,
        "base": Hyperparameter("the classifier's loss", OneOf(BASES)),
    },
    build=_biascon,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
)
SOFTCON = Method(
    name="softcon",
    summary="BiasCon without bias labels: positives weigh more, the less similar their bias features are",
    paper="Hong and Yang 2021",
    equation="soft bias-contrastive loss",
    hyperparameters={
        **hyperparameters_of(SoftCon, {"temperature": TEMPERATURE}),
        "alpha": ALPHA,
    },
    build=_softcon,
    needs=frozenset({"labels", "condition"}),
    classifies=True,
)
END = Method(
    name="end",
    summary="cross-entropy, and features that separate classes but not biases",
    paper="EnD (Tartaglione et al. 2021)",
    equation="R_perp and R_par",
    hyperparameters={
        **hyperparameters_of(
            EnD,
            {
                "alpha": "the weight of disentangling images of one bias value",
                "beta": "the weight of entangling a class across bias values",
            },
        ),
        "classifier_input": CLASSIFIER_INPUT,
    },
    build=_end,
    feed=single_view,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
    train_metrics=("regulariser",),
)
