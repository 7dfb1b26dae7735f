"""The part of the sensitivity page that compares several studies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.sensitivity import figures
from contrasweep.tuning.sensitivity.analyse import Sensitivity
from contrasweep.tuning.sensitivity.enough import TooFew


def comparison_sections(found: Sensitivity, tables: Mapping[str, Table]) -> Iterator[Section]:
    """Yield what several studies say together: equal budgets, ranks and tests, the best default."""
    yield _budgets(found, tables)
    yield _tests(found, tables)
    if found.defaults:
        yield _defaults(found, tables)


def _budgets(found: Sensitivity, tables: Mapping[str, Table]) -> Section:
    budgets = found.budgets
    if budgets is None or isinstance(budgets, TooFew):
        return Section("Equal budgets", f"The studies cannot be compared, {budgets}.")
    text = (
        f"Every study is allowed {budgets.budget} trials, half of what the smallest has, drawn from all "
        "of its "
        "own. The interval resamples the trials of a study; it holds for the seeds and the data that "
        "were used. "
        "Studies of different datasets or scores stand beside each other but are not compared."
    )
    if budgets.unequal:
        text += "\n\nNot equal all the same: " + "; ".join(budgets.unequal) + "."
    shown = [tables[name] for name in ("equal_budget", "differences") if name in tables]
    return Section("Equal budgets", text, [figures.equal_budget_figure(budgets)], shown)


def _tests(found: Sensitivity, tables: Mapping[str, Table]) -> Section:
    parts, drawn = [], []
    if found.ranks is not None:
        if isinstance(found.ranks, TooFew):
            parts.append(f"Mean ranks of methods over datasets: {found.ranks}.")
        else:
            p, critical = found.ranks.p, found.ranks.critical_difference
            parts.append(
                f"Friedman's test that all methods are alike: p = {p:.3g}. Methods whose mean ranks "
                "differ by "
                f"less than {critical:.2f}, where the bars overlap, are not told apart (Nemenyi, 5 %)."
            )
            drawn.append(figures.ranks_figure(found.ranks))
    for what, tests in (("methods over datasets", found.methods), ("studies over shared seeds", found.seeds)):
        if isinstance(tests, TooFew):
            parts.append(f"Paired tests of {what}: {tests}.")
        elif tests is not None:
            parts.append(f"Paired tests of {what}: Wilcoxon's signed ranks, p corrected by Holm.")
    shown = [tables[name] for name in ("ranks", "method_tests", "seed_tests") if name in tables]
    return Section("Tests", "\n\n".join(parts), drawn, shown)


def _defaults(found: Sensitivity, tables: Mapping[str, Table]) -> Section:
    lines = [
        f"{d.method}: " + ", ".join(f"{name} {figures.short(value)}" for name, value in d.values.items())
        for d in found.defaults
    ]
    text = (
        "One configuration for all datasets: the highest mean predicted score, each study in units of "
        "its own "
        "standard deviation. The last column is what the other datasets' choice gains here: what to "
        "expect on "
        "a new dataset.\n\n" + "\n\n".join(lines)
    )
    return Section("Best default over the datasets", text, (), [tables["best_defaults"]])
