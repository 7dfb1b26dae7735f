"""What the page says of whole studies: how the trials of each ended, and how several compare."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import plotly.graph_objects as go

from contrasweep.names import counted, with_capital
from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.results.best import not_beaten_in_words
from contrasweep.tuning.results.numbers import cell_text, number_text
from contrasweep.tuning.sensitivity.analyse import Sensitivity, StudySensitivity
from contrasweep.tuning.sensitivity.comparison import EqualBudget, MeanRanks
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import ENDINGS
from contrasweep.tuning.sensitivity.sections.part import (
    Record,
    error_bars,
    interval_bars,
    interval_figure,
    short,
)
from contrasweep.tuning.statistics import Floats


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
        trials = counted(found.budgets.budget, "trial")
        tables["equal_budget"] = _from(f"Best score to expect of {trials}", found.budgets.studies)
        tables["differences"] = _from(f"Differences at {trials}", found.budgets.differences)
    if found.ranks is not None and not isinstance(found.ranks, TooFew):
        ranks = found.ranks
        of_all = {"datasets": ranks.blocks, "Friedman p": ranks.p}
        of_all["critical difference"] = ranks.critical_difference
        pairs = zip(ranks.names, ranks.ranks, strict=True)
        rows = [{"method": name, "mean rank": rank, **of_all} for name, rank in pairs]
        tables["ranks"] = Table.of("Mean ranks over datasets", rows)
    for name, tests, title in (
        ("method_tests", found.methods, "Methods over datasets"),
        ("seed_tests", found.seeds, "Studies over shared seeds"),
    ):
        if tests is not None and not isinstance(tests, TooFew):
            tables[name] = _from(title, tests)
    gains = [
        {"method": d.method, "study": g.study, "dataset": g.dataset, "gain": g.gain}
        | {"low": g.low, "high": g.high, "gain if chosen elsewhere": g.unseen}
        | {"its low": g.unseen_low, "its high": g.unseen_high}
        for d in found.defaults
        for g in d.gains
    ]
    tables["best_defaults"] = Table.of("Best default over datasets: gain over the present one", gains)
    return {name: table for name, table in tables.items() if table.rows}


def _budgets(found: Sensitivity, tables: dict[str, Table]) -> Section:
    budgets = found.budgets
    if budgets is None or isinstance(budgets, TooFew):
        return Section("Equal budgets", f"The studies cannot be compared, {budgets}.")
    text = (
        f"Every study is allowed {counted(budgets.budget, 'trial')}, a quarter of what the smallest has, "
        "drawn from all of its own. The interval is that over other trials of the study; it holds for the "
        "seeds and the data that were used. Studies of different datasets or scores stand beside each other "
        "but are not compared."
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
        "units of its own standard deviation, and each dataset counted once. Its gain is that of a choice by "
        "one half of the trials, judged by the other half. The last columns are the gain of the "
        "configuration that the other datasets choose, an estimate for a new dataset, with its "
        "interval.\n\n" + "\n\n".join(lines)
    )
    return Section("Best default over the datasets", text, (), [tables["best_defaults"]])


def _equal_budget_figure(found: EqualBudget) -> go.Figure:
    """Draw the expected best score of each study with the common budget."""
    studies = found.studies[::-1]
    rows, value = list(range(len(studies))), [s.expected for s in studies]
    title = f"Expected best of {counted(found.budget, 'trial')}, with its interval"
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


def _from(title: str, items: Sequence[Any]) -> Table:
    """Return a table of dataclasses: a row for each item, a column for each field."""
    return Table.of(title, [{k.replace("_", " "): v for k, v in asdict(item).items()} for item in items])


def trials_record(one: StudySensitivity) -> Record:
    """Return a study's row in the table of studies."""
    o, s = one.observations, one.end.forest.surrogate
    known = o.score[np.isfinite(o.score)]
    fitted = (None, None, None) if isinstance(s, TooFew) else (s.trials, s.estimated, s.r2)
    return {
        **{name: getattr(o, name) for name in ("study", "method", "dataset", "phase", "metric", "epochs")},
        "trials": len(o.trial),
        **{ending: o.count(ending) for ending in ENDINGS},
        "seconds": float(np.nansum(o.seconds)),
        "untrained": o.untrained if np.isfinite(o.untrained) else None,
        "best": float(known.max()) if len(known) else None,
        **dict(zip(("fitted on", "estimated", "predicted variance (R2)"), fitted, strict=True)),
    }


def trials_section(one: StudySensitivity) -> Section:
    """Return the section; its table has a line for each column of the table of studies."""
    o = one.observations
    lines = [
        f"{len(o.trial)} trials of {o.method} on {o.dataset}; score: {o.metric} after {o.epochs} epochs at "
        "most, on the validation split, larger is better.",
        _best_line(o.score[np.isfinite(o.score)], o.untrained),
    ]
    if o.keep:
        lines.append(
            f"The search keeps {o.keep}. This page is about all trials, including those that break this. "
            "`contrasweep best` shows the best trial that keeps it."
        )
    if o.repeats:
        lines.append(
            f"{counted(o.repeats, 'trial')} ran a configuration again, with the same scores: what parameters "
            "do is read from the first of each."
        )
    rows = [(name, cell_text(value)) for name, value in trials_record(one).items() if name != "study"]
    table = Table("Studies", ("", "this study"), rows)
    return Section("Trials", "\n\n".join(lines), (), [table])


def _best_line(scores: Floats, untrained: float) -> str:
    if not len(scores):
        return "No trial has a final score yet."
    best = f"Best score {number_text(scores.max())}"
    if not np.isfinite(untrained):
        return f"{best}."
    beaten = "" if scores.max() > untrained else f" {with_capital(not_beaten_in_words())}."
    return f"{best}; the untrained encoder has {number_text(untrained)}.{beaten}"
