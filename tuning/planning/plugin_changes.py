"""Warn before other code of a plug-in follows on stored runs: together they would not be of one method.

It follows when a study goes on, and when final runs of its best trials begin.
"""

import logging

from contrasweep.tuning.provenance import changed_plugins
from contrasweep.tuning.store import StudyRecord

log = logging.getLogger(__name__)


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
