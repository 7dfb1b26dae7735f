"""The section on final runs: test scores on fresh seeds, beside those of the untrained encoders."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from contrasweep.names import counted
from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.results.columns import unit_note
from contrasweep.tuning.results.final_runs import (
    UNTRAINED,
    FinalSummary,
    main_score,
    score_names,
    summarise_runs,
)
from contrasweep.tuning.results.numbers import mean_and_std
from contrasweep.tuning.results.study import StudyData
from contrasweep.tuning.statistics import FEW_SEEDS

_TEST = "metric.test."


def selected_runs(data: StudyData) -> tuple[FinalSummary | None, FinalSummary | None]:
    """Return the summaries of `selected_rows` and of their untrained encoders; None if no run completed."""
    summaries = summarise_runs(selected_rows(data))
    final = next((one for one in summaries if one.encoder != UNTRAINED), None)
    return final, next((one for one in summaries if one.encoder == UNTRAINED), None)


def selected_rows(data: StudyData) -> list[Mapping[str, Any]]:
    """Return the completed final runs of the best trial of the search that has any.

    Other trials may have some too: because of `--top`, or because the search was extended later.
    """
    rows = _completed(data)
    tested = {row["trial"] for row in rows}
    ranked = [one.number for one in data.ranked if one.number in tested]
    trial = next(iter([*ranked, *(row["trial"] for row in rows)]), None)
    return [row for row in rows if row["trial"] == trial]


def final_section(data: StudyData) -> Section | None:
    """Return the section on the final runs; None if there are none."""
    if data.final_record is None:
        return None
    rows = _completed(data)
    title = "Final runs"
    if not rows:
        return Section(title, f"None of {counted(len(data.final_rows), 'final run')} has completed.")
    summaries = summarise_runs(rows)
    names = score_names(summaries)
    table = Table(
        "Test split: mean ± sample standard deviation over fresh seeds",
        ("encoder", "n", *(f"test {name.replace('_', ' ')}" for name in names)),
        [
            (
                summary.encoder,
                max(score.n for score in summary.scores.values()),
                *(mean_and_std(summary.scores.get(name)) for name in names),
            )
            for summary in summaries
        ],
        unit_note(names),
    )
    score = main_score(names)
    return Section(title, _said(data, rows, summaries, score), [_draw(rows, score)], [table])


def _completed(data: StudyData) -> list[Mapping[str, Any]]:
    return [row for row in data.final_rows if row["status"] == "completed"]


def _said(
    data: StudyData, rows: Sequence[Mapping[str, Any]], summaries: Sequence[FinalSummary], score: str
) -> str:
    seeds = sorted({row["seed"] for row in rows})
    failed = sum(row["status"] == "failed" for row in data.final_rows)
    said = (
        "The selected configuration on fresh seeds "
        f"({', '.join(map(str, seeds))}), trained on all training data; the test split is read once a run."
    )
    if failed:
        said += f" {counted(failed, 'run')} failed and {'is' if failed == 1 else 'are'} not counted."
    scores = {s.encoder: s.scores[score] for s in summaries if score in s.scores}
    untrained = scores.pop(UNTRAINED, None)
    best = max(scores.values(), key=lambda summary: summary.mean, default=None)
    if best is None or untrained is None:
        return said
    if min(best.n, untrained.n) < FEW_SEEDS:
        return f"{said} Too few to tell: {best.n} trained, {untrained.n} untrained runs."
    if best.mean <= untrained.mean:
        return f"{said} Training did not beat the untrained encoder."
    return said


def _draw(rows: Sequence[Mapping[str, Any]], score: str) -> go.Figure:
    figure = go.Figure()
    trials = sorted({row["trial"] for row in rows})
    groups = [(f"trial {t}", [r for r in rows if r["trial"] == t], score) for t in trials]
    groups.append((UNTRAINED, list({row["seed"]: row for row in rows}.values()), f"{UNTRAINED}_{score}"))
    for i, (name, runs, column) in enumerate(groups):
        points = [(row[_TEST + column], row["seed"]) for row in runs if row.get(_TEST + column) is not None]
        coloured = {"color": COLOURS[i % len(COLOURS)], "symbol": "circle"}
        look = {"color": GREY, "symbol": "x"} if name == UNTRAINED else coloured
        values, seeds = zip(*points, strict=True) if points else ((), ())
        figure.add_scatter(
            x=values,
            y=[name] * len(points),
            customdata=seeds,
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
