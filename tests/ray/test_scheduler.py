"""A resumed ASHA scheduler decides like one that was never interrupted."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment.schedulers import Scheduler
from contrasweep.tuning.planning.halving import Halving, check_halving
from contrasweep.tuning.ray.scheduler import ByCurves, ResumableASHA, scheduler_of
from contrasweep.tuning.search import PastTrial, SearchStudy

EPOCHS = 9
NO_RAMP = 0.0
USUAL = Halving()


def fake_trial(number: int, ray_id: str) -> Any:
    return SimpleNamespace(trial_id=ray_id, config={"request": SimpleNamespace(trial=number)})


def a_study(past: Sequence[PastTrial]) -> SearchStudy:
    space = Space.parse({"x": {"uniform": [0.0, 1.0], "default": 0.5}})
    study = SearchStudy(space, sampler="random", epochs=EPOCHS)
    study.restore(past)
    return study


def run(scheduler: ResumableASHA, trial: Any, scores: dict[int, float]) -> tuple[str, int]:
    """Report `scores` until the scheduler stops the trial; return the decision and the last epoch."""
    for epoch, score in scores.items():
        if scheduler.on_trial_result(None, trial, {"epoch": epoch, "score": score}) == "STOP":
            return "STOP", epoch
    return "CONTINUE", max(scores)


@pytest.mark.parametrize(
    ("epochs", "warmup", "expected"),
    [
        (1, 0.0, (1,)),
        (3, 0.0, (1, 3)),
        (10, 0.0, (1, 3, 9)),
        (10, 1.0, (2, 6)),
        (10, 0.5, (2, 6)),
        (100, 10.0, (20, 60)),
        (100, 0.0, (10, 30, 90)),
        (2, 5.0, (2,)),
    ],
)
def test_rungs_begin_after_the_ramp(epochs: int, warmup: float, expected: tuple[int, ...]) -> None:
    assert USUAL.rungs(epochs, warmup) == expected
    assert expected[0] == USUAL.grace_period(epochs, warmup)


def test_rungs_are_those_that_were_asked_for() -> None:
    assert Halving(eta=2, grace=5).rungs(40, 0.0) == (5, 10, 20, 40)
    assert Halving(grace=4).rungs(40, 10.0) == (4, 12, 36)
    assert Halving(eta=4).rungs(40, 0.0) == (4, 16)


@pytest.mark.parametrize(("eta", "third"), [(2, "CONTINUE"), (3, "STOP")])
def test_one_in_eta_goes_on(eta: int, third: str) -> None:
    scheduler = ResumableASHA(8, NO_RAMP, [], {}, Halving(eta=eta, grace=2))
    decisions = []
    for number, score in enumerate([0.3, 0.4, 0.36, 0.2]):
        trial = fake_trial(number, f"a{number}")
        scheduler.on_trial_add(None, trial)
        decisions.append(run(scheduler, trial, {1: 0.0, 2: score}))
    assert decisions == [("CONTINUE", 2), ("CONTINUE", 2), (third, 2), ("STOP", 2)]


@pytest.mark.parametrize(
    ("given", "scheduler", "message"),
    [
        ({"eta": 1}, "asha", "eta must be at least 2, given 1"),
        ({"grace": 0}, "asha", "grace must be at least 1, given 0"),
        ({"grace": 10}, "asha", "--grace 10: a trial has 10 epochs, so none would be stopped"),
        ({"eta": 2}, "none", r"--eta and --grace go with --scheduler asha or asha\+curves, given none"),
    ],
)
def test_rules_that_nothing_could_follow_are_refused(
    given: dict[str, int], scheduler: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_halving(Halving(**given), scheduler, 10)
    with pytest.raises(InputError, match="a trial has 1 epoch, so none"):
        check_halving(Halving(grace=1), "asha", 1)


def test_the_usual_rule_that_was_asked_for_is_refused_where_nothing_follows_it() -> None:
    check_halving(Halving(eta=3), "none", 10)
    with pytest.raises(InputError, match=r"go with --scheduler asha .*given none"):
        check_halving(Halving(eta=3), "none", 10, asked=True)


def test_resumed_scheduler_decides_as_the_first_would_have() -> None:
    rng = np.random.default_rng(0)
    curves = [{e: float(s) for e, s in enumerate(np.sort(rng.random(EPOCHS + 1)))} for _ in range(30)]
    whole = ResumableASHA(EPOCHS, NO_RAMP, [], {}, USUAL)
    decisions, seen = [], []
    for number, curve in enumerate(curves):
        trial = fake_trial(number, f"a{number}")
        whole.on_trial_add(None, trial)
        decision, last = run(whole, trial, curve)
        decisions.append((decision, last))
        seen.append({epoch: score for epoch, score in curve.items() if epoch <= last})
        whole.on_trial_remove(None, trial)
    resumed = ResumableASHA(EPOCHS, NO_RAMP, seen[:15], {}, USUAL)
    for number in range(15, 30):
        trial = fake_trial(number, f"b{number}")
        resumed.on_trial_add(None, trial)
        assert run(resumed, trial, curves[number]) == decisions[number]
    assert {decision for decision, _ in decisions} == {"STOP"}
    assert len({last for _, last in decisions}) > 1, "the curves must be stopped at several rungs"


def test_interrupted_trial_is_not_judged_again_at_a_rung_it_passed() -> None:
    past = [{1: score / 10, 3: score / 10} for score in range(10)]
    low_start = {0: 0.0, 1: 0.95, 2: 0.2}
    scheduler = ResumableASHA(EPOCHS, NO_RAMP, past, {7: low_start}, USUAL)
    trial = fake_trial(7, "new-id")
    scheduler.on_trial_add(None, trial)
    # Epoch 2 again, as after a checkpoint: below the cutoff of rung 1, which it passed with 0.95.
    assert run(scheduler, trial, {2: 0.2}) == ("CONTINUE", 2)
    assert run(scheduler, trial, {3: 0.2}) == ("STOP", 3)


@pytest.mark.parametrize("name", ["asha", "curves", "asha+curves"])
@pytest.mark.parametrize(("last", "score", "stops"), [(1, 0.2, True), (1, 0.95, False), (3, 0.2, True)])
def test_what_a_dead_driver_would_have_decided(name: Scheduler, last: int, score: float, stops: bool) -> None:
    """ASHA compares after epochs 1, 3 and 9; here the model looks after 1, 2, 4 and 8 for 0.9 or more."""
    past = [PastTrial(n, {"x": n / 10}, "stopped", {1: n / 10, 3: n / 10}) for n in range(10)]
    interrupted = PastTrial(10, {"x": 0.5}, "running", {1: 0.95} | {last: score})
    study = a_study([*past, interrupted])
    study.goes_on = lambda number, epoch, value: value >= 0.9  # type: ignore[method-assign]
    scheduler = scheduler_of(name, study, epochs=EPOCHS, warmup=0.0, halving=USUAL, past=[*past, interrupted])
    assert scheduler.was_to_stop(interrupted) is (stops and (name, last) != ("curves", 3))


def test_without_a_scheduler_no_trial_was_to_stop() -> None:
    one = PastTrial(0, {"x": 0.5}, "running", {1: 0.0})
    scheduler = scheduler_of("none", a_study([one]), epochs=EPOCHS, warmup=0.0, halving=USUAL, past=[one])
    assert not scheduler.was_to_stop(one)


def looked_at(known: dict[int, float], reports: Sequence[int]) -> list[int]:
    """Return the epochs after which the model looks at a trial: its looks are 1, 2 and 4."""
    study = a_study([PastTrial(0, {"x": 0.5}, "running", known)])
    asked: list[int] = []
    study.goes_on = lambda number, epoch, value: not asked.append(epoch)  # type: ignore[method-assign,func-returns-value]
    scheduler, trial = ByCurves(study, (1, 2, 4)), fake_trial(0, "new-id")
    for epoch in reports:
        assert scheduler.on_trial_result(None, trial, {"epoch": epoch, "score": 0.1}) == "CONTINUE"
        study.report(0, epoch, 0.1)
    return asked


def test_a_trial_is_not_looked_at_again_after_epochs_that_it_passed() -> None:
    assert looked_at({1: 0.1, 2: 0.2}, [0, 1, 2, 3, 4, 5]) == [4]


def test_a_trial_whose_worker_died_with_a_report_is_looked_at_after_the_next() -> None:
    assert looked_at({1: 0.1}, [3, 4]) == [3, 4]


@pytest.mark.parametrize(
    ("score", "promising", "decisions"),
    [(0.95, True, ["CONTINUE"] * 3), (0.95, False, ["CONTINUE", "STOP"]), (0.1, True, ["STOP"])],
)
def test_either_of_two_schedulers_stops_a_trial(score: float, promising: bool, decisions: list[str]) -> None:
    """ASHA compares after epochs 1, 3 and 9, the model after 1, 2, 4 and 8, where ASHA goes on."""
    past = [PastTrial(n, {"x": n / 10}, "stopped", {1: n / 10}) for n in range(10)]
    study = a_study(past)
    number = study.ask().number
    study.goes_on = lambda number, epoch, value: promising or epoch == 1  # type: ignore[method-assign]
    scheduler = scheduler_of("asha+curves", study, epochs=EPOCHS, warmup=0.0, halving=USUAL, past=past)
    trial, found = fake_trial(number, "new-id"), []
    scheduler.on_trial_add(None, trial)
    for epoch in (1, 2, 3):
        found.append(scheduler.on_trial_result(None, trial, {"epoch": epoch, "score": score}))
        if found[-1] == "STOP":
            break
    assert found == decisions


def test_a_score_of_minus_infinity_is_stopped() -> None:
    scheduler = ResumableASHA(EPOCHS, NO_RAMP, [{1: 0.1}, {1: 0.2}], {}, USUAL)
    trial = fake_trial(2, "c")
    scheduler.on_trial_add(None, trial)
    assert run(scheduler, trial, {1: float("-inf")}) == ("STOP", 1)


def test_a_trial_that_goes_on_counts_once_at_a_rung() -> None:
    ended = [PastTrial(number, {"x": 0.5}, "stopped", {1: score}) for number, score in enumerate((0.1, 0.2))]
    past = [*ended, PastTrial(2, {"x": 0.5}, "running", {1: 0.9})]
    scheduler = scheduler_of("asha", a_study([]), epochs=EPOCHS, warmup=NO_RAMP, halving=USUAL, past=past)
    for number in (2, 3):
        scheduler.on_trial_add(None, fake_trial(number, f"new-{number}"))
    # Two thirds of the way from 0.1 to 0.9, by rank, is 0.43; with 0.9 twice it would be 0.9.
    assert run(scheduler, fake_trial(3, "new-3"), {1: 0.5}) == ("CONTINUE", 1)  # type: ignore[arg-type]


def test_a_trial_that_is_proposed_again_counts_once_at_a_rung() -> None:
    """Its worker died before it began: it has another Ray id each time."""
    past = [PastTrial(0, {"x": 0.5}, "stopped", {1: 0.1}), PastTrial(1, {"x": 0.5}, "running", {1: 0.9})]
    scheduler = scheduler_of("asha", a_study([]), epochs=EPOCHS, warmup=NO_RAMP, halving=USUAL, past=past)
    for ray_id in ("a", "b", "c"):
        scheduler.on_trial_add(None, fake_trial(1, ray_id))
        scheduler.on_trial_remove(None, fake_trial(1, ray_id))
    scheduler.on_trial_add(None, fake_trial(2, "d"))
    # Two thirds of the way from 0.1 to 0.9 is 0.63; with 0.9 more than once it would be 0.9.
    assert run(scheduler, fake_trial(2, "d"), {1: 0.7}) == ("CONTINUE", 1)  # type: ignore[arg-type]


def test_an_interrupted_trial_is_compared_before_it_goes_on() -> None:
    """With fewer trials at once than before, some wait while others are compared."""
    past = [PastTrial(number, {"x": 0.5}, "running", {1: 0.5 + number / 10}) for number in range(4)]
    scheduler = scheduler_of("asha", a_study([]), epochs=EPOCHS, warmup=NO_RAMP, halving=USUAL, past=past)
    scheduler.on_trial_add(None, fake_trial(4, "a"))
    assert run(scheduler, fake_trial(4, "a"), {1: 0.6}) == ("STOP", 1)  # type: ignore[arg-type]


def test_a_dead_driver_would_have_compared_interrupted_trials_with_one_another() -> None:
    past = [
        PastTrial(number, {"x": 0.5}, "running", {1: score}) for number, score in enumerate((0.9, 0.1, 0.8))
    ]
    scheduler = scheduler_of("asha", a_study([]), epochs=EPOCHS, warmup=NO_RAMP, halving=USUAL, past=past)
    assert [scheduler.was_to_stop(one) for one in past] == [False, True, False]
    assert [scheduler.was_to_stop(one) for one in past] == [False, True, False], "asked in any order"
