"""Compare several studies: their budgets, results and costs."""

from collections.abc import Sequence

import plotly.graph_objects as go

from contrasweep.tuning.durations import in_words
from contrasweep.tuning.reports.cost import cost_of
from contrasweep.tuning.reports.figures import best_so_far
from contrasweep.tuning.reports.final import FEW_SEEDS, mean_and_std, selected_runs
from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.reports.style import COLOURS
from contrasweep.tuning.results.final_runs import main_score
from contrasweep.tuning.results.study import StudyData
from contrasweep.tuning.statistics import Summary

DASHES = ("solid", "dash", "dot", "dashdot")


def comparison_section(studies: Sequence[StudyData]) -> Section:
    """Return the section that compares the studies; it names what makes the comparison unequal."""
    paragraphs = [budget_line(studies), *_cautions(studies)]
    figures = [_draw(studies)] if any(data.curves for data in studies) else []
    return Section("Comparison", "\n\n".join(paragraphs), figures, [_table(studies)])


def budget_line(studies: Sequence[StudyData]) -> str:
    """Return a sentence that states the budgets of the studies and whether they are equal."""
    budgets = {(data.planned, _epochs(data), data.search.scheduler) for data in studies}
    if len(budgets) == 1:
        trials, epochs, scheduler = budgets.pop()
        return f"Equal budgets: {trials:,} trials of at most {epochs} epochs each, scheduler {scheduler}."
    each = "; ".join(f"{d.name} {d.planned:,} trials of at most {_epochs(d)} epochs" for d in studies)
    return f"The budgets differ, so a larger one may have won by its size: {each}."


def _cautions(studies: Sequence[StudyData]) -> list[str]:
    found = []
    datasets = {data.record.dataset for data in studies}
    if len(datasets) > 1:
        found.append(f"Several datasets ({', '.join(sorted(datasets))}): their scores do not compare.")
    metrics = {data.metric for data in studies}
    if len(metrics) > 1:
        found.append(f"Several goals ({', '.join(sorted(metrics))}): each column has its own.")
    unfinished = [data.name for data in studies if data.state != "ended"]
    if unfinished:
        found.append(f"Not ended: {', '.join(unfinished)}.")
    runs = {data.name: _final_n(data) for data in studies}
    few = [f"{name} {n}" for name, n in runs.items() if n < FEW_SEEDS]
    if few:
        found.append(
            f"Too few to tell the studies apart: fewer than {FEW_SEEDS} final runs ({', '.join(few)}). "
            "The best validation score of a search is optimistic, and comes from one trial."
        )
    return found


def _table(studies: Sequence[StudyData]) -> Table:
    rows = []
    for data in studies:
        cost, best = cost_of(data), data.ranked[0] if data.ranked else None
        final, control = selected_runs(data)
        score = main_score(list(final.scores)) if final is not None else ""
        rows.append(
            (
                data.name,
                data.record.method,
                data.record.dataset,
                f"{len(data.trials):,} of {data.planned:,}",
                cost.epochs,
                in_words(cost.trials),
                data.metric,
                None if best is None else best.score,
                None if best is None else best.untrained,
                None if final is None else _with_n(final.scores[score]),
                None if control is None else mean_and_std(control.scores.get(score)),
            )
        )
    columns = (
        "study",
        "method",
        "dataset",
        "trials",
        "epochs trained",
        "trial time",
        "goal",
        "best, validation",
        "untrained, validation",
        "final runs, test",
        "untrained, test",
    )
    return Table("Studies", columns, rows, "Final runs: mean ± sample standard deviation over fresh seeds.")


def _with_n(summary: Summary) -> str:
    return f"{mean_and_std(summary)} (n = {summary.n})"


def _draw(studies: Sequence[StudyData]) -> go.Figure:
    figure = go.Figure()
    for i, data in enumerate(studies):
        trials, best = best_so_far(data.curves.values())
        if not trials:
            continue
        figure.add_scatter(
            x=[*trials, data.trials[-1].number],
            y=[*best, best[-1]],
            mode="lines",
            name=data.name,
            line={
                "color": COLOURS[i % len(COLOURS)],
                "dash": DASHES[(i // len(COLOURS) + i) % len(DASHES)],
                "width": 2.2,
                "shape": "hv",
            },
        )
    metrics = sorted({data.rung_metric for data in studies})
    figure.update_layout(
        title="Best so far, by trials spent",
        xaxis_title="trial",
        yaxis_title=" / ".join(metrics),
        meta={
            "alt": "Best score so far by trial of " + ", ".join(d.name for d in studies) + "; see the table."
        },
    )
    return figure


def _final_n(data: StudyData) -> int:
    return len({row["seed"] for row in data.final_rows if row["status"] == "completed"})


def _epochs(data: StudyData) -> int:
    return int(data.record.experiment["epochs"])
