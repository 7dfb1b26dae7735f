"""The condition on which a search ends: what is read, refused and counted."""

from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.early_end import (
    FIRST_FAILURES,
    EarlyEnd,
    Reason,
    check_stop_when,
    unreachable_stop_in_words,
)
from contrasweep.tuning.planning.rules import RunningRules
from contrasweep.tuning.planning.stop_when import StopWhen, parse_stop_when
from contrasweep.tuning.results.best import best_final
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.statistics import Summary
from contrasweep.tuning.store import SearchRecord
from tests.studies import STUDY, PlannedStudy, WrittenStudy, make_record, scored, small_plan

NOISE = 1.96 * (0.9 * 0.1 / 100) ** 0.5
"""The binomial noise of an accuracy of 0.9 on 100 images."""


def ends(
    scores: list[float | None],
    stop_when: str = "gain<0.005 for 3",
    *,
    std: float | None = None,
    **fields: Any,
) -> bool:
    """Whether a search ends after trials with these final scores; None: stopped by the scheduler."""
    usual = {"trials": 100, "metric": "val.accuracy", "validation_images": 100}
    search = SearchRecord(**{**usual, "stop_when": stop_when, **fields})
    early = EarlyEnd(search)
    for trial, score in enumerate(scores):
        summary = None if score is None else Summary(score, std, search.seeds)
        early.end(trial, "stopped" if score is None else "completed", summary)
    return early.reason() is not None


def test_conditions_are_read() -> None:
    assert parse_stop_when("gain<noise for 20") == StopWhen(None, 20)
    assert parse_stop_when(" gain < 0.005  for 7 ") == StopWhen(0.005, 7)
    assert [str(StopWhen(None, 20)), str(StopWhen(0.005, 7))] == ["gain<noise for 20", "gain<0.005 for 7"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "20", "gain<noise", "gain>0.1 for 3", "loss<0.1 for 3", "gain<noise for 2.5"),
        *(f"gain<{bound} for 3" for bound in ("-1", "0", "nan", "inf", "x")),
        *(f"gain<noise for {count}" for count in ("0", "9999999", "-3")),
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="stop-when"):
        RunningRules(stop_when=text)


def test_the_best_must_rise_within_the_last_trials() -> None:
    assert not ends([0.5, 0.4, 0.4]), "nothing completed before the last three"
    assert ends([0.5, 0.4, 0.4, 0.4])
    assert ends([0.5, 0.4, 0.504, 0.4]), "too small a rise"
    assert not ends([0.5, 0.4, 0.6, 0.4])
    assert ends([0.5, 0.6, 0.4, 0.4, 0.4]), "the rise is no longer among the last three"


def test_stopped_trials_count_and_failed_ones_do_not() -> None:
    assert ends([0.5, None, None, None])
    assert not ends([None, None, None, None, None]), "no trial has completed"
    early = EarlyEnd(SearchRecord(trials=9, metric="val.accuracy", stop_when="gain<0.005 for 2"))
    for trial, status in enumerate(["completed", "failed", "completed", "failed", "failed"]):
        early.end(trial, status, Summary(0.5, None, 1))
    assert early.reason() is None
    early.end(5, "completed", Summary(float("nan"), None, 1))
    assert early.reason() is None, "a score that is no number is a failure"
    early.end(6, "stopped", None)
    assert early.reason() is not None


def test_trials_count_in_the_order_of_their_numbers() -> None:
    early = EarlyEnd(SearchRecord(trials=9, metric="val.accuracy", stop_when="gain<0.005 for 2"))
    for trial, score in ((0, 0.5), (2, 0.5), (3, 0.5), (1, 0.9)):
        early.end(trial, "completed", Summary(score, None, 1))
    assert early.reason() is not None, "trial 1 ended last, and was begun before the last two"


def test_once_the_search_has_ended_it_stays_ended() -> None:
    early = EarlyEnd(SearchRecord(trials=9, metric="val.accuracy", stop_when="gain<0.005 for 2"))
    for trial in range(3):
        early.end(trial, "completed", Summary(0.5, None, 1))
    first = early.reason()
    assert first is not None
    assert first.why == (
        "the best final val.accuracy rose by 0 over the last 2 trials that trained, less than 0.005"
    )
    early.end(3, "completed", Summary(0.9, None, 1))
    assert early.reason() == first


