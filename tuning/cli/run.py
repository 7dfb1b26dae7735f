"""`contrasweep run`: train selected configurations on fresh seeds and score them on the test split."""

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.names import counted
from contrasweep.tuning.cli.command_line import command_line
from contrasweep.tuning.cli.completion import complete_studies
from contrasweep.tuning.cli.options import (
    Address,
    AsJson,
    Autoscale,
    Concurrency,
    Cpus,
    Device,
    GpusPerWorker,
    OneNode,
    Results,
    Where,
    Workers,
    check_cluster,
    machine_at,
    parse_settings,
    place_in,
)
from contrasweep.tuning.cli.rendering import print_json, print_rows, progress_line, remark, say, warn
from contrasweep.tuning.cli.studies import remark_on_fewer
from contrasweep.tuning.cli.temporary import Tmp
from contrasweep.tuning.errors import InputError, SweepFailed, refuse_repeats
from contrasweep.tuning.files import check_file
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.results.commands import FINAL_SEEDS, RESULTS, show_command

if TYPE_CHECKING:
    from contrasweep.tuning.planning.selected import Selected
    from contrasweep.tuning.results.final_runs import FinalRuns, FinalSummary
    from contrasweep.tuning.statistics import Comparison


def run(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files such as best.yaml, or names of studies.",
            autocompletion=complete_studies,
        ),
    ],
    seeds: Annotated[int, typer.Option(help="Fresh seeds of each configuration.")] = FINAL_SEEDS,
    epochs: Annotated[
        int | None,
        typer.Option(metavar="E", help="Train for E epochs; default: for as many as in the search."),
    ] = None,
    top: Annotated[int, typer.Option(help="How many of a study's best configurations to run.")] = 1,
    where: Where = None,
    trial: Annotated[
        int | None,
        typer.Option(help="Run this completed trial instead, such as one that ties with the best."),
    ] = None,
    snapshots: Annotated[
        int | None,
        typer.Option(
            metavar="E", help="Also keep the encoder after every E epochs; default: keep only the last one."
        ),
    ] = None,
    ablate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=VALUE",
            help="Also run the first configuration with this other setting, such as kernel=cosine; give the "
            "option again for another row, and several settings in one text for one row.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What tables call a configuration; once for each, in the order of the table, --ablate last.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Also write the tables there (.tex, .md), or a line for each run, for `verify` (.csv).",
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
    data_root: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the datasets; default: the one of the search, if this machine has it, else "
            "$CONTRASWEEP_DATA, then the user's cache."
        ),
    ] = None,
    results: Results = RESULTS,
    tmp: Tmp = None,
    json: AsJson = False,
) -> None:
    """Train the best configuration with fresh seeds on all training images, and test each run once.

    Several configurations run on the same seeds, and the first is compared with the others. With --epochs E,
    the runs are a separate study: STUDY-E-epochs-final.

    Example: contrasweep run best.yaml --seeds 5

    Example: contrasweep run fair-cclk-study --epochs 200 --seeds 3

    Example: contrasweep run fair-cclk-study infonce-study --seeds 5 -o table.tex

    Example: contrasweep run fair-cclk-study infonce-study --top 2 --where 'colour_mse>=2000'

    Example: contrasweep run fair-cclk-study --ablate kernel=cosine --ablate temperature=0.5
    """
    from contrasweep.tuning.planning.resources import AskedResources
    from contrasweep.tuning.planning.selected import check_source

    # All that is known to be wrong is refused here, before torch and Ray are imported.
    asked = AskedResources(concurrency, cpus_per_run, workers, gpus_per_worker, device)
    check_cluster(address, autoscale, one_node)
    check_count("seeds", seeds)
    check_count("epochs", epochs)
    check_count("snapshots", snapshots)
    if trial is not None and len(sources) > 1:
        raise InputError(f"--trial {trial} goes with one study, given {len(sources)}")
    if output is not None:
        from contrasweep.tuning.tables.final_table import ENDINGS

        check_file(output, "-o", ENDINGS)
    rows = _rows(ablate or ())
    _check_labels(label or ())
    for source in sources:
        check_source(source, results, top, where or (), trial)
    remark("Loading torch and Ray ...")
    from contrasweep.tuning.planning.ablation import ablated_rows
    from contrasweep.tuning.planning.final_plan import by_study, plan_final_runs, with_epochs
    from contrasweep.tuning.ray.final import none_completed, run_plans
    from contrasweep.tuning.results.final_runs import side_by_side

    given = [
        config for one in sources for config in _selected(one, top, where or (), trial, results, data_root)
    ]
    configs = [*given, *ablated_rows(given[0], rows, data_root)]
    studies = by_study(configs)
    _check_count_of_labels(label or (), [one for own in studies.values() for one in own])
    asked = replace(asked, machine=machine_at(address, autoscale, one_node))
    gpus = asked.gpus_each()
    planned = [with_epochs(config, epochs) for config in configs]
    for setup in dict.fromkeys(_setup(config, data_root, gpus) for config in planned):
        remark(f"Each run: {setup}")
    resources = asked.resources()
    plans = plan_final_runs(
        configs,
        resources,
        seeds=seeds,
        epochs=epochs,
        results=results,
        data_root=data_root,
        snapshots=snapshots,
        command=command_line(),
    )
    with progress_line() as line:
        done = run_plans(plans, resources, line.progress)
    every = side_by_side(done)
    if label:
        configurations = dict.fromkeys(
            (plan.record.name, one.trial) for plan in plans for one in plan.requests
        )
        every = every.labelled(dict(zip(configurations, label, strict=True)))
    _report(done, every, results, json)
    if output is not None:
        from contrasweep.tuning.tables.final_table import write_final_table

        write_final_table(every, output)
        remark(f"Wrote {output}")
    if len(studies) > 1:
        _say_budgets([*studies], results)
    if failures := none_completed(plans, done):
        raise SweepFailed("; ".join(failures))


