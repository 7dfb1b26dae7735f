"""Marginals, variance shares, gains and robust ranges of objectives whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from contrasweep.tuning.search.axes import draw_codes
from contrasweep.tuning.sensitivity import forest as forest_module
from contrasweep.tuning.sensitivity.analyse import analyse_observations
from contrasweep.tuning.sensitivity.boxes import View, averages, leaves_of
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.forest import Forest, fit_forest
from contrasweep.tuning.sensitivity.marginals import Share, interaction_shares, marginals, variance_shares
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.scores import stages
from contrasweep.tuning.sensitivity.tunability import best_default, robustness, tunability
from tests.sensitivity.synthetic import Objective, observed, space_of, stopped

KERNELS = {"choice": ["rbf", "laplacian", "cosine"], "default": "rbf"}
CONDITIONAL = space_of(
    kernel=KERNELS,
    sigma2={"log": [1.0, 1e4], "default": 100.0, "when": {"kernel": ["rbf", "laplacian"]}},
    lr="unit",
    idle="unit",
)


def forest_of(observations: Observations) -> Forest:
    trials = stages(observations)[-1].known
    assert not isinstance(trials, TooFew)
    return fit_forest(observations.axes, observations.strata, trials)


def test_averages_over_boxes_are_those_over_draws() -> None:
    study = observed(
        CONDITIONAL, lambda x: x["lr"] + np.nan_to_num(x["sigma2"]) * (x["kernel"] == 0), 60, noise=0.1
    )
    forest = forest_of(study)
    views = [View((2,)), View((1,), {"kernel": 0.0}), View((0, 2))]
    curve, within, both = averages(leaves_of(forest.whole, study.axes), study.axes, study.strata, views)
    rng = np.random.default_rng(0)
    draws = draw_codes(study.axes, study.strata, 40_000, rng)

    def mean_at(**codes: float) -> float:
        fixed = draws.copy()
        for name, code in codes.items():
            fixed[:, [axis.name for axis in study.axes].index(name)] = code
        return float(forest.predict(fixed).mean())

    lr, sigma2 = study.axes[2].grid, study.axes[1].grid
    assert curve[10] == pytest.approx(mean_at(lr=lr[10]), abs=0.01)
    assert within[20] == pytest.approx(mean_at(kernel=0, sigma2=sigma2[20]), abs=0.01)
    # Under the cosine kernel sigma2 is inactive, so the draws of that row must have none.
    draws[:, 1] = np.nan
    assert both[2, 5] == pytest.approx(mean_at(kernel=2, lr=lr[5]), abs=0.01)


def test_strata_count_as_often_as_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the draws have the first kernel, and a sixth each has a policy of the other one."""
    monkeypatch.setattr(forest_module, "TREES", 40)
    policy = {"choice": ["one", "two", "three"], "default": "one", "when": {"kernel": ["cosine"]}}
    space = space_of(
        kernel={"choice": ["rbf", "cosine"], "default": "rbf"},
        policy=policy,
        sigma2={"log": [1.0, 1e4], "default": 100.0, "when": {"kernel": ["rbf"]}},
        beta={"uniform": [0.0, 1.0], "default": 0.5, "when": {"policy": ["two"]}},
        lr="unit",
    )
    study = observed(
        space, lambda x: x["lr"] * np.where(x["kernel"] == 0, 1.0, -1.0 * (x["policy"] == 0)), 300
    )
    forest = forest_of(study)
    views = [View((4,)), View((0,))]
    lr, kernel = averages(leaves_of(forest.whole, study.axes), study.axes, study.strata, views)
    assert lr[-2] - lr[1] == pytest.approx((1 / 2 - 1 / 6) * 30 / 32, abs=0.05)
    draws = draw_codes(study.axes, study.strata, 20_000, np.random.default_rng(0))
    predicted = forest.predict(draws)
    means = [float(predicted[draws[:, 0] == code].mean()) for code in (0, 1)]
    assert kernel == pytest.approx(means, abs=0.01)


