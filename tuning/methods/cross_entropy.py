"""Cross-entropy: a linear classifier trained together with the encoder, the supervised baseline."""

from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import (
    EndToEndClassifier,
    repeated_cross_entropy,
    without_drops,
)
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return cross-entropy of the labels."""
    return EndToEndClassifier(
        encoder,
        data.spec.classes,
        lambda features, logits, batch: without_drops(repeated_cross_entropy(logits, batch.labels)),
    )


METHOD = Method(
    name="cross-entropy",
    summary="a linear classifier trained together with the encoder",
    paper="the supervised baseline of every paper",
    equation="softmax cross-entropy",
    hyperparameters={},
    build=build,
    feed=single_view,
    needs=frozenset({"labels"}),
    classifies=True,
)
