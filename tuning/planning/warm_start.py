"""Read earlier studies: what a new search can learn from their trials, and which of these it runs first."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from contrasweep.search_spaces import Fixed, Scalar
from contrasweep.tuning.errors import InputError, SweepFailed, refuse_repeats, told_to_user
from contrasweep.tuning.experiment import Experiment, differing_settings, flat_settings
from contrasweep.tuning.planning.enqueued import Configuration, whole_configurations
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.spaces import in_own_type
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.results.trials import (
    epoch_means,
    experiment_of,
    merit_of,
    merits,
    trial_outcomes,
)
from contrasweep.tuning.results.violations import violations_of
from contrasweep.tuning.search import sampler_of
from contrasweep.tuning.store import ResultsStore, StudyRecord, WarmStartRecord, WarmTrialRecord

MOST_FIRST: Final = 4
"""So many configurations of a study on another dataset run first."""


def warm_started(plan: SweepPlan, studies: Sequence[str], store: ResultsStore) -> SweepPlan:
    """Return a plan that starts from earlier studies of its method.

    The search learns from the finished and stopped trials of those on its dataset whose values fit its space.
    A score on another dataset says nothing of a score here, but what is good there is often good here: the
    `MOST_FIRST` best configurations of such a study run first, after the defaults. Together, no more than
    half of the trials run what others found.

    A trial fits if its experiment has an allowed value for every parameter of the space.

    Raises:
        InputError: no earlier study is named, one is named twice, has another method, has the dataset but
            lacks a metric of the plan, or has another dataset and no trial that has completed; or a grid is
            to begin with configurations of its own.
        StoreError: there is no such study.
    """
    with told_to_user("warm start: "):
        refuse_repeats("study", studies)
    found: list[WarmTrialRecord] = []
    remarks: list[str] = []
    elsewhere: dict[str, list[Configuration]] = {}
    for name in studies:
        earlier = store.study(name)
        _refuse_other(plan, earlier)
        if earlier.dataset == plan.dataset:
            fitting, skipped = _fitting(plan, earlier, store)
            taken = f"{name}: {len(fitting)} of its trials are taken"
            remarks.append(taken + (f", {skipped} do not fit this space" if skipped else ""))
            if plan.rung_metric not in earlier.columns.metrics:
                remarks.append(f"{name} lacks {plan.rung_metric}: its stopped trials are left out")
            remarks += _differences(plan, earlier)
            found += fitting
        else:
            elsewhere[f"{name} searched on {earlier.dataset}"] = _best_fitting(plan, earlier, store)
    first = _in_turn(plan, [*elsewhere.values()])
    for told, best in elsewhere.items():
        remarks.append(f"{told}: {sum(one in first for one in best)} of its best configurations run first")
    warm = WarmStartRecord(studies=tuple(studies), trials=tuple(found))
    started = plan.with_search(warm_start=warm, enqueued=(*plan.search.enqueued, *first))
    return replace(started, remarks=tuple(remarks))


def _refuse_other(plan: SweepPlan, earlier: StudyRecord) -> None:
    metrics, there = plan.search.metrics, earlier.require_search().metrics
    _refuse(earlier, "method", earlier.method, plan.method)
    if earlier.dataset != plan.dataset:
        if sampler_of(plan.search.sampler).exhaustive:
            raise InputError(
                f"warm start: the best configurations of {earlier.name} would run first, and a grid runs its "
                "own points only: leave it out"
            )
        return
    _refuse(earlier, "metric", ",".join(metrics if set(metrics) <= set(there) else there), ",".join(metrics))
    unknown = [str(this) for this in plan.search.keep if this.metric not in earlier.columns.metrics]
    if unknown:
        raise InputError(
            f"warm start: study {earlier.name} lacks the metrics of {', '.join(unknown)}: which of its "
            "trials keep that is unknown"
        )


def _refuse(earlier: StudyRecord, what: str, given: str, wanted: str) -> None:
    if given != wanted:
        raise InputError(
            f"warm start: the {what} of study {earlier.name} is {given}, not {wanted}: "
            "its scores say nothing of this search"
        )


def _best_fitting(plan: SweepPlan, earlier: StudyRecord, store: ResultsStore) -> list[Configuration]:
    """Return the best configurations of a study on another dataset that fit, but for the plan's defaults."""
    try:
        ranked = best_trials(store, earlier.name, top=earlier.require_search().trials)
    except SweepFailed as error:
        raise InputError(f"warm start: {error}") from None
    defaults = whole_configurations([{}], plan.space)[0]
    found: list[Configuration] = []
    for one in ranked:
        values = _values_in(plan, one.experiment)
        if values is not None and values not in (*found, defaults):
            found.append(values)
    return found[:MOST_FIRST]


