"""Proposing and stopping by the model of learning curves."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState, create_trial
from scipy.integrate import quad
from scipy.stats import norm

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.search import PastTrial, SearchStudy
from contrasweep.tuning.search.axes import axes_of, draw_codes, strata_of
from contrasweep.tuning.search.curve_model import CurveModel, fit_settings
from contrasweep.tuning.search.curve_scores import (
    curves_of,
    scores_of,
)
from contrasweep.tuning.search.curves import (
    LEADERS,
    NEAR,
    CurveSampler,
    Outlook,
    log_expected_improvement,
)
from contrasweep.tuning.search.decision_epochs import decision_epochs
from tests.search.curve_studies import EPOCHS, SPACE, SPACE_X, held, level, past


@pytest.mark.parametrize(
    ("epochs", "warmup", "expected"),
    [
        (1, 0, ()),
        (2, 0, (1,)),
        (10, 0, (1, 2, 4, 8)),
        (8, 0, (1, 2, 4)),
        (10, 1, (2, 4, 8)),
        (9, 1.5, (3, 6)),
    ],
)
def test_trials_are_looked_at_after_the_warmup_and_each_time_twice_as_late(
    epochs: int, warmup: float, expected: tuple[int, ...]
) -> None:
    assert decision_epochs(epochs, warmup) == expected


def test_a_promising_trial_goes_on_and_a_poor_one_does_not() -> None:
    assert held(0.68, at=4).goes_on(9, 4, level(0.68, 4))
    assert not held(0.12).goes_on(9, 2, level(0.12, 2))


def test_what_a_trial_reports_decides_not_only_its_configuration() -> None:
    assert not held(0.68, at=4).goes_on(9, 4, 0.0)


def test_a_trial_near_its_end_goes_on_for_less() -> None:
    """The fewer epochs are left, the smaller the promise that pays for them."""
    early, late = (held(0.78, at).goes_on(9, at, level(0.78, at)) for at in (2, 7))
    assert (early, late) == (False, True)


def test_a_score_that_is_no_number_does_not_go_on() -> None:
    assert not held().goes_on(9, 2, math.nan)
    assert not held().goes_on(9, 2, -math.inf)


def test_while_little_is_known_every_trial_goes_on() -> None:
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    assert study.goes_on(study.ask().number, 1, 0.1)


def test_a_decision_is_the_same_after_a_resume() -> None:
    found = {held(0.6).goes_on(9, 2, level(0.6, 2)) for _ in range(3)}
    assert len(found) == 1


def test_the_candidates_of_a_decision_are_drawn_by_seed_trial_and_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[float] = []
    monkeypatch.setattr(
        "contrasweep.tuning.search.curves.outlook_of",
        lambda study, space, curves, rng, asked: drawn.append(rng.random()),
    )
    for seed, number, epoch in ((0, 9, 2), (0, 9, 2), (1, 9, 2), (0, 8, 2), (0, 9, 4)):
        held(seed=seed).goes_on(number, epoch, 0.5)
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 4


def test_proposals_follow_the_starts_of_curves() -> None:
    """Only early scores are known, and they lead to the best configurations."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS, trials=12)
    rng = np.random.default_rng(0)
    study.restore([past(number, float(x), 2) for number, x in enumerate(rng.random(10))])
    proposed = [study.ask().values for _ in range(4)]
    assert len({one["x"] for one in proposed}) == 4
    assert min(abs(float(one["x"]) - 0.7) for one in proposed) < 0.1


def test_nothing_is_modelled_from_scores_that_are_all_alike_or_too_few() -> None:
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    for _ in range(5):
        study.report(study.ask().number, 1, 0.5)
    assert scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS) is None
    assert study.goes_on(0, 2, 0.5)


def test_a_negative_seed_decides_too() -> None:
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS, seed=-1)
    study.restore([past(n, x, EPOCHS, "completed") for n, x in enumerate((0.05, 0.3, 0.5, 0.6, 0.9))])
    study.ask()
    assert study.goes_on(5, 2, 0.9) in (True, False)


