"""What a report opens with: the best against its control and the defaults, the cost, the next command."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from contrasweep.tuning.reports.answer import TITLE, next_commands
from contrasweep.tuning.reports.sections import study_sections
from contrasweep.tuning.results.study import StudyData, read_study
from contrasweep.tuning.store import Heartbeat
from tests.studies import scored

DEFAULTS = {"kernel": "rbf", "sigma2": 100.0, "optimizer.lr": 0.1}


def opening(data: StudyData) -> tuple[str, Mapping[str, list[tuple[object, ...]]]]:
    """Return the text of the first section, and the rows of its tables by their titles."""
    first = study_sections(data)[0]
    assert first.title == TITLE
    return first.text, {table.title: [tuple(row) for row in table.rows] for table in first.tables}


def test_the_best_beside_the_defaults_and_the_untrained_encoder(write_study, store) -> None:
    write_study([scored([0.5, 0.7], values=DEFAULTS), scored([0.5, 0.8]), scored([0.5, 0.9], "stopped")])
    text, tables = opening(read_study(store, "demo"))
    assert "trial 1 is the best of 2 completed: val.accuracy 0.8, 0.3 above its encoder before" in text
    assert "The defaults (trial 0) have 0.7; the best is 0.1 above them." in text
    assert "one seed, which cannot tell how much of a difference is chance" in text
    assert "interval" not in text
    assert tables["The best, and what it has to beat"] == [
        ("best: trial 1", "0.8"),
        ("defaults: trial 0", "0.7"),
        ("untrained encoder", "0.5"),
    ]
    assert tables["The configuration of trial 1"] == [
        ("kernel", "cosine", "rbf"),
        ("sigma2", "-", "100"),
        ("optimizer.lr", "0.1", "0.1"),
    ]


def test_the_noise_of_the_validation_split_says_which_trials_tie(write_study, store) -> None:
    # 1.96 sqrt(0.8 * 0.2 / 100) = 0.0784: 0.75 ties with 0.8, and 0.7 does not.
    trials = [scored([0.5, 0.8]), scored([0.5, 0.7]), scored([0.5, 0.75])]
    write_study(trials, "some", search={"validation_images": 100})
    write_study(trials, "large", search={"validation_images": 10_000})
    write_study(trials, "unknown")
    told = {name: opening(read_study(store, name))[0] for name in ("some", "large", "unknown")}
    assert "Trial 2 ties with the best: within 0.078, the noise of 100 validation images." in told["some"]
    assert "No other completed trial comes within 0.0078, the noise of 10,000" in told["large"]
    assert "the noise of" not in told["unknown"]


def test_several_seeds_give_intervals_seed_by_seed(write_study, store) -> None:
    runs = [scored([0.5, 0.70 + seed / 100], values=DEFAULTS, trial=0, seed=seed) for seed in range(3)] + [
        scored([0.5, 0.72 + 2 * seed / 100], trial=1, seed=seed) for seed in range(3)
    ]
    write_study(runs, search={"seeds": 3, "trials": 2})
    text, tables = opening(read_study(store, "demo"))
    # Differences 0.02, 0.03, 0.04: mean 0.03, s = 0.01, t(0.975, 2) = 4.303, half width 0.0248.
    assert "the best is 0.03 above them (95 % interval of the difference: 0.005159 to 0.05484)." in text
    assert "Each trial ran with 3 seeds" in text
    assert tables["The best, and what it has to beat"][0] == ("best: trial 1", "0.740 ± 0.020")


def test_the_defaults_may_be_the_best_may_not_have_ended_or_may_not_have_run(write_study, store) -> None:
    write_study([scored([0.5, 0.9], values=DEFAULTS), scored([0.5, 0.8])], "best")
    write_study([scored([0.5, 0.6], "stopped", values=DEFAULTS), scored([0.5, 0.8])], "stopped")
    write_study([scored([0.5, 0.8])], "none")
    told = {name: opening(read_study(store, name))[0] for name in ("best", "stopped", "none")}
    assert "It ran the defaults: no other completed trial scored better." in told["best"]
    assert "The defaults (trial 0, stopped) have no final score." in told["stopped"]
    assert "No trial ran the defaults." in told["none"]


def test_equal_scores_are_level(write_study, store) -> None:
    write_study([scored([0.7, 0.7]), scored([0.5, 0.7], values=DEFAULTS)])
    text, _ = opening(read_study(store, "demo"))
    assert "val.accuracy 0.7, level with its encoder before training." in text
    assert "The defaults (trial 1) have 0.7; the best is level with them." in text


def test_training_that_lost_is_below(write_study, store) -> None:
    write_study([scored([0.75, 0.5])])
    assert (
        "val.accuracy 0.5, 0.25 below its encoder before training." in opening(read_study(store, "demo"))[0]
    )


def test_a_search_that_found_a_better_trial_after_its_final_runs_leads_to_new_ones(
    write_study, write_final, store, location
) -> None:
    write_study([scored([0.5, 0.6]), scored([0.5, 0.8])])
    write_final([(0.6, 0.5)] * 3)
    with Heartbeat(location, "demo", interval=3600):
        pass
    data = read_study(store, "demo")
    text, tables = opening(data)
    assert text.startswith("On the test split, trial 0 reaches 0.6 ± 0 over 3 fresh seeds")
    assert "The best of the search is trial 1 now; it has no final run." in text
    assert any(command.startswith("contrasweep run demo --seeds 5") for command in next_commands(data))
    assert tables["The best, and what it has to beat"][0] == ("best: trial 1", "0.8")


def test_two_seeds_have_no_interval(write_study, store) -> None:
    write_study([scored([0.5, 0.7 + seed / 10], trial=0, seed=seed) for seed in (0, 1)], search={"seeds": 2})
    text, _ = opening(read_study(store, "demo"))
    assert "Each trial ran with 2 seeds, too few for an interval of a difference." in text
    assert "the intervals are over these" not in text
    assert "interval of the difference" not in text


def test_defaults_that_break_a_condition_are_no_bar(write_study, store) -> None:
    keep = {"keep": [{"metric": "val.colour_mse", "comparison": ">=", "bound": 200.0}]}
    high, low = scored([0.5, 0.9], values=DEFAULTS, colour=10.0), scored([0.5, 0.8], colour=300.0)
    write_study([high, low], "broken", search=keep)
    text, tables = opening(read_study(store, "broken"))
    told = "The defaults (trial 0) have 0.9, but break a condition of the search (val.colour_mse >= 200)."
    assert told in text
    assert tables["The best, and what it has to beat"][1] == ("defaults: trial 0, breaks --keep", "0.9")
    kept = [replace(low, values=DEFAULTS), replace(high, values=low.values)]
    write_study(kept, "kept", search=keep)
    assert (
        "It ran the defaults: no other completed trial that keeps val.colour_mse >= 200 scored better."
        in opening(read_study(store, "kept"))[0]
    )


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([(0.9, 0.8)], "on one fresh seed (accuracy), against 0.8 before training. Too few to tell: 1 seed."),
        (
            [(0.90, 0.80), (0.93, 0.82), (0.96, 0.84)],
            # Differences 0.10, 0.11, 0.12.
            "0.930 ± 0.030 over 3 fresh seeds (accuracy), against 0.820 ± 0.020 before training. "
            "Training adds 0.11 (95 % interval, seed by seed: 0.08516 to 0.1348).",
        ),
        ([(0.9, 0.8), (0.8, 0.8), (0.9, 0.8)], ", which may be nothing."),
        ([(0.7, 0.8), (0.8, 0.81), (0.7, 0.8)], "Training did not beat the untrained encoder: -0.07"),
    ],
)
def test_final_runs_come_first_and_say_how_sure_they_are(
    write_study, write_final, store, scores, told
) -> None:
    write_study([scored()])
    write_final(scores)
    text, tables = opening(read_study(store, "demo"))
    assert told in text.split("\n\n")[0]
    best, untrained = tables["The best, and what it has to beat"]
    assert best[0] == "best: trial 0"
    assert len(best) == len(untrained) == 3


def test_what_was_spent(write_study, store) -> None:
    write_study([scored(), scored()], search={"trials": 4})
    text, _ = opening(read_study(store, "demo"))
    # Trials of two epochs start 10 s after one another and take 8 s.
    spent = "2 of 4 trials, 4 epochs of training, 16.0 s in trials, 16.0 s by the clock without pauses."
    assert f"Spent: {spent}" in text


def test_the_next_command_fits_where_the_study_stands(write_study, write_final, store, location) -> None:
    where = f" --results {location.uri}"

    def then(name: str) -> list[str]:
        return [
            line.replace(where, "").removeprefix("contrasweep ")
            for line in next_commands(read_study(store, name))
        ]

    write_study([scored(), scored([0.5, 0.9])], "cut-off")
    assert then("cut-off") == ["sweep fair-cclk --name cut-off --resume", "best cut-off -o best.yaml"]
    write_study([scored(status="running")], "running")
    with Heartbeat(location, "running", interval=3600):
        assert then("running") == ["report running --watch 10"]
    for name, trials in (("failed", [scored([], "failed")]), ("ended", [scored(), scored([0.5, 0.6])])):
        write_study(trials, name)
        with Heartbeat(location, name, interval=3600):
            pass
    assert then("failed") == ["show failed"]
    assert then("ended") == ["best ended -o best.yaml", "run ended --seeds 5"]
    write_final([(0.9, 0.8)] * 3, of="ended")
    assert then("ended") == ["best ended -o best.yaml", "sensitivity ended"]


def test_before_the_first_trial_has_completed_there_is_no_best(write_study, store) -> None:
    write_study([])
    text, tables = opening(read_study(store, "demo"))
    assert "No trial has completed yet: there is no best configuration." in text
    assert tables == {}
