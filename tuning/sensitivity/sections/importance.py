"""The section on importance: which parameters matter at each stage, by three analyses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import plotly.graph_objects as go

from contrasweep.names import counted
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.analyse import StageSensitivity, StudySensitivity
from contrasweep.tuning.sensitivity.effects import Effect, Verdict
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.importance import Importance
from contrasweep.tuning.sensitivity.marginals import Share, condition_text
from contrasweep.tuning.sensitivity.scores import Stage
from contrasweep.tuning.sensitivity.sections.part import Part, Record, TidyTable, interval_bars
from contrasweep.tuning.sensitivity.sections.stage import share_row, stage_selector

Known = Sequence[StageSensitivity]

TINTS: Mapping[Verdict, str] = {"matters": COLOURS[0], "may matter": COLOURS[4], "no evidence": GREY}


def _known(one: StudySensitivity) -> Known | TooFew:
    """Return the stages of which importance says anything; without any, how many trials the first has."""
    known = [stage for stage in one.stages if stage.judged or not isinstance(stage.effects, TooFew)]
    lacks = [entry for entry in one.stages[0].importances if isinstance(entry, TooFew)]
    # A parameter that depends on another is judged on a part of the trials: the study itself has more.
    most = max(lacks, key=lambda lack: lack.found, default=TooFew(0, 1, "searched parameters"))
    return known or most


def _missing(found: Known, one: StudySensitivity) -> Iterator[tuple[str, TooFew]]:
    """Yield, for each stage, the number of entries that need more trials, and the one that has the fewest."""
    for stage in one.stages:
        lacks = [entry for entry in stage.importances if isinstance(entry, TooFew)]
        if lacks:
            where = f" at {stage.stage.name}" if len(one.stages) > 1 else ""
            some = counted(len(lacks), "parameter")
            count = f" of {some}" if stage in found else ""
            yield f"importance{count}{where}", min(lacks, key=lambda entry: entry.found)


def _tell(found: Known, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    text = (
        "Effect: whether the score depends on a parameter beyond what the others explain. Dark blue bars "
        "hold for all parameters at once (permutation test, Holm, 5 %), light blue ones for that parameter "
        "alone; grey ones may be chance.\n\n"
        "PED-ANOVA asks what sets the best trials apart, fANOVA what moves the score over the whole space, "
        "bad regions included. Coloured bars lie above what chance gives (the red mark). A parameter that "
        "depends on another is judged within each value of that other. The three need not agree."
    )
    later = [stage for stage in found if _estimated(stage)]
    if later:
        text += (
            "\n\nLater rungs were reached by the better trials only. The scores of the others are estimated "
            "from their earlier ones. An effect counts there only if the trials that reached the rung show "
            "it by themselves, in the same direction."
        )
    few = sum(isinstance(entry, TooFew) for entry in found[0].importances)
    if few:
        total, needed = len(found[0].importances), enough.IMPORTANCE
        text += f"\n\nPED-ANOVA leaves out {few} of {total} entries, which have fewer than {needed} trials."
    drawn = (
        [(s.stage, _effect_figure(s.stage, s.effects)) for s in found if not isinstance(s.effects, TooFew)],
        [(s.stage, _importance_figure(s.stage, s.judged)) for s in found if s.judged],
        [(s.stage, _variance_figure(s.stage, s.forest.shares)) for s in found if s.forest.shares],
    )
    return text, [stage_selector(figures) for figures in drawn if figures]


def _estimated(stage: StageSensitivity) -> bool:
    trials = stage.stage.known
    return not isinstance(trials, TooFew) and bool(trials.estimated.any())


def _effect_rows(found: Known, one: StudySensitivity) -> Iterator[Record]:
    for stage in found:
        yield from stage.effect_rows()


def _importance_rows(found: Known, one: StudySensitivity) -> Iterator[Record]:
    for stage in found:
        for i in stage.judged:
            named = {name.replace("_", " "): value for name, value in asdict(i).items()}
            yield {"epoch": stage.stage.epoch, **named, "condition": condition_text(i.condition)}


def _share_rows(found: Known, one: StudySensitivity) -> Iterator[Record]:
    for stage in found:
        for share in stage.forest.shares:
            yield {"epoch": stage.stage.epoch, **share_row(share)}


def _effect_figure(stage: Stage, found: Sequence[Effect]) -> go.Figure:
    """Draw the share of the variance that each parameter explains beyond the others."""
    ordered = sorted(found, key=lambda e: (e.share, -e.p))
    figure = go.Figure(
        go.Bar(
            x=[e.share for e in ordered],
            y=[e.parameter for e in ordered],
            orientation="h",
            marker_color=[TINTS[e.verdict] for e in ordered],
            customdata=[(e.verdict, e.p_holm) for e in ordered],
            hovertemplate="%{y}: %{x:.3f}<br>%{customdata[0]} (Holm: p = %{customdata[1]:.3f})"
            "<extra></extra>",
        )
    )
    title = f"Effect at {stage.name}: beyond the others"
    figure.update_layout(title=title, xaxis_title="share of the variance", height=140 + 30 * len(ordered))
    # Every row has its name, however narrow the page.
    return figure.update_xaxes(rangemode="tozero").update_yaxes(dtick=1)


def _importance_figure(stage: Stage, found: Sequence[Importance]) -> go.Figure:
    """Draw PED-ANOVA's shares with bootstrap intervals, and the shares by chance."""
    ordered = sorted(found, key=lambda i: i.share)
    arms = interval_bars([i.share for i in ordered], ordered)
    figure = _share_bars(ordered, COLOURS[0], error_x=arms)
    title = f"Importance at {stage.name} (PED-ANOVA)"
    return figure.update_layout(title=title, xaxis_title="share explained")