def test_the_score_at_which_a_trial_is_looked_at_is_modelled() -> None:
    """With a warmup of two epochs, trials are looked at after 3; here that is the only score."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS, warmup=2)
    places = [(n, n / 6, "stopped") for n in range(6)] + [(6, 0.02, "running")]
    study.restore(
        PastTrial(n, {"x": x, "kernel": "cosine"}, state, {3: level(x, 3)})  # type: ignore[arg-type]
        for n, x, state in places
    )
    assert decision_epochs(EPOCHS, 2) == (3, 6)
    assert not study.goes_on(6, 3, level(0.02, 3))


def test_where_the_model_knows_too_little_the_other_sampler_proposes() -> None:
    """No trial keeps the condition yet: tpe, which knows by how much each breaks it, comes nearer to it."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS, trials=60)
    for _ in range(40):
        trial = study.ask()
        x = float(trial.values["x"])
        study.report(trial.number, EPOCHS, 0.5)
        study.complete(trial.number, 0.5, {"memory": 2 + abs(x - 0.9)})
    late = [float(t.params["x"]) for t in study.trials[20:]]
    assert np.median(np.abs(np.array(late) - 0.9)) < 0.1


def test_nothing_to_search_and_nothing_left_to_search() -> None:
    fixed = SearchStudy(Space.parse({"x": 0.5}), sampler="curves", epochs=EPOCHS, trials=20)
    for _ in range(12):
        trial = fixed.ask()
        assert fixed.goes_on(trial.number, 1, 0.1 * trial.number)
        fixed.complete(trial.number, 0.1 * trial.number)
    few = Space.parse({"kernel": {"choice": ["rbf", "cosine", "linear"], "default": "rbf"}})
    finite = SearchStudy(few, sampler="curves", epochs=EPOCHS, trials=20)
    for _ in range(12):
        trial = finite.ask()
        score = 0.1 * len(str(trial.values["kernel"]))
        assert finite.goes_on(trial.number, 1, score + 0.001 * trial.number) or trial.number < 11
        finite.complete(trial.number, score)
    assert {t.params["kernel"] for t in finite.trials[:3]} == {"rbf", "cosine", "linear"}


def test_whole_numbers_of_a_wide_range_are_all_proposed() -> None:
    space = Space.parse({"clusters": {"int": [2, 1000], "default": 10}})
    study = SearchStudy(space, sampler="curves", epochs=EPOCHS, trials=40)
    for _ in range(40):
        trial = study.ask()
        study.complete(trial.number, -abs(int(trial.values["clusters"]) - 333) / 1000)
    tried = [int(t.params["clusters"]) for t in study.trials]
    assert len(set(tried)) == 40
    assert min(abs(one - 333) for one in tried) <= 2


def test_the_neighbours_of_the_best_trials_are_whole_configurations() -> None:
    """A whole number decides whether `crop` is active: no neighbour makes it so without a value."""
    numbers = {"int": [0, 6], "default": 3}
    crop = {"uniform": [0.1, 0.9], "default": 0.4, "when": {"padding": [0, 2, 4, 6]}}
    space = Space.parse({"padding": numbers, "crop": crop, "lr": {"log": [0.01, 1.0], "default": 0.1}})
    study = SearchStudy(space, sampler="curves", epochs=EPOCHS, trials=40, seed=4)
    for _ in range(40):
        values = (trial := study.ask()).values
        assert set(values) == set(space.active(values))
        study.complete(trial.number, float(values.get("crop", 0.5)) - 0.2 * abs(int(values["padding"]) - 2))


@pytest.mark.parametrize("z", [-40.0, -29.0, -7.0, -5.9, -1.0, 0.0, 3.0])
def test_expected_improvement_is_the_integral_also_where_it_is_tiny(z: float) -> None:
    deviation = 0.3
    found = log_expected_improvement(np.array([1 + z * deviation]), np.array([deviation]), 1.0)[0]
    # The density is taken relative to that at the bound, which underflows.
    relative, _ = quad(lambda t: t * math.exp(z * t - t * t / 2), 0, 40)
    assert found == pytest.approx(math.log(deviation) + norm.logpdf(z) + math.log(relative), abs=0.003)


