"""`contrasweep stability`: from stored studies to its tables and pages, and what it refuses."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.planning.best_config import load_best
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.stability.scored_pool import read_scored_pools
from contrasweep.tuning.store import ResultsStore
from tests.studies import SPACE, PlannedStudy, Run, WrittenStudy, make_record, scored

METRICS = ("val.ridge_accuracy", "val.accuracy", "val.report_accuracy")
COUNT = 10


def call(folder: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["stability", *words, "--results", str(folder)])
    return done.exit_code, " ".join(done.output.split())


def run(place: int, gain: float, status: str = "completed", **values: Any) -> Run:
    """A trial whose report score is a tenth below the score that selects."""
    score = 0.6 + gain + place / 100
    both = {"val.accuracy": score, "val.report_accuracy": score - 0.1}
    before = {"val.accuracy": 0.5, "val.report_accuracy": 0.45}
    given = {"kernel": "cosine", "optimizer.lr": 0.01 * (place + 1), **values}
    curve = {0: before, 1: both if status == "completed" else {}}
    return Run(values=given, curve=curve, status=status, final=both if status == "completed" else {})


DEFAULTS = Run(
    values={"kernel": "rbf", "sigma2": 100.0, "optimizer.lr": 0.1},
    curve={0: {"val.accuracy": 0.5}, 1: {"val.accuracy": 1.0}},
    final={"val.accuracy": 1.0, "val.report_accuracy": 1.0},
)


def write(
    folder: Path, method: str, gain: float, *others: Run, name: str = "", seed: int = 0, **fields: Any
) -> None:
    """Write a study whose defaults would win, were they not left out, and ten trials."""
    fields["search"] = {"sampler": "random", **fields.get("search", {})}
    record = make_record(name or method, space=SPACE, metrics=METRICS, method=method, **fields)
    runs = (DEFAULTS, *(run(place, gain) for place in range(COUNT)), *others)
    WrittenStudy(folder, record).write(*(replace(one, seed=seed) for one in runs))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies that can be compared, and others that cannot, or not so easily."""
    folder = tmp_path_factory.mktemp("results")
    write(folder, "fair-cclk", 0.2)
    write(folder, "infonce", 0.0)
    write(folder, "infonce", 0.05, name="infonce-again", seed=1)
    write(folder, "infonce", 0.05, name="infonce-copy")
    write(folder, "infonce", 0.0, name="infonce-longer", seed=1, experiment={"epochs": 3})
    write(folder, "infonce", 0.0, name="infonce-found", search={"sampler": "tpe", "trials": COUNT + 1})
    keep = [{"metric": "val.report_accuracy", "comparison": ">=", "bound": 0.5}]
    write(folder, "barlow-twins", 0.0, search={"keep": keep})
    write(folder, "supcon", 0.0, run(COUNT, 0.0, "failed"))
    write(folder, "stopped", 0.0, run(COUNT, 0.0, "stopped"))
    write(folder, "elsewhere", 0.0, dataset="digits")
    held = WrittenStudy(folder, make_record("whole", method="simsiam"))
    held.write(*(scored(values={"kernel": "cosine", "optimizer.lr": 0.01 * n}) for n in range(1, 10)))
    WrittenStudy(folder, make_record("short", metrics=METRICS, method="byol")).write(DEFAULTS, run(0, 0.0))
    return folder


def test_a_claim_is_judged_from_stored_trials(stored: Path) -> None:
    done = CliRunner().invoke(
        app, ["stability", "fair-cclk", "infonce", "--json", "--results", str(stored), "--budgets", "1,4,all"]
    )
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["paired"]
    assert content["budgets"] == [1, 4, COUNT]
    claim = content["claims"][0]
    assert claim["claim"] == "fair-cclk > infonce"
    assert claim["stable_from"] == 1
    study = content["studies"][1]
    assert study["configurations"] == COUNT
    assert study["report_metric"] == "val.report_accuracy"
    assert study["untrained"] == pytest.approx(0.45)
    assert study["score"]["value"][-1] == pytest.approx(0.59)


def test_pages_and_pool_files_are_written(stored: Path, tmp_path: Path) -> None:
    code, told = call(stored, "fair-cclk", "infonce", "-o", str(tmp_path / "page.md"), "--subsets", "100")
    assert code == 0, told
    assert "they agree trial by trial in optimizer.lr" in told
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| fair-cclk > infonce | 100 | 100 | 100 | 100 | 100 | 100 | 1 |" in text
    assert (tmp_path / "page.png").stat().st_size > 1000
    pools = tmp_path / "pools.parquet"
    assert call(stored, "fair-cclk", "infonce", "-o", str(pools))[0] == 0
    code, told = call(stored, str(pools), "-o", str(tmp_path / "page.html"))
    assert code == 0, told
    assert "fair-cclk &gt; infonce" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_second_seeds_split_the_variance(stored: Path) -> None:
    done = CliRunner().invoke(
        app,
        ["stability", "fair-cclk", "infonce", "--again", "infonce-again", "--json", "--results", str(stored)],
    )
    assert done.exit_code == 0, done.output
    first, second = json.loads(done.stdout)["studies"]
    assert first["variance"] is None
    assert second["variance"]["seed"][0] == pytest.approx(0.05**2 / 2)
    assert second["variance"]["rest"][0] == pytest.approx(0, abs=1e-12)
    code, told = call(stored, "fair-cclk", "infonce", "--again", "infonce-again")
    assert code == 0, told
    assert "search, % of the variance" in told


