"""Compare the options given on resume with the stored study; refuse differences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from contrasweep.data import dataset_spec
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import EncoderSettings, Value
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import chosen_goals, search_metrics
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.request import conditions, cut_into_levels
from contrasweep.tuning.planning.spaces import space_of
from contrasweep.tuning.search import sampler_of
from contrasweep.tuning.store import SearchRecord, StudyRecord


@dataclass(frozen=True)
class Expected:
    """The options given on resume, in the words of `plan_sweep`; None means that an option was not given.

    Attributes:
        values: settings that hold in every trial, `epochs` among them.
        cpus: cores of a trial, or of each of its workers.
        warm_start: the names of the earlier studies.
    """

    method: str | None = None
    dataset: str | None = None
    space: Space | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    trials: int | None = None
    sampler: str | None = None
    grid_points: int | None = None
    scheduler: str | None = None
    metric: str | None = None
    asha_metric: str | None = None
    eta: int | None = None
    grace: int | None = None
    seed: int | None = None
    seeds: int | None = None
    keep: Sequence[str] | None = None
    warm_start: Sequence[str] | None = None
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
        *_of_values(plan, expected.values),
    ]
    if differences:
        raise InputError(f"study {plan.name} cannot go on: {'; '.join(differences)}. Start a new one.")


def trials_wanted_again(record: StudyRecord, expected: Expected) -> int:
    """Return how many trials did not begin, as the search ended early, and now are to begin if they may.

    They are all of them where the caller gives the number of trials that was planned at first. So a script
    that is the same each time either ends early again, for the same reason, or goes on as planned.
    """
    search = record.require_search()
    wanted = _trials_given(search, expected)
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
    space = space_of(plan.method, plan.dataset, given, plan.given)
    return cut_into_levels(space, plan.sampler, plan.grid_points).difference(plan.space)


def _of_values(plan: SweepPlan, given: Mapping[str, Value]) -> Iterator[str]:
    searched = {parameter.name for parameter in plan.space.searched}
    for path, value in given.items():
        held = "searched" if path in searched else plan.experiment.value(path)
        # YAML has lists, an experiment tuples.
        wanted = tuple(value) if isinstance(value, list) else value
        if held != wanted and not _is_the_file(path, held, value):
            yield f"{path} was {held}, is {value}"


def _is_the_file(path: str, held: object, given: object) -> bool:
    """Whether a file of weights is given by another path to it than the one that is held."""
    if path != "encoder.weights" or not isinstance(given, str):
        return False
    return EncoderSettings(weights=given).weights == held


def _of_rules(plan: SweepPlan, record: StudyRecord, expected: Expected) -> Iterator[str]:
    """Compare the rules of the search: each one given with the one stored."""
    search = record.require_search()
    rules = {
        "method": (record.method, expected.method),
        "dataset": (record.dataset, expected.dataset),
        "sampler": (search.sampler, expected.sampler),
        "grid_points": (search.grid_points, expected.grid_points),
        "scheduler": (search.scheduler, expected.scheduler),
        "metric": (search.metric, _full_names(plan, expected.metric)),
        "asha_metric": (plan.asha_metric, _full_names(plan, expected.asha_metric)),
        "eta": (search.eta, expected.eta),
        "grace": (search.grace, expected.grace),
        "seed": (search.seed, expected.seed),
        "seeds": (search.seeds, expected.seeds),
        "keep": _conditions(plan, record, expected.keep),
        "warm_start": (
            ",".join(search.warm_start.studies),
            None if expected.warm_start is None else ",".join(expected.warm_start),
        ),
        "cpus": (search.cpus, expected.cpus),
    }
    for name, (stored, given) in rules.items():
        if given is not None and stored != given:
            yield f"{name} was {stored}, is {given}"


def _conditions(plan: SweepPlan, record: StudyRecord, given: Sequence[str] | None) -> tuple[str, str | None]:
    """Return the stored conditions and the given ones as text, both in one order."""
    if given is None:
        return "", None
    both = plan.keep, conditions(given, record.columns.metrics)
    stored, wanted = (sorted(f"{one.metric} {one.comparison} {one.bound!r}" for one in side) for side in both)
    return ", ".join(stored) or "nothing", ", ".join(wanted)


def _full_names(plan: SweepPlan, given: str | None) -> str | None:
    """Return metrics by their full names, as the store has them."""
    if given is None:
        return None
    facts = dataset_spec(plan.dataset, plan.data_root)
    return ",".join(chosen_goals(given, METHODS[plan.method], facts, plan.experiment.probes))
