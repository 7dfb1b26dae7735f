"""The surrogate of a recording, its noise, and searches compared on it."""

from dataclasses import replace

import numpy as np
import pytest

from contrasweep.tuning.replay.comparison import compare
from contrasweep.tuning.replay.request import settings_of
from contrasweep.tuning.replay.searches import searches_of
from contrasweep.tuning.replay.table import rows_of, said_of, warnings_of
from contrasweep.tuning.replay.workload import Workload
from tests.replay.recorded import EPOCHS, final_score, recorded


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload.of(recorded(again=40))


def test_runs_are_those_of_the_workload(workload: Workload) -> None:
    values = {"kernel": "rbf", "sigma2": 300.0, "lr": 0.01}
    drawn = [workload.run(values, np.random.default_rng(seed)) for seed in range(30)]
    assert drawn[0].expected == pytest.approx(final_score(values), abs=0.02)
    assert drawn[0].expected == drawn[1].expected
    assert np.mean([one.final for one in drawn]) == pytest.approx(drawn[0].expected, abs=0.01)
    assert len(drawn[0].scores) == EPOCHS
    # The noise of a seed, known from the 40 second runs.
    assert np.std([one.final for one in drawn]) == pytest.approx(0.01, rel=0.7)
    assert workload.seed_noise == pytest.approx(0.01, rel=0.4)
    assert workload.error < 0.03
    assert workload.own_error is not None
    assert workload.seed_noise is not None
    assert workload.own_error**2 + workload.seed_noise**2 == pytest.approx(workload.error**2)


def test_shares_stay_shares() -> None:
    perfect = recorded(noise=0.0)
    top = Workload.of(perfect)
    best = {"kernel": "rbf", "sigma2": 100.0, "lr": 0.03}
    assert all(0 <= score <= 1 for score in top.run(best, np.random.default_rng(0)).scores)


def test_searches_are_ranked_and_early_stopping_pays(workload: Workload) -> None:
    searches = searches_of(settings_of("random", "asha,none"))
    found = compare(searches, workload, workers=2, budget=20 * EPOCHS, seeds=8)
    stopping, whole = found
    assert stopping.begun > 2 * whole.begun
    assert stopping.after(0.5)[0] > whole.after(0.5)[0] + 0.005
    assert (stopping.ranks + whole.ranks).tolist() == [3.0] * 8
    assert rows_of(compare(searches, workload, workers=2, budget=20 * EPOCHS, seeds=8)) == rows_of(found)


def test_a_surrogate_that_errs_by_more_than_a_seed_is_warned_of(workload: Workload) -> None:
    assert "beyond the noise of a seed" in said_of(workload)
    assert warnings_of(workload) == []
    few = Workload.of(recorded(count=20, noise=0.0001, again=20))
    (warning,) = warnings_of(few)
    assert "errs by more than a seed does" in warning
    told = warnings_of(Workload.of(recorded(again=4)))
    assert any("4 trials ran on two seeds" in line for line in told)


@pytest.mark.parametrize(("again", "told"), [(0, "no trial ran again"), (1, "only one trial ran again")])
def test_one_second_seed_is_too_few_and_is_not_called_none(again: int, told: str) -> None:
    held = Workload.of(recorded(count=20, again=again))
    assert (held.seed_noise, held.pairs) == (None, again)
    assert told in said_of(held)
    values, errors = (
        {"kernel": "cosine", "lr": 0.1},
        held.predicted - held.recording.spread_out(held.recording.scores),
    )
    finals = [held.run(values, np.random.default_rng(seed)).final for seed in range(40)]
    logits = held.recording.spread_out(np.array([[final] for final in finals]))
    assert np.std(logits) == pytest.approx(np.std(errors[:, -1]), rel=0.5), "what the surrogate errs by"


def test_a_study_with_many_stopped_trials_is_warned_of(workload: Workload) -> None:
    for left_out, warned in ((15, False), (16, True)):  # of 60 trials
        held = replace(workload, recording=replace(workload.recording, left_out=left_out))
        assert any("did not train to their last epoch" in line for line in warnings_of(held)) is warned


@pytest.mark.parametrize("again", [2, 3, 40])
def test_drawn_noise_varies_as_seeds_do(again: int) -> None:
    """On the logistic scale, where the noise is drawn, the final score's variance is that of its sample."""
    recording = recorded(again=again)
    held = Workload.of(recording)
    one, other = (
        recording.spread_out(scores[:again])[:, -1] for scores in (recording.scores, recording.again)
    )
    logits = [recording.spread_out(np.full((1, EPOCHS + 1), final))[0, -1] for final in _finals(held)]
    assert np.std(logits) == pytest.approx(np.std(one - other, ddof=1) / np.sqrt(2), rel=0.15)


def _finals(workload: Workload) -> list[float]:
    values, rng = {"kernel": "cosine", "lr": 0.1}, np.random.default_rng(0)
    return [workload.run(values, rng).final for _ in range(600)]


def test_the_score_of_a_single_search_has_no_interval(workload: Workload) -> None:
    searches = searches_of(settings_of("random", "none"))
    (alone,) = compare(searches, workload, workers=2, budget=4 * EPOCHS, seeds=1)
    assert "±" not in rows_of([alone])[0]["after 100%"]
    several = replace(alone, chosen=np.vstack([alone.chosen, np.full_like(alone.chosen, np.nan)]))
    assert "±" not in rows_of([several])[0]["after 100%"]


def test_trials_that_all_score_alike_before_they_learn_tie() -> None:
    held = recorded(noise=0.01, again=40)
    for scores in (held.scores, held.again[:40]):
        scores[:, :2] = 0.3
    alike = Workload.of(held)
    rng = np.random.default_rng(0)
    runs = [alike.run({"kernel": "cosine", "lr": 10.0**-power}, rng) for power in range(3)]
    assert {score for one in runs for score in one.scores[:2]} == {0.3}
