"""The request for a sweep, and its checks that need no torch; they take a fraction of a second."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contrasweep.names import counted, names_in
from contrasweep.search_spaces import Space, SpaceError
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_METHODS, DECLARED_SAMPLERS
from contrasweep.tuning.errors import InputError, every_fault, unknown_name
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.experiment.conditions import Condition, can_all_hold, in_words, metrics_named
from contrasweep.tuning.experiment.schedulers import (
    USUAL_SCHEDULER,
    Scheduler,
    check_scheduler,
    stops_by_curves,
)
from contrasweep.tuning.limits import MOST_LEVELS, check_count, check_seed
from contrasweep.tuning.methods.metrics import (
    VALIDATION,
    bounds_of,
    chosen_goals,
    condition_on,
    goals,
    implied_settings,
    search_metrics,
)
from contrasweep.tuning.planning.enqueued import Configuration, check_enqueued, whole_configurations
from contrasweep.tuning.planning.halving import check_halving
from contrasweep.tuning.planning.rules import SearchRules
from contrasweep.tuning.planning.settings import known_experiment
from contrasweep.tuning.planning.spaces import check_names, in_own_type, preset_beside, space_of

DEFAULT_TRIALS = 24
MANY_AT_ONCE = 4
"""With more trials at once, the model of curves stops trials too: docs/default-search.md, "The scheduler"."""
KEEP = "--keep"
MOST_OF_DATASET = 40
"""So many characters of a dataset's name stand in the default name of a study."""


@dataclass(frozen=True)
class Request:
    """A checked request for a sweep.

    Attributes:
        given: the settings that hold in every trial: the user's and those of a preset.
        space: what is left to search.
        trials: how many configurations are tried.
        sampler: what proposes them, also where none was given.
        remarks: what users are told of the preset and of the number of trials, a sentence each.
        enqueued: the configurations that run first, after the defaults.
    """

    given: Mapping[str, Value]
    space: Space
    trials: int
    sampler: str
    remarks: tuple[str, ...] = ()
    enqueued: tuple[Configuration, ...] = ()


def check_request(
    method: str,
    dataset: str,
    rules: SearchRules,
    *,
    use_preset: bool = False,
    enqueue: Sequence[Mapping[str, Any]] = (),
) -> Request:
    """Check the names, numbers and settings of a sweep against what methods and datasets declare.

    The arguments are those of `plan_sweep`, which begins with this and then checks the rest: the files of the
    dataset, the network, both ends of every range, the machine.

    Raises:
        InputError: an argument is wrong.
    """
    check_names(method, dataset)
    sampler = _usual_sampler(rules.metric, rules.asha_metric) if rules.sampler is None else rules.sampler
    metric, keep, space = rules.metric, rules.keep or (), rules.space
    for what, count in (("trials", rules.trials), ("seeds", rules.seeds), ("epochs", rules.epochs)):
        check_count(what, count)
    check_count("grid-points", rules.grid_points, least=2, most=MOST_LEVELS)
    if rules.seed is not None:
        check_seed(rules.seed)
    scheduler = check_scheduler(USUAL_SCHEDULER if rules.scheduler is None else rules.scheduler)
    check_sampler(sampler)
    asked = rules.settings()
    given = {**asked, **implied_settings((metric, rules.asha_metric, *metrics_named(keep, KEEP)), asked)}
    start: Mapping[str, Value] = {}
    remarks: tuple[str, ...] = ()
    if use_preset:
        start, held, remarks = split_preset(method, dataset, space, given)
        given = {**held, **given}

    def settled(values: Mapping[str, Value]) -> tuple[Space, Experiment]:
        left = cut_into_levels(space_of(method, dataset, space, values, start), sampler, rules.grid_points)
        everywhere = {**outside(left, values), **left.defaults()}
        return left, known_experiment(method, dataset, everywhere, space=left)

    remaining, settings = every_fault(settled, given)
    if stops_by_curves(scheduler):
        _check_curves(metric, scheduler)
    if rules.asha_metric is not None:
        _check_asha_metric(rules.asha_metric, sampler, scheduler)
    check_halving(
        rules.halving(),
        scheduler,
        settings.epochs,
        asked=(rules.eta, rules.grace) != (None, None),
    )
    for named in (metric, rules.asha_metric):
        _check_metrics(named, method, dataset, settings)
    own = DECLARED_DATASETS.get(dataset)
    if own is not None and own.facts is not None:
        conditions(keep, search_metrics(DECLARED_METHODS[method], own.facts, settings.probes))
    planned = _trials(rules.trials, sampler, remaining)
    remarks += (*cut_to_grid(rules.trials, planned), *repeats(planned, remaining))
    first = whole_configurations(enqueue, remaining)
    check_enqueued(first, planned, exhaustive=DECLARED_SAMPLERS[sampler].exhaustive)
    return Request(given, remaining, planned, sampler, remarks, first)


