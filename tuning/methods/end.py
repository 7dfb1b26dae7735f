"""EnD: cross-entropy, features of one bias value disentangled, those of one class entangled across biases."""

from torch import Tensor

from contrasweep.losses import EnD
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import bias_of
from contrasweep.tuning.methods.method import Hyperparameter, Method
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import (
    EndToEndClassifier,
    repeated_cross_entropy,
    without_drops,
)
from contrasweep.tuning.objectives.objective import Batch, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return cross-entropy plus EnD's regulariser of the encoder's features."""
    end = EnD(**experiment.hyperparameters)  # type: ignore[arg-type]

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        regulariser = end(features, batch.labels, bias_of(batch))
        total = repeated_cross_entropy(logits, batch.labels) + regulariser
        return without_drops(total, regulariser=regulariser)

    return EndToEndClassifier(encoder, data.spec.classes, loss)


METHOD = Method(
    name="end",
    summary="cross-entropy, and features that tell classes apart but not biases",
    paper="EnD (Tartaglione et al. 2021)",
    equation="R_perp and R_par",
    hyperparameters={
        "alpha": Hyperparameter("the weight of disentangling images of one bias value", float, at_least=0),
        "beta": Hyperparameter("the weight of entangling a class across bias values", float, at_least=0),
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
    train_metrics=("regulariser",),
)