def _variance_figure(stage: Stage, found: Sequence[Share]) -> go.Figure:
    """Draw the shares of the surrogate's variance, and the shares by chance."""
    figure = _share_bars(sorted(found, key=lambda s: s.share), COLOURS[2])
    title = f"Variance explained at {stage.name} (fANOVA)"
    return figure.update_layout(title=title, xaxis_title="share explained")


def _share_bars(shares: Sequence[Importance] | Sequence[Share], colour: str, **bar: Any) -> go.Figure:
    """Draw a bar for each share, grey where chance could explain it, and a mark for the share by chance."""
    # On two lines: a long label leaves a phone no room for the bars.
    names = [one.name.replace(" (", "<br>(") for one in shares]
    colours = [colour if one.above_chance else GREY for one in shares]
    figure = go.Figure()
    values, look = [one.share for one in shares], {"marker_color": colours, "showlegend": False, **bar}
    figure.add_bar(x=values, y=names, orientation="h", name="share", **look)
    marker: dict[str, Any] = {"symbol": "line-ns", "size": 16, "line": {"width": 2, "color": COLOURS[5]}}
    chance = [one.by_chance for one in shares]
    # White around the mark: its red is as bright as a grey or green bar.
    edge = {**marker, "size": 18, "line": {"width": 4, "color": "white"}}
    figure.add_scatter(x=chance, y=names, mode="markers", marker=edge, hoverinfo="skip", showlegend=False)
    figure.add_scatter(x=chance, y=names, mode="markers", marker=marker, name="by chance (95 %)")
    return figure.update_layout(height=150 + 34 * len(names)).update_yaxes(dtick=1)


PARTS: tuple[Part[Any], ...] = (
    Part[Known](
        title="Importance",
        result=_known,
        tell=_tell,
        name="importance",
        missing=_missing,
        tables=(
            TidyTable("effects", "Effect beyond the other parameters", _effect_rows),
            TidyTable("importance", "Importance (PED-ANOVA)", _importance_rows),
            TidyTable("variance", "Variance explained by one parameter (fANOVA)", _share_rows),
        ),
    ),
)