def test_the_sampler_takes_one_metric() -> None:
    with pytest.raises(InputError, match="takes one metric"):
        SearchStudy(SPACE, sampler="curves", objectives=2)


def test_whole_numbers_of_a_wide_range_are_drawn_as_they_are_stored() -> None:
    """A draw that no value stands for would never be found among those that were tried."""
    space = Space.parse({"queue": {"log_int": [128, 65536], "default": 512}})
    axes = axes_of(space)
    codes = draw_codes(axes, strata_of(space), 200, np.random.default_rng(0))
    values = [axes[0].value(float(code)) for code in codes[:, 0]]
    assert len(set(values)) > 150
    assert axes[0].codes(values) == pytest.approx(codes[:, 0], abs=0)


@pytest.mark.parametrize("scale", ["int", "log_int"])
def test_others_may_depend_on_whole_numbers_of_a_wide_range(scale: str) -> None:
    content = {"size": {scale: [1, 300], "default": 8}, "x": SPACE_X | {"when": {"size": [1, 2, 3]}}}
    space = Space.parse(content)
    axes, strata = axes_of(space), strata_of(space)
    assert sum(one.weight for one in strata) == pytest.approx(1.0)
    small = sum(one.weight for one in strata if "x" in one.active)
    codes = draw_codes(axes, strata, 2_000, np.random.default_rng(0))
    assert np.isfinite(codes[:, 1]).mean() == pytest.approx(small, abs=0.03)
    assert small == pytest.approx(3 / 300 if scale == "int" else math.log(7) / math.log(601))


def ranked(study: SearchStudy, space: Space, seed: int, startup: int = 0) -> list[Mapping[str, Scalar]]:
    """What the model proposes for a further trial; nothing where it does not."""
    sampler = CurveSampler(space, RandomSampler(seed=seed), seed, startup)
    return list(sampler.ranked(study.optuna_study, create_trial(state=TrialState.RUNNING)))


def test_one_trial_in_three_and_the_first_ones_are_proposed_without_the_model() -> None:
    study = held()
    modelled = [seed for seed in range(24) if ranked(study, SPACE, seed)]
    assert 12 <= len(modelled) <= 20
    assert not ranked(study, SPACE, modelled[0], startup=11), "ten trials have begun"
    assert ranked(study, SPACE, modelled[0], startup=10)


def test_what_has_been_tried_is_not_weighed_again() -> None:
    space = Space.parse({"x": {"int": [1, 9], "default": 5}})
    study = SearchStudy(space, sampler="curves", epochs=EPOCHS)
    study.restore([PastTrial(x, {"x": x + 1}, "stopped", {1: x / 10}) for x in range(6)])
    modelled = next(found for seed in range(9) if (found := ranked(study, space, seed)))
    assert {one["x"] for one in modelled} == {7, 8, 9}


def test_some_candidates_keep_values_of_the_best_trials() -> None:
    space = Space.parse({"x": SPACE_X, "y": SPACE_X})
    study = SearchStudy(space, sampler="curves", epochs=EPOCHS)
    study.restore([PastTrial(n, {"x": n / 10, "y": 0.03 + n / 10}, "stopped", {1: n / 10}) for n in range(6)])
    modelled = next(found for seed in range(9) if (found := ranked(study, space, seed)))
    tried = {n / 10 for n in range(2, 6)}
    assert sum(one["x"] in tried for one in modelled) > LEADERS * NEAR / 5


def test_a_new_trial_promises_less_where_another_one_runs() -> None:
    axes, rng = axes_of(SPACE), np.random.default_rng(0)
    curves = curves_of(held().optuna_study, axes)
    scores = scores_of(curves, axes, EPOCHS)
    assert scores is not None
    model, ended = CurveModel(fit_settings(scores), scores), replace(curves[-1], running=False)
    here = curves[-1].codes[None]
    beside, alone = (
        Outlook(SPACE, model, [*curves[:-1], last], rng).promise(here) for last in (curves[-1], ended)
    )
    assert beside < alone
