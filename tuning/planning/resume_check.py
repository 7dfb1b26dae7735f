"""What a caller who resumes a study believes of it, against what it is: a difference is refused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contrasweep.data import dataset_spec
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Value
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import chosen_goals, search_metrics
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import cut_into_levels
from contrasweep.tuning.planning.resolve import space_of
from contrasweep.tuning.search import sampler_of
from contrasweep.tuning.store import StudyRecord


def refuse_difference(plan: SweepPlan, record: StudyRecord, expected: Mapping[str, Any]) -> None:
    """Refuse to go on with a study that is not what the caller believes it to be.

    Args:
        plan: of the stored study.
        record: the stored study.
        expected: what the caller gave: `method`, `dataset`, `space` (a `Space`), `values`, or a rule of the
            search (`trials`, `sampler`, ...); what is absent or None was not given.

    Raises:
        InputError: something differs; the message says what.
    """
    differences = _of_metrics(plan, record)
    for name, value in expected.items():
        if value is None:
            continue
        if name == "space":
            differences += _of_space(plan, value)
        elif name == "values":
            differences += _of_values(plan, value)
        else:
            differences += _of_rule(plan, record, name, value)
    if differences:
        raise InputError(f"study {plan.name} cannot go on: {'; '.join(differences)}. Start a new one.")


def _of_space(plan: SweepPlan, given: Space) -> list[str]:
    space = space_of(plan.method, plan.dataset, given, plan.given)
    return cut_into_levels(space, plan.sampler, plan.grid_points).difference(plan.space)


def _of_values(plan: SweepPlan, given: Mapping[str, Value]) -> Iterator[str]:
    for path, value in given.items():
        held = _held(plan, path)
        if held != value:
            yield f"{path} was {held}, is {value}"


def _of_metrics(plan: SweepPlan, record: StudyRecord) -> list[str]:
    """Say which metrics a trial would report now that the study, of an earlier version, has no column for."""
    return without_column(
        record, search_metrics(METHODS[plan.method], dataset_spec(plan.dataset, plan.data_root))
    )


def without_column(record: StudyRecord, reported: Sequence[str]) -> list[str]:
    """Say which of the metrics `reported` now a study of an earlier version has no column for."""
    new = [name for name in reported if name not in record.columns.metrics]
    return [f"{record.method} now reports {', '.join(new)}, for which it has no column"] if new else []


def _of_rule(plan: SweepPlan, record: StudyRecord, name: str, value: Any) -> Iterator[str]:
    stored = {
        "asha_metric": plan.asha_metric,  # a study of an older version does not say these
        "seeds": plan.seeds,
        **record.require_search().model_dump(),
        "method": record.method,
        "dataset": record.dataset,
        "warm_start": ",".join(plan.warm.studies),
    }
    if name in ("metric", "asha_metric"):
        facts = dataset_spec(plan.dataset, plan.data_root)
        value = ",".join(chosen_goals(value, METHODS[plan.method], facts))
    elif name == "warm_start":
        value = ",".join(value)
    elif name == "trials" and sampler_of(plan.sampler).exhaustive:
        value = min(value, plan.trials)  # as when it was planned: a grid has no more trials than points
    if stored.get(name) != value:
        yield f"{name} was {stored.get(name)}, is {value}"


def _held(plan: SweepPlan, path: str) -> Value:
    return "searched" if path in (p.name for p in plan.space.searched) else plan.experiment.value(path)
