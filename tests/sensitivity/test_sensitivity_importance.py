"""PED-ANOVA against Optuna's, and against objectives with known effects."""

from dataclasses import replace

import numpy as np
import pytest

from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.importance import Importance, bandwidth, cells, importances, pearson_share
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.scores import stages
from tests.sensitivity.synthetic import observed, space_of

FORMS = {
    "x": {"log": [1e-3, 1.0], "default": 0.1},
    # Not 0.5, which lies half-way between two cells: rounding would decide.
    "y": {"uniform": [0.0, 1.0], "default": 0.51},
    "n": {"int": [1, 8], "default": 2},
    "kernel": {"choice": ["rbf", "laplacian", "cosine"], "default": "rbf"},
}


def importances_of(observations: Observations) -> list[Importance | TooFew]:
    trials = stages(observations)[-1].known
    assert not isinstance(trials, TooFew)
    return importances(observations.axes, observations.strata, trials)


def named(found: list[Importance | TooFew]) -> dict[str, Importance]:
    return {one.name: one for one in found if isinstance(one, Importance)}


def test_shares_of_numbers_equal_those_of_optuna() -> None:
    import optuna
    from optuna import distributions as d
    from optuna.trial import create_trial

    study = observed(space_of(**FORMS), lambda x: -abs(x["x"] - 0.6) + 0.3 * x["y"] + 0.1 * x["n"], 200)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    theirs = optuna.create_study(direction="maximize")
    space = {
        "x": d.FloatDistribution(1e-3, 1.0, log=True),
        "y": d.FloatDistribution(0, 1),
        "n": d.IntDistribution(1, 8),
        "kernel": d.CategoricalDistribution(["rbf", "laplacian", "cosine"]),
    }
    for row, score in zip(study.codes, study.score, strict=True):
        params = {a.name: a.value(float(code)) for a, code in zip(study.axes, row, strict=True)}
        theirs.add_trial(create_trial(value=float(score), params=params, distributions=space))
    expected = optuna.importance.PedAnovaImportanceEvaluator().evaluate(theirs)
    best = np.argsort(-study.score)[:20]
    for i, axis in enumerate(study.axes):
        cell, count = cells(axis, study.codes[:, i])
        everyone = np.bincount(cell, minlength=count).astype(float)
        top = np.bincount(cell[best], minlength=count).astype(float)
        if axis.is_category:
            continue
        widths = (bandwidth(everyone), bandwidth(top))
        # Optuna's number is the variance of the marginal of the indicator; ours is its share.
        variance = pearson_share(everyone, top, widths) * 0.1 * 0.9
        assert variance == pytest.approx(expected[axis.name], rel=1e-6), axis.name


def test_what_matters_is_above_chance_and_first() -> None:
    study = observed(space_of(**FORMS), lambda x: x["y"] + 0.1 * x["x"], 200, noise=0.1)
    found = named(importances_of(study))
    assert max(found, key=lambda name: found[name].share) == "y"
    assert found["y"].above_chance
    assert found["y"].first is not None
    assert found["y"].first > 0.95
    assert found["y"].low <= found["y"].share <= found["y"].high
    assert not found["kernel"].above_chance


def test_one_in_twenty_parameters_is_above_chance_in_pure_noise() -> None:
    space = space_of(**dict.fromkeys("abcdef", "unit"))
    above = [
        one.above_chance
        for seed in range(8)
        for one in named(
            importances_of(observed(space, lambda x: 0 * x["a"], 60, noise=1.0, seed=seed))
        ).values()
    ]
    assert len(above) == 48
    assert sum(above) <= 7


def test_ties_at_the_top_favour_no_parameter() -> None:
    """A quarter of the trials share the highest score: their values once decided which were the best."""
    space = space_of(**dict.fromkeys("abcd", "unit"))
    studies = [observed(space, lambda x: 0 * x["a"], 60, noise=1.0, seed=seed) for seed in range(12)]
    found = [named(importances_of(replace(one, score=np.minimum(one.score, 0.6)))) for one in studies]
    for parameter in "abcd":
        assert sum(one[parameter].above_chance for one in found) <= 3, parameter


def test_a_conditional_parameter_is_judged_within_its_stratum() -> None:
    space = space_of(
        kernel=FORMS["kernel"],
        sigma2={"log": [1.0, 100.0], "default": 10.0, "when": {"kernel": ["rbf", "laplacian"]}},
    )
    study = observed(
        space,
        lambda x: 5.0 * (x["kernel"] == 2) + np.where(x["kernel"] == 0, np.nan_to_num(x["sigma2"]), 0),
        300,
        noise=0.05,
    )
    found = named(importances_of(study))
    # All of the best trials have the cosine kernel, so sigma2 cannot matter among all trials.
    assert found["sigma2 (kernel rbf)"].above_chance
    assert found["sigma2 (kernel rbf)"].share > 3 * found["sigma2 (kernel laplacian)"].share
    assert found["sigma2 (kernel rbf)"].first is None
    # The cosine trials, a share s of all, hold the best tenth: (s (0.1 / s - 0.1)^2 + (1 - s) 0.1^2) / 0.09.
    s = float(np.mean(study.codes[:, 0] == 2))
    truth = (s * (0.1 / s - 0.1) ** 2 + (1 - s) * 0.1**2) / 0.09
    assert found["kernel"].share == pytest.approx(truth, rel=0.1)


def test_failed_trials_are_not_among_the_best() -> None:
    # Without them, `a` would not matter: the completed trials are all alike.
    space = space_of(a="unit", b="unit")
    study = observed(space, lambda x: 0 * x["a"], 200, noise=0.1)
    bad = study.codes[:, 0] > 0.3
    ending = np.where(bad, "failed", "completed")
    score = np.where(bad, np.nan, study.score)
    found = named(importances_of(replace(study, ending=ending, score=score)))
    assert found["a"].above_chance
    assert found["a"].trials == 200


def test_too_few_trials_say_so() -> None:
    study = observed(space_of(a="unit"), lambda x: x["a"], 19)
    (found,) = importances_of(study)
    assert str(found) == "too few to tell: 19 ended trials, 20 needed"


def test_the_best_are_a_tenth_rounded_up_and_eight_at_least() -> None:
    found = [importances_of(observed(space_of(y="unit"), lambda x: x["y"], n))[0] for n in (30, 95)]
    assert [one.best for one in found if isinstance(one, Importance)] == [8, 10]
