"""`contrasweep studies`, `show` and `best`: read the results store."""

from collections.abc import Mapping, Sequence
from itertools import chain
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.tuning.cli.columns import Note, Row, text
from contrasweep.tuning.cli.completion import complete_metrics, complete_studies
from contrasweep.tuning.cli.options import AsJson, Results, Where
from contrasweep.tuning.cli.rendering import print_json, print_rows, remark, say, warn
from contrasweep.tuning.errors import unknown_name
from contrasweep.tuning.experiment.statuses import OPEN
from contrasweep.tuning.files import check_file, write_whole
from contrasweep.tuning.methods.metrics import is_minimised
from contrasweep.tuning.results.best import RULE, best_name, merit, not_beaten_in_words
from contrasweep.tuning.results.commands import RESULTS, final_runs_command, resume_hint

if TYPE_CHECKING:
    import pyarrow as pa

    from contrasweep.tuning.results.candidates import Candidates
    from contrasweep.tuning.results.selection import SelectedTrial
    from contrasweep.tuning.store import ResultsStore, StudyRecord
    from contrasweep.tuning.store.reader import StudySummary, StudyTables

Study = Annotated[
    str,
    typer.Argument(
        help="Name of the study; `contrasweep studies` lists them.", autocompletion=complete_studies
    ),
]


def studies(results: Results = RESULTS, json: AsJson = False) -> None:
    """List the studies of a results folder.

    Example: contrasweep studies --results s3://bucket/results
    """
    from contrasweep.tuning.store import ResultsStore

    store = ResultsStore(results)
    found = store.of_all(lambda record: _line(store, record))
    rows = [row for _, row in sorted(found, key=lambda one: one[0].age())]
    if json:
        print_json(rows)
        return
    shown = [{**row, "best": _in_words(row["best"])} for row in rows]
    rule = RULE.format(extreme="best", metric="value of its metric")
    print_rows(f"Studies in {results}", shown, footer=f"Best: the {rule}. Times are in UTC.")


def _line(store: "ResultsStore", record: "StudyRecord") -> "tuple[StudySummary, dict[str, Any]]":
    """Return a study's summary and its row; both come from one reading of its trials."""
    trials = store.trials(record.name)
    summary = store.summary(record, trials)
    return summary, {**summary.columns(), "best": None if record.is_final else _best(record, trials)}


def _best(record: "StudyRecord", trials: "pa.Table") -> dict[str, Any] | None:
    """Return the best completed trial of a search: metric, score and number."""
    from contrasweep.tuning.results.candidates import candidates_of

    scores = candidates_of(trials, record).scores
    return next(({"metric": record.metric, "score": scores[one], "trial": one} for one in scores), None)


def _in_words(best: Mapping[str, Any] | None) -> str | None:
    return None if best is None else f"{best['metric']} {text(best['score'])} (trial {best['trial']})"


def show(
    study: Study,
    results: Results = RESULTS,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the study into this file (.png, .pdf, .svg).")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC|PARAMETER|COLUMN",
            help="Column to sort by: metrics from best to worst, all others ascending; default: trial.",
            autocompletion=complete_metrics,
        ),
    ] = None,
    top: Annotated[int | None, typer.Option(help="Number of trials to show; default: all.")] = None,
    json: AsJson = False,
) -> None:
    """Show the trials of a study: values, scores, how they ended, and why trials failed.

    Example: contrasweep show my-study --sort accuracy --top 10

    Example: contrasweep show my-study --plot my-study.png
    """
    from contrasweep.tuning.limits import check_count
    from contrasweep.tuning.results.candidates import candidates_of
    from contrasweep.tuning.results.trials import rows_so_far
    from contrasweep.tuning.store import ResultsStore

    check_count("top", top)
    if plot is not None:
        from contrasweep.tuning.reports.matplotlib_figures import check_figure, draw_study

        check_figure(plot, "--plot")
    store = ResultsStore(results)
    record = store.study(study)
    tables = store.tables(study)
    found = None if record.is_final else candidates_of(tables.trials, record)
    rows = [_trial_row(row, found) for row in rows_so_far(tables)]
    rows = _first_trials(rows, sort, top, record.seeds)
    if plot is not None:
        draw_study(store, study, plot)
    if json:
        print_json(rows)
        return
    searched = [parameter.name for parameter in record.space.searched]
    footer = _below_trials(record, tables, found, rows)
    print_rows(f"Trials of {study}", _shown(rows, searched), footer=footer)
    if plot is not None:
        say(f"Wrote {plot}")


