"""Ask and tell: Optuna's records of trials that finish, stop, break or return nonsense."""

import logging
import math
import warnings
from collections.abc import Iterator

import optuna
import pytest
from optuna.trial import TrialState

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.search import PastTrial, SearchStudy
from contrasweep.tuning.search.tpe import random_start

SPACE = Space.parse(
    {
        "kernel": {"choice": ["rbf", "linear", "cosine"], "default": "cosine"},
        "sigma2": {"log": [1.0, 1.0e5], "default": 100.0, "when": {"kernel": ["rbf", "linear"]}},
        "clusters": {"int": [2, 20], "default": 10},
        "queue": {"log_int": [16, 4096], "default": 64},
        "crop": {"uniform": [0.08, 0.8], "default": 0.2},
        "weights": "released",
    }
)
BROKEN = [None, math.nan, math.inf, -math.inf]


def score(values: dict[str, Scalar]) -> float:
    """A substitute for a validation accuracy: best at rbf, sigma2 1,000, crop 0.5."""
    kernel = {"rbf": 1.0, "linear": 0.5, "cosine": 0.6}[str(values["kernel"])]
    scale = 0.1 * abs(math.log10(float(values.get("sigma2", 1000.0))) - 3)
    return kernel - scale - abs(float(values["crop"]) - 0.5)


def test_the_first_trial_runs_the_defaults() -> None:
    proposal = SearchStudy(SPACE, seed=3).ask()
    assert proposal.number == 0
    assert proposal.values == SPACE.defaults()


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_proposal_holds_the_active_parameters_within_their_ranges(sampler: str) -> None:
    study = SearchStudy(SPACE, sampler=sampler, trials=15)
    kernels = set()
    for number in range(40):
        proposal = study.ask()
        assert proposal.number == number
        assert tuple(proposal.values) == SPACE.active(proposal.values)
        assert ("sigma2" in proposal.values) == (proposal.values["kernel"] != "cosine")
        assert all(SPACE[name].contains(value) for name, value in proposal.values.items())
        assert {n: type(v).__name__ for n, v in proposal.values.items() if n in ("clusters", "crop")} == {
            "clusters": "int",
            "crop": "float",
        }
        assert study.trial(number).params == {k: v for k, v in proposal.values.items() if k != "weights"}
        kernels.add(proposal.values["kernel"])
        study.complete(number, score(dict(proposal.values)))
    assert kernels == {"rbf", "linear", "cosine"}


def test_a_finished_trial_is_complete_with_its_value() -> None:
    study = SearchStudy(SPACE)
    study.ask()
    study.report(0, 1, 0.5)
    study.report(0, 2, 0.4)
    assert study.complete(0, 0.7) == TrialState.COMPLETE
    assert study.trial(0).state == TrialState.COMPLETE
    assert study.trial(0).value == 0.7
    assert study.trial(0).intermediate_values == {1: 0.5, 2: 0.4}


def test_a_trial_stopped_early_is_pruned_with_its_intermediate_values() -> None:
    study = SearchStudy(SPACE)
    study.ask()
    study.report(0, 1, 0.5)
    study.report(0, 4, 0.6)
    assert study.prune(0) == TrialState.PRUNED
    assert study.trial(0).state == TrialState.PRUNED
    assert study.trial(0).intermediate_values == {1: 0.5, 4: 0.6}


def test_a_trial_that_broke_is_fail() -> None:
    study = SearchStudy(SPACE)
    study.ask()
    study.report(0, 1, 0.5)
    assert study.fail(0) == TrialState.FAIL
    assert study.trial(0).state == TrialState.FAIL
    assert study.trial(0).intermediate_values == {1: 0.5}


@pytest.mark.parametrize("value", BROKEN)
def test_a_final_value_that_is_not_finite_is_fail(value: float | None) -> None:
    study = SearchStudy(SPACE)
    study.ask()
    assert study.complete(0, value) == TrialState.FAIL
    assert study.trial(0).state == TrialState.FAIL


@pytest.mark.parametrize("value", BROKEN)
def test_a_trial_stopped_at_a_value_that_is_not_finite_is_fail(value: float | None) -> None:
    study = SearchStudy(SPACE)
    study.ask()
    study.report(0, 1, 0.5)
    study.report(0, 2, value)
    assert study.prune(0) == TrialState.FAIL
    assert study.trial(0).state == TrialState.FAIL


