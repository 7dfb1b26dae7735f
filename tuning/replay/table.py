"""The result of a replay as rows of a table, and in words."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from contrasweep.tuning.replay.comparison import SHARES, Standing
from contrasweep.tuning.replay.workload import Workload
from contrasweep.tuning.results.numbers import number_text

FEW_PAIRS: Final = 8
"""With fewer trials on two seeds, the standard deviation of a seed errs by a quarter or more."""


def rows_of(standings: Sequence[Standing]) -> list[dict[str, str]]:
    """Return a row for each search, the best mean rank first."""
    return [
        {
            "search": one.name,
            **{f"after {share:.0%}": _with_half(*one.after(share)) for share in SHARES},
            "mean rank": _with_half(*one.rank()),
            "trials": f"{one.begun:.0f}",
            "finished": f"{one.finished:.0f}",
        }
        for one in sorted(standings, key=lambda one: one.rank()[0])
    ]


def content_of(workload: Workload, standings: Sequence[Standing]) -> dict[str, Any]:
    """Return everything as plain values, for JSON."""
    recording = workload.recording
    return {
        "study": recording.name,
        "metric": recording.metric,
        "recorded": len(recording.scores),
        "left_out": recording.left_out,
        "error": workload.error,
        "seed_noise": workload.seed_noise,
        "on_two_seeds": workload.pairs,
        "searches": [
            {
                "search": one.name,
                "after": {f"{share:g}": _pair(one.after(share)) for share in SHARES},
                "rank": _pair(one.rank()),
                "trials": one.begun,
                "finished": one.finished,
            }
            for one in standings
        ],
    }


def said_of(workload: Workload) -> str:
    """Return how far the surrogate can be trusted."""
    recording = workload.recording
    told = f"{len(recording.scores)} recorded trials of {recording.epochs} epochs"
    if recording.left_out:
        told += f", {recording.left_out} others left out"
    told += f"; on held-out trials the surrogate errs by {number_text(workload.error)} (root mean square)"
    if workload.seed_noise is None:
        ran = "no trial" if workload.pairs == 0 else "only one trial"
        return f"{told}, which also counts as the noise of a seed: {ran} ran again on another seed"
    own, noise = number_text(workload.own_error or 0.0), number_text(workload.seed_noise)
    return f"{told}, of this {own} beyond the noise of a seed, which is {noise}"


def warnings_of(workload: Workload) -> list[str]:
    """Return why a result should not be trusted."""
    found, recording = [], workload.recording
    own, noise = workload.own_error, workload.seed_noise
    if own is not None and noise is not None and own > noise:
        found.append(
            f"{recording.name}: the surrogate errs by more than a seed does, so small differences between "
            "searches mean nothing; more recorded trials make it better"
        )
    if noise is not None and workload.pairs < FEW_PAIRS:
        found.append(
            f"{recording.name}: {workload.pairs} trials ran on two seeds, so the noise of a seed is known "
            "roughly at best"
        )
    if recording.left_out > len(recording.scores) / 4:
        found.append(
            f"{recording.name}: {recording.left_out} trials did not train to their last epoch; if a "
            "scheduler chose them, the surrogate knows good configurations alone"
        )
    return found


def _with_half(mean: float, half: float) -> str:
    if np.isnan(mean):
        return "-"
    return number_text(mean) if np.isnan(half) else f"{number_text(mean)} ± {half:.2g}"


def _pair(found: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("mean", "half_interval"), found, strict=True))
