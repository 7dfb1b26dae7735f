"""Plug-ins of studies and configurations: refused if they are missing, with a warning if they changed.

Changed code matters when a study continues, and when final runs of its best trials begin: the runs would then
not all be of one method.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence

from contrasweep.libraries import of_library
from contrasweep.names import few
from contrasweep.plugin_packages import plugin_versions
from contrasweep.tuning.catalogue.declared import (
    DECLARED_DATASETS,
    DECLARED_ENCODERS,
    DECLARED_METHODS,
    DECLARED_SAMPLERS,
)
from contrasweep.tuning.errors import InputError, in_one, told_to_user
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.added_metrics import ADDED_METRICS
from contrasweep.tuning.provenance import absent_plugins, changed_plugins, plugins_by_addition
from contrasweep.tuning.store import SearchRecord, StudyRecord

log = logging.getLogger(__name__)


def refuse_absent_plugins(record: StudyRecord, searches_on: bool = False) -> None:
    """Refuse to go on with a study whose plug-in is not installed here.

    Args:
        record: the stored study.
        searches_on: whether its sampler is needed too.

    Raises:
        InputError: a plug-in had its method, dataset, encoder, one of its metrics or the sampler.
    """
    lacking = [*lacking_here(record.experiment), *(_lacking_sampler(record) if searches_on else ())]
    added = plugins_by_addition(record.versions)
    with told_to_user(f"study {record.name}: "):
        _refuse(lacking, added, () if added else absent_plugins(record.versions))


def refuse_absent_behind(experiment: Experiment, plugins: Mapping[str, str]) -> None:
    """Refuse an experiment whose plug-in is not installed here.

    Args:
        experiment: the experiment.
        plugins: what `plugins_behind` returned where it was installed.

    Raises:
        InputError: a plug-in had its method, dataset, encoder or one of its metrics.
    """
    _refuse(lacking_here(experiment), plugins)


def plugins_behind(experiment: Experiment, versions: Mapping[str, str]) -> dict[str, str]:
    """Return the plug-ins that an experiment uses, by what they add, as `method dcl: contrasweep-dcl 0.1.0`.

    Args:
        experiment: the experiment.
        versions: those of its study's record.
    """
    added, used = plugins_by_addition(versions), (f"{kind} {name}" for kind, name in _used(experiment))
    return {thing: added[thing] for thing in used if thing in added}


def lacking_here(experiment: Experiment) -> list[tuple[str, str]]:
    """Return the kinds and names of what an experiment uses that neither we nor a plug-in here have."""
    there: Mapping[str, Mapping[str, object]] = {
        "method": DECLARED_METHODS,
        "dataset": DECLARED_DATASETS,
        "encoder": DECLARED_ENCODERS,
        "metric": ADDED_METRICS,
    }
    return [(kind, name) for kind, name in _used(experiment) if name not in there[kind]]


def _used(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of what an experiment uses and a plug-in may have added."""
    yield "method", experiment.method
    yield "dataset", experiment.dataset.partition(":")[0]
    if not of_library(experiment.encoder.name):
        yield "encoder", experiment.encoder.name
    for metric in experiment.probes.metrics:
        yield "metric", metric


def _refuse(lacking: Sequence[tuple[str, str]], added: Mapping[str, str], absent: Sequence[str] = ()) -> None:
    """Raise InputError, with what to install, for what a plug-in has added and nothing here has.

    Args:
        lacking: the kinds and names.
        added: the plug-ins by what they added.
        absent: where a record does not state what they added, the plug-ins that were there and are not here.
    """
    faults = []
    for kind, name in lacking:
        whose = added.get(f"{kind} {name}") or (absent[0] if len(absent) == 1 else "")
        if whose:
            faults.append(_where_from(f"{kind} {name!r}", whose))
        elif absent:
            faults.append(
                f"{kind} {name!r} comes from a plug-in that is not installed; when the study began, "
                f"there were {few(absent)}"
            )
    if faults:
        raise InputError(in_one(faults))


def _where_from(what: str, whose: str) -> str:
    """Say which plug-in, with its version, added what is not here, and what to install."""
    plugin, _, version = whose.partition(" ")
    here = plugin_versions().get(plugin)
    if here is None:
        return f"{what} comes from the plug-in {whose}, which is not installed: `pip install {plugin}`"
    return (
        f"{what} comes from the plug-in {whose}; {plugin} {here}, which is installed, does not have it: "
        f"`pip install {plugin}=={version}`"
    )


def _lacking_sampler(record: StudyRecord) -> list[tuple[str, str]]:
    if isinstance(record.search, SearchRecord) and record.search.sampler not in DECLARED_SAMPLERS:
        return [("sampler", record.search.sampler)]
    return []


def warn_of_other_code(record: StudyRecord, *others: str) -> None:
    """Warn where a plug-in that a stored study uses has changed since the study began.

    Args:
        record: the stored study.
        others: names that it uses besides those of its experiment, such as its sampler.
    """
    names = {*others, *(name for _, name in _used(record.experiment))}
    for plugin in changed_plugins(record.versions, names):
        log.warning(
            "The code of %s has changed since study %s began. The study keeps its earlier runs, which are of "
            "the earlier code: to compare codes, give the new one another name; else delete the study first.",
            plugin,
            record.name,
        )
