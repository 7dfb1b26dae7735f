"""Proposing and stopping by the model of learning curves."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.search import PastTrial, SearchStudy
from contrasweep.tuning.search.axes import axes_of, draw_codes, strata_of
from contrasweep.tuning.search.curve_scores import (
    FLOOR,
    MOST_SCORES,
    curves_of,
    most_telling,
    scores_of,
    tells,
)
from contrasweep.tuning.search.curves import log_expected_improvement
from contrasweep.tuning.search.decision_epochs import decision_epochs

SPACE_X = {"uniform": [0.0, 1.0], "default": 0.5}
SPACE = Space.parse(
    {
        "x": SPACE_X,
        "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
        "sigma2": {"log": [1.0, 100.0], "default": 10.0, "when": {"kernel": ["rbf"]}},
    }
)
EPOCHS = 8


def level(x: float, epoch: int) -> float:
    """Curves that rise to 1 - |x - 0.7|."""
    return (1 - abs(x - 0.7)) * (1 - math.exp(-epoch / 4))


def past(number: int, x: float, epochs: int, state: str = "stopped") -> PastTrial:
    curve = {epoch: level(x, epoch) for epoch in range(1, epochs + 1)}
    final = level(x, EPOCHS) + 0.1 if state == "completed" else None
    return PastTrial(number, {"x": x, "kernel": "cosine"}, state, curve, final)  # type: ignore[arg-type]


def held(running: float = 0.72, at: int = 2) -> SearchStudy:
    """A search of nine trials that have ended, three of them whole; number 9 runs."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    places = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.9, 0.8, 0.65]
    whole = {0.35, 0.55, 0.9}
    trials = [
        past(number, x, *((EPOCHS, "completed") if x in whole else (2, "stopped")))
        for number, x in enumerate(places)
    ]
    study.restore([*trials, past(9, running, at, "running")])
    return study


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


def test_proposals_follow_the_starts_of_curves() -> None:
    """Only early scores are known, and they lead to the best configurations."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS, trials=12)
    rng = np.random.default_rng(0)
    study.restore([past(number, float(x), 2) for number, x in enumerate(rng.random(10))])
    proposed = [study.ask().values for _ in range(4)]
    assert len({one["x"] for one in proposed}) == 4
    assert min(abs(float(one["x"]) - 0.7) for one in proposed) < 0.1


def test_final_scores_of_another_measure_are_brought_to_the_curves() -> None:
    study = held()
    curves = curves_of(study.optuna_study, axes_of(SPACE))
    scores = scores_of(curves, axes_of(SPACE), EPOCHS)
    assert scores is not None
    ends = scores.share == 1.0
    for number in (3, 5, 6):
        both = scores.score[ends & (scores.trial == number)]
        assert len(both) == 2
        assert both[0] == pytest.approx(both[1])


def test_epochs_after_which_all_trials_score_alike_are_left_out() -> None:
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    study.restore(
        [
            PastTrial(n, {"x": n / 10, "kernel": "cosine"}, "stopped", {1: 0.324, 2: 0.324 + n / 20})
            for n in range(6)
        ]
    )
    scores = scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    assert set(scores.share) == {math.log(2) / math.log(EPOCHS)}


def test_failed_trials_and_those_that_break_a_condition_count_as_the_worst() -> None:
    study = held()
    broken, other = study.ask(), study.ask()
    study.fail(broken.number)
    study.complete(other.number, 100.0, {"memory": 1.0})
    scores = scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    for number in (broken.number, other.number):
        assert FLOOR in scores.score[scores.trial == number]


def test_nothing_is_modelled_from_scores_that_are_all_alike_or_too_few() -> None:
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    for _ in range(5):
        study.report(study.ask().number, 1, 0.5)
    assert scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS) is None
    assert study.goes_on(0, 2, 0.5)


def test_a_large_search_is_modelled_from_some_of_its_scores() -> None:
    """The latest trial is asked about: its scores are kept, as are the best trials and some others."""
    count = MOST_SCORES + 100
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    study.restore(
        [past(n, n / count, EPOCHS, "completed") for n in range(count)] + [past(count, 0.7, 2, "running")]
    )
    scores = scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    kept = most_telling(scores, asked=count)
    assert len(kept) == MOST_SCORES
    assert set(kept.share[kept.trial == count]) == {0.0, math.log(2) / math.log(EPOCHS)}
    best = {n for n in range(count) if abs(n / count - 0.7) < 0.1}
    assert best <= set(kept.trial)
    quarters = np.histogram(kept.trial, bins=4, range=(0, count))[0]
    assert quarters.min() > MOST_SCORES / 20


def test_few_scores_are_all_taken() -> None:
    scores = scores_of(curves_of(held().optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    assert most_telling(scores) is scores


@pytest.mark.parametrize("rung", [2, 3])
def test_a_trial_that_another_scheduler_stopped_is_modelled_by_its_last_score(rung: int) -> None:
    # The model looks at epochs 1, 2, 4 and 8, ASHA after 1, 3 and 9.
    stopped = [
        PastTrial(number, {"x": number / 10, "kernel": "cosine"}, "stopped", {rung: level(number / 10, rung)})
        for number in range(6)
    ]
    whole = [past(6 + number, x, EPOCHS, "completed") for number, x in enumerate((0.6, 0.7, 0.9))]
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS, earlier=[*stopped, *whole])
    axes = axes_of(SPACE)
    found = scores_of(curves_of(study.optuna_study, axes), axes, EPOCHS)
    assert found is not None
    assert set(found.trial.tolist()) == set(range(9))
    assert set(found.share[found.trial < 6]) == {math.log(rung) / math.log(EPOCHS)}


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


def test_a_score_that_is_far_off_does_not_hide_the_others() -> None:
    """A loss that diverged, say: larger is better, so it is very negative."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    far = PastTrial(12, {"x": 0.1, "kernel": "cosine"}, "stopped", {1: -1e9, 2: -1e12})
    study.restore([*(past(n, n / 12, 2) for n in range(12)), far])
    curves = curves_of(study.optuna_study, axes_of(SPACE))
    without, beside = (scores_of(some, axes_of(SPACE), EPOCHS) for some in (curves[:-1], curves))
    assert without is not None
    assert beside is not None
    spread = [np.ptp(one.score[one.score > FLOOR]) for one in (without, beside)]
    assert spread[1] > spread[0] / 10
    assert tells(curves, 2, EPOCHS)


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
