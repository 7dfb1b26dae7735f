"""The cost of a study: time in trials, time by the clock, and time in which slots stood empty."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from contrasweep.names import counted
from contrasweep.tuning.durations import Span, covered, in_words
from contrasweep.tuning.reports.page import Table
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.results.study import StudyData

BLUE, ORANGE, GREEN, _, SKY, _, _ = COLOURS


@dataclass(frozen=True)
class Cost:
    """The cost of a study; times in seconds.

    Attributes:
        trials: the time in trials, summed over all of their attempts (`attempt_spans`); the seeds of a trial
            advance together and count once.
        train, evaluate: the parts of it that trained, and in probes.
        running: the time by the clock in which at least one trial ran, which a budget counts.
        wall: the time from the creation of the study to its last sign of life, including pauses between
            drivers.
        slots: the number of trials that may run at once.
        epochs: the number of epochs trained by all trials together; epoch 0 trains nothing.
    """

    trials: float
    train: float
    evaluate: float
    running: float
    wall: float
    slots: int
    epochs: int

    @property
    def idle(self) -> float:
        """The part of `wall` in which no trial ran: the start of Ray, and pauses."""
        return max(0.0, self.wall - self.running)

    @property
    def other(self) -> float:
        """The part of `trials` spent on data, checkpoints, the store and waiting for a core."""
        return max(0.0, self.trials - self.train - self.evaluate)

    @property
    def unused(self) -> float:
        """The time of empty slots while at least one trial ran, summed over the slots."""
        return max(0.0, self.slots * self.running - self.trials)


def cost_of(data: StudyData) -> Cost:
    """Return what the study has cost so far."""
    by_trial: dict[int, list[Span]] = {}
    for attempt, span in data.spans.items():
        by_trial.setdefault(attempt.trial, []).append(span)
    last = max((end for _, end in data.spans.values()), default=data.record.created)
    trained = data.epochs.filter(np.asarray(data.epochs["epoch"].to_numpy()) > 0)
    return Cost(
        trials=sum(map(covered, by_trial.values())),
        train=_total(data, "train_seconds"),
        evaluate=_total(data, "evaluate_seconds"),
        running=covered(data.spans.values()),
        wall=max(0.0, (last - data.record.created).total_seconds()),
        slots=data.search.at_once,
        epochs=trained.num_rows,
    )


def cost_table(cost: Cost) -> Table:
    """Return a table of the parts of the cost, with their times and shares; at least one trial has run."""
    rows = [
        (what, in_words(seconds), f"{seconds / cost.trials:.0%} of the trials' time")
        for what, seconds in (
            ("training", cost.train),
            ("probes (scores after an epoch)", cost.evaluate),
            ("data, checkpoints, store, waiting", cost.other),
        )
    ]
    rows += [
        ("all trials together", in_words(cost.trials), f"{counted(cost.epochs, 'epoch')} trained"),
        (
            "the whole study",
            f"{in_words(cost.wall)} by the clock",
            "from its creation to its last sign of life, with pauses",
        ),
        (
            "at least one trial running",
            f"{in_words(cost.running)} by the clock",
            f"at most {counted(cost.slots, 'trial')} at once; a budget counts this time",
        ),
        ("no trial running", f"{in_words(cost.idle)} by the clock", "starting Ray, and pauses"),
        (
            "a slot free while others ran",
            f"{in_words(cost.unused)} of slots",
            "between trials, and at the end",
        ),
    ]
    note = (
        "Of a trial that was cut off, the time up to its last stored epoch counts; an epoch that was trained "
        "again counts once."
    )
    return Table("Cost", ("what", "time", ""), rows, note)


def draw_cost(cost: Cost) -> go.Figure:
    """Draw where the time of all slots went, as one bar."""
    parts = [
        ("training", cost.train, BLUE),
        ("probes", cost.evaluate, SKY),
        ("data, checkpoints, store", cost.other, GREEN),
        ("slot free", cost.unused, ORANGE),
        ("no trial in any slot", cost.slots * cost.idle, GREY),
    ]
    total = sum(seconds for _, seconds, _ in parts)
    each = f"{counted(cost.slots, 'slot')}, {'' if cost.slots == 1 else 'each '}{in_words(cost.wall)}"
    figure = go.Figure()
    for name, seconds, colour in parts:
        label, hover = f"{name} {seconds / total:.0%}", f"{name}: {in_words(seconds)}<extra></extra>"
        figure.add_bar(
            y=["slots"], x=[seconds], orientation="h", name=label, marker_color=colour, hovertemplate=hover
        )
    return figure.update_layout(
        title=f"Where {in_words(total)} of slots went",
        barmode="stack",
        height=265,
        xaxis={"ticksuffix": " s", "title": {"text": f"{each} by the clock"}},
        yaxis={"visible": False},
        legend={"traceorder": "normal"},
        meta={"alt": f"Time of {each} by the clock: " + ", ".join(f"{n} {in_words(s)}" for n, s, _ in parts)},
    )


def _total(data: StudyData, column: str) -> float:
    return float(np.nansum(data.epochs[column].to_numpy()))
