"""Every number of a sensitivity analysis as tidy tables: for the page, for CSV files and for JSON."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.reports.page import Table
from contrasweep.tuning.sensitivity.analyse import Sensitivity, StudySensitivity
from contrasweep.tuning.sensitivity.comparison import MeanRanks
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.marginals import named
from contrasweep.tuning.sensitivity.observations import ENDINGS

Row = list[object]


def sensitivity_tables(found: Sensitivity) -> dict[str, Table]:
    """Return the tables by name; what a table would say where there is too little is in `too_few`."""
    tables = {
        "studies": _studies(found),
        "marginals": _each(found, "Marginal curves", _MARGINAL, _marginal_rows),
        "importance": _each(found, "Importance (PED-ANOVA)", _IMPORTANCE, _importance_rows),
        "variance": _each(found, "Variance explained by one parameter (fANOVA)", _SHARE, _share_rows),
        "interactions": _each(found, "Variance explained by interactions", _SHARE, _interaction_rows),
        "pairs": _each(found, "Maps of pairs", _PAIR, _pair_rows),
        "fidelity": _each(found, "Early scores against final ones", _FIDELITY, _fidelity_rows),
        "tunability": _each(found, "Gain over the defaults", _GAIN, _gain_rows),
        "robustness": _each(found, "As good as the best", _REGION, _region_rows),
        "budget": _each(found, "Expected best score", _BUDGET, _budget_rows),
        "noise": _each(found, "Seeds against configurations", _NOISE, _noise_rows),
        "too_few": _each(found, "Too few to tell", ("analysis", "found", "needed", "of"), _too_few_rows),
        **_compared(found),
    }
    return {name: table for name, table in tables.items() if table.rows}


def write_csv(tables: Mapping[str, Table], folder: Path) -> list[Path]:
    """Write each table as a file of its name into `folder`; numbers with all their digits."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table.columns)
            writer.writerows(table.rows)
        paths.append(path)
    return paths


def as_records(tables: Mapping[str, Table]) -> dict[str, list[dict[str, object]]]:
    """Return the tables as lists of records, for JSON: what is not a number is None."""
    return {
        name: [
            {column: _finite(cell) for column, cell in zip(table.columns, row, strict=True)}
            for row in table.rows
        ]
        for name, table in tables.items()
    }


def condition_text(condition: Mapping[str, Scalar]) -> str:
    """Return a condition in words; empty without one."""
    return named("", condition).strip(" ()")


def _finite(cell: object) -> object:
    return None if isinstance(cell, float) and not np.isfinite(cell) else cell


def _each(found: Sensitivity, title: str, columns: Sequence[str], rows: Any) -> Table:
    return Table(
        title, ("study", *columns), [[s.observations.study, *row] for s in found.studies for row in rows(s)]
    )


def _studies(found: Sensitivity) -> Table:
    columns = ("study", "method", "dataset", "phase", "metric", "epochs", "trials", *ENDINGS, "seconds")
    more = ("untrained", "best", "fitted on", "estimated", "predicted variance (R2)")
    rows = []
    for one in found.studies:
        o, s = one.observations, one.surrogate
        known = o.score[np.isfinite(o.score)]
        fitted: Row = [None] * 3 if isinstance(s, TooFew) else [s.trials, s.estimated, s.r2]
        counts = [o.count(ending) for ending in ENDINGS]
        head: Row = [o.study, o.method, o.dataset, o.phase, o.metric, o.epochs, len(o.trial), *counts]
        best = float(known.max()) if len(known) else None
        rows.append([*head, float(np.nansum(o.seconds)), _or_none(o.untrained), best, *fitted])
    return Table("Studies", (*columns, *more), rows)


_MARGINAL = ("parameter", "condition", "value", "mean", "low", "high", "few trials")


def _marginal_rows(one: StudySensitivity) -> Iterator[Row]:
    for m in one.marginals:
        for i, code in enumerate(m.code):
            numbers = [float(x[i]) for x in (m.mean, m.low, m.high)]
            yield [m.axis.name, condition_text(m.condition), m.axis.value(code), *numbers, bool(m.thin[i])]


_IMPORTANCE = ("parameter", "condition", "share", "low", "high", "by chance", "first", "trials", "best")


def _importance_rows(one: StudySensitivity) -> Iterator[Row]:
    for i in one.importances:
        if not isinstance(i, TooFew):
            condition = condition_text(i.condition)
            numbers: Row = [i.share, i.low, i.high, i.by_chance, i.first, i.trials, i.best]
            yield [i.parameter, condition, *numbers]


_SHARE = ("parameter", "condition", "share", "by chance", "above chance")


def _share_rows(one: StudySensitivity) -> Iterator[Row]:
    for s in one.shares:
        yield [" x ".join(s.parameters), condition_text(s.condition), s.share, s.by_chance, s.above_chance]


def _interaction_rows(one: StudySensitivity) -> Iterator[Row]:
    if not isinstance(one.interactions, TooFew):
        for s in one.interactions:
            yield [" x ".join(s.parameters), "", s.share, s.by_chance, s.above_chance]