def _in_turn(plan: SweepPlan, best: Sequence[Sequence[Configuration]]) -> list[Configuration]:
    """Return the best configuration of each study, then the second best ones, while there is room."""
    found: list[Configuration] = []
    for one in (one for together in zip_longest(*best) for one in together if one is not None):
        if one not in (*found, *plan.search.enqueued):
            found.append(one)
    room = max(0, plan.search.trials // 2 - 1 - len(plan.search.enqueued))
    return found[:room]


def _fitting(plan: SweepPlan, earlier: StudyRecord, store: ResultsStore) -> tuple[list[WarmTrialRecord], int]:
    """Return the trials that fit, and the number of ended trials that do not.

    A stopped trial is worth something by the metric that the scheduler compares, or not at all.
    """
    tables, search = store.tables(earlier.name), plan.search
    has_curves = plan.rung_metric in earlier.columns.metrics
    curves = epoch_means(tables.epochs, earlier, plan.rung_metric) if has_curves else {}
    useful = ("completed", "stopped") if has_curves else ("completed",)
    ended = [one for one in trial_outcomes(tables.trials, earlier) if one.status in useful]
    fitting = []
    for one in ended:
        values = _values_in(plan, experiment_of(earlier, one.values))
        if values is not None:
            epochs = merits(plan.rung_metric, curves[one.trial].after(0)) if one.trial in curves else {}
            last = {max(epochs): epochs[max(epochs)]} if epochs else {}
            final = (
                [merit_of(one, metric) for metric in search.metrics] if one.status == "completed" else None
            )
            broken = violations_of(one, search.keep, earlier.columns.metrics)
            taken = {
                "values": values,
                "state": one.status,
                "epochs": last,
                "value": final,
                "violations": broken,
            }
            fitting.append(WarmTrialRecord.model_validate(taken))
    return fitting, len(ended) - len(fitting)


def _values_in(plan: SweepPlan, experiment: Experiment) -> dict[str, Scalar] | None:
    """Return an experiment's values of the plan's active parameters; None if the space forbids one."""
    values: dict[str, Scalar] = {}
    for parameter in plan.space.parameters:
        if parameter.name not in plan.space.active(values):
            continue
        try:
            value = experiment.value(parameter.name)
        except InputError:
            return None
        if not isinstance(value, bool | int | float | str) or not parameter.contains(value):
            return None
        if not isinstance(parameter, Fixed):
            values[parameter.name] = in_own_type(parameter, value)
    return values


def _differences(plan: SweepPlan, earlier: StudyRecord) -> Iterable[str]:
    """Name other settings in which the two experiments differ; their scores may not be comparable."""
    both = (plan.experiment, earlier.experiment)
    here, there = (flat_settings(one.model_dump()) for one in both)
    searched = {*plan.space.names, *earlier.space.names, "seed"}
    if differ := differing_settings(here, there, searched):
        told = ", ".join(f"{name} was {_shown(before)}, is {_shown(now)}" for name, now, before in differ)
        yield f"{earlier.name} had other settings, so its scores may mislead: {told}"


def _shown(value: object) -> object:
    return "not set" if value is None else value