def usual_scheduler(sampler: str, metrics: Sequence[str], concurrency: int) -> Scheduler:
    """Return the scheduler of a search where none is given: with many trials at once, more than `asha`."""
    modelled = sampler == "curves" and len(metrics) == 1
    return "asha+curves" if modelled and concurrency > MANY_AT_ONCE else USUAL_SCHEDULER


def _usual_sampler(metric: str | None, asha_metric: str | None) -> str:
    """Return the sampler of a search where none is given: `curves` learns from the scores of one metric."""
    return "curves" if asha_metric is None and (metric is None or len(names_in(metric)) == 1) else "tpe"


def _check_curves(metric: str | None, scheduler: str) -> None:
    """Refuse what the model of curves does not have: it predicts one final score from its own cheap form."""
    if metric is not None and len(names_in(metric)) > 1:
        raise InputError(
            f"--scheduler {scheduler} takes one metric, given {metric}; asha and none take several"
        )


def _check_asha_metric(given: str, sampler: str, scheduler: str) -> None:
    """Refuse a metric for `asha` alone where nothing compares by it, or the sampler would learn from it."""
    if scheduler != "asha":
        raise InputError(f"--asha-metric {given} goes with --scheduler asha, given {scheduler}")
    if sampler == "curves":
        raise InputError(
            f"--asha-metric {given} does not go with --sampler curves, which would take its scores for early "
            "ones of --metric; give another sampler, or none (then it is tpe)"
        )


def check_sampler(name: str) -> None:
    """Raise InputError, with the nearest name, unless there is such a sampler."""
    if name not in DECLARED_SAMPLERS:
        raise unknown_name("sampler", name, DECLARED_SAMPLERS)