_PAIR = ("first", "second", "first value", "second value", "mean", "error")


def _pair_rows(one: StudySensitivity) -> Iterator[Row]:
    for p in one.pairs:
        for i, row in enumerate(p.mean):
            for j, mean in enumerate(row):
                if np.isfinite(mean):
                    values = (p.first.value(p.first.grid[i]), p.second.value(p.second.grid[j]))
                    yield [p.first.name, p.second.name, *values, float(mean), float(p.error[i, j])]


_FIDELITY = (
    "epoch",
    "trials",
    "spearman",
    "low",
    "high",
    "kendall",
    "kendall low",
    "kendall high",
    "corrected",
    "rank of the final best",
    "reached",
    "stopped here",
    "verdict",
)


def _fidelity_rows(one: StudySensitivity) -> Iterator[Row]:
    if isinstance(one.fidelity, TooFew):
        return
    for e in one.fidelity.epochs:
        yield [*asdict(e).values(), e.epoch in one.fidelity.rungs, e.verdict]


_GAIN = ("parameter", "gain", "low", "high", "default", "best")


def _gain_rows(one: StudySensitivity) -> Iterator[Row]:
    if isinstance(one.tunability, TooFew):
        return
    for g in (one.tunability.jointly, *one.tunability.parameters):
        yield [g.parameter or "all", g.gain, g.low, g.high, g.default, g.best]


_REGION = ("parameter", "best", "low", "high", "choices", "share of range")


def _region_rows(one: StudySensitivity) -> Iterator[Row]:
    if isinstance(one.robustness, TooFew):
        return
    for r in one.robustness.regions:
        yield [r.axis.name, r.best, r.low, r.high, ", ".join(map(str, r.choices)), r.share]


_BUDGET = ("trials", "seconds", "expected best", "low", "high")


def _budget_rows(one: StudySensitivity) -> Iterator[Row]:
    b = one.budget
    if isinstance(b, TooFew):
        return
    for i, trials in enumerate(b.trials):
        numbers = [float(x[i]) for x in (b.expected, b.low, b.high)]
        yield [int(trials), float(trials * b.seconds_a_trial), *numbers]


_NOISE = (
    "seed std",
    "seed std low",
    "seed std high",
    "configuration std",
    "share of configurations",
    "share low",
    "share high",
    "detectable difference",
    "trials",
    "runs",
)


def _noise_rows(one: StudySensitivity) -> Iterator[Row]:
    if not isinstance(one.noise, TooFew):
        yield list(asdict(one.noise).values())


def _too_few_rows(one: StudySensitivity) -> Iterator[Row]:
    parts: dict[str, object] = {
        "surrogate (marginals, variance, tunability, robust region)": one.surrogate,
        "interactions": one.interactions if one.surrogate is not one.interactions else None,
        "fidelity": one.fidelity,
        "budget": one.budget,
        "seed noise": one.noise,
    }
    for name, part in parts.items():
        if isinstance(part, TooFew):
            yield [name, part.found, part.needed, part.what]
    short = [i for i in one.importances if isinstance(i, TooFew)]
    if short:
        least = min(short, key=lambda i: i.found)
        yield [f"importance of {len(short)} entries", least.found, least.needed, least.what]


def _compared(found: Sensitivity) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    if found.budgets is not None and not isinstance(found.budgets, TooFew):
        title = f"Best score to expect of {found.budgets.budget} trials"
        tables["equal_budget"] = _from(title, found.budgets.studies)
        tables["differences"] = _from(
            f"Differences at {found.budgets.budget} trials", found.budgets.differences
        )
    if found.ranks is not None and not isinstance(found.ranks, TooFew):
        tables["ranks"] = _ranks(found.ranks)
    for name, tests, title in (
        ("method_tests", found.methods, "Methods over datasets"),
        ("seed_tests", found.seeds, "Studies over shared seeds"),
    ):
        if tests is not None and not isinstance(tests, TooFew):
            tables[name] = _from(title, tests)
    tables["best_defaults"] = _best_defaults(found)
    return tables


def _ranks(found: MeanRanks) -> Table:
    columns = ("method", "mean rank", "datasets", "Friedman p", "critical difference")
    pairs = zip(found.names, found.ranks, strict=True)
    rows: list[Row] = [[n, k, found.blocks, found.p, found.critical_difference] for n, k in pairs]
    return Table("Mean ranks over datasets", columns, rows)


def _best_defaults(found: Sensitivity) -> Table:
    columns = ("method", "study", "dataset", "gain", "low", "high", "gain if chosen elsewhere")
    rows: list[Row] = [
        [d.method, g.study, g.dataset, g.gain, g.low, g.high, g.unseen]
        for d in found.defaults
        for g in d.gains
    ]
    return Table("Best default over datasets: gain over the present one", columns, rows)


def _from(title: str, items: Sequence[Any]) -> Table:
    """A table of dataclasses, a column a field."""
    rows = [list(asdict(item).values()) for item in items]
    columns = [name.replace("_", " ") for name in asdict(items[0])] if items else []
    return Table(title, columns, rows)


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None
