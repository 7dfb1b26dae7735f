"""Seed noise: the noise of a run, apart from the configurations and from what a seed adds to all of them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.noise import SeedNoise, seed_noise
from contrasweep.tuning.sensitivity.observations import Observations, SeedScores
from contrasweep.tuning.sensitivity.sections.search import PARTS
from tests.sensitivity.synthetic import observed, space_of

SPACE = space_of(a="unit", b="unit")


def study(scores: NDArray[np.float64], first_seed: NDArray[np.int64] | int = 0) -> Observations:
    """Return a study with scores by trial and seed, (trials, seeds); each trial begins at its own seed."""
    trials, seeds = scores.shape
    seed = np.broadcast_to(np.arange(seeds), scores.shape) + np.reshape(first_seed, (-1, 1))
    one = observed(SPACE, lambda x: x["a"], trials)
    return replace(
        one, replicates=SeedScores(np.repeat(np.arange(trials), seeds), seed.ravel(), scores.ravel())
    )


def noise_of(one: Observations) -> SeedNoise:
    found = seed_noise(one)
    assert isinstance(found, SeedNoise)
    return found


def test_trials_on_seeds_of_their_own_by_hand() -> None:
    # Means 1, 3, 5, 7, 9 with runs at +-1: within 10 / 5, between 80 / 4, two seeds: (20 - 2) / 2.
    scores = np.array([1.0, 3.0, 5.0, 7.0, 9.0])[:, None] + np.array([-1.0, 1.0])
    found = noise_of(study(scores, 2 * np.arange(5)))
    assert found.noise_std == pytest.approx(2**0.5)
    assert found.trial_std == pytest.approx(3.0)
    assert found.share == pytest.approx(9 / 11)
    # Student's t with 5 degrees of freedom: 2.571.
    assert found.detectable == pytest.approx(2.571 * 2, abs=1e-3)
    assert (found.seed_std, found.trials, found.runs, found.seeds) == (None, 5, 10, 0)
    # Chi-squared with 5 degrees of freedom: 12.833 and 0.8312.
    assert found.noise_low == pytest.approx((10 / 12.833) ** 0.5, abs=1e-4)
    assert found.noise_high == pytest.approx((10 / 0.8312) ** 0.5, abs=1e-3)


def test_trials_with_different_numbers_of_runs_by_hand() -> None:
    """Means 0, 2 and 4 of 2, 2 and 4 runs: squares of 22 between, 8 within, and 2.5 runs on average."""
    trial = np.array([0, 0, 1, 1, 2, 2, 2, 2])
    score = 2.0 * trial + np.array([-1, 1, -1, 1, -1, 1, -1, 1])
    found = noise_of(
        replace(study(np.zeros((3, 1))), replicates=SeedScores(trial, np.arange(len(trial)), score))
    )
    between, within, size = 22 / 2, 8 / 5, (8 - 24 / 8) / 2
    assert found.noise_std**2 == pytest.approx(within)
    assert found.trial_std**2 == pytest.approx((between - within) / size)
    assert found.share == pytest.approx((between - within) / (between - within + size * within))


def test_what_a_seed_adds_to_all_configurations_is_no_noise() -> None:
    scores = np.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0])[:, None] + np.array([-1.0, 1.0])
    found = noise_of(study(scores))
    assert (found.noise_std, found.share, found.detectable) == (0.0, 1.0, 0.0)
    assert found.seed_std == pytest.approx(2**0.5)
    assert found.trial_std == pytest.approx(14**0.5)


def test_runs_on_shared_seeds_by_hand() -> None:
    """Shrout and Fleiss (1979), Table 2: ICC(3,1) is 0.71."""
    judged = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    found = noise_of(study(np.array(judged, dtype=float)))
    # Their Table 3: mean squares of 11.24 between targets, 32.49 between judges, 1.02 left.
    assert found.noise_std**2 == pytest.approx(1.02, abs=0.005)
    assert found.seed_std is not None
    assert found.seed_std**2 == pytest.approx((32.49 - 1.02) / 6, abs=0.005)
    assert found.trial_std**2 == pytest.approx((11.24 - 1.02) / 4, abs=0.005)
    assert found.share == pytest.approx(0.71, abs=0.005)
    # As `irr::icc` of R gives it for this table (two-way, consistency).
    assert (found.share_low, found.share_high) == pytest.approx((0.342, 0.946), abs=5e-4)
    assert (found.trials, found.runs, found.seeds) == (6, 24, 4)


@pytest.mark.parametrize("of_seed", [0.0, 1.0])
def test_intervals_cover_whatever_seeds_add_to_all(of_seed: float) -> None:
    """Taken as noise, seeds that add as much as configurations differ made them cover 34 and 54 %."""
    rng, noise = np.random.default_rng(0), 0.3
    found = []
    for _ in range(200):
        configurations, seeds = rng.normal(size=(20, 1)), of_seed * rng.normal(size=(1, 3))
        found.append(noise_of(study(configurations + seeds + noise * rng.normal(size=(20, 3)))))
    share = 1 / (1 + noise**2)
    assert 0.9 < np.mean([one.noise_low <= noise <= one.noise_high for one in found]) < 0.99
    assert 0.9 < np.mean([one.share_low <= share <= one.share_high for one in found]) < 0.99
    assert np.mean([one.trial_std**2 for one in found]) == pytest.approx(1.0, abs=0.08)


@pytest.mark.parametrize(("noise", "effect"), [(0.1, 1.0), (1.0, 0.0)])
def test_seed_noise_and_the_effect_of_parameters_are_separated(noise: float, effect: float) -> None:
    found = noise_of(observed(SPACE, lambda x: effect * x["a"], 60, noise=noise, seeds=4))
    assert found.noise_low < noise < found.noise_high
    assert found.trial_std == pytest.approx(effect * 12**-0.5, abs=0.2 * noise + 0.05)
    truth = effect**2 / 12 / (effect**2 / 12 + noise**2)
    assert found.share_low <= truth <= found.share_high + 1e-9


def test_only_the_shared_seeds_count_where_trials_have_more() -> None:
    scores = np.random.default_rng(0).normal(size=(6, 3))
    whole = study(scores)
    more = whole.replicates
    runs = SeedScores(np.append(more.trial, 0), np.append(more.seed, 9), np.append(more.score, 5.0))
    assert noise_of(replace(whole, replicates=runs)) == noise_of(whole)


def test_copies_of_a_configuration_say_nothing_more() -> None:
    """A configuration that ran twice has the same scores on the same seeds."""
    one = study(np.random.default_rng(0).normal(size=(6, 3)))
    rows, runs = np.append(np.arange(6), 5), one.replicates
    by_trial = ("codes", "ending", "score", "curve", "rung", "seconds", "ended")
    again = runs.trial == 5
    copied = SeedScores(
        np.append(runs.trial, np.full(3, 6)),
        np.append(runs.seed, runs.seed[again]),
        np.append(runs.score, runs.score[again]),
    )
    twice = replace(
        one, trial=np.arange(7), replicates=copied, **{name: getattr(one, name)[rows] for name in by_trial}
    )
    assert noise_of(twice) == noise_of(one)


def test_seed_noise_needs_trials_with_several_seeds() -> None:
    # The final runs of one configuration: however many, they say nothing of the differences between several.
    assert seed_noise(study(np.zeros((1, 10)))) == TooFew(1, 2, "trials with two seeds or more")
    assert seed_noise(study(np.zeros((40, 1)))) == TooFew(0, 2, "trials with two seeds or more")
    beyond = "repeated runs (seeds beyond the first of the trials beyond the first)"
    assert seed_noise(study(np.zeros((5, 2)))) == TooFew(4, 5, beyond)
    alone = "repeated runs (seeds beyond the first of a trial)"
    assert seed_noise(study(np.zeros((4, 2)), 2 * np.arange(4))) == TooFew(4, 5, alone)


def test_the_page_says_which_runs_are_compared() -> None:
    (part,) = [one for one in PARTS if one.title == "Seed noise"]
    scores = np.random.default_rng(0).normal(size=(6, 3))
    on_shared, _ = part.tell(noise_of(study(scores)), None)  # type: ignore[arg-type]
    assert "single runs on one seed" in on_shared
    assert "known from 3 seeds only" in on_shared
    on_own, _ = part.tell(noise_of(study(scores, 3 * np.arange(6))), None)  # type: ignore[arg-type]
    assert "on one seed" not in on_own
    assert "share no two seeds" in on_own