def test_a_second_outcome_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    study = SearchStudy(SPACE)
    study.ask()
    study.complete(0, 0.7)
    with caplog.at_level(logging.WARNING):
        study.report(0, 9, 0.1)
        assert study.fail(0) == TrialState.COMPLETE
        assert study.complete(0, 0.1) == TrialState.COMPLETE
        assert study.complete(0, math.nan) == TrialState.COMPLETE
        assert study.prune(0) == TrialState.COMPLETE
    assert study.trial(0).value == 0.7
    assert study.trial(0).intermediate_values == {}
    assert "trial 0 is COMPLETE already" in caplog.text


def test_interleaved_trials_with_noise_nan_and_crashes_leave_none_running() -> None:
    study = SearchStudy(SPACE, trials=30)
    live: list[int] = []
    told: dict[int, TrialState] = {}
    for _ in range(30):
        proposal = study.ask()
        live.append(proposal.number)
        for epoch, noise in enumerate((0.3, -0.1, 0.0)):
            study.report(proposal.number, epoch, score(dict(proposal.values)) + noise)
        if len(live) == 4:
            number = live.pop(number_of_turns := len(told) % 3)
            outcomes = [TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.FAIL]
            expected = outcomes[len(told) % 4]
            if expected == TrialState.PRUNED:
                told[number] = study.prune(number)
            elif expected == TrialState.COMPLETE:
                told[number] = study.complete(number, 0.1 * number_of_turns)
            else:
                told[number] = study.complete(number, math.nan) if len(told) % 4 == 2 else study.fail(number)
            assert told[number] == expected
    for number in live:
        told[number] = study.complete(number, 0.5)
    assert {t.number: t.state for t in study.trials} == told
    assert len(told) == 30


@pytest.mark.parametrize("tell", ["complete", "prune", "fail", "report", "trial"])
def test_an_unknown_number_is_refused(tell: str) -> None:
    study = SearchStudy(SPACE)
    study.ask()
    arguments = {"complete": (7, 0.5), "report": (7, 1, 0.5)}.get(tell, (7,))
    with pytest.raises(ValueError, match="no trial 7; the study holds 1"):
        getattr(study, tell)(*arguments)


def test_an_unknown_sampler_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown sampler 'tpa'\. Did you mean 'tpe'"):
        SearchStudy(SPACE, sampler="tpa")


def test_fewer_than_one_trial_is_refused() -> None:
    with pytest.raises(ValueError, match="trials: given 0; allowed: 1 or more"):
        SearchStudy(SPACE, trials=0)


