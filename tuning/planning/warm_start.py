"""Read earlier studies: which of their trials a new search can start from."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from contrasweep.search_spaces import Fixed, Scalar
from contrasweep.tuning.errors import InputError, refuse_repeats, told_to_user
from contrasweep.tuning.experiment import Experiment, flat_settings
from contrasweep.tuning.planning.plan import SweepPlan, WarmStart
from contrasweep.tuning.results.trials import (
    epoch_means,
    experiment_of,
    merit_of,
    merits,
    trial_outcomes,
)
from contrasweep.tuning.results.violations import violations_of
from contrasweep.tuning.search import PastTrial
from contrasweep.tuning.store import ResultsStore, StudyRecord


def earlier_trials(plan: SweepPlan, studies: Sequence[str], store: ResultsStore) -> WarmStart:
    """Return the finished and stopped trials of earlier studies whose values fit the plan's space.

    A trial fits if its experiment has an allowed value for every parameter of the space.

    Raises:
        InputError: no earlier study is named, one has another method or dataset or lacks a metric of the
            plan, or is named twice.
        StoreError: there is no such study.
    """
    with told_to_user("warm start: "):
        refuse_repeats("study", studies)
    found: list[PastTrial] = []
    remarks: list[str] = []
    for name in studies:
        earlier = store.study(name)
        _refuse_other(plan, earlier)
        fitting, skipped = _fitting(plan, earlier, store)
        taken = f"{name}: {len(fitting)} of its trials are taken"
        remarks.append(taken + (f", {skipped} do not fit this space" if skipped else ""))
        remarks += _differences(plan, earlier)
        found += fitting
    numbered = tuple(replace(trial, number=number) for number, trial in enumerate(found))
    return WarmStart(tuple(studies), numbered, tuple(remarks))


def _refuse_other(plan: SweepPlan, earlier: StudyRecord) -> None:
    there = earlier.require_search().metrics
    metrics = ",".join(plan.metrics) if set(plan.metrics) <= set(there) else ",".join(there)
    wanted = {"method": plan.method, "dataset": plan.dataset, "metric": ",".join(plan.metrics)}
    given = {"method": earlier.method, "dataset": earlier.dataset, "metric": metrics}
    for what, value in wanted.items():
        if given[what] != value:
            raise InputError(
                f"warm start: the {what} of study {earlier.name} is {given[what]}, not {value}: "
                "its scores say nothing of this search"
            )
    unknown = [str(this) for this in plan.keep if this.metric not in earlier.columns.metrics]
    if unknown:
        raise InputError(
            f"warm start: study {earlier.name} lacks the metrics of {', '.join(unknown)}: which of its "
            "trials keep that is unknown"
        )


def _fitting(plan: SweepPlan, earlier: StudyRecord, store: ResultsStore) -> tuple[list[PastTrial], int]:
    """Return the trials that fit, and the number of ended trials that do not."""
    tables = store.tables(earlier.name)
    curves = epoch_means(tables.epochs, earlier, plan.rung_metric)
    ended = [one for one in trial_outcomes(tables.trials, earlier) if one.status in ("completed", "stopped")]
    fitting = []
    for one in ended:
        values = _values_in(plan, experiment_of(earlier, one.values))
        if values is not None:
            epochs = merits(plan.rung_metric, curves[one.trial].after(0)) if one.trial in curves else {}
            last = {max(epochs): epochs[max(epochs)]} if epochs else {}
            final = [merit_of(one, metric) for metric in plan.metrics] if one.status == "completed" else None
            state: Literal["completed", "stopped"] = "stopped" if final is None else "completed"
            broken = violations_of(one, plan.keep, earlier.columns.metrics)
            fitting.append(PastTrial(one.trial, values, state, last, final, broken))
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
            values[parameter.name] = float(value) if parameter.type == "float" else value
    return values


def _differences(plan: SweepPlan, earlier: StudyRecord) -> Iterable[str]:
    """Name other settings in which the two experiments differ; their scores may not be comparable."""
    both = (plan.experiment, earlier.experiment)
    here, there = (flat_settings(one.model_dump()) for one in both)
    searched = {*plan.space.names, *earlier.space.names, "seed"}
    names = [
        name
        for name in here
        if name not in searched
        and name.partition(".")[0] != "hyperparameters"
        and here[name] != there.get(name)
    ]
    if names:
        told = ", ".join(f"{name} was {there.get(name)}, is {here[name]}" for name in names)
        yield f"{earlier.name} had other settings, so its scores may mislead: {told}"
