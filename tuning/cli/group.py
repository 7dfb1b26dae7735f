"""`contrasweep sweep METHOD METHOD ...`: several methods with one budget, compared in a table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console

from contrasweep.tuning.cli.options import results_option
from contrasweep.tuning.cli.progress import progress_line, sweep_line
from contrasweep.tuning.cli.rendering import print_json, print_rows, say, warn
from contrasweep.tuning.errors import InputError, SweepFailed

if TYPE_CHECKING:
    from contrasweep.tuning.planning.plan import SweepPlan
    from contrasweep.tuning.planning.resources import Machine
    from contrasweep.tuning.planning.resume_check import Expected
    from contrasweep.tuning.ray.searcher import Progress
    from contrasweep.tuning.ray.sweep import GroupResult


def sweep_methods(
    plans: "Sequence[SweepPlan]", prefix: str, as_json: bool, machine: "Machine | None" = None
) -> None:
    """Search each method in its own study, and compare the best trials.

    Raises:
        SweepFailed: no trial of one study finished; the others were searched.
    """
    from contrasweep.tuning.ray.sweep import sweep_group

    names = ", ".join(plan.name for plan in plans)
    Console(stderr=True, highlight=False, markup=False).print(
        f"Studies {names}: {plans[0].trials} trials each on {plans[0].dataset}; results in {plans[0].results}"
    )
    with progress_line() as line:
        done = sweep_group(plans, lambda name, p: line.show(_line(name, p, line.elapsed)), machine)
    _compare(done, prefix, plans[0].results, as_json)


def resume_methods(
    methods: Sequence[str],
    prefix: str | None,
    results: str,
    expected: "Expected",
    as_json: bool,
    **options: Any,
) -> None:
    """Go on with the studies of `sweep_methods`; `options` are those of `ray.sweep.resume_sweep`.

    Raises:
        InputError: no prefix was given, or a study differs from the options.
        SweepFailed: no trial of one study finished.
    """
    from contrasweep.tuning.ray.sweep import resume_group, study_of

    if prefix is None:
        raise InputError(
            "--resume needs the --name that the studies begin with; `contrasweep studies` lists them"
        )
    names = {study_of(prefix, method): method for method in methods}
    with progress_line() as line:
        done = resume_group(
            list(names),
            results,
            expected={name: replace(expected, method=method) for name, method in names.items()},
            show=lambda name, p: line.show(_line(name, p, line.elapsed)),
            **options,
        )
    _compare(done, prefix, results, as_json)


def _compare(done: "GroupResult", prefix: str, results: str, as_json: bool) -> None:
    """Print the best trial of each method; raise SweepFailed if a method has none."""
    from contrasweep.tuning.cli.studies import selected_row
    from contrasweep.tuning.results.selection import best_trials
    from contrasweep.tuning.store import ResultsStore

    rows = []
    for result in done.results:
        best = best_trials(ResultsStore(results), result.plan.name)[0]
        ended = {status: result.counts.get(status, 0) for status in ("completed", "stopped", "failed")}
        rows.append({"method": result.plan.method, **selected_row(best), **ended})
    if as_json:
        print_json({"group": prefix, "best": rows, "failed": dict(done.failed)})
    elif done.results:
        plan = done.results[0].plan
        print_rows(
            f"{prefix}: the best trial of each method on {plan.dataset}",
            [{name: value for name, value in row.items() if name != "configuration"} for row in rows],
            footer=f"The same budget each: {plan.trials} trials of {plan.experiment.epochs} epochs at most, "
            f"{plan.seeds} seed{'s' * (plan.seeds > 1)} per trial. These are validation scores, "
            "which are optimistic: test them on fresh seeds.",
        )
        if any(row["failed"] for row in rows):
            warn("some trials failed; `contrasweep show STUDY` says why.")
        for result in done.results:
            say(f"Next: contrasweep run {result.plan.name}{results_option(results)} --seeds 5")
    if done.failed:
        raise SweepFailed("; ".join(done.failed.values()))


def _line(name: str, progress: "Progress", elapsed: float) -> str:
    return f"{name}: {sweep_line(progress, elapsed)}"
