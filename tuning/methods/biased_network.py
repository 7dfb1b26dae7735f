"""What the methods with a second, biased network have in common: which network it is, and how it is built."""

from contrasweep.models import Encoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.objectives.prepared import PreparedData

SAME = "same"

BIASED_ENCODER = Hyperparameter(
    "the backbone of the biased network: the run's own, or one that sees single pixels or small patches",
    OneOf((SAME, "simple-conv-1x1", "bagnet18")),
)

LOSS_MOMENTUM = Hyperparameter(
    "the share that the moving average of an image's loss keeps of itself", Number(at_least=0, below=1)
)


def build_biased_encoder(experiment: Experiment, data: PreparedData) -> Encoder:
    """Return the backbone of the biased network, which normalises images as the run's encoder does.

    It starts at random, also where the encoder starts from a file: two networks that start alike learn alike.
    """
    name, settings = str(experiment.hyperparameters["biased_encoder"]), experiment.encoder
    changed = {"weights": None, "weights_sha256": None, **({} if name == SAME else {"name": name})}
    return data.build_encoder(settings.model_copy(update=changed))