def outside(space: Space, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the given settings that the space does not hold."""
    return {path: value for path, value in given.items() if path not in space}


def conditions(keep: Sequence[str], reported: Sequence[str]) -> tuple[Condition, ...]:
    """Return the conditions that a search's best trial keeps, each once.

    Args:
        keep: the conditions, as users write them.
        reported: the metrics that trials of the search report.

    Raises:
        InputError: one cannot be read, names a metric that is not reported (with the nearest), or bounds a
            fraction by a number that is none; or no score keeps all those of a metric.
    """
    found = tuple(dict.fromkeys(condition_on(text, reported, KEEP) for text in keep))
    for metric in dict.fromkeys(this.metric for this in found):
        same = [this for this in found if this.metric == metric]
        if not can_all_hold(same, *bounds_of(metric)):
            raise InputError(f"{KEEP}: no score satisfies {in_words(same)}, so no trial could be the best")
    return found


def _check_metrics(given: str | None, method: str, dataset: str, settings: Experiment) -> None:
    """Raise InputError for a metric on which the method is scored on no dataset, or not on this one."""
    if given is None:
        return
    declared, own = DECLARED_METHODS[method], DECLARED_DATASETS.get(dataset)
    if own is not None and own.facts is not None:
        chosen_goals(given, declared, own.facts, settings.probes)
        return
    facts = [one.facts for one in DECLARED_DATASETS.values() if one.facts is not None]
    known = dict.fromkeys(name for one in facts for name in goals(declared, one, settings.probes))
    for name in given.split(","):
        if name.strip() not in known and VALIDATION + name.strip() not in known:
            raise unknown_name("metric", name.strip(), known)


def split_preset(
    method: str, dataset: str, space: Space | None, values: Mapping[str, Value]
) -> tuple[dict[str, Value], dict[str, Value], tuple[str, ...]]:
    """Return a preset's settings that the search starts from, those that hold in every trial, and remarks.

    Neither contains a setting that `values` names. A remark says of a setting why it is not searched.

    Raises:
        InputError: there is no such preset.
    """
    found = preset_beside(method, dataset, values)
    free = {parameter.name for parameter in (space or DECLARED_METHODS[method].search_space()).searched}
    # What the preset fixes decides which parameters there are, and the range of the learning rate.
    fixed = {name: value for name, value in {**found, **values}.items() if name not in free}
    searched = {parameter.name: parameter for parameter in space_of(method, dataset, space, fixed).searched}
    start: dict[str, Value] = {}
    held: dict[str, Value] = {}
    remarks: list[str] = []
    for name, value in found.items():
        parameter = searched.get(name)
        if parameter is not None and parameter.contains(value):
            start[name] = in_own_type(parameter, value)
            continue
        held[name] = value
        if parameter is not None:
            allowed = parameter.describe()
            remarks.append(f"{name} is not searched: the preset has {value}, the space {allowed}")
    return start, held, tuple(remarks)


def default_name(method: str, dataset: str, created: datetime) -> str:
    """Return `METHOD-DATASET-TIME`, with a dash for every character that a file name should not have.

    A dataset with a path may be long: of it stands what leaves room for the names of methods.
    """
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", dataset)[:MOST_OF_DATASET].rstrip("-.")
    return f"{method}-{plain}-{created:%Y%m%d-%H%M%S}"


def study_of(prefix: str, method: str) -> str:
    """Return the name of a method's study in a group of studies."""
    return f"{prefix}-{method}"


def prefix_of(study: str, method: str) -> str:
    """Return what the names of a group's studies begin with, from the study of one method."""
    return study.removesuffix(study_of("", method))


def studies_of(name: str, methods: Sequence[str]) -> dict[str, str]:
    """Return the name of each method's study: `name` itself for one method, else a group's."""
    return {one: name if len(methods) == 1 else study_of(name, one) for one in methods}


def cut_into_levels(space: Space, sampler: str, grid_points: int | None) -> Space:
    """Return the space with its ranges cut into `grid_points` levels, if a grid is asked for."""
    if grid_points is None:
        return space
    if not DECLARED_SAMPLERS[sampler].exhaustive:
        raise InputError(f"grid points go with the sampler grid, given {grid_points} with {sampler}")
    return space.with_levels(grid_points)


def cut_to_grid(asked: int | None, planned: int) -> tuple[str, ...]:
    """Return the remark that a grid has fewer points than trials were asked for; nothing if it has not."""
    if asked is None or planned >= asked:
        return ()
    return (f"the grid has {counted(planned, 'point')}: each is one trial, so there are not {asked}.",)


def repeats(trials: int, space: Space) -> tuple[str, ...]:
    """Return the remark that there are more trials than configurations; nothing if there are not."""
    try:
        points = space.size()
    except SpaceError:  # too many to be counted
        points = None
    if points is None or trials <= points:
        return ()
    return (
        f"the space has {points} configuration{'s' if points > 1 else ''}, so {trials - points} of {trials} "
        "trials run one again, with the same scores; --sampler grid runs each once",
    )


def _trials(given: int | None, sampler: str, space: Space) -> int:
    """Return how many trials to run; a grid runs all of its points."""
    points = space.size() if DECLARED_SAMPLERS[sampler].exhaustive else None
    if points is None:
        return DEFAULT_TRIALS if given is None else given
    if given is not None and given < points:
        raise InputError(
            f"the grid has {points} points, and {given} trials would leave {points - given} of them out; "
            f"give --trials {points}, a smaller space, or another sampler (random draws some of the points)"
        )
    return points
