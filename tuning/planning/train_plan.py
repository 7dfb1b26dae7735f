"""One run of one experiment, which `contrasweep train` makes, checked before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from contrasweep.data import DatasetFacts, check_available
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.kernel_scale import kernel_scale_in_words
from contrasweep.tuning.planning.resolve import check_size_of_data, resolve
from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.planning.setup import setup_in_words, unreached_in_words
from contrasweep.tuning.planning.unused import large_batch_in_words, unused_in_words
from contrasweep.tuning.training.checkpoint import load_checkpoint
from contrasweep.tuning.training.devices import AUTO, device_for, device_of


@dataclass(frozen=True)
class TrainPlan:
    """A run.

    Attributes:
        experiment: complete.
        asked: the resources, of one run at once.
        device: torch's name of the device.
        state: a checkpoint to go on from; None begins.
        data_root: the folder of the datasets.
        given: the settings that the user gave, by dotted paths.
    """

    experiment: Experiment
    asked: AskedResources
    device: str
    state: bytes | None = None
    data_root: Path | None = None
    given: tuple[str, ...] = ()

    @cached_property
    def _facts(self) -> DatasetFacts:
        """The facts of the dataset; to read them, a folder of images is listed."""
        return spec_for(self.experiment, self.data_root)

    @property
    def setup(self) -> str:
        """What the run consists of, as one line."""
        return setup_in_words(self.experiment, self._facts, self.device)

    @property
    def warnings(self) -> list[str]:
        """What the run does not reach, does not use or does not tell."""
        told = unreached_in_words(self.experiment)
        told += unused_in_words(self.experiment, self.given, self._facts)
        told += large_batch_in_words(self.experiment, self._facts)
        told += kernel_scale_in_words(self.experiment, self._facts)
        if not self.experiment.validation.fraction:
            told.append("validation.fraction is 0: without images that are held out, there are no scores.")
        return told


def plan_training(
    method: str,
    dataset: str,
    values: Mapping[str, Value],
    asked: AskedResources,
    *,
    use_preset: bool = False,
    state: bytes | None = None,
    data_root: Path | None = None,
) -> TrainPlan:
    """Return the checked plan of a run.

    Args:
        method, dataset, values, use_preset: as in `planning.resolve.resolve`.
        asked: the resources, of one run at once.
        state: a checkpoint to go on from.
        data_root: the folder of the datasets.

    Raises:
        InputError: a setting is wrong, the device is not there, the dataset has too few images, or the
            checkpoint is of another experiment.
        DatasetMissing: the dataset's files are not in place.
    """
    device = device_for(asked.device or AUTO) if asked.in_one_process else device_of(asked.gpus_each())
    experiment = resolve(method, dataset, values, use_preset=use_preset, data_root=data_root)
    check_available(experiment.dataset, data_root)
    check_size_of_data(experiment, data_root)
    if state is not None:
        load_checkpoint(state, experiment)
    return TrainPlan(experiment, asked, device, state, data_root, tuple(values))
