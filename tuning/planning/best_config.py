"""`best.yaml`: the file of a selected experiment, which `contrasweep run` reads."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from contrasweep.search_spaces import Scalar, read_yaml
from contrasweep.tuning.errors import InputError, told_to_user, unknown_name
from contrasweep.tuning.experiment import Experiment, parse_experiment
from contrasweep.tuning.limits import MOST
from contrasweep.tuning.planning.plugin_changes import lacking_here, plugins_behind, refuse_absent_behind
from contrasweep.tuning.provenance import same_series
from contrasweep.tuning.results.commands import train_command
from contrasweep.tuning.results.selection import SelectedTrial, data_root_of
from contrasweep.tuning.store import ResultsStore, check_study_name, study_names
from contrasweep.version import __version__

KEYS = ("contrasweep", "study", "trial", "seeds", "selected", "values", "experiment", "plugins")
OPTIONAL = ("seeds", "selected", "plugins")


@dataclass(frozen=True)
class BestConfig:
    """A configuration for final runs: where it comes from, its searched values, and the whole experiment.

    The search ran it on `seeds` consecutive seeds, the first of which is the experiment's. A final run takes
    other seeds. `data_root` is the folder of the datasets where it was searched, if that is known.
    """

    study: str
    trial: int
    values: Mapping[str, Scalar]
    experiment: Experiment
    seeds: int = 1
    data_root: Path | None = None


def config_of(selected: SelectedTrial) -> BestConfig:
    """Return the configuration of a selected trial."""
    return BestConfig(
        selected.study,
        selected.trial,
        selected.values,
        selected.experiment,
        selected.seeds,
        selected.data_root,
    )


def best_yaml(selected: SelectedTrial, versions: Mapping[str, str]) -> str:
    """Return the text of a best.yaml for a selected trial; `versions` are those of its study's record."""
    plugins = plugins_behind(selected.experiment, versions)
    content = {
        "contrasweep": __version__,
        "study": selected.study,
        "trial": selected.trial,
        "seeds": selected.seeds,
        "selected": {"rule": selected.rule, "score": selected.score, "untrained": selected.untrained},
        "values": selected.values,
        "experiment": selected.experiment.model_dump(mode="json"),
        **({"plugins": plugins} if plugins else {}),
    }
    return yaml.safe_dump(content, sort_keys=False)


def load_best(path: Path, data_root: Path | None = None, results: str | Path | None = None) -> BestConfig:
    """Read a best.yaml.

    Args:
        path: the file.
        data_root: the folder of the datasets: the facts of some come from their files.
        results: a results folder. If the search is stored there, its folder of datasets is the default.

    Raises:
        InputError: the file cannot be read, it is not YAML, it has an unknown key or lacks one, it comes from
            another major version, or its experiment is not allowed.
    """
    # Imported here because it imports torch; who selects and writes a configuration does not need it.
    from contrasweep.tuning.planning.resolve import check_experiment
    from contrasweep.tuning.planning.settings import with_declared_types

    content = read_mapping(path)
    if "method" in content and "experiment" not in content:
        raise InputError(
            f"{path} is an experiment, not a best configuration: `{train_command(path)}` trains it"
        )
    for key in content:
        if key not in KEYS:
            raise InputError(f"{path}: {unknown_name('key', str(key), KEYS)}")
    missing = [key for key in KEYS if key not in content and key not in OPTIONAL]
    if missing:
        raise InputError(
            f"{path}: {', '.join(missing)} missing; `contrasweep best STUDY -o FILE` writes such files"
        )
    there, here = str(content["contrasweep"]), __version__
    if not same_series(there, here):
        raise InputError(
            f"{path} was written by contrasweep {there}; this is {here}, which may read it differently"
        )
    with told_to_user(f"{path}: experiment: "):
        experiment = parse_experiment(content["experiment"])
    with told_to_user(f"{path}: "):
        refuse_absent_behind(experiment, _plugins(content.get("plugins", {})))
    # Files of earlier versions do not state the plug-ins.
    advice = " If a plug-in adds it, install its package." if lacking_here(experiment) else ""
    with told_to_user(f"{path}: "):
        # A name of digits alone is a number to YAML.
        study = check_study_name("" if content["study"] is None else str(content["study"]))
    searched = None if results is None else _data_root_of_search(study, experiment.dataset, results)
    with told_to_user(f"{path}: experiment: ", advice):
        check_experiment(experiment, data_root_of(data_root, searched))
    experiment = with_declared_types(experiment)
    return BestConfig(
        study,
        _whole_number(path, "trial", content["trial"], 0),
        _values(path, content["values"], experiment),
        experiment,
        _whole_number(path, "seeds", content.get("seeds", 1), 1),
        searched,
    )


def _data_root_of_search(study: str, dataset: str, results: str | Path) -> Path | None:
    """Return the folder of the datasets of a stored search; None where the results folder has no such one."""
    store = ResultsStore(results)
    if study not in study_names(store.location):
        return None
    record = store.study(study)
    # A file may come from another machine, where another study had this name.
    if record.is_final or record.dataset != dataset:
        return None
    root = record.require_search().data_root
    return None if root is None else Path(root)


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises:
        InputError: the file cannot be read, its content is not YAML (see `search_spaces.read_yaml`), or no
            mapping.
    """
    with told_to_user():
        content = read_yaml(path)
    if content is None:
        raise InputError(f"{path} is empty; it must hold settings by name")
    if not isinstance(content, dict):
        raise InputError(f"{path} holds {type(content).__name__}, not settings by name")
    return content


def _plugins(given: Any) -> Mapping[str, str]:
    if not isinstance(given, dict) or not all(isinstance(text, str) for one in given.items() for text in one):
        raise InputError(f"plugins must be names of plug-ins by what they add, given {reprlib.repr(given)}")
    return given


def _whole_number(path: Path, name: str, given: Any, least: int) -> int:
    if type(given) is not int or not least <= given <= MOST:
        allowed = f"a whole number from {least} to {MOST:,}"
        raise InputError(f"{path}: {name} must be {allowed}, given {reprlib.repr(given)}")
    return given


def _values(path: Path, given: Any, experiment: Experiment) -> Mapping[str, Scalar]:
    """Return the searched values, which the rows of final runs will hold; the experiment has them too."""
    if not isinstance(given, dict):
        raise InputError(f"{path}: values must be values by name, given {reprlib.repr(given)}")
    values: dict[str, Scalar] = {}
    for name, value in given.items():
        with told_to_user(f"{path}: values: "):
            held = experiment.value(str(name))
        if value != held or isinstance(value, bool) != isinstance(held, bool):
            raise InputError(
                f"{path}: values: {name} is {reprlib.repr(value)}, the experiment has {held!r}: "
                "give the same value in both places"
            )
        values[str(name)] = held
    return values
