"""The sections on how the search went: early stopping, score against budget, seed noise."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import plotly.graph_objects as go

from contrasweep.tuning.durations import unit_for
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.budget import BudgetCurve
from contrasweep.tuning.sensitivity.fidelity import Fidelity
from contrasweep.tuning.sensitivity.noise import SeedNoise
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.sections.part import (
    Part,
    Record,
    TidyTable,
    add_band,
    label_log_axis,
)


def _tell_fidelity(found: Fidelity, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    if not found.epochs:
        return "The early scores were not recorded, or are all alike.", []
    text = (
        f"Rank correlation of {found.metric} after each epoch with the final {found.final_metric}, over "
        f"completed trials. {_safety_line(found)}"
    )
    if found.stopped:
        text += (
            f"\n\n{found.stopped} trials were stopped and have no final score. The early scores of the "
            "others are alike, which makes the correlation smaller than it is over all trials. The open "
            "marks undo this, if the relation is a straight line. Neither shows a good trial that was "
            "stopped by mistake: only a search without early stopping does."
        )
    return text, [_fidelity_figure(found)]


def _safety_line(found: Fidelity) -> str:
    rungs = [e for rung in found.rungs if (e := found.at(rung)) is not None]
    if not rungs:
        first = next((e for e in found.epochs if e.verdict == "safe"), None)
        if first is None:
            return "No epoch is surely safe to stop at (correlation above 0.5, interval and all)."
        return (
            f"Nothing was stopped; stopping would have been safe from epoch {first.epoch} on (correlation "
            "above 0.5, interval and all)."
        )
    told = "; ".join(
        f"epoch {e.epoch}: {e.verdict} ({e.spearman:.2f}, 95 % {e.low:.2f} to {e.high:.2f}; the final best "
        f"was number {e.best_rank} of {e.trials} then)"
        for e in rungs
    )
    return f"Where trials were stopped: {told}."


def _fidelity_rows(found: Fidelity, one: StudySensitivity) -> Iterator[Record]:
    for e in found.epochs:
        named = {name.replace("_", " "): value for name, value in asdict(e).items()}
        rank, reached = named.pop("best rank"), named.pop("reached")
        stopped = {"stopped here": e.epoch in found.rungs, "verdict": e.verdict}
        yield {**named, "rank of the final best": rank, "reached": reached, **stopped}


def _fidelity_figure(found: Fidelity) -> go.Figure:
    """Draw the rank correlation of each epoch's score with the final one."""
    epochs, low, high, spearman, kendall, corrected = zip(
        *((e.epoch, e.low, e.high, e.spearman, e.kendall, e.corrected) for e in found.epochs), strict=True
    )
    figure = go.Figure()
    add_band(figure, epochs, low, high, COLOURS[0])
    mode, dashed = "lines+markers", {"color": COLOURS[1], "dash": "dash"}
    figure.add_scatter(x=epochs, y=spearman, mode=mode, line_color=COLOURS[0], name="Spearman, 95 %")
    figure.add_scatter(x=epochs, y=kendall, mode=mode, line=dashed, name="Kendall")
    if any(value is not None for value in corrected):
        marker = {"symbol": "diamond-open", "size": 9, "color": COLOURS[3]}
        name = "Spearman, selection undone"
        figure.add_scatter(x=epochs, y=corrected, mode="markers", marker=marker, name=name)
    for rung in found.rungs:
        line = {"color": GREY, "dash": "dot"}
        figure.add_vline(x=rung, line=line, annotation_text="stops", annotation_position="bottom right")
    return figure.update_layout(
        title="Early scores against final ones",
        xaxis_title="epoch",
        yaxis_title="rank correlation",
        yaxis_range=[min(-0.05, *low), 1.05],
        xaxis_dtick=max(1, len(epochs) // 10),
    )


def _tell_budget(found: BudgetCurve, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    o = one.observations
    text = (
        "The expected best score of b trials drawn from this study, with its 95 % interval, up to half of "
        f"the {found.ended} ended trials; {found.without_score} without a final score count as the worst "
        "that completed. "
    )
    if not found.independent:
        text += (
            f"The sampler ({o.sampler or 'unknown'}) learned during the search, so its first trials were "
            "worse than its last ones. The curve shows what the trials give in any order; the dashed line "
            "shows the actual progress. "
        )
    text += f"A trial took {found.seconds_a_trial:.3g} s on average."
    return text, [_budget_figure(found, o), _cost_figure(found, o)]


def _budget_rows(found: BudgetCurve, one: StudySensitivity) -> Iterator[Record]:
    for i, trials in enumerate(found.trials):
        interval = {"low": float(found.low[i]), "high": float(found.high[i])}
        spent = {"trials": int(trials), "seconds": float(trials * found.seconds_a_trial)}
        yield {**spent, "expected best": float(found.expected[i]), **interval}


def _budget_figure(found: BudgetCurve, o: Observations) -> go.Figure:
    """Draw the expected best score over the number of trials, and the actual progress."""
    figure = _expected_best(found, o, found.trials, "expected best, 95 %")
    _add_progress(figure, found, found.progress_trials, found.ended, "as it happened", "lines")
    label_log_axis(figure, 1, found.ended)
    return figure.update_layout(title="What a budget buys", xaxis_title="trials")


def _cost_figure(found: BudgetCurve, o: Observations) -> go.Figure:
    """Draw the expected best score over time, with one trial after the other, and the actual progress."""
    scale, unit = unit_for(max(found.seconds_a_trial * found.ended / 2, found.seconds))
    x = found.trials * found.seconds_a_trial / scale
    figure = _expected_best(found, o, x, "expected, one trial after the other, 95 %")
    moments, end = found.progress_seconds / scale, found.seconds / scale
    _add_progress(figure, found, moments, end, "wall-clock", "lines+markers")
    return figure.update_layout(title="What time buys", xaxis_title=unit)


def _expected_best(found: BudgetCurve, o: Observations, x: Any, name: str) -> go.Figure:
    """Draw the expected best score over a budget `x` in trials or in time, and the untrained encoder's."""
    figure = go.Figure()
    add_band(figure, x, found.low, found.high, COLOURS[0])
    figure.add_scatter(x=x, y=found.expected, mode="lines", line_color=COLOURS[0], name=name)
    if np.isfinite(o.untrained):
        line = {"color": GREY, "dash": "dot"}
        figure.add_hline(y=o.untrained, line=line, annotation_text="untrained encoder")
    return figure.update_layout(yaxis_title=f"best {o.metric}")


def _add_progress(
    figure: go.Figure, found: BudgetCurve, moments: Any, end: float, name: str, mode: str
) -> None:
    """Draw the best so far over the budgets at which it improved, and on to the end of the search."""
    best: Floats = np.append(found.progress_score, found.progress_score[-1:])
    steps = {"color": COLOURS[5], "shape": "hv", "dash": "dash"}
    name = f"best so far, {name}"
    figure.add_scatter(x=np.append(moments, end), y=best, mode=mode, line=steps, name=name)


def _tell_noise(found: SeedNoise, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    text = (
        f"Over {found.trials} configurations with {found.runs} runs, seeds scatter by {found.seed_std:.3g} "
        f"(95 %: {found.seed_low:.3g} to {found.seed_high:.3g}), configurations by {found.trial_std:.3g}: "
        f"{100 * found.share:.0f} % of the variance of single runs comes from the configuration "
        f"({100 * found.share_low:.0f} to {100 * found.share_high:.0f} %). Two single runs that differ "
        f"by less than {found.detectable:.3g} may differ by their seeds alone."
    )
    return text, []


def _noise_rows(found: SeedNoise, one: StudySensitivity) -> Iterator[Record]:
    columns = (
        *("seed std", "seed std low", "seed std high", "configuration std", "share of configurations"),
        *("share low", "share high", "detectable difference", "trials", "runs"),
    )
    yield dict(zip(columns, asdict(found).values(), strict=True))


PARTS: tuple[Part[Any], ...] = (
    Part[Fidelity](
        title="Was stopping early safe?",
        result=lambda one: one.fidelity,
        tell=_tell_fidelity,
        name="fidelity",
        tables=(TidyTable("fidelity", "Early scores against final ones", _fidelity_rows),),
    ),
    Part[BudgetCurve](
        title="Score against budget",
        result=lambda one: one.budget,
        tell=_tell_budget,
        name="budget",
        tables=(TidyTable("budget", "Expected best score", _budget_rows),),
    ),
    Part[SeedNoise](
        title="Seed noise",
        result=lambda one: one.noise,
        tell=_tell_noise,
        name="seed noise",
        hint="Seeds are repeated with --seeds, or by final runs.",
        tables=(TidyTable("noise", "Seeds against configurations", _noise_rows),),
    ),
)