@pytest.fixture
def optuna_lines() -> Iterator[list[str]]:
    """Collect Optuna's log lines at its default level."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.INFO)
    logging.getLogger("optuna").addHandler(handler)
    yield lines
    logging.getLogger("optuna").removeHandler(handler)
    optuna.logging.set_verbosity(before)


def test_a_search_is_quiet_and_leaves_optuna_s_verbosity_as_it_was(optuna_lines: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = SearchStudy(SPACE, trials=6)
        for number in range(12):
            study.complete(number, score(dict(study.ask().values)))
    assert optuna_lines == []
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


def past(study: SearchStudy) -> list[PastTrial]:
    """The trials of a study as a results store holds them, fixed values included."""
    names = {
        TrialState.COMPLETE: "completed",
        TrialState.PRUNED: "stopped",
        TrialState.FAIL: "failed",
        TrialState.RUNNING: "interrupted",
    }
    return [
        PastTrial(
            t.number,
            {**t.params, "weights": "released"},
            names[t.state],  # type: ignore[arg-type]
            t.intermediate_values,
            t.value if t.state == TrialState.COMPLETE else None,
        )
        for t in study.trials
    ]


def searched(count: int, seed: int = 5) -> SearchStudy:
    """A study with trials in every state; the last two are running."""
    study = SearchStudy(SPACE, seed=seed, trials=15)
    for number in range(count):
        values = dict(study.ask().values)
        study.report(number, 1, score(values) - 0.1)
        if number >= count - 2:
            continue
        if number % 5 == 3:
            study.fail(number)
        elif number % 5 == 4:
            study.prune(number)
        else:
            study.complete(number, score(values))
    return study


def test_a_restored_study_holds_the_same_trials() -> None:
    study = searched(20)
    again = SearchStudy(SPACE, seed=5, trials=15)
    again.restore(reversed(past(study)))
    for before, after in zip(study.trials, again.trials, strict=True):
        for part in ("number", "state", "params", "distributions", "values", "intermediate_values"):
            assert getattr(after, part) == getattr(before, part), part


def test_a_restored_search_goes_on_as_if_it_had_never_stopped() -> None:
    study = searched(20)
    again = SearchStudy(SPACE, seed=5, trials=15)
    again.restore(past(study))
    for one in (study, again):
        one.complete(18, 0.4)
        one.prune(19)
    earlier = [t.params for t in study.trials]
    for number in range(20, 24):
        proposal = study.ask()
        assert again.ask() == proposal
        assert study.trial(number).params not in earlier
        study.complete(number, score(dict(proposal.values)))
        again.complete(number, score(dict(proposal.values)))


def test_an_interrupted_trial_is_continued_and_told() -> None:
    again = SearchStudy(SPACE)
    again.restore([PastTrial(0, SPACE.defaults(), "interrupted", {1: 0.1})])
    again.report(0, 2, 0.2)
    assert again.complete(0, 0.3) == TrialState.COMPLETE
    assert again.trial(0).intermediate_values == {1: 0.1, 2: 0.2}
    assert again.trial(0).value == 0.3


def test_a_number_that_the_store_lost_is_proposed_again_first() -> None:
    study = searched(12)
    lost = {0, 7}
    again = SearchStudy(SPACE, seed=5, trials=15)
    again.restore(trial for trial in past(study) if trial.number not in lost)
    assert {t.number for t in again.trials} == set(range(12)) - lost
    assert again.ask().values == SPACE.defaults()
    assert [again.ask().number for _ in range(2)] == [7, 12]


@pytest.mark.parametrize(
    ("state", "value", "epochs"),
    [("completed", None, {}), ("completed", math.nan, {}), ("stopped", None, {1: 0.5, 2: math.nan})],
)
def test_a_stored_trial_without_a_usable_value_is_restored_as_fail(
    state: str, value: float | None, epochs: dict[int, float]
) -> None:
    again = SearchStudy(SPACE)
    again.restore([PastTrial(0, SPACE.defaults(), state, epochs, value)])  # type: ignore[arg-type]
    assert again.trial(0).state == TrialState.FAIL


def test_a_null_of_an_inactive_parameter_is_ignored() -> None:
    again = SearchStudy(SPACE)
    stored = {**SPACE.defaults(), "sigma2": None}
    again.restore([PastTrial(0, stored, "failed")])  # type: ignore[arg-type]
    assert "sigma2" not in again.trial(0).params


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ([PastTrial(0, {**SPACE.defaults(), "crop": 0.9}, "failed")], r"crop: given 0\.9; allowed: uniform"),
        (
            [PastTrial(0, {**SPACE.defaults(), "kernel": "rfb"}, "failed")],
            "kernel: given 'rfb'; allowed: choice",
        ),
        (
            [PastTrial(0, {**SPACE.defaults(), "sigma2": 3.0}, "failed")],
            "given sigma2; allowed with its values",
        ),
        (
            [PastTrial(3, {"kernel": "rbf"}, "failed")],
            "trial 3 does not fit the space: .*no value for sigma2",
        ),
        ([PastTrial(0, SPACE.defaults(), "done")], "unknown trial state 'done'"),  # type: ignore[arg-type]
        (
            [PastTrial(1, SPACE.defaults(), "failed")] * 2,
            r"given the trial numbers \[1, 1\]; allowed: each once",
        ),
        ([PastTrial(-1, SPACE.defaults(), "failed")], "allowed: each once, from 0"),
    ],
)
def test_trials_that_do_not_belong_are_refused(trials: list[PastTrial], message: str) -> None:
    study = SearchStudy(SPACE)
    with pytest.raises(ValueError, match=message):
        study.restore(trials)
    assert study.trials == []


def test_only_an_empty_study_is_restored() -> None:
    study = SearchStudy(SPACE)
    study.ask()
    with pytest.raises(ValueError, match="given a study with 1 trials; allowed: an empty one"):
        study.restore([])


def test_the_defaults_run_first_also_after_trials_of_earlier_studies() -> None:
    earlier = [PastTrial(number, SPACE.defaults(), "completed", value=0.5) for number in range(3)]
    proposal = SearchStudy(SPACE, earlier=earlier).ask()
    assert (proposal.number, proposal.values) == (0, SPACE.defaults())


def test_a_resumed_trial_that_is_stopped_at_a_value_that_is_not_finite_is_fail() -> None:
    study = SearchStudy(SPACE)
    study.restore([PastTrial(0, SPACE.defaults(), "running", {1: 0.5, 2: math.nan})])
    assert study.prune(0) == TrialState.FAIL


def test_a_short_search_draws_fewer_trials_at_random_first() -> None:
    assert [random_start(trials) for trials in (6, 24, 90)] == [5, 8, 10]
