"""Several methods with one budget: a study each, one after the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.planning.machine import Machine
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.ray.searcher import Progress
from contrasweep.tuning.ray.sweep import SweepResult, create_study, resume_sweep
from contrasweep.tuning.store import StoreError, open_location, study_names

ShowStudy = Callable[[str, Progress], None]


@dataclass(frozen=True)
class GroupResult:
    """The sweeps that gave something, and why the others, by study, did not."""

    results: tuple[SweepResult, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


def study_of(prefix: str, method: str) -> str:
    """Return the name of a method's study in a group."""
    return f"{prefix}-{method}"


def sweep_group(
    plans: Sequence[SweepPlan], show: ShowStudy | None = None, machine: Machine | None = None
) -> GroupResult:
    """Run new studies one after the other; all are created first, so that all can be resumed.

    Args:
        plans: of the studies, all in one results folder.
        show: called with a study's name and its progress.
        machine: where trials run, as the plans have it.

    Raises:
        InputError: a method comes twice.
        StoreError: the results folder cannot be used, or has a study of one of the names; none is created.
    """
    names = [plan.name for plan in plans]
    if len(set(names)) < len(names):
        raise InputError(f"given {', '.join(plan.method for plan in plans)}; allowed: each method once")
    taken = set(study_names(open_location(plans[0].results))).intersection(names)
    if taken:
        raise StoreError(f"{plans[0].results} has {', '.join(sorted(taken))}; resume, or choose another name")
    for plan in plans:
        create_study(plan)
    return resume_group(names, plans[0].results, show=show, data_root=plans[0].data_root, machine=machine)


def resume_group(
    names: Sequence[str],
    results: str | Path,
    *,
    expected: Mapping[str, Mapping[str, Any]] | None = None,
    show: ShowStudy | None = None,
    **options: Any,
) -> GroupResult:
    """Go on with studies one after the other: finished ones stay, one of which nothing comes stops no other.

    Args:
        names: of the studies.
        results: the results folder.
        expected: what the caller believes of each study; a difference is refused.
        show: called with a study's name and its progress.
        options: those of `resume_sweep`.

    Raises:
        InputError, StoreError: see `resume_sweep`.
    """
    done: list[SweepResult] = []
    failed: dict[str, str] = {}
    for name in names:
        try:
            result = resume_sweep(
                name,
                results,
                expected=(expected or {}).get(name),
                show=None if show is None else partial(show, name),
                **options,
            )
        except SweepFailed as error:
            failed[name] = str(error)
        else:
            done.append(result)
    return GroupResult(tuple(done), failed)
