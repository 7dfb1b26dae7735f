"""Scores that are equal, or that differ by rounding alone: they decide no rank, no test and no verdict."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from contrasweep.tuning.sensitivity import effects as effects_module
from contrasweep.tuning.sensitivity.comparison import (
    EqualBudget,
    MeanRanks,
    equal_budget,
    mean_ranks,
    method_ranks,
    method_tests,
)
from contrasweep.tuning.sensitivity.effects import Effect, effects
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import Fidelity, fidelity
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.scores import stages
from tests.sensitivity.synthetic import observed, space_of

SPACE = space_of(x="unit")


def effects_of(one: Observations) -> dict[str, Effect]:
    trials = stages(one)[-1].known
    assert not isinstance(trials, TooFew)
    return {effect.parameter: effect for effect in effects(one.axes, trials)}


@pytest.mark.parametrize("score", [1.0, 0.7])
def test_methods_with_equal_scores_are_alike_whatever_their_trials_count(score: float) -> None:
    """The mean best of 24 equal scores differs in the last digit from that of 30: Friedman's p was 0.0009."""
    studies = [
        observed(SPACE, lambda x: score + 0 * x["x"], trials, study=f"{m}-{d}", method=m, dataset=str(d))
        for d, (m, trials) in itertools.product(range(6), (("a", 24), ("b", 30), ("c", 26)))
    ]
    compared = equal_budget(studies)
    assert isinstance(compared, EqualBudget)
    assert [one.difference for one in compared.differences] == [0.0] * 18
    ranks, tests = method_ranks(compared), method_tests(compared)
    assert isinstance(ranks, MeanRanks)
    assert (ranks.ranks, ranks.p) == ((2.0, 2.0, 2.0), 1.0)
    assert not isinstance(tests, TooFew)
    assert [one.p for one in tests] == [1.0, 1.0, 1.0]


def test_scores_that_differ_by_rounding_have_one_rank() -> None:
    found = mean_ranks(["a", "b", "c"], np.tile([0.3, 0.1 + 0.2, 0.2], (6, 1)))
    assert found.ranks == (1.5, 1.5, 3.0)


def test_one_odd_score_is_no_evidence_for_a_category(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most permutations give a category the same share then; rounding made 21 % of such studies tell one."""
    monkeypatch.setattr(effects_module, "PERMUTATIONS", 199)
    kernels = {"choice": ["rbf", "laplacian", "cosine"], "default": "rbf"}
    flips = {"choice": [True, False], "default": True}
    space = space_of(kernel=kernels, flip=flips, x="unit")
    for seed in range(12):
        one = observed(space, lambda x: 0 * x["x"], 24, seed=seed)
        odd = np.where(np.arange(24) == np.random.default_rng(seed).integers(24), -0.03, 0.0)
        found, moved = (effects_of(replace(one, score=level + odd)) for level in (0.98, 0.7))
        assert all(effect.verdict != "matters" for effect in found.values())
        # What all scores have in common is no evidence.
        assert [effect.p for effect in found.values()] == [effect.p for effect in moved.values()]


def test_of_several_best_trials_the_one_that_leads_early_counts() -> None:
    one = observed(SPACE, lambda x: x["x"], 12, epochs=2)
    final = np.array([1.0, 1.0, *np.linspace(0, 0.9, 10)])
    early = final.copy()
    early[0] = -1.0
    for order in (np.arange(12), np.array([1, 0, *range(2, 12)])):
        curve = np.stack([np.zeros(12), early[order], final[order]], axis=1)
        moved = replace(one, score=final[order], curve=curve, codes=one.codes[order])
        found = fidelity(moved, stages(moved))
        assert isinstance(found, Fidelity)
        assert found.epochs[0].best_rank == 1
