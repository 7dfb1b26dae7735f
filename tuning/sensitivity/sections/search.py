"""The sections on how the search went: early stopping, score against budget, seed noise."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import plotly.graph_objects as go

from contrasweep.names import with_capital
from contrasweep.tuning.durations import unit_for
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.budget import BudgetCurve
from contrasweep.tuning.sensitivity.fidelity import SAFE, Fidelity
from contrasweep.tuning.sensitivity.noise import SeedNoise
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.sections.part import (
    Part,
    Record,
    TidyTable,
    add_band,
    error_bars,
    label_log_axis,
)
from contrasweep.tuning.statistics import Floats


def _tell_fidelity(found: Fidelity, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    if not found.epochs and not found.links:
        return "The early scores were not recorded, or are all alike.", []
    parts = []
    if found.links:
        parts.append(_rungs_text(found))
    if found.epochs:
        parts.append(
            f"Rank correlation of {found.metric} after each epoch with the final {found.final_metric}, over "
            f"the {found.completed} completed trials. {_safety_line(found, one.observations.epochs)}"
        )
    figures = [
        *([_links_figure(found)] if found.links else []),
        *([_fidelity_figure(found)] if found.epochs else []),
    ]
    return "\n\n".join(parts), figures


def _rungs_text(found: Fidelity) -> str:
    told = "; ".join(
        f"epoch {link.epoch} to {link.later_name}: {link.verdict} ({link.estimated:.2f}, 95 % "
        f"{link.estimated_low:.2f} to {link.estimated_high:.2f}; {link.trials} trials with both)"
        for link in found.links
    )
    return (
        f"{found.stopped} trials were stopped. The figure shows how well {found.metric} at each rung ranks "
        "the trials later: among those that reached both (grey), and over all trials (blue). The first is "
        "too small, because the trials that went on are alike in what chose them. The second has estimated "
        "scores for the others; its interval says how little is known of these. An epoch is safe if the "
        f"interval lies above {SAFE}.\n\n{with_capital(told)}."
        + (f" Beyond: {found.missing}." if found.missing else "")
        + "\n\nNone of this shows a good trial that was stopped by mistake: only a search without early "
        "stopping does (--scheduler none)."
    )


def _safety_line(found: Fidelity, last: int) -> str:
    """Say how the final best stood where trials were stopped, or else from which epoch on stopping was safe.

    Args:
        found: the fidelity of each epoch.
        last: the last epoch of training; to stop there is not to stop.
    """
    if found.rungs:
        ranks = "; ".join(
            f"number {e.best_rank} of {e.trials} at epoch {e.epoch}"
            for rung in found.rungs
            if (e := found.at(rung)) is not None
        )
        return f"The final best was {ranks}." if ranks else ""
    early = [e for e in found.epochs if e.epoch < last]
    unsure = max((place for place, e in enumerate(early) if e.verdict != "safe"), default=-1)
    safe = early[unsure + 1 :]
    if not safe:
        return (
            f"No epoch before the end is surely safe to stop at (correlation above {SAFE}, interval and all)."
        )
    return (
        f"Nothing was stopped; stopping would have been safe from epoch {safe[0].epoch} on (correlation "
        f"above {SAFE}, interval and all)."
    )


def _fidelity_rows(found: Fidelity, one: StudySensitivity) -> Iterator[Record]:
    for e in found.epochs:
        named = {name.replace("_", " "): value for name, value in asdict(e).items()}
        rank, reached = named.pop("best rank"), named.pop("reached")
        stopped = {"stopped here": e.epoch in found.rungs, "verdict": e.verdict}
        yield {**named, "rank of the final best": rank, "reached": reached, **stopped}


def _link_rows(found: Fidelity, one: StudySensitivity) -> Iterator[Record]:
    for link in found.links:
        named = {name.replace("_", " "): value for name, value in asdict(link).items()}
        yield {**named, "verdict": link.verdict}


def _links_figure(found: Fidelity) -> go.Figure:
    """Draw the rank correlation of each rung with each later stage, measured and over all trials."""
    links = found.links[::-1]
    rows = np.arange(len(links), dtype=float)
    figure = go.Figure()
    for shift, colour, name, ends in (
        (
            0.12,
            COLOURS[0],
            "over all trials, 95 %",
            [(e.estimated, e.estimated_low, e.estimated_high) for e in links],
        ),
        (-0.12, GREY, "among those that reached both, 95 %", [(e.spearman, e.low, e.high) for e in links]),
    ):
        value, low, high = np.array(ends).T
        arms = error_bars(np.maximum(0, high - value), np.maximum(0, value - low))
        look = {"mode": "markers", "marker": {"color": colour, "size": 9}, "name": name}
        figure.add_scatter(x=value, y=rows + shift, error_x={**arms, "color": colour}, **look)
    figure.add_vline(x=SAFE, line={"color": GREY, "dash": "dot"})
    labels = [f"{e.epoch} → {e.later_name.removeprefix('epoch ')}" for e in links]
    figure.update_yaxes(tickvals=rows, ticktext=labels, range=[-0.6, len(links) - 0.4])
    figure.update_xaxes(range=[-1.05, 1.05] if min(e.estimated_low for e in links) < 0 else [0, 1.05])
    return figure.update_layout(
        title="How well a rung predicts later ones",
        xaxis_title="rank correlation",
        yaxis_title="epoch",
        height=190 + 46 * len(links),
    )


def _fidelity_figure(found: Fidelity) -> go.Figure:
    """Draw the rank correlation of each epoch's score with the final one."""
    epochs, low, high, spearman, kendall = zip(
        *((e.epoch, e.low, e.high, e.spearman, e.kendall) for e in found.epochs), strict=True
    )
    figure = go.Figure()
    add_band(figure, epochs, low, high, COLOURS[0])
    mode, dashed = "lines+markers", {"color": COLOURS[1], "dash": "dash"}
    figure.add_scatter(x=epochs, y=spearman, mode=mode, line_color=COLOURS[0], name="Spearman, 95 %")
    figure.add_scatter(x=epochs, y=kendall, mode=mode, line=dashed, name="Kendall")
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
        "The expected best score of b trials drawn from this study, with its interval, up to a quarter of "
        f"the {found.ended} ended trials. "
    )
    if found.without_score:
        text += f"{found.without_score} without a final score count as the worst that completed. "
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
    figure = _expected_best(found, o, found.trials, "expected best")
    _add_progress(figure, found, found.progress_trials, found.ended, "as it happened", "lines")
    label_log_axis(figure, 1, found.ended)
    return figure.update_layout(title="What a budget buys", xaxis_title="trials")


