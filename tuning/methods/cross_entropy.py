"""Cross-entropy: a linear classifier trained together with the encoder, the supervised baseline."""

from models import Encoder
from tuning.config import Experiment
from tuning.methods.method import Method
from tuning.training.feeds import single_view
from tuning.training.objective import Objective
from tuning.training.prepared import PreparedData
from tuning.training.supervised import EndToEndClassifier, repeated_cross_entropy, without_drops


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
