"""The first section about a study: how its trials ended, the best score, and what the surrogate is worth."""

from __future__ import annotations

import numpy as np

from contrasweep.tuning.reports.page import Section, Table, cell_text
from contrasweep.tuning.sensitivity.analyse import StudySensitivity, Surrogate
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import ENDINGS
from contrasweep.tuning.sensitivity.sections.part import Row

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
