"""BiasCon: SupCon whose positives share the class but not the bias, with a little cross-entropy."""

from torch import Tensor

from contrasweep.losses import BiasCon
from contrasweep.losses.validation import POSITIVE
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import bias_of
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter, Method, hyperparameters_of
from contrasweep.tuning.objectives.classifiers import (
    EndToEndClassifier,
    repeated_cross_entropy,
    without_drops,
)
from contrasweep.tuning.objectives.objective import Batch, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return BiasCon of two views' features plus `alpha` times the cross-entropy."""
    contrast = BiasCon(float(experiment.hyperparameters["temperature"]))
    alpha = float(experiment.hyperparameters["alpha"])

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        classified = repeated_cross_entropy(logits, batch.labels)
        return without_drops(contrast(features, batch.labels, bias_of(batch)) + alpha * classified)

    return EndToEndClassifier(encoder, data.spec.classes, loss)


METHOD = Method(
    name="biascon",
    summary="SupCon whose positives share the class and differ in the bias",
    paper="Hong and Yang 2021",
    equation="bias-contrastive loss",
    hyperparameters={
        **hyperparameters_of(BiasCon, {"temperature": TEMPERATURE}),
        "alpha": Hyperparameter("the weight of the cross-entropy", POSITIVE),
    },
    build=build,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
)
