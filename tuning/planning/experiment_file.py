"""The file of an experiment, which `contrasweep train` reads."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
from contrasweep.tuning.errors import InputError, every_fault
from contrasweep.tuning.experiment import Experiment, flat_settings
from contrasweep.tuning.planning.best_config import read_mapping
from contrasweep.tuning.planning.settings import known_experiment
from contrasweep.tuning.results.commands import search_command


class ExperimentFile(NamedTuple):
    """What a file says: the first arguments of `planning.resolve.resolve`."""

    method: str
    dataset: str
    values: dict[str, Any]


def read_experiment(path: Path) -> ExperimentFile:
    """Return the method, the dataset and the settings in a file of an experiment or of a best configuration.

    Raises:
        InputError: the file cannot be read, it lacks the method or the dataset, or a setting is in two places
            or in a wrong one.
    """
    if not path.exists() and path.name in DECLARED_METHODS:
        raise InputError(
            f"train takes the file of an experiment; {path} is a method, which "
            f"`{search_command(path.name)}` searches"
        )
    content = read_mapping(path)
    of_best = content.get("experiment")
    # The file of a best configuration holds its experiment.
    content = of_best if isinstance(of_best, dict) else content
    missing = [name for name in ("method", "dataset") if name not in content]
    if missing:
        raise InputError(f"{path}: {' and '.join(missing)} missing")
    method, dataset = str(content.pop("method")), str(content.pop("dataset"))
    hyperparameters = content.pop("hyperparameters", None) or {}
    if not isinstance(hyperparameters, dict):
        raise InputError(f"{path}: hyperparameters must be values by name, given {hyperparameters!r}")
    for name in map(str, hyperparameters):
        if "." in name or name in Experiment.model_fields:
            raise InputError(f"{path}: {name} is no hyperparameter: move it to the top level of the file")
        if name in content:
            raise InputError(f"{path}: {name} is given twice, at the top level and under hyperparameters")
    return ExperimentFile(method, dataset, flat_settings({**hyperparameters, **content}))


def checked_values(
    path: Path, read: ExperimentFile, given: Mapping[str, Any], *, use_preset: bool = False
) -> dict[str, Any]:
    """Return the settings of the file with those given beside it, which come first; checked without the data.

    Args:
        path: of the file, for the message.
        read: what it says.
        given: more settings, by dotted paths.
        use_preset: see `planning.resolve.resolve`.

    Raises:
        InputError: see `planning.settings.known_experiment`; the message names the file where it is at fault.
    """
    values = {**read.values, **given}
    check = partial(known_experiment, read.method, read.dataset, use_preset=use_preset)
    try:
        every_fault(check, values)
    except InputError as error:
        if not given or str(error) == _refusal_of_the_file(check, read.values):
            raise InputError(f"{path}: {error}") from None
        raise
    return values


def _refusal_of_the_file(check: Callable[[dict[str, Any]], object], values: Mapping[str, Any]) -> str | None:
    """Return why the settings of the file are refused by themselves; None if they are not."""
    try:
        every_fault(check, values)
    except InputError as error:
        return str(error)
    return None