def _cost_figure(found: BudgetCurve, o: Observations) -> go.Figure:
    """Draw the expected best score over time, with one trial after the other, and the actual progress."""
    scale, unit = unit_for(max(found.seconds_a_trial * found.trials[-1], found.seconds))
    x = found.trials * found.seconds_a_trial / scale
    figure = _expected_best(found, o, x, "expected, one trial after the other")
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
    crossed = found.seed_std is not None
    runs = "single runs on one seed" if crossed else "single runs"
    text = (
        f"Over {found.trials} configurations with {found.runs} runs, the noise of a run has a standard "
        f"deviation of {found.noise_std:.3g} (95 %: {found.noise_low:.3g} to {found.noise_high:.3g}), and "
        f"configurations have one of {found.trial_std:.3g}: {100 * found.share:.0f} % of the variance of "
        f"{runs} comes from the configuration ({100 * found.share_low:.0f} to {100 * found.share_high:.0f} "
        f"%). Two {runs} that differ by less than {found.detectable:.3g} may differ by noise alone. "
    )
    text += (
        f"A seed also adds something to all configurations alike, with a standard deviation of about "
        f"{found.seed_std:.3g} (known from {found.seeds} seeds only). It is no part of that noise, because "
        "it cancels when runs on one seed are compared."
        if crossed
        else "These trials share no two seeds, so what a seed adds to all configurations counts as noise."
    )
    return text, []


def _noise_rows(found: SeedNoise, one: StudySensitivity) -> Iterator[Record]:
    columns = (
        *("noise std", "noise std low", "noise std high", "seed std", "configuration std"),
        *("share of configurations", "share low", "share high", "detectable difference"),
        *("trials", "runs", "shared seeds"),
    )
    yield dict(zip(columns, asdict(found).values(), strict=True))


PARTS: tuple[Part[Any], ...] = (
    Part[Fidelity](
        title="Was stopping early safe?",
        result=lambda one: one.fidelity,
        tell=_tell_fidelity,
        name="fidelity",
        tables=(
            TidyTable("rungs", "Scores at rungs against later ones", _link_rows),
            TidyTable("fidelity", "Early scores against final ones", _fidelity_rows),
        ),
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
