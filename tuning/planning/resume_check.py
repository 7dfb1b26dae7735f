"""Compare the options given on resume with the stored study; refuse differences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from contrasweep.data import dataset_spec, normal_name
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.experiment import Value
from contrasweep.tuning.experiment.conditions import Condition
from contrasweep.tuning.experiment.schedulers import check_scheduler
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import chosen_goals, implied_settings, search_metrics
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.request import check_sampler, conditions, cut_into_levels
from contrasweep.tuning.planning.rules import SearchRules
from contrasweep.tuning.planning.spaces import refuse_unknown, space_of
from contrasweep.tuning.search import sampler_of
from contrasweep.tuning.store import SearchRecord, StudyRecord

_OTHERWISE_COMPARED: Final = ("trials", "epochs", "values", "space")
"""The rules that have a comparison of their own."""

_SEARCHED: Final = "searched"
_NOT_GIVEN: Final = "not given"


@dataclass(frozen=True)
class Expected(SearchRules):
    """What is given on resume: rules of the search, and the rest that a study has recorded.

    Attributes:
        method, dataset: what is searched.
        cpus: cores of a trial, or of each of its workers.
    """

    method: str | None = None
    dataset: str | None = None
    cpus: int | None = None


def refuse_difference(plan: SweepPlan, record: StudyRecord, expected: Expected) -> None:
    """Refuse to resume a study that differs from what the caller expects, or that lacks a metric's column.

    Args:
        plan: the plan of the stored study.
        record: the stored study.
        expected: the options that the caller gave.

    Raises:
        InputError: something differs; the message lists every difference.
    """
    facts = dataset_spec(plan.dataset, plan.data_root)
    settings = plan.experiment
    halves = settings.validation.halves
    reported = search_metrics(METHODS[plan.method], facts, settings.probes, halves=halves)
    differences = [
        *without_column(record, reported),
        *_of_rules(plan, record, expected),
        *_of_trials(record.require_search(), expected),
        *([] if expected.space is None else _of_space(plan, expected.space)),
        *_of_values(plan, expected.settings()),
    ]
    if differences:
        raise InputError(f"study {plan.name} cannot go on: {'; '.join(differences)}. Start a new one.")


def trials_wanted_again(record: StudyRecord, expected: Expected, *, limited: bool = False) -> int:
    """Return how many trials did not begin, as the search ended early, and now are to begin if they may.

    They are all of them where the caller gives the number of trials that was planned at first, or gives none
    and says anew when the search ends early (`limited`). So a script that is the same each time either ends
    early again, for the same reason, or goes on as planned.
    """
    search = record.require_search()
    wanted = _trials_given(search, expected)
    if wanted is None and limited:
        return search.not_begun
    return search.not_begun if wanted == search.trials + search.not_begun else 0


def _trials_given(search: SearchRecord, expected: Expected) -> int | None:
    if expected.trials is None or not sampler_of(search.sampler).exhaustive:
        return expected.trials
    # As when it was planned: a grid has no more trials than points.
    return min(expected.trials, search.trials + search.not_begun)


def _of_trials(search: SearchRecord, expected: Expected) -> Iterator[str]:
    """Compare the number of trials: after an early end, those planned at first or those that began."""
    given = _trials_given(search, expected)
    if given is None or given in (search.trials, search.trials + search.not_begun):
        return
    more = given - search.trials
    yield f"trials was {search.trials}, is {given}" + (f" (--extend {more} adds {more})" if more > 0 else "")


def without_column(record: StudyRecord, reported: Sequence[str]) -> list[str]:
    """Name the metrics reported now that a study of an earlier version has no column for."""
    new = [name for name in reported if name not in record.columns.metrics]
    return [f"{record.method} now reports {', '.join(new)}, for which it has no column"] if new else []


def _of_space(plan: SweepPlan, given: Space) -> list[str]:
    # A preset gives defaults of its own; they have had their say with the first trial.
    planned = {name: value for name, value in plan.space.defaults().items() if name in given}
    start = {name: value for name, value in planned.items() if given[name].contains(value)}
    space = space_of(plan.method, plan.dataset, given, plan.search.given, start)
    return cut_into_levels(space, plan.search.sampler, plan.search.grid_points).difference(plan.space)


def _of_values(plan: SweepPlan, given: Mapping[str, Value]) -> Iterator[str]:
    refuse_unknown(plan.experiment, given)
    searched = {parameter.name for parameter in plan.space.searched}
    held = {path: _SEARCHED if path in searched else _held(plan, path) for path in given}
    wanted = _as_held(plan, {path: value for path, value in given.items() if path not in searched})
    for path, value in given.items():
        if path in searched or held[path] != wanted[path]:
            yield f"{path} was {held[path]}, is {value}"


def _held(plan: SweepPlan, path: str) -> object:
    """Return the value of a setting in every trial that has one; trial 0 may be without a hyperparameter."""
    try:
        return plan.experiment.value(path)
    except InputError:
        return plan.space.fixed.get(path, _NOT_GIVEN)


def _as_held(plan: SweepPlan, given: Mapping[str, Value]) -> Mapping[str, object]:
    """Return given values as an experiment holds them: a list as a tuple, the text `yes` as true."""
    try:
        read = plan.experiment.with_values(given)
    except InputError:  # the study has none of these together, so some of them differ
        return {path: tuple(value) if isinstance(value, list) else value for path, value in given.items()}
    return {path: read.value(path) for path in given}


def _of_rules(plan: SweepPlan, record: StudyRecord, expected: Expected) -> Iterator[str]:
    """Compare the rules of the search: each one given with the one stored."""
    rules = [one.name for one in fields(SearchRules) if one.name not in _OTHERWISE_COMPARED]
    for name in ("method", "dataset", *rules, "cpus"):
        given = getattr(expected, name)
        if given is not None:
            stored, wanted = _stored_and_wanted(plan, record, name, given)
            if stored != wanted:
                yield f"{name} was {_NOT_GIVEN if stored in (None, '') else stored}, is {wanted}"


def _stored_and_wanted(plan: SweepPlan, record: StudyRecord, name: str, given: Any) -> tuple[object, object]:
    """Return what is stored of a rule and what is given, both in the words of the store."""
    match name:
        case "method":
            return record.method, given
        case "dataset":
            with told_to_user():
                # Earlier versions kept the name as it was spelled.
                same = normal_name(record.dataset) == normal_name(given)
            return record.dataset, record.dataset if same else given
        case "sampler":
            check_sampler(given)
            return plan.search.sampler, given
        case "scheduler":
            return plan.search.scheduler, check_scheduler(given)
        case "metric":
            return plan.search.metric, _full_names(plan, given)
        case "asha_metric":
            return plan.search.compared_by, _full_names(plan, given)
        case "keep":
            wanted = conditions(given, record.columns.metrics)
            return _in_words(plan.search.keep), _in_words(wanted)
        case "warm_start":
            return ",".join(plan.search.warm_start.studies), ",".join(given)
        case _:
            return getattr(plan.search, name), given


def _in_words(keep: Sequence[Condition]) -> str:
    """Return conditions as text, in an order that does not depend on that in which they were given."""
    return ", ".join(sorted(map(str, keep)))


def _full_names(plan: SweepPlan, given: str) -> str:
    """Return metrics by their full names, as the store has them; the study need not compute them."""
    facts = dataset_spec(plan.dataset, plan.data_root)
    probes = plan.experiment.with_values(implied_settings([given], plan.search.given)).probes
    return ",".join(chosen_goals(given, METHODS[plan.method], facts, probes))
