"""The encoder of a run, read from the run's checkpoint."""

from pathlib import Path

from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.encoders import build_encoder_for, encoder_file
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.training.checkpoint import load_checkpoint
from contrasweep.tuning.training.pretrain import initial_encoder

_ENCODER = "encoder."
"""What the names of the encoder's weights begin with in the state of an objective."""


def encoder_file_of(checkpoint: bytes, experiment: Experiment, data_root: Path | None = None) -> bytes:
    """Return the content of an encoder file (safetensors) with the weights of a run's checkpoint.

    With `optimizer.ema`, they are the average that the run has scored.

    Raises:
        InputError: see `load_checkpoint`.
    """
    state = load_checkpoint(checkpoint, experiment).objective
    spec = spec_for(experiment, data_root)
    # The file of weights that the run began with may be gone.
    settings = experiment.encoder.model_copy(update={"weights": None})
    encoder = initial_encoder(experiment.seed, lambda: build_encoder_for(spec, settings))
    own = {name.removeprefix(_ENCODER): one for name, one in state.items() if name.startswith(_ENCODER)}
    encoder.load_state_dict(own)
    return encoder_file(spec, encoder, experiment)