def test_a_category_is_thin_with_fewer_than_three_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest_module, "TREES", 5)
    study = observed(space_of(kernel=KERNELS, lr="unit"), lambda x: x["lr"], 30)
    codes = study.codes.copy()
    codes[:, 0] = np.repeat([0, 1, 2], [25, 3, 2])
    kernel = marginals(forest_of(replace(study, codes=codes)))[0]
    assert kernel.thin.tolist() == [False, False, True]


def test_a_marginal_curve_covers_the_true_one() -> None:
    space = space_of(a="unit", b="unit", c="unit")
    study = observed(space, lambda x: np.sin(3 * x["a"]) + x["b"], 200, noise=0.1)
    curves = {m.axis.name: m for m in marginals(forest_of(study))}
    truths = {"a": np.sin(3 * curves["a"].code) + 0.5, "b": curves["b"].code + (1 - np.cos(3)) / 3}
    inside = []
    for name, truth in truths.items():
        curve = curves[name]
        # The outermost cells are averages of one side only: any smoother is biased there.
        inside.append(np.mean((curve.low <= truth)[1:-1] & (truth <= curve.high)[1:-1]))
        assert np.abs(curve.mean - truth)[1:-1].max() < 0.2
    assert np.mean(inside) > 0.8


def test_shares_of_variance_and_interactions_are_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    # By hand: Var(2a) = 4/12, Var(b) = 1/12, Var of the centred product = 9/144. An interaction without main
    # effects is the hardest effect to find; boosting that ends early finds part of it.
    monkeypatch.setattr(forest_module, "PERMUTATIONS", 3)
    space = space_of(a="unit", b="unit", c="unit", d="unit", idle="unit")
    study = observed(
        space, lambda x: 2 * x["a"] + x["b"] + 3 * (x["c"] - 0.5) * (x["d"] - 0.5), 1400, noise=0.05
    )
    forest = forest_of(study)
    total = 4 / 12 + 1 / 12 + 9 / 144
    shares = {share.name: share for share in variance_shares(forest)}
    assert shares["a"].share == pytest.approx(4 / 12 / total, abs=0.05)
    assert shares["b"].share == pytest.approx(1 / 12 / total, abs=0.05)
    assert shares["idle"].share < 0.01
    _, pairs = interaction_shares(forest, list(shares.values()))
    assert pairs[0].parameters == ("c", "d")
    assert 0.5 < pairs[0].share / (9 / 144 / total) < 1.1
    assert pairs[0].above_chance
    assert max(pair.share for pair in pairs[1:]) < 0.02
    assert len({pair.by_chance for pair in pairs}) == 1, "one mark for all pairs at once"


def test_shares_agree_with_optuna_s_fanova() -> None:
    import optuna
    from optuna.distributions import FloatDistribution
    from optuna.trial import create_trial

    space = space_of(a="unit", b="unit", c="unit")
    study = observed(space, lambda x: 3 * x["a"] ** 2 + x["b"], 200, noise=0.05)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    theirs = optuna.create_study(direction="maximize")
    distributions = {name: FloatDistribution(0, 1) for name in "abc"}
    for row, score in zip(study.codes, study.score, strict=True):
        params = dict(zip("abc", map(float, row), strict=True))
        theirs.add_trial(create_trial(value=float(score), params=params, distributions=distributions))
    found = optuna.importance.FanovaImportanceEvaluator(n_trees=12, seed=0).evaluate(theirs)
    ours = {share.name: share.share for share in variance_shares(forest_of(study))}
    for name in "abc":
        assert ours[name] == pytest.approx(found[name], abs=0.06)