def test_noise_of_an_accuracy_is_binomial() -> None:
    assert ends([0.9 - 0.9 * NOISE, 0.9, 0.5], "gain<noise for 2")
    assert not ends([0.9 - 1.1 * NOISE, 0.9, 0.5], "gain<noise for 2")


def test_noise_of_several_seeds_is_their_standard_error() -> None:
    rankme = {"metric": "val.rankme", "seeds": 4, "std": 0.2}
    assert ends([5.0, 5.09, 4.0], "gain<noise for 2", **rankme)
    assert not ends([5.0, 5.11, 4.0], "gain<noise for 2", **rankme)
    assert not ends([0.5, 0.515, 0.4], "gain<noise for 2", seeds=2, std=0.0), "more than one image of 100"
    assert ends([0.5, 0.505, 0.4], "gain<noise for 2", seeds=2, std=0.0), "half an image, and no deviation"


def test_a_minimised_metric_gains_when_it_falls() -> None:
    assert ends([0.5, 0.6, 0.7, 0.8], metric="val.alignment")
    assert not ends([0.5, 0.6, 0.4, 0.8], metric="val.alignment")


def test_trials_before_an_extension_are_not_counted_again() -> None:
    flat: list[float | None] = [0.5] * 6
    assert not ends(flat, stop_from=4)
    assert ends([*flat, None], stop_from=4)


def test_trials_of_earlier_drivers_count(tmp_path: Path) -> None:
    study = WrittenStudy(tmp_path, make_record())
    study.write(*(scored((0.5, 0.6), status) for status in ("completed", "stopped", "failed", "completed")))
    held = trial_outcomes(study.store.trials("demo"), study.record)
    for trials, has_reason in ((2, True), (3, False)):
        search = study.record.with_search(stop_when=f"gain<0.01 for {trials}").require_search()
        assert (EarlyEnd(search, held).reason() is not None) == has_reason


