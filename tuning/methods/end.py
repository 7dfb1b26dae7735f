"""EnD: cross-entropy, features of one bias value disentangled, those of one class entangled across biases."""

from torch import Tensor

from contrasweep.losses import EnD
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import bias_of
from contrasweep.tuning.methods.method import Method, hyperparameters_of
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
    hyperparameters=hyperparameters_of(
        EnD,
        {
            "alpha": "the weight of disentangling images of one bias value",
            "beta": "the weight of entangling a class across bias values",
        },
    ),
    build=build,
    feed=single_view,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
    train_metrics=("regulariser",),
)
