"""Compare several studies: their budgets, results and costs."""

from collections.abc import Sequence

import plotly.graph_objects as go

from contrasweep.data import scored_dataset
from contrasweep.tuning.durations import in_words as time_in_words
from contrasweep.tuning.experiment.conditions import appended, in_words
from contrasweep.tuning.reports.cost import cost_of
from contrasweep.tuning.reports.final import differences_of, for_epochs, selected_rows, selected_runs
from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.reports.style import COLOURS, as_written, shortened
from contrasweep.tuning.results.best import best_name
from contrasweep.tuning.results.budgets import budget_line
from contrasweep.tuning.results.columns import MEAN_AND_STD
from contrasweep.tuning.results.final_runs import main_score, score_names, summarise_runs
from contrasweep.tuning.results.numbers import mean_and_std
from contrasweep.tuning.results.study import StudyData
from contrasweep.tuning.statistics import FEW_SEEDS

DASHES = ("solid", "dash", "dot", "dashdot")


def comparison_section(studies: Sequence[StudyData]) -> Section:
    """Return the section that compares the studies; it names what makes the comparison unequal."""
    paragraphs = [budget_line([data.record for data in studies]), *_cautions(studies)]
    return Section(
        "Comparison", "\n\n".join(paragraphs), _draw(studies), [_table(studies), *_differences(studies)]
    )


def _differences(studies: Sequence[StudyData]) -> list[Table]:
    """Return how much better the first of the studies with final runs is on the test split, seed by seed.

    Nothing where studies are of several datasets, or fewer than two have final runs.
    """
    runs = [rows for data in studies if (rows := selected_rows(data))]
    if len(runs) < 2 or len(set(map(_images_of, studies))) > 1:
        return []
    rows = [row for own in runs for row in own]
    return differences_of(rows, main_score(score_names(summarise_runs(rows))))


def _cautions(studies: Sequence[StudyData]) -> list[str]:
    found = []
    datasets = {data.record.dataset for data in studies}
    if len(datasets) > 1:
        found.append(f"Several datasets ({', '.join(sorted(datasets))}): their scores do not compare.")
    goals = {_goal(data) for data in studies}
    if len(goals) > 1:
        found.append(f"Several goals ({'; '.join(sorted(goals))}): each row of the table has its own.")
    if len({data.search.keep for data in studies}) > 1:
        asked = "; ".join(f"{data.name}: {in_words(data.search.keep) or 'none'}" for data in studies)
        found.append(f"The searches have different conditions ({asked}), and their best trials keep them.")
    unfinished = [data.name for data in studies if data.state != "ended"]
    if unfinished:
        found.append(f"Not ended: {', '.join(unfinished)}.")
    runs = {data.name: _final_n(data) for data in studies}
    few = [f"{name} {n}" for name, n in runs.items() if n < FEW_SEEDS]
    lengths = {data.name: data.final_record.experiment.epochs for data in studies if data.final_record}
    if any(map(for_epochs, studies)) and len(set(lengths.values())) > 1:
        each = "; ".join(f"{name} {epochs:,}" for name, epochs in lengths.items())
        found.append(f"The final runs train for different numbers of epochs ({each}).")
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
        tested = final.scores[score] if final is not None else None
        rows.append(
            {
                "study": data.name,
                "method": data.record.method,
                "dataset": data.record.dataset,
                "trials": f"{len(data.trials):,} of {data.planned:,}",
                "epochs trained": cost.epochs,
                "trial time": time_in_words(cost.trials),
                "goal": f"{_goal(data)}{appended(data.search.keep)}",
                "best, validation": None if best is None else best.score,
                "untrained, validation": None if best is None else best.untrained,
                "tested score": score or None,
                "final runs, test": None if tested is None else f"{mean_and_std(tested)} (n = {tested.n})",
                "untrained, test": None if control is None else mean_and_std(control.scores.get(score)),
            }
        )
    several = any(len(data.search.metrics) > 1 for data in studies)
    by_first = " Of several metrics, the validation scores are those of the first." if several else ""
    note = f"Final runs: {MEAN_AND_STD}.{by_first}"
    return Table.of("Studies", rows, note)


def _draw(studies: Sequence[StudyData]) -> list[go.Figure]:
    """Draw the best so far of each study: one figure for scores that compare, of a metric on a dataset."""
    groups: dict[tuple[str, str], list[tuple[int, StudyData]]] = {}
    for place, data in enumerate(studies):
        if data.ranked:
            groups.setdefault((data.metric, _images_of(data)), []).append((place, data))
    datasets = {dataset for _, dataset in groups}
    return [
        _draw_goal(members, dataset if len(datasets) > 1 else "") for (_, dataset), members in groups.items()
    ]


def _images_of(data: StudyData) -> str:
    """Return the dataset whose images a study is scored on."""
    try:
        return scored_dataset(data.record.dataset)
    except ValueError:
        # Another machine may have other plug-ins, another version other options.
        return data.record.dataset


def _draw_goal(members: Sequence[tuple[int, StudyData]], dataset: str) -> go.Figure:
    """Draw the studies with the same goal, each in the colour of its place among all.

    The title names the `dataset`, which may be a long path with any character, unless it is empty.
    """
    figure = go.Figure()
    for i, data in members:
        trials, best = data.best_so_far
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[(i // len(COLOURS) + i) % len(DASHES)]
        line = {"color": colour, "dash": dash, "width": 2.2, "shape": "hv"}
        x, y = [*trials, data.trials[-1].number], [*best, best[-1]]
        figure.add_scatter(x=x, y=y, mode="lines", name=data.name, line=line)
    names, goal = ", ".join(data.name for _, data in members), best_name(members[0][1].metric)
    where = f" on {dataset}" if dataset else ""
    shown = f"on {as_written(shortened(dataset))}" if dataset else "by trials spent"
    return figure.update_layout(
        title=f"Best so far, {shown}",
        xaxis_title="trial",
        yaxis_title=goal,
        showlegend=True,
        meta={"alt": f"{goal}{where} by trial of {names}; see the table."},
    )


def _goal(data: StudyData) -> str:
    return " and ".join(data.search.metrics)


def _final_n(data: StudyData) -> int:
    return len(selected_rows(data))