@pytest.mark.parametrize(
    ("fields", "stop_when", "told"),
    [
        (
            {"metric": "val.rankme"},
            "gain<noise for 3",
            "the noise of one val.rankme is unknown; allowed: a number",
        ),
        ({"validation_images": None}, "gain<noise for 3", "the noise of one val.accuracy is unknown"),
        (
            {"metric": "val.accuracy,val.colour_mse"},
            "gain<0.1 for 3",
            "one metric, given val.accuracy, val.col",
        ),
        ({"sampler": "grid"}, "gain<0.1 for 3", "does not go with the sampler grid"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(fields: Any, stop_when: str, told: str) -> None:
    usual = {"trials": 9, "metric": "val.accuracy", "validation_images": 100, "stop_when": stop_when}
    check_stop_when(SearchRecord(**usual))
    with pytest.raises(InputError, match=told):
        check_stop_when(SearchRecord(**{**usual, **fields}))


def test_several_seeds_give_the_noise_of_any_metric() -> None:
    check_stop_when(SearchRecord(trials=9, metric="val.rankme", seeds=2, stop_when="gain<noise for 3"))


def test_where_the_first_trials_all_fail_no_further_one_begins() -> None:
    early = EarlyEnd(SearchRecord(trials=99, metric="val.accuracy"))
    for trial in range(FIRST_FAILURES):
        assert early.reason() is None
        early.end(trial, "failed", None)
    assert early.reason() == Reason(f"the first {FIRST_FAILURES} trials all failed", " --retry-failed")


@pytest.mark.parametrize("status", ["completed", "stopped"])
def test_a_trial_that_trained_shows_that_others_can(status: str) -> None:
    early = EarlyEnd(SearchRecord(trials=99, metric="val.accuracy"))
    early.end(0, status, Summary(0.5, None, 1))
    for trial in range(1, 20):
        early.end(trial, "failed", None)
    assert early.reason() is None


def test_trials_that_failed_under_an_earlier_driver_do_not_end_a_sweep(tmp_path: Path) -> None:
    study = PlannedStudy(small_plan(tmp_path, trials=20))
    study.write(*(scored((0.5,), "failed", error="it broke") for _ in range(FIRST_FAILURES)))
    held = trial_outcomes(study.store.trials(STUDY), study.record)
    early = EarlyEnd(study.plan.search, held)
    assert early.reason() is None
    early.end(FIRST_FAILURES, "failed", None)
    assert early.reason() is None


def test_quick_failures_do_not_end_a_sweep_whose_other_trials_still_run() -> None:
    early = EarlyEnd(SearchRecord(trials=99, metric="val.accuracy"))
    for _ in range(16):
        early.begin()
    for trial in range(FIRST_FAILURES):
        early.end(trial, "failed", None)
        early.begin()
    assert early.reason() is None
    for trial in range(FIRST_FAILURES, 12):
        early.end(trial, "failed", None)
    assert early.reason() is None, "as many have failed as still run"
    # All but four of the others fail too.
    for trial in range(12, 20):
        early.end(trial, "failed", None)
    assert early.reason() is not None


def test_a_budget_counts_from_the_first_trial_on_and_with_the_time_of_earlier_drivers() -> None:
    now = [1000.0]
    search = SearchRecord(trials=99, metric="val.accuracy", budget=60)
    early = EarlyEnd(search, spent=20, clock=lambda: now[0])
    now[0] += 500  # before the first trial: the start of Ray
    assert early.reason() is None
    early.begin()
    now[0] += 30
    early.begin()
    now[0] += 9.9
    assert early.reason() is None
    now[0] += 0.1
    assert early.reason() == Reason("the budget of 1 min 00 s was spent", " with a larger --budget")


def test_the_gain_is_computed_anew_only_when_a_trial_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress asks after every epoch of every trial."""
    asked: list[int] = []

    def counted(scores: Any, metric: str) -> Any:
        asked.append(len(scores))
        return best_final(scores, metric)

    monkeypatch.setattr("contrasweep.tuning.planning.early_end.best_final", counted)
    early = EarlyEnd(SearchRecord(trials=9, metric="val.accuracy", stop_when="gain<0.1 for 2"))
    for trial in range(3):
        early.end(trial, "completed", Summary(0.5 + trial / 10, None, 1))
        assert [early.reason() for _ in range(5)] == [None] * 5
    assert asked == [0, 2, 1, 3], "before the last two trials and in all, after the second and the third"


def test_a_gain_that_is_just_large_enough_lets_the_search_go_on() -> None:
    assert not ends([0.25, 0.1, 0.1, 0.5], "gain<0.25 for 3")
    assert ends([0.25, 0.1, 0.1, 0.4375], "gain<0.25 for 3")


def test_a_trial_that_breaks_a_condition_is_no_gain() -> None:
    early = EarlyEnd(SearchRecord(trials=9, metric="val.accuracy", stop_when="gain<0.1 for 2"))
    for trial, (score, kept) in enumerate([(0.5, True), (0.9, False), (0.4, True)]):
        early.end(trial, "completed", Summary(score, None, 1), kept=kept)
    assert early.reason() is not None


def test_a_trial_of_an_earlier_driver_that_breaks_a_condition_is_no_gain(tmp_path: Path) -> None:
    keep = [{"metric": "val.colour_mse", "comparison": ">=", "bound": 200.0}]
    study = WrittenStudy(tmp_path, make_record(search={"keep": keep, "stop_when": "gain<0.1 for 2"}))
    study.write(*(scored((0.3, one), colour=colour) for one, colour in ((0.5, 300), (0.9, 100), (0.4, 300))))
    held = trial_outcomes(study.store.trials("demo"), study.record)
    assert EarlyEnd(study.record.require_search(), held).reason() is not None


@pytest.mark.parametrize(("trials", "told"), [(21, True), (22, False)])
def test_a_condition_that_only_the_last_trial_could_meet_is_told(trials: int, told: bool) -> None:
    search = SearchRecord(trials=trials, metric="val.accuracy", stop_when="gain<0.01 for 20")
    assert (unreachable_stop_in_words(search) is not None) is told
