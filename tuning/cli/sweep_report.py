"""Print a sweep: its plan before it starts, and its best trials after it has ended."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from contrasweep.names import counted
from contrasweep.tuning.cli.columns import Row
from contrasweep.tuning.cli.rendering import print_json, print_rows, remark, say, tell, warn
from contrasweep.tuning.cli.studies import failed_trials, selected_content, selected_row
from contrasweep.tuning.durations import in_words
from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.experiment.conditions import appended
from contrasweep.tuning.experiment.statuses import ENDED, counts_in_words
from contrasweep.tuning.results.best import best_name, not_beaten_in_words, rule_in_words
from contrasweep.tuning.results.commands import best_command, final_runs_command, show_command

if TYPE_CHECKING:
    import pyarrow as pa

    from contrasweep.tuning.planning.plan import SweepPlan
    from contrasweep.tuning.ray.result import SweepResult
    from contrasweep.tuning.ray.sweep_group import GroupResult
    from contrasweep.tuning.results.selection import SelectedTrial

DRY_RUN_TRIALS = 5
MOST_FAILURES = 5
"""How many failed trials are listed; `contrasweep show` lists all."""


def say_what_runs(plans: "Sequence[SweepPlan]") -> None:
    """Say what a trial consists of, and what may spoil the search; a line that plans share stands once."""
    from contrasweep.tuning.planning.resources import idle_gpu_in_words

    told: dict[str, list[str]] = {}
    for plan in plans:
        told.setdefault(plan.setup, []).append(plan.method)
    for setup, methods in told.items():
        of_methods = f" of {', '.join(methods)}" if len(told) > 1 else ""
        remark(f"Each trial{of_methods}: {setup}")
    hints = (idle_gpu_in_words(plan.resources, plan.experiment.encoder.name) for plan in plans)
    for hint in filter(None, dict.fromkeys(hints)):
        remark(hint)
    for warning in dict.fromkeys(line for plan in plans for line in plan.warnings):
        warn(warning)


def print_plans(plans: "Sequence[SweepPlan]", as_json: bool) -> None:
    """Print the plans of sweeps: first configurations, resources, and the most epochs that they can take."""
    from contrasweep.tuning.search import sampler_of

    told = [_dry_run(plan) for plan in plans]
    if as_json:
        print_json(told[0] if len(told) == 1 else told)
        return
    say_what_runs(plans)
    for plan, one in zip(plans, told, strict=True):
        print_rows(
            f"{plan.method} on {plan.dataset}: the first of {counted(plan.search.trials, 'trial')}",
            [Row({"trial": row["trial"]}, row["configuration"]) for row in one["first"]],
            footer=f"{counted(plan.resources.concurrency, 'trial')} at once, {plan.resources.in_words}; "
            f"at most {counted(one['epochs_at_most'], 'epoch')} in all{_time_in_words(one)}"
            + (f", fewer as {plan.search.scheduler} stops weak trials" if plan.stops_early else "")
            + (". Later proposals depend on results." if sampler_of(plan.search.sampler).learns else "."),
        )


def _time_in_words(one: Mapping[str, Any]) -> str:
    """Return how long the epochs of a dry run take, if earlier runs tell."""
    if one["seconds_at_most"] is None:
        return ""
    runs = f"{one['earlier_runs']} earlier run{'s' * (one['earlier_runs'] > 1)}"
    return f", about {in_words(one['seconds_at_most'])} at {one['seconds_an_epoch']:.2g} s an epoch ({runs})"


def _dry_run(plan: "SweepPlan") -> dict[str, Any]:
    from contrasweep.tuning.results.pace import earlier_pace
    from contrasweep.tuning.store import ResultsStore
    from contrasweep.tuning.training.devices import device_of

    study, epochs = plan.new_study(), plan.search.trials * plan.search.seeds * plan.experiment.epochs
    searched, device = [one.name for one in plan.space.searched], device_of(plan.resources.gpus)
    pace = earlier_pace(ResultsStore(plan.results), plan.experiment, searched, device)
    proposals = [study.ask() for _ in range(min(DRY_RUN_TRIALS, plan.search.trials))]
    return {
        "study": plan.record().model_dump(mode="json"),
        "first": [{"trial": one.number, "configuration": dict(one.values)} for one in proposals],
        "epochs_at_most": epochs,
        "seconds_an_epoch": None if pace is None else pace.seconds,
        "earlier_runs": 0 if pace is None else pace.runs,
        "seconds_at_most": None if pace is None else pace.seconds * epochs / plan.resources.concurrency,
    }


@contextmanager
def failures_in_json(study: str, results: str, as_json: bool) -> Iterator[None]:
    """Print a sweep that has no best trial as JSON too, unless it never began; its error goes on."""
    try:
        yield
    except SweepFailed:
        if as_json:
            _print_failures(study, results)
        raise


def _print_failures(study: str, results: str) -> None:
    from contrasweep.tuning.results.trials import trial_outcomes
    from contrasweep.tuning.store import ResultsStore, StoreError

    with suppress(StoreError):
        store = ResultsStore(results)
        trials = store.trials(study)
        ended = trial_outcomes(trials, store.study(study))
        _print_as_json(study, trials, Counter(one.status for one in ended), best=())


def _print_as_json(
    study: str, trials: "pa.Table", counts: Mapping[str, int], best: "Sequence[SelectedTrial]"
) -> None:
    shown = [selected_content(trial) for trial in best]
    print_json({"study": study, "counts": dict(counts), "best": shown, "failed": failed_trials(trials)})


def report_sweep(result: "SweepResult", as_json: bool) -> None:
    """Print the best trials of a finished sweep beside the untrained encoder, and the next command."""
    from contrasweep.tuning.results.collapse import collapsed_trials
    from contrasweep.tuning.results.selection import StoredSearch
    from contrasweep.tuning.store import ResultsStore

    plan = result.plan
    search = StoredSearch(ResultsStore(plan.results), plan.name)
    selected = search.best(top=5 if len(plan.search.metrics) == 1 else None)
    if as_json:
        _print_as_json(plan.name, search.tables.trials, result.counts, selected)
        return
    rows = [selected_row(trial) for trial in selected]
    title = f"{plan.name}: {best_name(plan.metric)} of {counted(plan.search.trials, 'trial')}"
    print_rows(title, rows, footer=_footer(plan, result.counts))
    if told := collapsed_trials(search.candidates.outcomes):
        warn(told)
    if told := search.candidates.ties_in_words:
        tell(told)
    if not selected[0].beats_untrained:
        which = "the best trial that keeps the conditions" if plan.search.keep else "the best trial"
        warn(f"{not_beaten_in_words(which)}.")
    if result.counts.get("failed"):
        failures, show = counted(result.counts["failed"], "trial"), show_command(plan.name, plan.results)
        warn(f"{failures} ended with an error (`{show}`):")
        for trial in failed_trials(search.tables.trials)[:MOST_FAILURES]:
            tell(f"  trial {trial['trial']}: {trial['error']}")
    say(f"Next: {best_command(plan.name, plan.results)}")


def _footer(plan: "SweepPlan", counts: Mapping[str, int]) -> str:
    """Return the conditions of the scores above: endings, seeds, epochs, the rule of selection."""
    first = plan.experiment.seed
    seeds = f"{plan.search.seeds} seeds ({first} to {first + plan.search.seeds - 1})"
    return (
        f"{counts_in_words(counts)}; {f'one seed ({first})' if plan.search.seeds == 1 else seeds} per trial, "
        f"{counted(plan.experiment.epochs, 'epoch')} at most; "
        f"{rule_in_words(plan.metric)}{appended(plan.search.keep)}, "
        "on the validation split, so the score is optimistic: "
        "`contrasweep run` tests it on fresh seeds."
        + (f" {control}" if (control := plan.experiment.encoder.control) else "")
    )


def report_methods(done: "GroupResult", prefix: str, results: str, as_json: bool) -> None:
    """Compare the best trial of each method, all with one budget.

    Raises:
        SweepFailed: no trial of one study finished; the others were searched.
    """
    from contrasweep.tuning.results.selection import best_trials
    from contrasweep.tuning.store import ResultsStore

    store, rows, failed = ResultsStore(results), [], dict(done.failed)
    for result in done.results:
        try:
            best = best_trials(store, result.plan.name)[0]
        except SweepFailed as error:
            # No trial keeps the conditions of the search.
            failed[result.plan.name] = str(error)
            continue
        ended: dict[str, int] = {status: result.counts.get(status, 0) for status in ENDED}
        rows.append({"method": result.plan.method, **selected_content(best), **ended})
    if as_json:
        print_json({"group": prefix, "best": rows, "failed": failed})
    elif rows:
        plan = done.results[0].plan
        planned = [one.plan.search.trials for one in done.results]
        least, most = min(planned), max(planned)
        trials = counted(most, "trial")
        begun = f"The same budget each: {trials}" if least == most else f"{least} to {trials}"
        print_rows(
            f"{prefix}: the best trial of each method on {plan.dataset}",
            [{name: value for name, value in row.items() if name != "configuration"} for row in rows],
            footer=f"{begun} of {counted(plan.experiment.epochs, 'epoch')} at most, "
            f"{counted(plan.search.seeds, 'seed')} per trial. These are validation scores, "
            "which are optimistic: test them on fresh seeds.",
        )
        with_errors = [one.plan.name for one in done.results if one.counts.get("failed")]
        if with_errors:
            shows = (f"`{show_command(name, results)}`" for name in with_errors)
            warn(f"some trials failed; for the errors: {', '.join(shows)}")
        # One command compares them, seed by seed.
        names = [one.plan.name for one in done.results if one.plan.name not in failed]
        say(f"Next: {final_runs_command(names, results)}")
    if failed:
        raise SweepFailed("; ".join(failed.values()))
