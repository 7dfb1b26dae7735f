"""The Gaussian process of learning curves: its covariances, slopes and predictions."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from contrasweep.tuning.search.curve_model import (
    MOST_FOR_SETTINGS,
    ROUNDING,
    CurveModel,
    Scores,
    Settings,
    fit_settings,
    improbability,
)


def drawn(n: int = 24, columns: int = 3, seed: int = 0) -> Scores:
    rng = np.random.default_rng(seed)
    trial = rng.integers(0, n // 2, n)
    place = rng.random((n, columns))
    return Scores(place[trial], rng.choice([0.0, 0.3, 0.6, 1.0], n), trial, rng.normal(size=n))


def covariance(s: Settings, x: Scores, i: int, y: Scores, j: int, *, noise: bool) -> float:
    """The covariance of two scores, as the module says it, one pair at a time."""
    lengths = np.exp(s.lengths)
    r = np.sqrt(5 * np.sum(((x.columns[i] - y.columns[j]) / lengths) ** 2))
    near = (1 + r + r**2 / 3) * np.exp(-r)
    memory = np.exp(-abs(x.share[i] - y.share[j]) / np.exp(s.memory))
    size = np.exp(s.growth * (x.share[i] - 1)) * np.exp(s.growth * (y.share[j] - 1))
    found = size * near * (np.exp(s.lasting) + np.exp(s.changing) * memory) + np.exp(s.mean_curve) * memory
    if x.trial[i] == y.trial[j]:
        found += size * np.exp(s.own) * (1 + memory) / 2
    if noise:
        found += np.exp(s.noise) * size + ROUNDING
    return float(found)


def test_predictions_are_those_of_the_covariances_pair_by_pair() -> None:
    scores, rng = drawn(), np.random.default_rng(1)
    settings = Settings.of_vector(Settings.usual(3).vector + 0.3 * rng.normal(size=10))
    n, asked = len(scores), rng.random((4, 3))
    ends = Scores(asked, np.ones(4), np.full(4, -1), np.zeros(4))
    known = [[covariance(settings, scores, i, scores, j, noise=i == j) for j in range(n)] for i in range(n)]
    cross = np.array(
        [[covariance(settings, ends, i, scores, j, noise=False) for j in range(n)] for i in range(4)]
    )
    weights = cross @ np.linalg.inv(np.array(known))
    before = np.exp(settings.lasting) + np.exp(settings.changing) + np.exp(settings.mean_curve)
    mean, deviation = CurveModel(settings, scores).finals(asked)
    assert mean == pytest.approx(weights @ scores.score)
    assert deviation**2 == pytest.approx(before - np.sum(weights * cross, axis=1))


def test_slopes_are_those_of_differences() -> None:
    scores, rng = drawn(), np.random.default_rng(2)
    vector = Settings.usual(3).vector + 0.3 * rng.normal(size=10)
    _, slopes = improbability(vector, scores)
    numeric = approx_fprime(vector, lambda one: improbability(one, scores)[0], 1e-6)
    assert slopes == pytest.approx(numeric, rel=1e-4, abs=1e-4)


def test_settings_survive_being_a_vector() -> None:
    settings = Settings(np.array([0.1, 0.2]), 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    again = Settings.of_vector(settings.vector)
    assert again.vector == pytest.approx(settings.vector)
    assert (again.lasting, again.growth) == (1.0, 7.0)


def test_a_column_without_effect_gets_a_longer_length() -> None:
    rng = np.random.default_rng(3)
    columns = rng.random((40, 2))
    scores = Scores(columns, np.ones(40), np.arange(40), np.sin(6 * columns[:, 0]) * 1.4)
    lengths = fit_settings(scores).lengths
    assert lengths[1] > lengths[0] + 1


def test_the_start_of_a_curve_tells_its_end() -> None:
    """Twelve trials are known to the end, four from their first epoch alone."""
    rng = np.random.default_rng(4)
    place = rng.random((16, 1))
    end = 2 * (place[:, 0] - 0.5)
    rows = [(t, share, end[t] * (0.5 + 0.5 * share)) for t in range(12) for share in (0.0, 0.5, 1.0)]
    rows += [(t, 0.0, end[t] * 0.5) for t in range(12, 16)]
    trial = np.array([t for t, _, _ in rows])
    scores = Scores(place[trial], np.array([s for _, s, _ in rows]), trial, np.array([v for _, _, v in rows]))
    model = CurveModel(fit_settings(scores), scores)
    mean, deviation = model.finals(place)
    assert mean[12:] == pytest.approx(end[12:], abs=0.3)
    _, unsure = model.finals(np.array([[3.0]]))
    assert unsure[0] > 2 * deviation.max()


def test_a_trial_that_is_believed_leaves_its_expectation_and_takes_the_doubt() -> None:
    scores = drawn()
    model = CurveModel(Settings.usual(3), scores)
    place = np.array([[0.5, 0.5, 0.5]])
    before, doubt = model.finals(place)
    after, less = model.believing(place, np.array([99])).finals(place)
    assert after == pytest.approx(before)
    assert less < 0.8 * doubt


def test_the_settings_are_fitted_to_whole_curves_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most trials are stopped early: their scores alone would crowd out what shows how curves end."""
    share = np.concatenate([np.tile([0.0, 0.5], 90), np.tile([0.0, 0.5, 1.0], 10)])
    trial = np.concatenate([np.repeat(np.arange(90), 2), np.repeat(np.arange(90, 100), 3)])
    scores = Scores(np.zeros((210, 1)), share, trial, share)
    fitted: list[Scores] = []

    def minimize(objective: Any, start: Any, **_: Any) -> Any:
        fitted.append(objective.keywords["scores"])
        return SimpleNamespace(x=start)

    monkeypatch.setattr("contrasweep.tuning.search.curve_model.minimize", minimize)
    fit_settings(scores)
    assert len(fitted[0]) == MOST_FOR_SETTINGS
    assert np.count_nonzero(fitted[0].trial >= 90) == 30
