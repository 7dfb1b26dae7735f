"""Classifiers trained together with the encoder: cross-entropy, and three that should not learn a bias."""

from torch import Tensor

from contrasweep.losses import BiasBal, BiasCon, EnD
from contrasweep.losses.debiasing import log_class_prior
from contrasweep.losses.validation import POSITIVE
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter, Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import EndToEndClassifier, repeated_cross_entropy
from contrasweep.tuning.objectives.objective import Batch, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def bias_of(batch: Batch) -> Tensor:
    """Return the bias labels `(B,)` of a batch whose method needs them."""
    assert batch.bias is not None, "checked when the experiment was resolved"
    return batch.bias


def _cross_entropy(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        return repeated_cross_entropy(logits, batch.labels), {}

    return EndToEndClassifier(encoder, data.spec.classes, loss)


def _biasbal(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return cross-entropy of logits plus log p(class | bias), counted on the training images."""
    train, spec = data.train, data.spec
    assert train.bias is not None, "checked when the experiment was resolved"
    assert spec.bias_classes is not None, "checked when the experiment was resolved"
    balanced = BiasBal(log_class_prior(train.labels, train.bias, spec.classes, spec.bias_classes))

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        views = len(logits)
        labels, bias = batch.labels.repeat(views), bias_of(batch).repeat(views)
        return balanced(logits.flatten(0, 1), labels, bias), {}

    return EndToEndClassifier(encoder, spec.classes, loss)


def _biascon(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return BiasCon of two views' features plus `alpha` times the cross-entropy."""
    contrast = BiasCon(float(experiment.hyperparameters["temperature"]))
    alpha = float(experiment.hyperparameters["alpha"])

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        classified = repeated_cross_entropy(logits, batch.labels)
        return contrast(features, batch.labels, bias_of(batch)) + alpha * classified, {}

    return EndToEndClassifier(encoder, data.spec.classes, loss)


def _end(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return cross-entropy plus EnD's regulariser of the encoder's features."""
    end = EnD(**experiment.hyperparameters)  # type: ignore[arg-type]

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        regulariser = end(features, batch.labels, bias_of(batch))
        return repeated_cross_entropy(logits, batch.labels) + regulariser, {"regulariser": regulariser}

    return EndToEndClassifier(encoder, data.spec.classes, loss)


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
        "alpha": Hyperparameter("the weight of the cross-entropy", POSITIVE),
    },
    build=_biascon,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
)
END = Method(
    name="end",
    summary="cross-entropy, and features that tell classes apart but not biases",
    paper="EnD (Tartaglione et al. 2021)",
    equation="R_perp and R_par",
    hyperparameters=hyperparameters_of(
        EnD,
        {
            "alpha": "the weight of disentangling images of one bias value",
            "beta": "the weight of entangling a class across bias values",
        },
    ),
    build=_end,
    feed=single_view,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
    train_metrics=("regulariser",),
)