def test_budgets_are_of_the_trials_that_paired_studies_share(tmp_path: Path) -> None:
    """Of ten configurations each, one has not ended here and another there: nine are left."""
    pools = {"fair-cclk": 3, "infonce": 5, "supcon": 5}
    for method, open_one in pools.items():
        ran = [run(place, 0.0, "running" if place == open_one else "completed") for place in range(COUNT)]
        record = make_record(method, space=SPACE, metrics=METRICS, method=method)
        WrittenStudy(tmp_path, record).write(DEFAULTS, *ran)
    done = CliRunner().invoke(app, ["stability", *pools, "--json", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["budgets"] == [1, 2, 4, 8]
    assert content["claims"][0]["above"]["value"][-1] == 0.0
    assert content["ranking"]["subsets"] == 10_000
    code, told = call(tmp_path, "fair-cclk", "infonce", "--budgets", "9")
    assert code == 2
    assert "given 9; allowed: 1 to 8" in told


def test_failed_trials_count_as_the_worst(stored: Path) -> None:
    code, told = call(stored, "supcon", "infonce")
    assert code == 0, told
    assert "supcon: 1 failed trial counted with the scores of the worst completed one." in told
    (read,) = read_scored_pools(ResultsStore(stored), ["supcon"])
    assert (read.select[-1], read.report[-1]) == pytest.approx((0.6, 0.5))
    assert (read.select.min(), read.report.min()) == (read.select[-1], read.report[-1])


def test_studies_of_other_lengths_and_of_samplers_that_learn_are_warned_of(
    stored: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    code, told = call(stored, "fair-cclk", "infonce-longer", "infonce-found", "-o", str(page))
    assert code == 0, told
    text = page.read_text(encoding="utf-8")
    for warning in (
        "n infonce-found, tpe may have proposed trials from the scores of others",
        "he studies differ in the epochs of a trial: fair-cclk 2, infonce-longer 3, infonce-found 2",
    ):
        assert warning in told
        assert warning in text
    code, told = call(stored, "fair-cclk", "infonce")
    assert code == 0
    assert "proposed" not in told
    assert "differ" not in told
    pools = tmp_path / "pools.parquet"
    assert call(stored, "fair-cclk", "infonce-longer", "-o", str(pools))[0] == 0
    assert "infonce-longer 3" in call(stored, str(pools))[1]


def test_two_studies_of_one_method_have_other_seeds_of_their_own(stored: Path, tmp_path: Path) -> None:
    write(tmp_path, "infonce", 0.0)
    write(tmp_path, "infonce", 0.1, name="again", seed=1)
    write(tmp_path, "infonce", 0.2, name="longer", experiment={"epochs": 3})
    write(
        tmp_path,
        "infonce",
        0.3,
        name="longer-again",
        seed=1,
        experiment={"epochs": 3, "probes": {"at_epochs": [1]}},
    )
    first, second = read_scored_pools(
        ResultsStore(tmp_path), ["infonce", "longer"], ["again", "longer-again"]
    )
    assert first.again[:, 0] == pytest.approx([0.6])
    assert second.again[:, 0] == pytest.approx([0.8])


def test_a_sampler_that_is_not_installed_may_have_learned(tmp_path: Path) -> None:
    for method in ("fair-cclk", "infonce"):
        write(tmp_path, method, 0.0, search={"sampler": "absent-sampler"})
    code, told = call(tmp_path, "fair-cclk", "infonce")
    assert code == 0, told
    assert "in infonce, absent-sampler may have proposed trials" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("fair-cclk", "infonce", "--claim", "fair-cclkk > infonce"), "Did you mean 'fair-cclk'?"),
        (("fair-cclk", "infonce", "--claim", "fair-cclk"), "allowed: A > B"),
        (("fair-cclk", "infonce", "--claim", "infonce > infonce"), "two different studies"),
        (("fair-cclk", "infonce", "--budgets", "1,11"), "given 11; allowed: 1 to 10"),
        (("fair-cclk", "infonce", "--subsets", "10"), "subsets must be at least 100"),
        (("fair-cclk", "infonce", "-o", "page.pdf"), "give a file that ends in"),
        (("fair-cclk",), "give a study of each, two or more"),
        (("fair-cclk", "absent"), "absent"),
        (("fair-cclk", "stopped"), "1 of its trials were stopped early"),
        (("fair-cclk", "elsewhere"), "the dataset of elsewhere is digits"),
        (("fair-cclk", "whole"), "the reported score of whole is val.accuracy"),
        (("fair-cclk", "short"), "1 trials besides the defaults have ended, and 8 are needed"),
        (("fair-cclk", "infonce", "--again", "supcon"), "it shares no configuration with fair-cclk, infonce"),
        (("fair-cclk", "infonce", "--again", "infonce"), "it trained on seed 0, as infonce did"),
        (("fair-cclk", "infonce", "--again", "infonce-copy"), "it trained on seed 0, as infonce did"),
        (
            ("fair-cclk", "infonce", "--again", "infonce-longer"),
            "it differs from infonce in more than `seed`: epochs is 3 there, 2 in infonce",
        ),
        (
            ("fair-cclk", "infonce", "--again", "infonce-again", "--again", "infonce-again"),
            "each study of --again once",
        ),
        (("fair-cclk", "barlow-twins"), "searched with --keep 'val.report_accuracy >= 0.5'"),
        (("absent.parquet",), "there is no such file"),
        (("pools.parquet", "infonce"), "give it alone"),
        (
            ("fair-cclk", "infonce", "-o", "pools.parquet", "--budgets", "2", "--choices", "choices"),
            "-o pools.parquet only writes the trials: leave out --budgets, --choices",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(stored: Path, words: tuple[str, ...], told: str) -> None:
    code, output = call(stored, *words)
    assert code == 2
    assert told in output


def test_what_the_first_trials_choose_is_written_for_final_runs(tmp_path: Path) -> None:
    for method in ("fair-cclk", "infonce"):
        plan = plan_sweep(
            method, "colour-digits", epochs=1, results=tmp_path, name=method, scheduler="none",
            values={"validation.halves": True},
        )  # fmt: skip
        held = PlannedStudy(plan)
        runs = (run((place - 1) % 7, 0.0, "completed" if place else "failed") for place in range(9))
        held.write(
            *(replace(one, values={"optimizer.lr": 0.02 + place / 99}) for place, one in enumerate(runs))
        )
    folder = tmp_path / "choices"
    code, told = call(tmp_path, "fair-cclk", "infonce", "--budgets", "1,4", "--choices", str(folder))
    assert code == 2
    assert "no trial among the first 1 of fair-cclk has completed" in told
    assert not folder.exists()
    code, told = call(tmp_path, "fair-cclk", "infonce", "--budgets", "4,all", "--choices", str(folder))
    assert code == 0, told
    assert sorted(path.name for path in folder.iterdir()) == [
        "fair-cclk-4.yaml", "fair-cclk-9.yaml", "infonce-4.yaml", "infonce-9.yaml",
    ]  # fmt: skip
    # The first trial failed and counts as the worst one, which it must not stand for.
    code, _ = call(tmp_path, "fair-cclk", "infonce", "--budgets", "2", "--choices", str(folder))
    assert code == 0
    assert load_best(folder / "infonce-2.yaml").trial == 1
    assert load_best(folder / "infonce-4.yaml").trial == 3
    assert load_best(folder / "infonce-9.yaml").trial == 7


def test_a_trial_may_be_chosen_that_only_other_trials_of_its_study_beat(tmp_path: Path) -> None:
    """Eight trials ended in both studies; in one of them five better ones did too."""
    for method, running in (("fair-cclk", ()), ("infonce", range(8, 13))):
        plan = plan_sweep(
            method, "colour-digits", epochs=1, results=tmp_path, name=method, scheduler="none",
            values={"validation.halves": True},
        )  # fmt: skip
        runs = [run(place, 0.0, "running" if place in running else "completed") for place in range(13)]
        PlannedStudy(plan).write(
            *(replace(one, values={"optimizer.lr": 0.02 + place / 99}) for place, one in enumerate(runs))
        )
    folder = tmp_path / "choices"
    code, told = call(tmp_path, "fair-cclk", "infonce", "--budgets", "1", "--choices", str(folder))
    assert code == 0, told
    assert {load_best(path).trial for path in folder.iterdir()} == {0}


def test_encoders_that_begin_differently_have_no_common_untrained_score(tmp_path: Path) -> None:
    """Every second trial has another network."""
    for method in ("fair-cclk", "infonce"):
        runs = [run(place, 0.0) for place in range(COUNT)]
        if method == "infonce":
            before = {"val.accuracy": 0.8, "val.report_accuracy": 0.75}
            runs = [
                replace(one, curve=one.curve | {0: before}) if n % 2 else one for n, one in enumerate(runs)
            ]
        record = make_record(method, space=SPACE, metrics=METRICS, method=method)
        WrittenStudy(tmp_path, record).write(DEFAULTS, *runs)
    alike, mixed = read_scored_pools(ResultsStore(tmp_path), ["fair-cclk", "infonce"])
    assert alike.untrained == pytest.approx(0.45)
    assert math.isnan(mixed.untrained)
