"""The sections and tables that compare several studies: equal budgets, tests, the best default."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import plotly.graph_objects as go

from contrasweep.tuning.reports.page import Section, Table, cell_text
from contrasweep.tuning.sensitivity.analyse import Sensitivity, StudySensitivity, Surrogate
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.comparison import EqualBudget, MeanRanks
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import ENDINGS
from contrasweep.tuning.sensitivity.sections.part import (
    Row,
    error_bars,
    interval_bars,
    interval_figure,
    short,
)


def comparison_sections(found: Sensitivity) -> Iterator[Section]:
    """Yield the sections that compare studies: equal budgets, ranks and tests, the best default."""
    tables = comparison_tables(found)
    yield _budgets(found, tables)
    yield _tests(found, tables)
    if found.defaults:
        yield _defaults(found, tables)


def comparison_tables(found: Sensitivity) -> dict[str, Table]:
    """Return the tables of the comparisons by name; those that need more trials are left out."""
    tables: dict[str, Table] = {}
    if found.budgets is not None and not isinstance(found.budgets, TooFew):
        budget = found.budgets.budget
        tables["equal_budget"] = _from(f"Best score to expect of {budget} trials", found.budgets.studies)
        tables["differences"] = _from(f"Differences at {budget} trials", found.budgets.differences)
    if found.ranks is not None and not isinstance(found.ranks, TooFew):
        tables["ranks"] = _ranks_table(found.ranks)
    for name, tests, title in (
        ("method_tests", found.methods, "Methods over datasets"),
        ("seed_tests", found.seeds, "Studies over shared seeds"),
    ):
        if tests is not None and not isinstance(tests, TooFew):
            tables[name] = _from(title, tests)
    tables["best_defaults"] = _defaults_table(found)
    return {name: table for name, table in tables.items() if table.rows}


def _budgets(found: Sensitivity, tables: dict[str, Table]) -> Section:
    budgets = found.budgets
    if budgets is None or isinstance(budgets, TooFew):
        return Section("Equal budgets", f"The studies cannot be compared, {budgets}.")
    text = (
        f"Every study is allowed {budgets.budget} trials, half of what the smallest has, drawn from all of "
        "its own. The interval resamples the trials of a study; it holds for the seeds and the data that "
        "were used. Studies of different datasets or scores stand beside each other but are not compared."
    )
    if budgets.unequal:
        text += "\n\nStill unequal: " + "; ".join(budgets.unequal) + "."
    shown = [tables[name] for name in ("equal_budget", "differences") if name in tables]
    return Section("Equal budgets", text, [_equal_budget_figure(budgets)], shown)


def _tests(found: Sensitivity, tables: dict[str, Table]) -> Section:
    parts, drawn = [], []
    if isinstance(found.ranks, TooFew):
        parts.append(f"Mean ranks of methods over datasets: {found.ranks}.")
    elif found.ranks is not None:
        parts.append(
            f"Friedman's test that all methods are alike: p = {found.ranks.p:.3g}. Methods whose mean ranks "
            f"differ by less than {found.ranks.critical_difference:.2f}, where the bars overlap, do not "
            "differ significantly (Nemenyi, 5 %)."
        )
        drawn.append(_ranks_figure(found.ranks))
    for what, tests in (("methods over datasets", found.methods), ("studies over shared seeds", found.seeds)):
        if isinstance(tests, TooFew):
            parts.append(f"Paired tests of {what}: {tests}.")
        elif tests is not None:
            parts.append(f"Paired tests of {what}: Wilcoxon's signed ranks, p corrected by Holm.")
    shown = [tables[name] for name in ("ranks", "method_tests", "seed_tests") if name in tables]
    return Section("Tests", "\n\n".join(parts), drawn, shown)


def _defaults(found: Sensitivity, tables: dict[str, Table]) -> Section:
    lines = [
        f"{d.method}: " + ", ".join(f"{name} {short(value)}" for name, value in d.values.items())
        for d in found.defaults
    ]
    text = (
        "One configuration for all datasets: the one with the highest mean predicted score, each study in "
        "units of its own standard deviation. The last column is the gain of the configuration that the "
        "other datasets choose, an estimate for a new dataset.\n\n" + "\n\n".join(lines)
    )
    return Section("Best default over the datasets", text, (), [tables["best_defaults"]])


def _equal_budget_figure(found: EqualBudget) -> go.Figure:
    """Draw the expected best score of each study with the common budget."""
    studies = found.studies[::-1]
    rows, value = list(range(len(studies))), [s.expected for s in studies]
    title = f"Expected best of {found.budget} trials (95 %)"
    figure = interval_figure(title, rows, value, interval_bars(value, studies), height=44, name="expected")
    # Names stand above their rows: beside them, they would take half of a phone's width.
    for row, s in enumerate(studies):
        name = s.study if s.dataset in s.study else f"{s.study} ({s.dataset})"
        place = {"xref": "paper", "x": 0, "xanchor": "left", "y": row, "yanchor": "bottom", "yshift": 6}
        figure.add_annotation(text=name, showarrow=False, font={"size": 11}, **place)
    figure.update_yaxes(tickvals=rows, showticklabels=False, ticks="", range=[-0.6, len(studies) - 0.2])
    return figure.update_layout(xaxis_title=studies[0].metric)


def _ranks_figure(found: MeanRanks) -> go.Figure:
    """Draw mean ranks with bars of half the critical difference: methods whose bars overlap do not differ."""
    names, ranks = found.names[::-1], found.ranks[::-1]
    half = np.full(len(ranks), found.critical_difference / 2)
    title = f"Mean ranks over {found.blocks} datasets (Nemenyi, 5 %)"
    figure = interval_figure(title, names, ranks, error_bars(half, half), height=34, name="rank")
    return figure.update_layout(xaxis_title="mean rank; 1 is the best")


def _ranks_table(found: MeanRanks) -> Table:
    columns = ("method", "mean rank", "datasets", "Friedman p", "critical difference")
    pairs = zip(found.names, found.ranks, strict=True)
    rows: list[Row] = [[n, k, found.blocks, found.p, found.critical_difference] for n, k in pairs]
    return Table("Mean ranks over datasets", columns, rows)


def _defaults_table(found: Sensitivity) -> Table:
    columns = ("method", "study", "dataset", "gain", "low", "high", "gain if chosen elsewhere")
    rows: list[Row] = [
        [d.method, g.study, g.dataset, g.gain, g.low, g.high, g.unseen]
        for d in found.defaults
        for g in d.gains
    ]
    return Table("Best default over datasets: gain over the present one", columns, rows)


def _from(title: str, items: Sequence[Any]) -> Table:
    """Return a table of dataclasses: a row for each item, a column for each field."""
    rows = [list(asdict(item).values()) for item in items]
    columns = [name.replace("_", " ") for name in asdict(items[0])] if items else []
    return Table(title, columns, rows)


LEAST_R2 = 0.1
"""A surrogate with a smaller r2 predicts too little for its curves to mean much; the page says so."""

COLUMNS = (
    *("study", "method", "dataset", "phase", "metric", "epochs", "trials", *ENDINGS, "seconds"),
    *("untrained", "best", "fitted on", "estimated", "predicted variance (R2)"),
)


def trials_row(one: StudySensitivity) -> Row:
    """Return a study's row under `COLUMNS`."""
    o, s = one.observations, one.surrogate
    known = o.score[np.isfinite(o.score)]
    counts = [o.count(ending) for ending in ENDINGS]
    untrained = o.untrained if np.isfinite(o.untrained) else None
    best = float(known.max()) if len(known) else None
    fitted: Row = [None] * 3 if isinstance(s, TooFew) else [s.trials, s.estimated, s.r2]
    head: Row = [o.study, o.method, o.dataset, o.phase, o.metric, o.epochs, len(o.trial), *counts]
    return [*head, float(np.nansum(o.seconds)), untrained, best, *fitted]


