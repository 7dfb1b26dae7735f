"""Which trials final runs take, and where they look for their dataset: the command as Python."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import contrasweep.tuning.ray.final_driver as driver
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.planning.final_plan import plan_final_runs
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.planning.selected import selected_of
from contrasweep.tuning.progress.states import RunsProgress
from contrasweep.tuning.ray.final import final_runs, run_plans
from contrasweep.tuning.store import save_study
from contrasweep.tuning.trials.trial import TrialReport, TrialRequest, end_from_outside
from tests.studies import STUDY, PlannedStudy, Run, scored, small_plan, write_run

FILE = "best.yaml"


def by_command(source: str, *options: str) -> None:
    done = CliRunner().invoke(app, ["run", source, "--seeds", "1", "--concurrency", "1", *options])
    assert done.exit_code == 0, done.output


def by_python(source: str) -> None:
    final_runs(source, seeds=1, concurrency=1, progress=False)


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlannedStudy:
    """A search whose datasets are in `searched`, and the file of its best trial; we are in their folder."""
    monkeypatch.chdir(tmp_path)
    for folder in ("searched", "here", "given"):
        Path(folder).mkdir()
    monkeypatch.setenv("CONTRASWEEP_DATA", "here")
    study = PlannedStudy(small_plan(tmp_path / "results", data_root=tmp_path / "searched"))
    study.write(scored((0.5, 0.6, 0.7)))
    assert CliRunner().invoke(app, ["best", STUDY, "-o", FILE]).exit_code == 0
    return study


@pytest.fixture
def looked(searched: PlannedStudy, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of the datasets of the final runs; nothing is trained."""
    folders: list[str] = []

    def run_one(request: TrialRequest, tell: object = None) -> TrialReport:
        experiment = request.experiment
        scores = {name: 0.5 for name in request.study.columns.metrics if name.startswith("test.")}
        run = Run(request.trial, experiment.seed, request.values, final=scores, phase="final")
        write_run(request.location, request.study, replace(run, config=experiment.identity()))
        folders.append("" if request.data_root is None else request.data_root.name)
        return TrialReport(experiment.epochs, scores, 1.0, finished=True)

    monkeypatch.setattr(driver, "run_one", run_one)
    return folders


@pytest.mark.parametrize("source", [STUDY, FILE])
@pytest.mark.parametrize("run", [by_command, by_python])
def test_the_folder_of_the_search_is_remembered(
    run: Callable[[str], None], source: str, looked: list[str]
) -> None:
    run(source)
    assert looked == ["searched"]


@pytest.mark.parametrize("source", [STUDY, FILE])
def test_a_given_folder_wins(source: str, looked: list[str]) -> None:
    by_command(source, "--data-root", "given")
    assert looked == ["given"]


@pytest.mark.parametrize("change", [{"study": "elsewhere"}, {"dataset": "colour-digits:test_images=50"}])
def test_a_file_of_a_search_that_is_not_here_takes_the_folder_of_this_shell(
    change: dict[str, str], looked: list[str]
) -> None:
    content = yaml.safe_load(Path(FILE).read_text())
    changed = content["experiment"] if "dataset" in change else content
    changed |= change
    Path(FILE).write_text(yaml.safe_dump(content))
    by_command(FILE)
    assert looked == ["here"]


def test_a_study_whose_plugin_is_absent_is_refused_in_python_as_by_the_command(
    searched: PlannedStudy,
) -> None:
    versions = {"my-plugin": "1", "my-plugin source": "a", "my-plugin adds": "method mine"}
    experiment = searched.record.experiment.model_copy(update={"method": "mine"})
    update = {"method": "mine", "experiment": experiment, "versions": versions}
    save_study(searched.location, searched.record.model_copy(update=update), replace=True)
    told = f"study {STUDY}: method 'mine' comes from the plug-in my-plugin 1"
    with pytest.raises(InputError, match=told):
        by_python(STUDY)
    done = CliRunner().invoke(app, ["run", STUDY])
    assert (done.exit_code, told in " ".join(done.output.split())) == (2, True)


def test_runs_of_several_studies_go_on_together(looked: list[str]) -> None:
    content = yaml.safe_load(Path(FILE).read_text())
    Path("other.yaml").write_text(yaml.safe_dump({**content, "study": "other"}))
    seen: list[RunsProgress] = []
    resources = AskedResources(1, 1).resources()
    plans = plan_final_runs([FILE, "other.yaml"], resources, seeds=2)
    done = run_plans(plans, resources, seen.append)
    assert [one.study for one in done] == [f"{STUDY}-final", "other-final"]
    assert [len(one.rows) for one in done] == [2, 2]
    assert {one.planned for one in seen} == {4}
    assert max(one.done for one in seen) == 4
    trial, first = content["trial"], plans[0].requests[0].experiment.seed
    runs = [(seed, study) for study in (STUDY, "other") for seed in (first, first + 1)]
    names = [f"trial {trial}, seed {seed} of {study}" for seed, study in runs]
    assert list(dict.fromkeys(name for one in seen for name in one.running)) == names


