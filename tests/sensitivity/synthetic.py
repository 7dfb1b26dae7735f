"""Studies with a known truth: observations computed from an objective, without training and files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from contrasweep.search_spaces import Space
from contrasweep.tuning.search.axes import axes_of, default_row, draw_codes, strata_of
from contrasweep.tuning.sensitivity.observations import Observations, SeedScores
from contrasweep.tuning.statistics import Floats

Objective = Callable[[Mapping[str, Floats]], Floats]


def space_of(**forms: Any) -> Space:
    """Return a space; `unit` stands for a number from 0 to 1 with default 0.5."""
    unit = {"uniform": [0.0, 1.0], "default": 0.5}
    return Space.parse({name: unit if form == "unit" else form for name, form in forms.items()})


def observed(
    space: Space,
    objective: Objective,
    trials: int,
    *,
    noise: float = 0.0,
    seed: int = 0,
    seeds: int = 1,
    epochs: int = 3,
    early_noise: float = 0.0,
    study: str = "study",
    method: str = "method",
    dataset: str = "dataset",
) -> Observations:
    """Return a completed random search; trial 0 runs the defaults. The objective takes units by name.

    A curve rises towards the final score; at epoch e it is off by `early_noise` / e.
    """
    rng = np.random.default_rng(seed)
    axes, strata = axes_of(space), strata_of(space)
    codes = draw_codes(axes, strata, trials, rng) if axes else np.zeros((trials, 0))
    if axes:
        codes[0] = default_row(axes)
    truth = objective({axis.name: codes[:, i] for i, axis in enumerate(axes)}) + np.zeros(trials)
    runs = truth[:, None] + noise * rng.normal(size=(trials, seeds))
    score = runs.mean(axis=1)
    steps = np.arange(1, epochs + 1)
    early = score[:, None] + early_noise * rng.normal(size=(trials, epochs)) / steps
    return Observations(
        study=study,
        method=method,
        dataset=dataset,
        phase="search",
        metric="val.accuracy",
        rung_metric="val.ridge_accuracy",
        epochs=epochs,
        sampler="random",
        axes=axes,
        strata=strata,
        trial=np.arange(trials),
        codes=codes,
        ending=np.full(trials, "completed", dtype="<U11"),
        score=score,
        curve=np.concatenate([np.full((trials, 1), score.min()), early], axis=1),
        rung=np.full(trials, np.nan),
        seconds=np.full(trials, 2.0),
        ended=2.0 * np.arange(1, trials + 1),
        untrained=float(score.min()),
        hardware="here (cpu, 1 core and 0 GPUs a trial)",
        replicates=SeedScores(
            np.repeat(np.arange(trials), seeds), np.tile(np.arange(seeds), trials), runs.ravel()
        ),
    )


def stopped(one: Observations, rungs: Sequence[int], reduction: int = 3) -> Observations:
    """Return the study as early stopping (ASHA) would have left it, one trial after the other.

    The rule of `ResumableASHA`: at a rung, a trial is stopped if it scores below the best third of the trials
    that reached the rung before it; the first goes on.
    """
    seen: dict[int, list[float]] = {rung: [] for rung in rungs if rung < one.epochs}
    curve, score, ending = one.curve.copy(), one.score.copy(), one.ending.copy()
    rung_of = one.rung.copy()
    for trial in range(len(one.trial)):
        for rung, scores in seen.items():
            own = float(curve[trial, rung])
            least = np.percentile(scores, 100 * (1 - 1 / reduction)) if scores else -np.inf
            scores.append(own)
            if own < least:
                curve[trial, rung + 1 :], score[trial] = np.nan, np.nan
                ending[trial], rung_of[trial] = "stopped", rung
                break
    return replace(one, curve=curve, score=score, ending=ending, rung=rung_of)