def _rows(ablate: Sequence[str]) -> list[dict[str, Any]]:
    """Return the other settings of each row of an ablation.

    Raises:
        InputError: a text holds no settings, or two texts hold the same.
    """
    # A list may have spaces, so a space ends a setting only where another one follows.
    rows = [parse_settings(re.split(r"\s+(?=[\w.]+=)", text.strip()), "--ablate") for text in ablate]
    for place, row in enumerate(rows):
        if row in rows[:place]:
            raise InputError(f"--ablate {ablate[place]} is given twice")
    return rows


def _check_labels(labels: Sequence[str]) -> None:
    """Raise InputError if labels cannot stand beside each other and the untrained encoders in a table."""
    from contrasweep.tuning.results.final_runs import UNTRAINED

    if labels:
        refuse_repeats("label", labels)
    for label in labels:
        if not label.strip() or label.startswith(UNTRAINED):
            raise InputError(
                f"--label {label!r}: allowed is a name that is not empty and does not begin with {UNTRAINED}"
            )


def _check_count_of_labels(labels: Sequence[str], configs: "Sequence[Selected]") -> None:
    """Raise InputError if there are labels, but not one for each configuration."""
    if labels and len(labels) != len(configs):
        told = ", ".join(f"trial {one.trial} of {one.study}" for one in configs)
        raise InputError(f"--label is given {counted(len(labels), 'time')}; give one for each of: {told}")


def _say_budgets(studies: list[str], results: str) -> None:
    """Say whether the searches had equal budgets, as far as the results folder has them."""
    from contrasweep.tuning.results.budgets import budget_line
    from contrasweep.tuning.store import ResultsStore, study_names

    store = ResultsStore(results)
    there = study_names(store.location)
    searched = [store.study(name) for name in studies if name in there]
    if len(searched) > 1:
        remark(budget_line(searched))


def _setup(config: "Selected", data_root: Path | None, gpus: float) -> str:
    """Return what a final run of a configuration consists of."""
    from contrasweep.tuning.objectives.prepared import spec_for
    from contrasweep.tuning.planning.setup import setup_in_words
    from contrasweep.tuning.results.selection import data_root_of
    from contrasweep.tuning.training.devices import device_of

    experiment = config.experiment.on_all_training_data()
    spec = spec_for(experiment, data_root_of(data_root, config.data_root))
    return setup_in_words(experiment, spec, device_of(gpus))


def _selected(
    source: str, top: int, where: Sequence[str], trial: int | None, results: str, data_root: Path | None
) -> "Sequence[Selected]":
    """Return the configurations of a source; say so where a study has fewer than were asked for."""
    from contrasweep.tuning.planning.selected import selected_of
    from contrasweep.tuning.results.selection import SelectedTrial

    found = selected_of(source, results, data_root, top, where, trial)
    if trials := [one for one in found if isinstance(one, SelectedTrial)]:
        remark_on_fewer(trials, top)
    return found


def _report(done: "list[FinalRuns]", every: "FinalRuns", results: str, as_json: bool) -> None:
    """Print the runs of each study, which `every` holds together."""
    from contrasweep.tuning.results.best import beats, not_beaten_in_words
    from contrasweep.tuning.results.columns import summary_note
    from contrasweep.tuning.results.final_runs import largest_gain, main_score, score_names, summary_rows
    from contrasweep.tuning.store.layout import ENCODER, encoders_folder

    summaries, compared = every.summaries, every.differences
    if as_json:
        print_json(
            {
                "studies": [{"study": one.study, "failed": one.failed} for one in done],
                "rows": [_as_json(row) for row in summaries],
                "differences": [asdict(row) for row in compared],
            }
        )
        return
    names = score_names(summaries)
    main = main_score(names)
    if all(one.held == len(one.rows) + one.failed for one in done):
        remark(f"Nothing was left to train: the store held all {counted(len(every.rows), 'run')}.")
    print_rows(every.title, summary_rows(summaries), footer=summary_note(names))
    _print_differences(compared, main)
    for one in done:
        if one.failed and one.rows:
            hint = f"`{show_command(one.study, results)}` says why."
            warn(f"{counted(one.failed, 'run')} of {one.study} failed; {hint}")
    gain = largest_gain(every.rows, main)
    if gain is not None and not beats(main, gain[0].mean, gain[1].mean):
        warn(f"{not_beaten_in_words(main)}.")
    for one in filter(lambda one: one.rows, done):
        say(f"Encoders: {place_in(results, f'{encoders_folder(one.study)}/*/{ENCODER}')}")


def _as_json(row: "FinalSummary") -> dict[str, Any]:
    from contrasweep.tuning.results.columns import score_interval

    scores = {
        name: {**asdict(one), "interval": score_interval(name, one)} for name, one in row.scores.items()
    }
    return {"encoder": row.encoder, "scores": scores}


def _print_differences(compared: "list[Comparison]", score: str) -> None:
    """Print how much better the first encoder is than each of the others."""
    from contrasweep.tuning.results.columns import difference_note, difference_rows, difference_title

    rows = difference_rows(compared)
    if rows:
        say("")
        note = difference_note(compared, f" --seeds {FINAL_SEEDS} trains only the missing ones.")
        print_rows(difference_title(compared, score), rows, footer=note)