def _below_trials(
    record: "StudyRecord",
    tables: "StudyTables",
    found: "Candidates | None",
    rows: Sequence[Mapping[str, Any]],
) -> str | None:
    """Return what stands below the trials: the score to beat, what the scores of open trials are, gaps."""
    from contrasweep.tuning.results.collapse import collapsed_trials
    from contrasweep.tuning.results.columns import unit_note
    from contrasweep.tuning.results.trials import untrained_mean, untrained_scores

    said = []
    if not record.is_final:
        stopped_by = record.rung_metric if any(row["status"] == "stopped" for row in rows) else record.metric
        for metric in dict.fromkeys((record.metric, stopped_by)):
            why = "" if metric == record.metric else ", by which trials were stopped,"
            untrained = untrained_mean(untrained_scores(tables.epochs, record, metric))
            said += [] if untrained is None else [f"Before training, {metric}{why} is {text(untrained)}."]
    if control := record.experiment.encoder.control:
        said.append(control)
    if any(row["status"] in OPEN and row["epoch"] for row in rows):
        said.append("Scores of interrupted and running trials are those of their last epoch.")
    if found is not None:
        said += [told for told in [collapsed_trials(found.outcomes)] if told]
    known = (name for row in rows for name, value in row.items() if value is not None)
    said += [note for note in [unit_note(known)] if note]
    if tables.damaged:
        damaged = "; ".join(f"{file.path} {file.reason}" for file in tables.damaged)
        said.append(f"Left out, damaged: {damaged}")
    return " ".join(said) or None


def best(
    study: Study,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the best configuration to this file.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(help="How many of the best to show; default: one, or the whole Pareto front."),
    ] = None,
    where: Where = None,
    trial: Annotated[
        int | None,
        typer.Option(help="Take this completed trial instead, such as one that ties with the best."),
    ] = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Show the best trials of a study, and write the best one to a file for `contrasweep run`.

    Example: contrasweep best my-study -o best.yaml

    Example: contrasweep best my-study --where 'colour_mse>=2000' -o best.yaml
    """
    from contrasweep.tuning.planning.best_config import best_yaml
    from contrasweep.tuning.results.selection import StoredSearch, refuse_beside_trial
    from contrasweep.tuning.store import ResultsStore

    if output is not None:
        check_file(output, "-o")
    refuse_beside_trial(trial, top is not None, where or ())
    search = StoredSearch(ResultsStore(results), study)
    selected = search.select(top, where or (), trial)
    record = search.record
    if output is not None:
        write_whole(output, best_yaml(selected[0], record.versions))
    remark_on_fewer(selected, top)
    if json:
        print_json([selected_content(trial) for trial in selected])
        return
    first = selected[0]
    footer = f"Trial {first.trial} is taken: {first.rule}."
    footer += _another(selected, record.require_search().metrics)
    if control := record.experiment.encoder.control:
        footer += f" {control}"
    rows = [selected_row(trial) for trial in selected]
    title = best_name(first.metric) if trial is None else f"trial {trial}"
    print_rows(f"{study}: {title}", rows, footer=footer)
    if trial is None and not where and (told := search.candidates.ties_in_words):
        remark(told)
    if hint := resume_hint(record.method, study, results, search.store.state(study)):
        remark(hint)
    if not first.beats_untrained:
        which = "the best trial" if trial is None else f"trial {trial}"
        warn(f"{not_beaten_in_words(which)}.")
    if output is not None:
        say(f"Wrote {output}. Next: {final_runs_command([str(output)], results)}")


def remark_on_fewer(selected: "Sequence[SelectedTrial]", top: int | None) -> None:
    """Say so where fewer trials could be selected than were asked for."""
    if top is not None and len(selected) < top:
        study = selected[0].study
        ended = "completed and meet the conditions" if selected[0].conditions else "completed"
        remark(f"{len(selected)} of the best {top} of {study}: no other trials have {ended}.")


def _another(selected: "Sequence[SelectedTrial]", metrics: Sequence[str]) -> str:
    """Return the option that selects the next point of the front; empty if there is none."""
    if len(selected) < 2 or not selected[1].on_front:
        return ""
    first, other = selected[0].metrics, selected[1].metrics
    better = [metric for metric in metrics if merit(metric, other[metric]) > merit(metric, first[metric])]
    if not better:
        return ""
    sign = "<" if is_minimised(better[0]) else ">"
    between = _between(first[better[0]], other[better[0]])
    return f" To take another, give for example `--where '{better[0]}{sign}{between}'`."


def _between(one: float, other: float) -> str:
    low, high = sorted((one, other))
    shown = (f"{(low + high) / 2:.{digits}g}" for digits in range(4, 18))
    return next((text for text in shown if low < float(text) < high), repr(high))


def selected_row(trial: "SelectedTrial") -> Row:
    """Return a selected trial as a row: its score, the untrained encoder's, other scores, its values."""
    return Row(trial.columns, trial.values)