def test_a_conditional_parameter_is_seen_within_each_stratum() -> None:
    # sigma2 matters under rbf only; pooling over kernels would halve its effect.
    study = observed(
        CONDITIONAL,
        lambda x: np.where(x["kernel"] == 0, 2 * np.nan_to_num(x["sigma2"]), 1.0) + 0.2 * x["lr"],
        300,
        noise=0.1,
    )
    forest = forest_of(study)
    shares = {share.name: share for share in variance_shares(forest)}
    assert shares["sigma2 (kernel rbf)"].share > 0.85
    assert shares["sigma2 (kernel laplacian)"].share < 0.3
    assert shares["sigma2 (kernel rbf)"].above_chance
    curves = {m.name: m.mean for m in marginals(forest)}
    assert set(curves) == {"kernel", "sigma2 (kernel rbf)", "sigma2 (kernel laplacian)", "lr", "idle"}
    assert np.ptp(curves["sigma2 (kernel rbf)"]) > 1.5
    assert np.ptp(curves["sigma2 (kernel laplacian)"]) < 0.4


def test_pure_noise_shows_no_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest_module, "TREES", 60)
    space = space_of(**dict.fromkeys("abcd", "unit"), kernel=KERNELS)
    found = 0
    for seed in range(2):
        forest = forest_of(observed(space, lambda x: 0 * x["a"], 80, noise=1.0, seed=seed))
        assert forest.r2 < 0.1
        found += sum(share.above_chance for share in variance_shares(forest))
        assert tunability(forest).jointly.low < 0
    assert found <= 3  # of 10


def interactions_of(
    names: str, objective: Objective, trials: int, noise: float, seed: int = 0
) -> list[Share]:
    observations = observed(
        space_of(**dict.fromkeys(names, "unit")), objective, trials, noise=noise, seed=seed
    )
    return interaction_shares(forest_of(observations), [Share((name,), {}, 1.0, 0.0) for name in names])[1]


def test_few_studies_of_pure_noise_show_any_interaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark for each pair by itself (mean and two deviations of six permutations) was passed in 5 of 6."""
    monkeypatch.setattr(forest_module, "TREES", 20)
    studies = [interactions_of("abcdef", lambda x: 0 * x["a"], 30, 1.0, seed) for seed in range(6)]
    assert sum(any(pair.above_chance for pair in pairs) for pairs in studies) <= 2


def test_an_interaction_beside_a_larger_effect_of_another_parameter_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Permuted scores turn the effect of `a` into noise, among which the interaction is not seen."""
    monkeypatch.setattr(forest_module, "TREES", 40)
    pairs = interactions_of(
        "abcd", lambda x: 3 * (x["a"] > 0.5) + 0.5 * ((x["c"] > 0.5) == (x["d"] > 0.5)), 120, 0.1
    )
    assert [pair.name for pair in pairs if pair.above_chance] == ["c x d"]


def test_the_best_default_of_pure_noise_gains_nothing() -> None:
    """Judged by the trials that chose it, it gained four standard deviations here, and at least 0.9."""
    space = space_of(**dict.fromkeys("ab", "unit"), kernel=KERNELS)
    studies = [observed(space, lambda x: 0 * x["a"], 40, noise=1.0, seed=seed) for seed in range(2)]
    found = best_default("any", {"one": "x", "two": "y"}, [forest_of(study) for study in studies])
    for gain in found.gains:
        assert gain.low < 0 < gain.high
        assert gain.unseen_low < gain.unseen < gain.unseen_high


