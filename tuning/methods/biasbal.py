"""BiasBal: cross-entropy whose logits carry, in training, how often a class comes with a bias value."""

from torch import Tensor

from contrasweep.losses import BiasBal
from contrasweep.losses.debiasing import log_class_prior
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import bias_of
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import EndToEndClassifier, without_drops
from contrasweep.tuning.objectives.objective import Batch, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return cross-entropy of logits plus log p(class | bias), counted on the training images."""
    train, spec = data.train, data.spec
    assert train.bias is not None, "checked when the experiment was resolved"
    assert spec.bias_classes is not None, "checked when the experiment was resolved"
    balanced = BiasBal(log_class_prior(train.labels, train.bias, spec.classes, spec.bias_classes))

    def loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        views = len(logits)
        return without_drops(
            balanced(logits.flatten(0, 1), batch.labels.repeat(views), bias_of(batch).repeat(views))
        )

    return EndToEndClassifier(encoder, spec.classes, loss)


METHOD = Method(
    name="biasbal",
    summary="cross-entropy corrected by how often a class comes with a bias value",
    paper="Hong and Yang 2021",
    equation="bias-balanced regression",
    hyperparameters={},
    build=build,
    feed=single_view,
    needs=frozenset({"labels", "bias"}),
    classifies=True,
)