def selected_content(trial: "SelectedTrial") -> dict[str, Any]:
    """Return a selected trial as JSON has it."""
    return {**trial.columns, "configuration": trial.values}


def failed_trials(trials: "pa.Table") -> list[dict[str, Any]]:
    """Return the trials that failed, of a study's table of trials: number, seed and error."""
    rows = trials.select(["trial", "seed", "error", "status"]).to_pylist()
    return [
        {name: row[name] for name in ("trial", "seed", "error")} for row in rows if row["status"] == "failed"
    ]


def _trial_row(row: Mapping[str, Any], found: "Candidates | None") -> dict[str, Any]:
    """Return a row of the store as it is shown: of a search also whether it can be selected."""
    from contrasweep.tuning.store.schema import HYPERPARAMETER, METRIC, cells_under

    kept = {name: row[name] for name in ("trial", "seed", "status", "epoch", "seconds")}
    scores = {
        name: score
        for name, score in cells_under(METRIC, row).items()
        if name.startswith(("val.", "test.")) and name != "val.ridge_colour_mse"
    }
    values = cells_under(HYPERPARAMETER, row)
    number = row["trial"]
    if found is not None and found.conditions:
        keeps = "yes" if number in found.scores else "no"
        kept["keeps"] = keeps if row["status"] == "completed" else None
    if found is not None and found.front:
        kept["front"] = "yes" if number in found.front else None
    return {**kept, **scores, "configuration": values, "error": row["error"]}


def _first_trials(
    rows: list[dict[str, Any]], by: str | None, top: int | None, seeds: int
) -> list[dict[str, Any]]:
    """Return the rows of the first `top` trials by a metric, or by another column or value.

    A trial's metric is its mean over seeds, the best first; all else is its lowest value, the lowest first.
    Trials without it come last, and so do those with a metric that is not finite, which `best` leaves out.

    Raises:
        InputError: no row has a column of that name (with the nearest).
    """
    trials: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        trials.setdefault(row["trial"], []).append(row)
    own = list(trials.values())
    if by is not None and rows:
        own = _by_column(own, by, seeds)
    return list(chain.from_iterable(own[:top]))


def _by_column(trials: list[list[dict[str, Any]]], by: str, seeds: int) -> list[list[dict[str, Any]]]:
    first = {**trials[0][0], **trials[0][0]["configuration"]}
    known = [name for name in first if name not in ("configuration", "error")]
    name = next((name for name in (by, f"val.{by}", f"test.{by}") if name in known), None)
    if name is None:
        raise unknown_name("column", by, known)
    is_metric = name.startswith(("val.", "test."))

    def of(trial: list[dict[str, Any]]) -> Any:
        found = [{**row, **row["configuration"]}.get(name) for row in trial]
        there = [one for one in found if one is not None and (not is_metric or isfinite(one))]
        # A search scores a trial that some of its seeds have not finished by none of them.
        whole = there if len(there) == seeds or not name.startswith("val.") else []
        return None if not whole else fmean(whole) if is_metric else min(whole)

    keys = [of(trial) for trial in trials]
    there = [place for place, key in enumerate(keys) if key is not None]
    there.sort(key=lambda place: keys[place], reverse=is_metric and not is_minimised(name))
    missing = [place for place, key in enumerate(keys) if key is None]
    return [trials[place] for place in [*there, *missing]]


def _shown(rows: list[dict[str, Any]], searched: list[str]) -> list[Row]:
    """Return rows for a table: no empty columns, only the searched values, errors below."""
    one_seed = len({row["seed"] for row in rows}) == 1
    hidden = {"seconds", "configuration", "error", *(["seed"] if one_seed else [])}
    names = [name for name in (rows[0] if rows else {}) if any(row[name] is not None for row in rows)]
    shown = []
    for row in rows:
        values = row["configuration"]
        settings = {name: values.get(name) for name in searched} if searched else values
        cells = {name.removeprefix("val."): row[name] for name in names if name not in hidden}
        notes = [Note("error", row["error"], named=False)] if row["error"] else []
        shown.append(Row(cells, settings, notes))
    return shown
