"""Estimated scores: what a parameter is said to do rests on all draws of them, and on the measured scores."""

from dataclasses import replace

import numpy as np
import pytest

from contrasweep.tuning.search.axes import axes_of, strata_of
from contrasweep.tuning.sensitivity import effects as effects_module
from contrasweep.tuning.sensitivity import forest as forest_module
from contrasweep.tuning.sensitivity import importance as importance_module
from contrasweep.tuning.sensitivity.effects import Effect, effects
from contrasweep.tuning.sensitivity.forest import fit_forest
from contrasweep.tuning.sensitivity.importance import Importance, importances
from contrasweep.tuning.sensitivity.scores import ScoredTrials
from contrasweep.tuning.statistics import Floats
from tests.sensitivity.synthetic import observed, space_of

LINE = space_of(x="unit")


@pytest.fixture(autouse=True)
def _few_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects_module, "PERMUTATIONS", 199)


def scored(codes: Floats, draws: Floats, measured: int) -> ScoredTrials:
    """Return trials of which the first `measured` have one score in all draws, (draws, trials)."""
    count = len(codes)
    return ScoredTrials(
        row=np.arange(count),
        codes=codes,
        score=draws.mean(axis=0),
        draws=draws,
        estimated=np.arange(count) >= measured,
        is_default=np.arange(count) == 0,
        lost=np.zeros((0, codes.shape[1])),
        known=1.0,
    )


def effect_of(trials: ScoredTrials) -> Effect:
    (found,) = effects(axes_of(LINE), trials)
    return found


def test_an_effect_in_some_draws_alone_is_none() -> None:
    rng = np.random.default_rng(0)
    codes = rng.random((60, 1))
    draws = np.tile(codes[:, 0], (10, 1)) + 0.05 * rng.normal(size=(10, 60))
    draws[:, :30] = draws[0, :30]
    assert effect_of(scored(codes, draws, 30)).verdict == "matters"
    doubtful = draws.copy()
    doubtful[:3, 30:] = 5 * rng.normal(size=(3, 30))
    assert effect_of(scored(codes, doubtful, 30)).verdict == "no evidence"


def test_an_effect_that_the_measured_scores_contradict_is_none() -> None:
    """Both alone are clear: the measured scores fall with x, and the estimated ones rise much more."""
    rng = np.random.default_rng(0)
    codes = rng.random((60, 1))
    slope = np.where(np.arange(60) < 20, -1.0, 4.0)
    rise = slope * codes[:, 0] + 0.05 * rng.normal(size=60)
    assert effect_of(scored(codes, rise[None], 60)).p < 0.05
    assert effect_of(scored(codes[:20], rise[None, :20], 20)).p < 0.05
    assert effect_of(scored(codes, rise[None], 20)).p == 1.0


def test_effects_are_shares_of_the_variance_of_all_scores_less_what_chance_gives() -> None:
    space = space_of(a="unit", b="unit")
    one = observed(space, lambda x: 2 * x["a"] + x["b"], 200, noise=0.1)
    a, b = effects(one.axes, scored(one.codes, one.score[None], 200))
    assert (a.share, b.share) == pytest.approx((0.8, 0.2), abs=0.06)
    noise = np.random.default_rng(0).normal(size=(20, 24))
    shares = [effects(one.axes, scored(one.codes[:24], own[None], 24)) for own in noise]
    # Of two columns and 24 trials, chance alone gives 2 / 23 = 0.087.
    assert np.mean([effect.share for found in shares for effect in found]) < 0.06


def test_a_forest_is_judged_by_scores_as_uncertain_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of many draws is predicted well, and a single draw is not."""
    monkeypatch.setattr(forest_module, "TREES", 25)
    rng = np.random.default_rng(0)
    codes = rng.random((200, 1))
    draws = codes[:, 0] + rng.normal(size=(96, 200))
    trials = scored(codes, draws, 20)
    sure = replace(trials, draws=trials.score[None])
    axes, strata = axes_of(LINE), strata_of(LINE)
    assert fit_forest(axes, strata, sure).r2 > 0.7
    assert fit_forest(axes, strata, trials).r2 < 0.2


def best_by_kernel(draws: Floats) -> Importance:
    """Return the importance of a kernel that the first 8 of 40 trials have."""
    space = space_of(kernel={"choice": ["rbf", "cosine"], "default": "rbf"}, x="unit")
    codes = np.stack([(np.arange(40) >= 8).astype(float), np.random.default_rng(0).random(40)], axis=1)
    found = importances(axes_of(space), strata_of(space), scored(codes, draws, 40))[0]
    assert isinstance(found, Importance)
    return found


def test_intervals_of_importance_take_every_draw() -> None:
    """In the first draw the best are the trials with the kernel, in the second they are spread evenly."""
    first = np.arange(40.0)[::-1]
    second = np.where(np.arange(40) % 5 == 1, 1.0, 0.0) + first / 100
    sure = best_by_kernel(np.stack([first, first]))
    both = best_by_kernel(np.stack([first, second]))
    assert sure.low > 0.3
    assert both.low < 0.1 < 0.8 < both.high
    assert both.share == pytest.approx((sure.share + best_by_kernel(np.stack([second] * 2)).share) / 2)


def test_each_bootstrap_sample_has_as_many_best_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    share = importance_module.pearson_share

    def recorded(counts: Floats, best: Floats, widths: tuple[Floats, Floats] | None) -> Floats:
        seen.append((counts.sum(axis=-1), best.sum(axis=-1)))
        return share(counts, best, widths)

    monkeypatch.setattr(importance_module, "pearson_share", recorded)
    scores = np.random.default_rng(0).random((2, 40))
    best_by_kernel(scores)
    assert len(seen) >= 3
    for counts, best in seen:
        assert np.all(counts == 40)
        assert np.all(best == 8)


def test_failed_trials_keep_their_own_values() -> None:
    """All of the best have the kernel that no failed trial has; only 8 of 48 trials have it."""
    trials = scored(np.zeros((8, 2)), np.arange(8.0)[None], 8)
    space = space_of(kernel={"choice": ["rbf", "cosine"], "default": "rbf"}, x="unit")
    lost = np.stack([np.ones(40), np.linspace(0, 1, 40)], axis=1)
    found = importances(axes_of(space), strata_of(space), replace(trials, lost=lost))[0]
    assert isinstance(found, Importance)
    assert found.share > 0.8
