"""`contrasweep table`: run a paper's table, compare with the published numbers, judge its claims."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.names import counted, few
from contrasweep.tuning.cli.command_line import command_line
from contrasweep.tuning.cli.completion import complete_tables
from contrasweep.tuning.cli.options import (
    Address,
    AsJson,
    Autoscale,
    Concurrency,
    Cpus,
    DataRoot,
    Device,
    GpusPerWorker,
    OneNode,
    Results,
    Workers,
    check_cluster,
    machine_at,
)
from contrasweep.tuning.cli.rendering import (
    json_text,
    print_json,
    print_rows,
    progress_line,
    remark,
    say,
    warn,
)
from contrasweep.tuning.cli.temporary import Tmp
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.files import check_file, check_folder, write_whole
from contrasweep.tuning.progress.display import Shown
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.search_spaces.tables import Table
    from contrasweep.tuning.planning.resources import AskedResources
    from contrasweep.tuning.tables.results import TableResults
    from contrasweep.tuning.tables.table_state import TableState
    from contrasweep.tuning.tables.verdict import Verdict

Scale = Annotated[
    str,
    typer.Option(
        help="paper: the paper's settings; quick: fewer epochs, seeds, smaller data; "
        "released: the settings of the released command."
    ),
]


def table(
    table: Annotated[
        str,
        typer.Argument(
            help="Id of the table; `contrasweep tables` lists them.", autocompletion=complete_tables
        ),
    ],
    scale: Scale = "paper",
    tune: Annotated[
        bool,
        typer.Option(
            "--tune", help="Search each row with an equal budget instead of taking the paper's values."
        ),
    ] = False,
    seeds: Annotated[int | None, typer.Option(help="Runs of each cell; default: the table's.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="With --tune: trials of each row; default: the table's.")
    ] = None,
    row: Annotated[list[str] | None, typer.Option(help="Run only this row; may be repeated.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="Run only this column; may be repeated.")] = None,
    run: Annotated[
        bool, typer.Option(help="Run what is missing; --no-run only shows the stored results.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run and what cannot, and stop.")
    ] = False,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="markdown, latex or csv; default: by the ending of -o, else markdown."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the table to this file.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Plot the scores against the swept parameter (.png, .pdf, .svg).")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write the scores to this folder, as a small Parquet file; runs that it has with the same "
            "settings stay in it and are not run again (with --tune, they are)."
        ),
    ] = None,
    concurrency: Concurrency = None,
    cpus_per_run: Cpus = None,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    device: Device = None,
    address: Address = None,
    autoscale: Autoscale = False,
    one_node: OneNode = False,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    tmp: Tmp = None,
    json: AsJson = False,
) -> None:
    """Run the missing parts of a paper's table; compare with the published numbers; judge its claims.

    Example: contrasweep table cclk-t3 --scale quick
    """
    from contrasweep.search_spaces.tables import load_table
    from contrasweep.tuning.planning.resources import AskedResources

    spec = load_table(table)
    _check_outputs(spec, output, figure, save)
    asked = AskedResources(concurrency, cpus_per_run, workers, gpus_per_worker, device)
    check_cluster(address, autoscale, one_node)
    if trials is not None and not tune:
        raise InputError("--trials goes with --tune")
    if json and format_ not in (None, "markdown"):
        raise InputError(f"--json and --format {format_}: give one of them")
    written = {"-o": output, "--figure": figure}
    if dry_run and any(written.values()):
        given_here = ", ".join(name for name, path in written.items() if path is not None)
        raise InputError(f"--dry-run writes no file; given {given_here}")
    remark("Loading torch ...")
    from contrasweep.tuning.tables.compare import not_beaten
    from contrasweep.tuning.tables.plan import plan_table
    from contrasweep.tuning.tables.render import FORMAT_OF, FORMATS
    from contrasweep.tuning.tables.table_state import TableState

    if format_ is None:
        format_ = FORMAT_OF.get("" if output is None else output.suffix, "markdown")
    if format_ not in FORMATS:
        raise unknown_name("format", format_, FORMATS)
    plan = plan_table(
        spec,
        scale=scale,
        tune=tune,
        seeds=seeds,
        trials=trials,
        rows=row or (),
        columns=column or (),
        data_root=data_root,
    )
    state = TableState.of(plan, results, save, data_root)
    runs = (run or dry_run) and bool(plan.studies)
    if runs:
        asked = replace(asked, machine=machine_at(address, autoscale, one_node))
        _say_where(asked)
    if rows := state.replaced_rows:
        warn(
            f"{save}: its runs of {few(rows)} have other settings than the table has here; they count as not "
            "run, and new runs replace them"
        )
    if dry_run:
        _print_plan(state, json)
        return
    failed: Mapping[str, str] = {}
    if runs:
        with progress_line() as line:
            failed = _run(state, asked, line, results)
        # What was read before lacks the runs, and another command may have added to the file meanwhile.
        state = TableState.of(plan, results, save, data_root)
    _write(state.shown, state.verdicts(), format_, output, json)
    if told := not_beaten(state.shown):
        warn(f"{told}.")
    for study, why in failed.items():
        warn(f"{study}: {why}")
    if run:
        state.refuse_nothing()
    if save is not None:
        _save(state, save)
    if figure is not None:
        from contrasweep.tuning.tables.figure import draw_table

        draw_table(state.shown, figure)


def _check_outputs(spec: "Table", output: Path | None, figure: Path | None, save: Path | None) -> None:
    """Refuse files that cannot be written, before the runs, which may take hours."""
    if figure is not None:
        from contrasweep.tuning.reports.matplotlib_figures import check_figure

        check_figure(figure, "--figure")
        if spec.run.axis is None:
            raise InputError(f"table {spec.id} sweeps no parameter: there is no figure of it")
    if output is not None:
        check_file(output, "-o")
    if save is not None:
        check_folder(save, "--save")


def _say_where(asked: "AskedResources") -> None:
    """Say what the runs of a table take; refuse what is not there before the first."""
    from contrasweep.tuning.training.devices import device_of

    resources = asked.resources()
    at_once = f"up to {resources.concurrency} at once, {resources.in_words}"
    remark(f"Runs: {at_once}, on {device_of(resources.gpus)}")


def _run(state: "TableState", asked: "AskedResources", line: Shown, results: str) -> Mapping[str, str]:
    """Run what is missing; return the reasons of failed studies."""
    from contrasweep.tuning.progress.states import RunsProgress
    from contrasweep.tuning.tables.run import TableProgress, run_table

    trained = False

    def show(progress: TableProgress) -> None:
        nonlocal trained
        trained = trained or progress.training
        searching = "searching, " if progress.searching else ""
        line.progress(RunsProgress(progress.done, progress.runs), f"{progress.study}: {searching}")

    saved = state.saved_seeds
    failed = run_table(
        state.plan,
        asked,
        results=results,
        data_root=state.data_root,
        command=command_line(),
        saved=saved,
        show=show,
    )
    if not trained and not failed:
        line.clear()
        what = "the store and the saved scores" if saved else "the store"
        remark(f"Nothing was left to train: {what} held all {counted(state.plan.runs, 'run')}.")
    return failed


def _write(
    found: "TableResults", verdicts: "list[Verdict]", format_: str, output: Path | None, as_json: bool
) -> None:
    from contrasweep.tuning.tables.render import FORMATS, content

    text = json_text(content(found, verdicts)) if as_json else FORMATS[format_](found, verdicts)
    if output is None:
        say(text)
        return
    write_whole(output, text)
    remark(f"Wrote {output}")


def _save(state: "TableState", folder: Path) -> None:
    """Write the scores to a folder, unless it has them all."""
    from contrasweep.tuning.tables.results import save_results

    kept = state.kept
    if not kept.values:
        warn(f"nothing was measured: {folder / kept.name}.parquet is not written.")
    elif state.saved is not None and state.saved.values == kept.values:
        remark(f"Scores: {folder / kept.name}.parquet had them all")
    else:
        path = save_results(kept, folder)
        remark(f"Scores: {path} ({path.stat().st_size / 1024:.0f} KiB)")


def _print_plan(state: "TableState", as_json: bool) -> None:
    from contrasweep.tuning.tables.planned import DATA

    plan = state.plan
    if plan.table.run.information is not None and not as_json:
        say(f"{plan.table.id}: facts of {plan.table.run.information}, no run")
        return
    rows: list[dict[str, Any]] = [
        {
            **{name: getattr(cell, name) for name in ("row", "column", "state")},
            **{name: getattr(cell.experiment, name, None) for name in ("dataset", "method", "epochs")},
            **{name: getattr(cell, name) or None for name in ("study", "why")},
        }
        for cell in plan.chosen
    ]
    left = state.remaining
    if as_json:
        counts = {"runs": plan.runs, "stored": left.stored, "missing": left.missing}
        costs = {"seconds": plan.seconds, "seconds_missing": left.seconds}
        print_json({"table": plan.table.id, **counts, **costs, "cells": rows})
        return
    budget = f" and {counted(plan.trials, 'trial')} a row" if plan.tuned else ""
    absent = sum(cell.state == DATA for cell in plan.chosen)
    without = f"; not counted: {counted(absent, 'cell')} whose data are not here" if absent else ""
    runs = f"{counted(plan.runs, 'final run')}, {plan.seeds} of each cell{budget}"
    print_rows(
        f"{plan.table.id}, {plan.scale} scale: {plan.state}",
        rows,
        footer=f"{runs}: {left.in_words}{without}",
    )