def test_an_unseen_dataset_chooses_no_default_by_any_of_its_own_studies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two datasets want opposite values, so the default of the one loses on the other."""
    monkeypatch.setattr(forest_module, "TREES", 25)
    space = space_of(a="unit")
    datasets = {"one": "x", "two": "x", "three": "x", "other": "y"}
    best = {"x": 0.15, "y": 0.85}
    studies = [
        observed(space, lambda x, at=best[d]: -8 * (x["a"] - at) ** 2, 40, noise=0.02, seed=seed)  # type: ignore[misc]
        for seed, d in enumerate(datasets.values())
    ]
    found = best_default("any", datasets, [forest_of(study) for study in studies])
    for gain in found.gains:
        assert gain.unseen_high < -1, gain.study
    # A dataset counts once, however many studies it has: the default suits both alike.
    assert found.values["a"] == pytest.approx(0.5, abs=0.05)


def test_gains_over_the_defaults_are_recovered() -> None:
    # The defaults are a = b = 0.5: a gains 1, b nothing (it is at its best), c nothing (it is idle).
    space = space_of(a="unit", b="unit", c="unit")
    study = observed(space, lambda x: 2 * x["a"] - 4 * (x["b"] - 0.5) ** 2, 500, noise=0.05)
    found = tunability(forest_of(study))
    gains = {gain.parameter: gain for gain in found.parameters}
    assert gains["a"].gain == pytest.approx(1.0, abs=0.15)
    assert gains["a"].low > 0
    assert gains["a"].best > 0.9
    assert gains["b"].gain == pytest.approx(0.0, abs=0.1)
    assert gains["c"].gain == pytest.approx(0.0, abs=0.1)
    assert found.jointly.gain == pytest.approx(1.0, abs=0.2)
    assert found.measured_default == study.score[0]


def test_the_robust_region_holds_the_plateau_and_not_the_cliff() -> None:
    space = space_of(a="unit", b="unit", kernel=KERNELS)
    study = observed(
        space, lambda x: np.where(x["a"] > 0.7, 0.0, 1.0) + 0.5 * (x["kernel"] == 2), 200, noise=0.05
    )
    found = robustness(forest_of(study))
    regions = {region.axis.name: region for region in found.regions}
    assert regions["a"].high <= 0.75
    assert regions["kernel"].choices == ("cosine",)
    assert regions["b"].share > 0.3
    assert regions["b"].low <= found.best["b"] <= regions["b"].high


def test_a_whole_range_of_many_whole_numbers_is_told_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends were the middles of the outermost cells: 16 to 985."""
    monkeypatch.setattr(forest_module, "TREES", 10)
    space = space_of(queue={"int": [1, 1000], "default": 10}, few={"int": [1, 8], "default": 2})
    regions = robustness(forest_of(observed(space, lambda x: 0.5 + 0 * x["few"], 60))).regions
    assert [(one.low, one.high, one.share) for one in regions] == [(1, 1000, 1.0), (1, 8, pytest.approx(1.0))]


def test_intervals_carry_how_uncertain_estimates_are() -> None:
    # The first epoch says little about the end, so little is known of those that were stopped after it.
    study = observed(space_of(a="unit"), lambda x: x["a"], 100, noise=0.3, early_noise=0.3)
    whole = {m.name: m for m in marginals(forest_of(study))}["a"]
    cut = {m.name: m for m in marginals(forest_of(stopped(study, (1,))))}["a"]
    assert cut.points.estimated.sum() > 50
    assert np.median(cut.error) > 1.3 * np.median(whole.error)


def test_nothing_depends_on_how_trials_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest_module, "TREES", 25)
    study = observed(CONDITIONAL, lambda x: x["lr"] + 0.3 * (x["kernel"] == 1), 24, noise=0.05)
    order = np.concatenate([[0], 1 + np.random.default_rng(1).permutation(23)])
    shuffled = replace(
        study,
        codes=study.codes[order],
        score=study.score[order],
        curve=study.curve[order],
    )
    (one,), (other,) = analyse_observations([study]).studies, analyse_observations([shuffled]).studies
    for first, second in zip(one.end.forest.marginals, other.end.forest.marginals, strict=True):
        np.testing.assert_array_equal(first.mean, second.mean)
        np.testing.assert_array_equal(first.error, second.error)
    assert one.end.importances == other.end.importances
    assert one.end.forest.shares == other.end.forest.shares
    assert one.end.effects == other.end.effects
    assert one.tunability == other.tunability
    assert not isinstance(one.budget, TooFew)
    np.testing.assert_array_equal(one.budget.expected, other.budget.expected)  # type: ignore[union-attr]
