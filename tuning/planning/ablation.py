"""A configuration with other settings, which is a row of an ablation."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
from contrasweep.tuning.errors import Faults, InputError, in_one
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.resolve import check_experiment
from contrasweep.tuning.planning.selected import Selected
from contrasweep.tuning.planning.settings import no_effect, with_declared_types
from contrasweep.tuning.planning.spaces import refuse_unknown
from contrasweep.tuning.planning.unused import unused_in_words
from contrasweep.tuning.results.selection import data_root_of
from contrasweep.tuning.store import name_before_final

_SAME_IN_ALL: Mapping[str, str] = {
    "seed": "all configurations run on the same fresh seeds",
    "epochs": "--epochs is for all configurations of a command",
}
"""The settings in which the rows of an ablation do not differ, and why."""


def ablated(config: Selected, changes: Mapping[str, Any], data_root: Path | None = None) -> BestConfig:
    """Return a configuration with other settings; all others keep the values that were tuned beside them.

    A hyperparameter that has no effect any more is left out: `sigma2`, if the kernel becomes `cosine`. Final
    runs of the new configuration are a study of their own, whose name tells the changes.

    Args:
        config: the configuration.
        changes: the other settings, by dotted paths or by names of hyperparameters.
        data_root: the folder of the datasets; by default the one of the search, if this machine has it.

    Raises:
        InputError: a name is unknown (the message has the nearest), a value is not allowed or has no effect,
            nothing changes, a hyperparameter lacks that now has an effect, or see `check_experiment`.
    """
    before = config.experiment
    for name in changes:
        if name in _SAME_IN_ALL:
            raise InputError(f"{name} is not ablated: {_SAME_IN_ALL[name]}")
    refuse_unknown(before, changes)
    experiment = with_declared_types(_without_idle(before, before.with_values(changes), changes))
    if _without_validation(experiment) == _without_validation(before):
        same = " and ".join(f"{name}={before.value(name)}" for name in changes)
        raise InputError(f"{_in_words(changes)} changes no final run: the configuration has {same}")
    root = data_root_of(data_root, config.data_root)
    check_experiment(experiment, root)
    if unused := unused_in_words(experiment, changes, spec_for(experiment, root)):
        raise InputError(in_one(unused))
    kept = {name: value for name, value in config.values.items() if _has(experiment, name)}
    changed = {name: experiment.value(name) for name in changes}
    scalars = {name: value for name, value in changed.items() if isinstance(value, bool | int | float | str)}
    return BestConfig(
        name_before_final(f"{config.study}-with-{_in_name(changed)}"),
        config.trial,
        {**kept, **scalars},
        experiment,
        config.seeds,
        config.data_root,
    )


def ablated_rows(
    config: Selected, rows: Iterable[Mapping[str, Any]], data_root: Path | None = None
) -> list[BestConfig]:
    """Return the rows of an ablation; each of them is `ablated`.

    Raises:
        InputError: see `ablated`; the message has the faults of all rows.
    """
    faults, found = Faults(), []
    for changes in rows:
        with faults.noted():
            found.append(ablated(config, changes, data_root))
    faults.tell()
    return found


def _without_idle(before: Experiment, after: Experiment, changes: Mapping[str, Any]) -> Experiment:
    """Return the experiment without hyperparameters that had an effect before the changes, and have none now.

    Raises:
        InputError: a changed hyperparameter has none.
    """
    declared = DECLARED_METHODS[after.method]
    space, values = declared.search_space(), after.hyperparameters
    active = space.active(values)
    for name in changes:
        if name in declared.hyperparameters and name not in active:
            raise no_effect(name, declared, values)
    idle = {*space.active(before.hyperparameters)} - {*active}
    return after.with_searched([name for name in values if name in idle], {})


def _without_validation(experiment: Experiment) -> Experiment:
    """Return the experiment of a final run, without the seed that would choose a validation split."""
    return experiment.on_all_training_data().with_values({"validation.seed": 0})


def _has(experiment: Experiment, name: str) -> bool:
    return "." in name or name in experiment.hyperparameters or name in Experiment.model_fields


def _in_words(changes: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in changes.items())


def _in_name(changes: Mapping[str, Any]) -> str:
    """Return changes as a part of a study's name, such as `kernel-cosine`."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", _in_words(changes)).strip("-.")
