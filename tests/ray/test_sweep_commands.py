"""The command line on the study of a real sweep: more trials, and final runs of several sources."""

import inspect
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from studies import TRIALS
from typer.testing import CliRunner

import contrasweep
import contrasweep.tuning.planning.final_plan as final_plan
import contrasweep.tuning.ray.final as finals
import contrasweep.tuning.ray.sweep as sweeping
from contrasweep.data import DatasetMissing
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.options import SweepOptions
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.resources import Machine
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.sweep import resume_sweep
from contrasweep.tuning.store import ResultsStore

Run = Callable[..., Any]


@pytest.fixture
def run(
    finished: tuple[Path, list[SweepProgress]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_process: None,
) -> Callable[..., Any]:
    """Run a command where `results` holds the finished study; return what it printed as JSON."""
    shutil.copytree(finished[0], tmp_path / "results")
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> Any:
        done = CliRunner().invoke(app, [*arguments, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return invoke


def test_extend_adds_trials_under_other_limits(run: Run) -> None:
    limits = ("--max-failures", "0", "--trial-timeout", "100000")
    done = run("sweep", "fair-cclk", "--name", "small", "--extend", "1", *limits)
    assert sum(done["counts"].values()) == TRIALS + 1
    assert len(ResultsStore("results").trials("small")) == TRIALS + 1


def test_a_sweep_from_python_takes_what_makes_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[SweepPlan] = []
    monkeypatch.setattr(sweeping, "_run", lambda plan, *_: plans.append(plan))
    contrasweep.sweep("fair-cclk", "colour-digits", trials=3, epochs=2, results=tmp_path, name="python")
    assert (plans[0].search.trials, plans[0].experiment.epochs, plans[0].name) == (3, 2, "python")
    of_plan = inspect.signature(contrasweep.plan_sweep).parameters
    assert [*inspect.signature(contrasweep.sweep).parameters] == [*of_plan, "progress"]
    options = {name: one.annotation for name, one in of_plan.items() if one.kind is one.KEYWORD_ONLY}
    assert get_type_hints(SweepOptions) == options
    with pytest.raises(TypeError, match="trails"):
        contrasweep.sweep("fair-cclk", "colour-digits", trails=3)  # type: ignore[call-arg]


def test_final_runs_of_an_earlier_version_are_refused_before_they_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = BestConfig("old", 0, {}, resolve("fairkl", "biased-digits"))
    with monkeypatch.context() as before:
        before.setattr(final_plan, "final_metrics", lambda *_: ("test.accuracy", "train.loss"))
        before.setattr(finals, "run_all", lambda *_: iter(()))
        with pytest.raises(SweepFailed):
            finals.final_runs([config], results=tmp_path)
    monkeypatch.setattr(finals, "run_all", lambda *_: pytest.fail("nothing may start"))
    with pytest.raises(InputError, match=r"old-final cannot go on: fairkl now reports .*regulariser_dropped"):
        finals.final_runs([config], results=tmp_path)


def test_a_resumed_sweep_keeps_the_limits_that_are_not_given(
    finished: tuple[Path, list[SweepProgress]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[SweepPlan] = []
    monkeypatch.setattr(sweeping, "_run", lambda plan, *_: plans.append(plan))
    record = ResultsStore(finished[0]).study("small")
    recorded = record.with_search(max_failures=5, trial_timeout=600.0)
    monkeypatch.setattr(ResultsStore, "study", lambda *_: recorded)
    resume_sweep("small", finished[0], max_failures=3)
    resume_sweep("small", finished[0], trial_timeout=60.0)
    limits = [(plan.search.max_failures, plan.search.trial_timeout) for plan in plans]
    assert limits == [(3, 600.0), (5, 60.0)]


def test_a_sweep_is_not_resumed_where_its_trials_could_only_fail(
    finished: tuple[Path, list[SweepProgress]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(dataset: str, root: Path | None) -> None:
        raise DatasetMissing(f"{dataset} is not in {root}")

    monkeypatch.setattr(sweeping, "_run", lambda *_: pytest.fail("it runs"))
    with monkeypatch.context() as without:
        without.setattr(sweeping, "check_available", missing)
        with pytest.raises(DatasetMissing, match="typo"):
            resume_sweep("small", finished[0], data_root=Path("typo"))
    batch = ResultsStore(finished[0]).study("small").experiment.batch_size
    workers = next(n for n in range(2, 100) if batch % n)
    with pytest.raises(InputError, match="does not divide"):
        resume_sweep("small", finished[0], workers=workers, machine=Machine((1000,), address="head:6379"))


def test_what_goes_on_is_not_extended_again_nor_given_other_cores(
    run: Run, finished: tuple[Path, list[SweepProgress]]
) -> None:
    for options, message in (
        (["--extend", "2"], "give --resume or --extend"),
        (["--cpus-per-trial", "7"], "cpus was 1, is 7"),
    ):
        done = CliRunner().invoke(app, ["sweep", "fair-cclk", "--name", "small", "--resume", *options])
        assert done.exit_code == 2, done.output
        assert message in " ".join(done.output.split())


def test_final_runs_of_several_sources_share_their_seeds(run: Run) -> None:
    shown = run("best", "small", "--top", "3", "-o", "best.yaml")
    bound = sorted(row["val.accuracy"] for row in shown)[1]
    taken = [row["trial"] for row in shown if row["val.accuracy"] >= bound][:2]
    other = yaml.safe_load(Path("best.yaml").read_text()) | {"study": "other"}
    Path("other.yaml").write_text(yaml.safe_dump(other))

    condition = f"val.accuracy>={bound!r}"
    done = run("run", "small", "--top", "2", "--where", condition, "--seeds", "1", "--concurrency", "1")
    rows = ResultsStore("results").trials("small-final").to_pylist()
    assert sorted((row["trial"], row["seed"]) for row in rows) == sorted((trial, 1) for trial in taken)
    assert done["studies"] == [{"study": "small-final", "failed": 0}]
    assert CliRunner().invoke(app, ["best", "small-final"]).exit_code == 2

    both = run("run", "small", "other.yaml", "--seeds", "2", "--concurrency", "1")
    assert [one["study"] for one in both["studies"]] == ["small-final", "other-final"]
    for study in ("small-final", "other-final"):
        held = ResultsStore("results").trials(study).to_pylist()
        assert [row["seed"] for row in held if row["trial"] == taken[0]] == [1, 2]
    # The same configuration on the same seeds, under two names.
    (difference,) = [row for row in both["differences"] if "untrained" not in row["reference"]]
    assert difference["difference"]["mean"] == 0
    assert difference["difference"]["n"] == 2

    # All of it is in the store now; the first encoder is compared with the other one and the untrained.
    again = CliRunner().invoke(app, ["run", "small", "other.yaml", "--seeds", "2", "--concurrency", "1"])
    assert again.exit_code == 0, again.output
    assert "Nothing was left to train: the store held all 4 runs." in again.stderr
    first = both["rows"][0]["encoder"]
    assert f"{first} minus each baseline, seed by seed" in again.stderr
    columns = [line.split("\t") for line in again.stdout.splitlines() if "\t" in line]
    assert columns[0][2] == "95 % interval"
    assert [line[0] for line in columns if line[0].startswith("untrained")] == ["untrained"] * 2
    # Two seeds are too few for p values that are corrected.
    assert ["baseline", "difference", "95 % interval", "n", "p"] in columns


def test_the_rows_of_an_ablation_share_their_seeds(run: Run) -> None:
    options = ["--ablate", "temperature=0.123", "--seeds", "1", "--concurrency", "1"]
    done = run("run", "small", *options)
    assert [one["study"] for one in done["studies"]] == ["small-final", "small-with-temperature-0.123-final"]
    full, without = (ResultsStore("results").trials(one["study"]).to_pylist() for one in done["studies"])
    assert [(row["trial"], row["seed"]) for row in without] == [(row["trial"], row["seed"]) for row in full]
    assert [row["hp.temperature"] for row in without] == [0.123]
    assert len(done["differences"]) == 2
    labels = ["--label", "full", "--label", "temperature 0.123", "-o", "runs.csv"]
    named = run("run", "small", *options, *labels)
    assert [row["encoder"] for row in named["rows"]] == ["full", "temperature 0.123", "untrained"]
    assert named["rows"][1]["scores"] == done["rows"][1]["scores"]
    lines = Path("runs.csv").read_text().splitlines()[1:]
    assert {line.split(",")[0] for line in lines} == {"full", "temperature 0.123", "untrained"}
    again = CliRunner().invoke(app, ["run", "small", *options])
    assert "Nothing was left to train: the store held all 2 runs." in again.stderr


def test_a_condition_does_not_go_with_a_file(run: Run) -> None:
    run("best", "small", "-o", "best.yaml")
    refused = CliRunner().invoke(app, ["run", "best.yaml", "--where", "accuracy>=0.5"])
    assert refused.exit_code == 2
    assert "--where goes with a study; best.yaml holds one configuration" in refused.output