def trials_section(one: StudySensitivity) -> Section:
    """Return the section; its table has a line for each of `COLUMNS`."""
    o = one.observations
    lines = [
        f"{len(o.trial)} trials of {o.method} on {o.dataset}; score: {o.metric} after {o.epochs} epochs at "
        "most, on the validation split, larger is better.",
        _best_line(o.score[np.isfinite(o.score)], o.untrained),
        _surrogate_line(one.surrogate),
    ]
    named = zip(COLUMNS[1:], trials_row(one)[1:], strict=True)
    table = Table("Studies", ("", "this study"), [[name, cell_text(value)] for name, value in named])
    return Section("Trials", "\n\n".join(lines), (), [table])


def _best_line(scores: Floats, untrained: float) -> str:
    if not len(scores):
        return "No trial has a final score yet."
    best = f"Best score {scores.max():.4g}"
    if not np.isfinite(untrained):
        return f"{best}."
    beaten = "" if scores.max() > untrained else ": training did not beat it"
    return f"{best}; the untrained encoder has {untrained:.4g}{beaten}."


def _surrogate_line(surrogate: Surrogate | TooFew) -> str:
    if isinstance(surrogate, TooFew):
        return f"Curves, pairs, gains and robust ranges come from a model of the score: {surrogate}."
    estimated = f", {surrogate.estimated} of them stopped early with an estimated score"
    line = (
        f"Curves, pairs, gains and robust ranges come from a forest fitted on {surrogate.trials} trials"
        f"{estimated if surrogate.estimated else ''}. It predicts "
        f"{100 * max(0.0, surrogate.r2):.0f} % of the variance of unseen trials."
    )
    if surrogate.left_out:
        line += f" {surrogate.left_out} ended trials without a score are left out of it."
    if surrogate.r2 < LEAST_R2:
        line += " That is next to nothing: do not rely on what follows from it here."
    return line
