"""The section on final runs: test scores on fresh seeds, beside those of the untrained encoders."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go

from contrasweep.names import counted, with_capital
from contrasweep.tuning.experiment.statuses import counts_in_words
from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.results.best import beats, not_beaten_in_words
from contrasweep.tuning.results.columns import (
    MEAN_AND_STD,
    difference_note,
    difference_rows,
    difference_title,
    summary_note,
)
from contrasweep.tuning.results.final_runs import (
    UNTRAINED,
    FinalRuns,
    FinalSummary,
    largest_gain,
    main_score,
    score_names,
    scores_by_seed,
    summarise_runs,
    summary_rows,
)
from contrasweep.tuning.results.study import StudyData
from contrasweep.tuning.statistics import FEW_SEEDS, compare_first
from contrasweep.tuning.store import StudyRecord, final_name


def selected_runs(data: StudyData) -> tuple[FinalSummary | None, FinalSummary | None]:
    """Return the summaries of `selected_rows` and of their untrained encoders; None if there are no rows."""
    summaries = summarise_runs(selected_rows(data))
    final = next((one for one in summaries if one.encoder != UNTRAINED), None)
    return final, next((one for one in summaries if one.encoder == UNTRAINED), None)


def selected_rows(data: StudyData) -> list[Mapping[str, Any]]:
    """Return the completed final runs with a score, of the best trial of the search that has any.

    Other trials may have some too: the defaults, those of `--top`, or because the search was extended later.
    """
    rows = scored_runs(data)
    return runs_of(data, rows[0]["trial"]) if rows else []


def runs_of(data: StudyData, trial: int) -> list[Mapping[str, Any]]:
    """Return the completed final runs of a trial that have a score."""
    return [row for row in scored_runs(data) if row["trial"] == trial]


def final_section(data: StudyData) -> Section | None:
    """Return the section on the final runs; None if there are none."""
    if data.final_record is None:
        return None
    rows, title = scored_runs(data), "Final runs"
    others = [table for record, runs in data.other_finals for table in _others(record, runs, data)]
    if not rows:
        return Section(title, none_scored(data), tables=others)
    table = _means(rows, data, f"Test split: {MEAN_AND_STD}")
    score = main_score(score_names(summarise_runs(rows)))
    tables = [table, *differences_of(rows, score), *others]
    return Section(title, _said(data, rows, score), [_draw(rows, score)], tables)


def none_scored(data: StudyData) -> str:
    """Say that none of the final runs has completed with a score."""
    return f"None of {counted(len(data.final_rows), 'final run')} has completed with a test score."


def _means(rows: Sequence[Mapping[str, Any]], data: StudyData, title: str) -> Table:
    """Return the test scores of each configuration, then of the untrained encoders."""
    summaries = [replace(one, encoder=_named(one.encoder, data)) for one in summarise_runs(rows)]
    return Table.of(title, summary_rows(summaries), summary_note(score_names(summaries)))


def _others(record: StudyRecord, runs: FinalRuns, data: StudyData) -> Iterator[Table]:
    """Return the tables of final runs with another number of epochs; nothing before one has completed."""
    rows = _best_first(runs.rows, data)
    if rows:
        length = counted(record.experiment.epochs, "epoch")
        yield _means(rows, data, f"Trained for {length} ({record.name})")
        yield from differences_of(rows, main_score(score_names(summarise_runs(rows))))


def for_epochs(data: StudyData) -> str:
    """Return ` for N epochs` where the final runs train for another number than the search; else nothing."""
    epochs = other_epochs(data, data.final_record)
    return "" if epochs is None else f" for {counted(epochs, 'epoch')}"


def other_epochs(data: StudyData, final: StudyRecord | None) -> int | None:
    """Return how long final runs train; None if as long as the search, or if there are none."""
    usual = final is None or final.name == final_name(data.name)
    return None if usual or final is None else final.experiment.epochs


def scored_runs(data: StudyData) -> list[Mapping[str, Any]]:
    """Return the completed final runs with a score, those of the best trial of the search first."""
    return _best_first([row for row in data.final_rows if row["status"] == "completed"], data)


def _best_first(rows: Sequence[Mapping[str, Any]], data: StudyData) -> list[Mapping[str, Any]]:
    """Return those of the runs that have a score, the runs of the best trial of the search first."""
    places = {one.number: place for place, one in enumerate(data.ranked)}
    scored = [row for row in rows if any(one.encoder != UNTRAINED for one in summarise_runs([row]))]
    return sorted(scored, key=lambda row: places.get(row["trial"], len(places)))


def differences_of(rows: Sequence[Mapping[str, Any]], score: str) -> list[Table]:
    """Return the table that `contrasweep run` prints: the first configuration against each other encoder."""
    compared = compare_first(scores_by_seed(rows))
    listed = difference_rows(compared)
    if not listed:
        return []
    return [Table.of(difference_title(compared, score), listed, difference_note(compared))]


def _named(encoder: str, data: StudyData) -> str:
    """Return the name of an encoder of `summarise_runs`, and whether its trial ran the defaults."""
    defaults = data.defaults
    ours = defaults is not None and encoder.endswith(f", trial {defaults.number}")
    return f"{encoder} (the defaults)" if ours else encoder


def _role(trial: int, data: StudyData) -> str:
    """Return what a trial is to the search: its best, its defaults, both or neither."""
    defaults = data.defaults
    roles = [
        *(["the selected configuration"] if data.ranked and data.ranked[0].number == trial else []),
        *(["the defaults"] if defaults is not None and defaults.number == trial else []),
    ]
    return f"{' and '.join(roles)} (trial {trial})" if roles else f"trial {trial}"


def _said(data: StudyData, rows: Sequence[Mapping[str, Any]], score: str) -> str:
    seeds = sorted({row["seed"] for row in rows})
    roles = ", ".join(_role(trial, data) for trial in dict.fromkeys(row["trial"] for row in rows))
    said = (
        f"{roles[0].upper()}{roles[1:]} on fresh seeds ({', '.join(map(str, seeds))}), trained on all "
        f"training data{for_epochs(data)}; the test split is read once a run."
    )
    return said + _not_counted(rows, data) + _beside_untrained(rows, score)


def _not_counted(rows: Sequence[Mapping[str, Any]], data: StudyData) -> str:
    """Say how many final runs are not among the `rows` with a score, and why."""
    counts = Counter(row["status"] for row in data.final_rows)
    scoreless = counts["completed"] - len(rows)
    others = {status: count for status, count in counts.items() if status != "completed"}
    told = [f"{scoreless:,} completed without a score" if scoreless else "", counts_in_words(others)]
    return f" Not counted: {', '.join(filter(None, told))}." if any(told) else ""


def _beside_untrained(rows: Sequence[Mapping[str, Any]], score: str) -> str:
    """Say so where no configuration is better than its own untrained encoder, or too few runs tell."""
    found = largest_gain(rows, score)
    if found is None:
        return ""
    trained, untrained = found
    if min(trained.n, untrained.n) < FEW_SEEDS:
        return f" Too few to tell: {trained.n} trained, {untrained.n} untrained runs."
    return "" if beats(score, trained.mean, untrained.mean) else f" {with_capital(not_beaten_in_words())}."


def _draw(rows: Sequence[Mapping[str, Any]], score: str) -> go.Figure:
    figure = go.Figure()
    groups = scores_by_seed(rows)
    for i, (encoder, by_seed) in enumerate(groups.items()):
        coloured = {"color": COLOURS[i % len(COLOURS)], "symbol": "circle"}
        look = {"color": GREY, "symbol": "x"} if encoder.startswith(UNTRAINED) else coloured
        name = encoder.partition(", ")[2] or encoder
        figure.add_scatter(
            x=[*by_seed.values()],
            y=[name] * len(by_seed),
            customdata=[*by_seed],
            mode="markers",
            showlegend=False,
            name=name,
            marker={**look, "size": 11, "opacity": 0.8},
            hovertemplate="seed %{customdata}: %{x:.4g}<extra>%{y}</extra>",
        )
    figure.update_layout(
        title="Each final run",
        height=150 + 45 * len(groups),
        xaxis_title=f"test.{score}",
        yaxis={"autorange": "reversed"},
        meta={
            "alt": f"test.{score} of each of {counted(len(rows), 'final run')}; "
            "the table below has their means."
        },
    )
    return figure
