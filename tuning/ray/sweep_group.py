"""Sweeps of several methods on one dataset, one after the other, with the same budget each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from contrasweep.tuning.errors import SweepFailed, refuse_repeats
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.request import prefix_of
from contrasweep.tuning.planning.resume_check import Expected
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.result import SweepResult
from contrasweep.tuning.ray.sweep import create_study, resume_sweep, telling_how_to_go_on
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.store.filesystem import open_location
from contrasweep.tuning.store.study import OTHER_NAME, refuse_remains, refuse_taken
from contrasweep.tuning.store.unstarted import removed_if_refused

ShowStudy = Callable[[str, SweepProgress], object]


@dataclass(frozen=True)
class GroupResult:
    """The sweeps in which a trial finished, and by study, why the others failed."""

    results: tuple[SweepResult, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


def sweep_group(plans: Sequence[SweepPlan], show: ShowStudy | None = None) -> GroupResult:
    """Run new studies one after the other; all are created first, so that all can be resumed.

    Args:
        plans: the plans of the studies, all in one results folder and on one machine.
        show: called with the name of a study and its progress.

    Raises:
        InputError: a study is given twice, or a node of the cluster lacks what trials need. No study without
            a trial is left behind.
        StoreError: the results folder cannot be used, or it has a study with one of the names. No study is
            created then.
    """
    names = [plan.name for plan in plans]
    refuse_repeats("study", names)
    location = open_location(plans[0].results)
    refuse_taken(location, names, OTHER_NAME)
    refuse_remains(location, names)
    for plan in plans:
        create_study(plan)
    results, data_root, machine = plans[0].results, plans[0].data_root, plans[0].resources.machine
    # What the user asked for may be more than there are cores; a study that goes on would take what fits.
    at_once = plans[0].search.concurrency
    with removed_if_refused(open_location(results), names):
        return resume_group(
            names, results, show=show, data_root=data_root, concurrency=at_once, machine=machine
        )


def resume_group(
    names: Sequence[str],
    results: str | Path,
    *,
    expected: Mapping[str, Expected] | None = None,
    show: ShowStudy | None = None,
    **options: Any,
) -> GroupResult:
    """Go on with studies one after the other; a study that fails does not stop the next.

    Args:
        names: the names of the studies.
        results: the results folder.
        expected: by study, the `expected` of `resume_sweep`.
        show: called with the name of a study and its progress.
        options: the other options of `resume_sweep`.

    Raises:
        InputError, StoreError: see `resume_sweep`.
    """
    methods = [ResultsStore(results).study(name).method for name in names]
    prefix, machine = prefix_of(names[0], methods[0]), options.get("machine")
    done: list[SweepResult] = []
    failed: dict[str, str] = {}
    with telling_how_to_go_on(methods, prefix, results, machine):
        for name in names:
            try:
                result = resume_sweep(
                    name,
                    results,
                    expected=(expected or {}).get(name),
                    progress=None if show is None else partial(show, name),
                    **options,
                )
            except SweepFailed as error:
                failed[name] = ". ".join([str(error), *getattr(error, "__notes__", [])])
            else:
                done.append(result)
    return GroupResult(tuple(done), failed)