def test_nothing_is_trained_if_one_of_several_studies_is_refused(looked: list[str]) -> None:
    by_command(FILE)
    content = yaml.safe_load(Path(FILE).read_text())
    content["experiment"]["optimizer"]["momentum"] = 0.123
    Path("changed.yaml").write_text(yaml.safe_dump(content))
    Path("new.yaml").write_text(yaml.safe_dump({**content, "study": "new"}))
    looked.clear()
    for sources in (["new.yaml", "changed.yaml"], ["changed.yaml", "new.yaml"]):
        done = CliRunner().invoke(app, ["run", *sources, "--seeds", "1", "--concurrency", "1"])
        assert done.exit_code == 2
        assert f"{STUDY}-final holds trial {content['trial']} with other settings" in done.output
    assert looked == []


@pytest.fixture
def other(searched: PlannedStudy) -> PlannedStudy:
    """A search with another budget; the first of its two trials is the better one."""
    results = searched.plan.results
    plan = plan_sweep("infonce", "colour-digits", epochs=6, trials=2, results=results, name="other")
    study = PlannedStudy(plan)
    study.write(scored((0.5, 0.6, 0.7)), scored((0.5, 0.5, 0.6)))
    return study


def test_a_trial_is_run_by_its_number(other: PlannedStudy, looked: list[str]) -> None:
    done = CliRunner().invoke(app, ["run", "other", "--trial", "1", "--seeds", "1", "--json"])
    assert done.exit_code == 0, done.output
    (row, _) = json.loads(done.stdout)["rows"]
    assert row["encoder"] == "infonce, trial 1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([STUDY, "--trial", "1", "--top", "2"], "--trial 1 names the trial: leave out --top"),
        ([FILE, "--trial", "1"], f"--trial goes with a study; {FILE} holds one configuration"),
        ([STUDY, FILE, "--trial", "1"], "--trial 1 goes with one study, given 2"),
        ([STUDY, "--trial", "7"], f"study {STUDY} has no trial 7"),
    ],
)
def test_a_trial_is_one_of_one_study(options: list[str], said: str, looked: list[str]) -> None:
    done = CliRunner().invoke(app, ["run", *options])
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert looked == []


def test_unequal_budgets_of_two_searches_are_told(other: PlannedStudy, looked: list[str]) -> None:
    done = CliRunner().invoke(app, ["run", STUDY, "other", "--seeds", "1", "--concurrency", "1"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "The budgets differ, so a larger one may have won by its size: " in said
    assert "other 2 trials of at most 6 epochs." in said


def test_a_file_holds_one_configuration(searched: PlannedStudy) -> None:
    with pytest.raises(InputError, match=f"--top goes with a study; {FILE} holds one configuration"):
        selected_of(FILE, top=2)


def test_a_study_without_a_completed_run_does_not_hide_the_others(
    looked: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content = yaml.safe_load(Path(FILE).read_text())
    Path("other.yaml").write_text(yaml.safe_dump({**content, "study": "other"}))
    run_one = driver.run_one

    def fails_for(study: str, request: TrialRequest, tell: object = None) -> TrialReport:
        if request.study.name != study:
            return run_one(request)
        end_from_outside(request, "failed", error="ValueError: a bad day")
        return TrialReport(0, {}, 1.0, error="ValueError: a bad day")

    monkeypatch.setattr(driver, "run_one", partial(fails_for, f"{STUDY}-final"))
    command = ["run", FILE, "other.yaml", "--seeds", "2", "--concurrency", "1", "-o", "table.csv"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    told = " ".join(done.stderr.split())
    assert told.endswith(
        f"Error: no final run of {STUDY}-final completed: ValueError: a bad day (2 of 2); "
        f"`contrasweep show {STUDY}-final` shows the errors"
    )
    assert "2 runs of" not in told
    assert "untrained" in done.stdout
    assert Path("table.csv").exists()

    runs = final_runs([FILE, "other.yaml"], seeds=2, concurrency=1, progress=False)
    assert (runs.study, len(runs.rows)) == ("other-final", 2)
    assert f"no final run of {STUDY}-final completed" in caplog.text

    monkeypatch.setattr(driver, "run_one", lambda request, tell=None: fails_for(request.study.name, request))
    with pytest.raises(SweepFailed, match=f"no final run of {STUDY}-final completed"):
        final_runs(FILE, seeds=2, concurrency=1, progress=False)
