"""Plug-ins of stored studies: refuse to go on without them, and warn before other code of them follows.

Other code follows when a study goes on, and when final runs of its best trials begin. Together the runs would
not be of one method.
"""

import logging

from contrasweep.libraries import of_library
from contrasweep.names import few
from contrasweep.tuning.catalogue.declared import (
    DECLARED_DATASETS,
    DECLARED_ENCODERS,
    DECLARED_METHODS,
    DECLARED_SAMPLERS,
)
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods.added_metrics import ADDED_METRICS
from contrasweep.tuning.provenance import absent_plugins, changed_plugins
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
    experiment = record.experiment
    dataset, encoder = experiment.dataset.partition(":")[0], experiment.encoder.name
    if (
        record.method in DECLARED_METHODS
        and dataset in DECLARED_DATASETS
        and (encoder in DECLARED_ENCODERS or of_library(encoder))
        and all(metric in ADDED_METRICS for metric in experiment.probes.metrics)
        and not (searches_on and _lacks_sampler(record))
    ):
        return
    absent = absent_plugins(record.versions)
    if absent:
        raise InputError(
            f"study {record.name} needs a plug-in that is not installed here; "
            f"when it began there were {few(absent)}"
        )


def _lacks_sampler(record: StudyRecord) -> bool:
    return isinstance(record.search, SearchRecord) and record.search.sampler not in DECLARED_SAMPLERS


def warn_of_other_code(record: StudyRecord, *others: str) -> None:
    """Warn where a plug-in that a stored study uses has changed since the study began.

    Args:
        record: the stored study.
        others: names that it uses besides those of its experiment, such as its sampler.
    """
    experiment = record.experiment
    dataset = experiment.dataset.partition(":")[0]
    names = {record.method, dataset, experiment.encoder.name, *experiment.probes.metrics, *others}
    for plugin in changed_plugins(record.versions, names):
        log.warning(
            "The code of %s has changed since study %s began. The study keeps its earlier runs, which are of "
            "the earlier code: to compare codes, give the new one another name; else delete the study first.",
            plugin,
            record.name,
        )
