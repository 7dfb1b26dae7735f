"""The commands on a study that the test writes, and the whole way through the real command line."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.sweep_report import report_sweep
from contrasweep.tuning.durations import in_words
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.ray.result import SweepResult
from contrasweep.tuning.store import Heartbeat, Location, open_location, reader
from contrasweep.tuning.store.parts import read_parts
from tests.studies import PlannedStudy, scored
from tests.studies import Run as WrittenRun

Run = Callable[..., Result]
UNTRAINED = 0.5


def write_study(
    results: Path,
    finals: list[float | None],
    name: str = "written",
    colours: Sequence[float] = (),
    **options: Any,
) -> SweepPlan:
    """A study whose trial `n` ended with `finals[n]` (None: failed), and a colour error of `colours[n]`."""
    plan = plan_sweep(
        "infonce", "colour-digits", trials=len(finals), epochs=2, results=results, name=name, **options
    )
    PlannedStudy(plan).write(*(_run(number, final, colours) for number, final in enumerate(finals)))
    return plan


def _run(number: int, final: float | None, colours: Sequence[float]) -> WrittenRun:
    values = {"temperature": 0.1 + number / 100}
    untrained = {0: {"val.accuracy": UNTRAINED, "val.ridge_accuracy": UNTRAINED}}
    if final is None:
        return WrittenRun(values=values, curve=untrained, status="failed", error="loss nan at epoch 1")
    metrics = {
        "val.accuracy": final,
        "val.ridge_accuracy": final,
        "val.colour_mse": colours[number] if colours else 100.0,
    }
    return WrittenRun(values=values, curve={**untrained, 2: metrics}, final=metrics)


def test_studies_lists_what_there_is(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [0.6, None])
    found = json.loads(run("studies", "--json").stdout)
    assert [(row["study"], row["trials"]) for row in found] == [("written", 2)]
    assert "1 completed" in found[0]["endings"]
    assert "written" in run("studies").output


def test_show_tells_scores_values_and_errors(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [0.6, None])
    rows = json.loads(run("show", "written", "--json").stdout)
    assert [row["status"] for row in rows] == ["completed", "failed"]
    assert rows[0]["val.accuracy"] == 0.6
    assert rows[0]["configuration"]["temperature"] == 0.1
    assert rows[1]["error"] == "loss nan at epoch 1"
    shown = run("show", "written").output
    assert "loss nan at epoch 1" in shown
    assert "Colour MSE: squared 8-bit levels (0 to 255)" in " ".join(shown.split())
    header, first, _ = (line.split("\t") for line in shown.splitlines() if "\t" in line)
    assert dict(zip(header, first, strict=True))["temperature"] == "0.1"


def test_show_sorts_and_counts_whole_trials(run: Run, tmp_path: Path) -> None:
    """The second trial has the luckiest seed, the first the better mean; half a trial counts as none."""
    plan = plan_sweep(
        "infonce", "colour-digits", trials=4, epochs=2, seeds=2, results=tmp_path / "results", name="written"
    )
    scores = {(0, 0): 0.9, (0, 1): 0.88, (1, 0): 0.7, (1, 1): 0.95, (2, 0): nan, (2, 1): 0.99, (3, 0): 0.98}
    PlannedStudy(plan).write(
        *(replace(_run(trial, score, ()), trial=trial, seed=seed) for (trial, seed), score in scores.items())
    )
    shown = run("show", "written", "--sort", "accuracy", "--top", "1", "--json").stdout
    assert [(row["trial"], row["seed"]) for row in json.loads(shown)] == [(0, 0), (0, 1)]
    whole = json.loads(
        run("show", "written", "--sort", "accuracy", "--json").stdout, parse_constant=pytest.fail
    )
    assert [row["trial"] for row in whole] == [0, 0, 1, 1, 2, 2, 3]
    assert [row["val.accuracy"] for row in whole[-3:]] == [None, 0.99, 0.98], "of half a trial"


def test_show_names_a_damaged_file_and_shows_the_rest(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [0.6, 0.7])
    damaged = min((tmp_path / "results" / "trials" / "study=written").glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    result = run("show", "written")
    assert result.exit_code == 0
    assert damaged.name in "".join(result.output.split())
    assert len(json.loads(run("show", "written", "--json").stdout)) == 1


def test_show_reads_each_file_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_study(tmp_path / "results", [0.6, 0.7])
    kinds: list[str] = []

    def counting(location: Location, kind: Any, *others: Any, **options: Any) -> Any:
        kinds.append(kind)
        return read_parts(location, kind, *others, **options)

    monkeypatch.setattr(reader, "read_parts", counting)
    assert run("show", "written").exit_code == 0
    assert sorted(kinds) == ["epochs", "trials"]


def test_an_interrupted_trial_shows_how_far_it_came(run: Run, tmp_path: Path) -> None:
    plan = plan_sweep(
        "infonce", "colour-digits", trials=3, epochs=9, results=tmp_path / "results", name="cut"
    )
    scores = [{"val.ridge_accuracy": 0.5 + epoch / 10, "val.accuracy": 0.1} for epoch in range(4)]
    PlannedStudy(plan).write(
        _run(0, 0.9, ()),
        WrittenRun(curve=dict(enumerate(scores)), status="running"),
        WrittenRun(curve={0: scores[0]}, status="running"),
    )
    rows = json.loads(run("show", "cut", "--json").stdout)
    assert [(row["status"], row["epoch"]) for row in rows[1:]] == [("interrupted", 3), ("interrupted", 0)]
    # Epoch 0 is the untrained encoder: its score is not the trial's.
    assert [row["val.ridge_accuracy"] for row in rows[1:]] == [0.8, None]
    shown = run("show", "cut").output
    assert "are those of their last epoch" in shown
    assert "Before training, val.accuracy is 0.2333." in shown
    assert "by which trials were stopped" not in shown


def test_show_says_by_which_score_trials_were_stopped(run: Run, tmp_path: Path) -> None:
    plan = plan_sweep(
        "infonce", "colour-digits", trials=2, epochs=9, results=tmp_path / "results", name="stops"
    )
    PlannedStudy(plan).write(scored((0.5, 0.6)), scored((0.5, 0.4), "stopped", rung=1))
    shown = " ".join(run("show", "stops").output.split())
    assert "Before training, val.ridge_accuracy, by which trials were stopped, is 0.5." in shown


@pytest.mark.parametrize("asked", [["best"], ["best", "--json"]])
def test_fewer_trials_than_asked_for_are_remarked(run: Run, tmp_path: Path, asked: list[str]) -> None:
    write_study(tmp_path / "results", [0.6, 0.9, None])
    said = run(*asked, "written", "--top", "5").stderr
    assert "2 of the best 5 of written: no other trials have completed." in said
    said = run(*asked, "written", "--top", "2", "--where", "accuracy>0.8").stderr
    assert "1 of the best 2 of written: no other trials have completed and meet the conditions." in said
    assert "of the best" not in run(*asked, "written", "--top", "2").stderr


def test_best_takes_the_highest_and_writes_it(run: Run, tmp_path: Path) -> None:
    plan = write_study(tmp_path / "results", [0.6, 0.9, None, 0.7])
    rows = json.loads(run("best", "written", "--top", "3", "-o", "best.yaml", "--json").stdout)
    assert [row["trial"] for row in rows] == [1, 3, 0]
    assert rows[0]["untrained"] == UNTRAINED
    content = yaml.safe_load((tmp_path / "best.yaml").read_text())
    assert (content["study"], content["trial"]) == ("written", 1)
    assert content["experiment"]["hyperparameters"]["temperature"] == pytest.approx(0.11)
    assert content["experiment"]["epochs"] == plan.experiment.epochs


def test_best_writes_a_trial_by_its_number(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [0.6, 0.9, None, UNTRAINED - 0.1])
    said = run("best", "written", "--trial", "3", "-o", "third.yaml").output
    assert "training did not beat the untrained encoder in trial 3." in " ".join(said.split())
    content = yaml.safe_load((tmp_path / "third.yaml").read_text())
    assert (content["trial"], content["selected"]["rule"]) == (3, "asked for by its number")
    assert run("best", "written", "--trial", "2").exit_code == 2
    assert run("best", "written", "--trial", "1", "--top", "3").exit_code == 2


def test_best_warns_where_training_does_not_help(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [UNTRAINED - 0.1])
    assert "did not beat the untrained encoder in the best trial" in run("best", "written").output
    write_study(tmp_path / "results", [UNTRAINED + 0.1], "better")
    assert "Warning" not in run("best", "better").output


def test_a_sweep_of_one_trial_and_one_failure_is_told_in_the_singular(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    plan = write_study(tmp_path / "results", [0.6, None])
    once = replace(plan.with_search(trials=1), experiment=plan.experiment.with_values({"epochs": 1}))
    report_sweep(SweepResult(once, {"completed": 1, "failed": 1}), as_json=False)
    said = " ".join("".join(capsys.readouterr()).split())
    assert "1 epoch at most" in said
    assert "1 trial ended with an error" in said


def test_best_of_a_study_without_a_completed_trial_fails(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [None])
    result = run("best", "written", "-o", "best.yaml")
    assert result.exit_code == 1
    assert "no trial of study written has completed" in result.output
    assert not (tmp_path / "best.yaml").exists()


def test_best_of_an_interrupted_study_says_how_to_go_on(run: Run, tmp_path: Path) -> None:
    go_on = "`contrasweep sweep infonce --name written --resume` goes on."
    for finals in ([0.6], [None]):
        results = tmp_path / "results"
        write_study(results, finals)
        assert f"Study written was interrupted: {go_on}" in run("best", "written").stderr
        assert run("best", "written", "--json").stderr.count("goes on") == (finals == [None])
        with Heartbeat(open_location(results), "written"):
            pass
        assert "goes on" not in run("best", "written").output
        shutil.rmtree(results)


@pytest.mark.parametrize(
    ("studies", "name", "methods"),
    [
        (["one"], "one", ["infonce"]),
        (["both-supcon", "both-infonce"], "both", ["supcon", "infonce"]),
        (["both-supcon", "both"], "both", ["infonce"]),
    ],
)
def test_the_methods_of_a_resumed_sweep_come_from_its_studies(
    studies: list[str],
    name: str,
    methods: list[str],
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for study in studies:
        write_study(tmp_path / "results", [0.6], study)
    resumed: list[list[str]] = []
    monkeypatch.setattr(
        "contrasweep.tuning.cli.sweep._resume", lambda methods, *_, **__: resumed.append(methods)
    )
    done = run("sweep", "--name", name, "--resume")
    assert (done.exit_code, resumed) == (0, [methods]), done.output


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_show_draws_the_study(run: Run, tmp_path: Path, suffix: str) -> None:
    write_study(tmp_path / "results", [0.6, None, 0.7])
    result = run("show", "written", "--plot", f"out/study{suffix}")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / f"study{suffix}").stat().st_size > 1000


def test_compact_is_said_and_done(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [0.6, 0.7])
    done = json.loads(run("compact", "written", "--json").stdout)
    assert (done["trials"], done["epochs"]) == (2, 4)
    assert done["removed"] > 2
    assert len(list((tmp_path / "results" / "trials").rglob("*.parquet"))) == 1
    assert run("compact", "written").stdout == (
        "written: 0 files merged. The merged files hold 2 rows of trials and 4 of epochs; "
        "damaged files, left as they are: 0.\n"
    )


def test_a_dry_run_estimates_its_time_from_earlier_runs_of_its_kind(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [0.6, 0.7, None])

    def told(*more: str) -> Any:
        asked = ("sweep", "infonce", "--data", "colour-digits", "--dry-run", "--concurrency", "1", *more)
        return json.loads(run(*asked, "--json").stdout), " ".join(run(*asked).output.split())

    content, shown = told()
    assert content["earlier_runs"] == 2, "a trial that failed before its first epoch says nothing"
    each = content["seconds_an_epoch"]
    assert content["seconds_at_most"] == pytest.approx(240 * each)
    assert (
        f"at most 240 epochs in all, about {in_words(240 * each)} at {each:.2g} s an epoch (2 earlier"
        in shown
    )
    for other in ("batch_size=64", "encoder.name=resnet18-cifar"):
        content, shown = told("--set", other)
        assert (content["seconds_at_most"], "s an epoch" in shown) == (None, False)


def test_dry_run_starts_with_the_defaults_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    plan = json.loads(run("sweep", "fair-cclk", "--dry-run", "--json", "--set", "lam=1e-1").stdout)
    assert plan["first"][0]["configuration"]["lam"] == 0.1
    assert plan["first"][0]["configuration"]["kernel"] == "rbf"
    assert plan["epochs_at_most"] == 24 * 10
    assert not (tmp_path / "results").exists()


def test_catalogue(run: Run, tmp_path: Path) -> None:
    methods = {row["method"]: row for row in json.loads(run("methods", "--json").stdout)}
    assert set(methods) >= {"infonce", "fair-cclk", "fair-infonce"}
    assert methods["fair-cclk"]["needs"] == "a conditioning variable"
    space = {row["parameter"]: row for row in json.loads(run("spaces", "fair-cclk", "--json").stdout)}
    assert "rbf" in space["sigma2"]["when"]
    there = {row["dataset"]: row["there"] for row in json.loads(run("datasets", "--json").stdout)}
    assert there["digits"] == "yes"


def test_train_goes_on_from_its_checkpoint(run: Run, tmp_path: Path) -> None:
    settings = "method: infonce\ndataset: digits\nepochs: 2\nprobes: {max_steps: 5}\n"
    (tmp_path / "experiment.yaml").write_text(settings + "optimizer: {lr: 0.05}\n")
    first = json.loads(run("train", "experiment.yaml", "--checkpoint", "run.pt", "--json").stdout)
    assert [row["epoch"] for row in first["epochs"]] == [0, 1, 2]
    assert first["experiment"]["optimizer"]["lr"] == 0.05
    again = json.loads(run("train", "experiment.yaml", "--checkpoint", "run.pt", "--json").stdout)
    assert again["epochs"] == []
    assert "nothing was left to train" in run("train", "experiment.yaml", "--checkpoint", "run.pt").output
    other = run("train", "experiment.yaml", "--checkpoint", "run.pt", "--set", "optimizer.lr=0.1")
    assert other.exit_code == 2
    assert "optimizer" in other.output


def test_train_starts_from_a_preset_under_the_file_and_what_is_set(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[Experiment] = []

    def pretrain(experiment: Experiment, *_: Any, **__: Any) -> Iterator[Any]:
        trained.append(experiment)
        return iter(())

    monkeypatch.setattr("contrasweep.tuning.ray.one_run.pretrain", pretrain)
    monkeypatch.setattr("contrasweep.tuning.planning.train_plan.check_available", lambda *_: None)
    (tmp_path / "experiment.yaml").write_text("method: cacr\ndataset: cifar10\nrepulsion: off\nepochs: 3\n")
    for arguments in ([], ["--preset"], ["--preset", "--set", "optimizer.lr=0.7"]):
        assert run("train", "experiment.yaml", *arguments).exit_code == 0
    plain, paper, changed = trained
    published = resolve("cacr", "cifar10", use_preset=True)
    assert plain.encoder != published.encoder == paper.encoder
    assert (paper.epochs, paper.hyperparameters["repulsion"]) == (3, "off")
    assert "t_neg" in published.hyperparameters
    assert "t_neg" not in paper.hyperparameters
    assert changed == paper.with_values({"optimizer.lr": 0.7})


def test_every_command_has_help_with_an_example(run: Run) -> None:
    names = [
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    ]
    assert len(names) >= 10
    for name in names:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert "Example: contrasweep" in result.output, name


@pytest.mark.parametrize("arguments", [["--help"], ["datasets", "--help"]])
def test_the_list_of_commands_is_not_cut(run: Run, arguments: list[str]) -> None:
    listed = run(*arguments).output.partition("Commands:")[2]
    assert "check  " in listed or "sweep  " in listed
    assert "..." not in listed


def test_best_takes_the_best_trial_that_keeps_a_condition(run: Run, tmp_path: Path) -> None:
    write_study(tmp_path / "results", [0.6, 0.8, 0.7])
    (row,) = json.loads(run("best", "written", "--where", "accuracy<0.75", "--json").stdout)
    assert row["trial"] == 2
    shown = run("best", "written", "--where", "accuracy<0.75", "-o", "best.yaml").output
    assert "Trial 2 is taken" in shown
    rule = yaml.safe_load((tmp_path / "best.yaml").read_text())["selected"]["rule"]
    assert rule.endswith("val.accuracy < 0.75")
    refused = run("best", "written", "--where", "acuracy<0.75")
    assert refused.exit_code == 2
    assert "'val.accuracy'" in refused.output


def test_a_dry_run_of_several_methods_shows_each_with_the_same_budget(run: Run) -> None:
    told = json.loads(run("sweep", "fair-cclk", "infonce", "--trials", "3", "--dry-run", "--json").stdout)
    assert [one["study"]["method"] for one in told] == ["fair-cclk", "infonce"]
    assert {one["study"]["search"]["trials"] for one in told} == {3}
    names = [one["study"]["name"] for one in told]
    assert names[0].removesuffix("fair-cclk") == names[1].removesuffix("infonce")


def test_the_front_is_marked_and_another_of_its_points_can_be_taken(run: Run, tmp_path: Path) -> None:
    write_study(
        tmp_path / "results", [0.6, 0.8, 0.7], colours=[30.0, 10.0, 20.0], metric="accuracy,colour_mse"
    )
    write_study(tmp_path / "results", [0.6, 0.8], "lone", colours=[1.0, 2.0], metric="accuracy,colour_mse")
    rows = json.loads(run("show", "lone", "--json").stdout)
    assert [row["front"] for row in rows] == [None, "yes"]
    assert [row["trial"] for row in json.loads(run("best", "written", "--json").stdout)] == [1, 2, 0]
    shown = " ".join(run("best", "written").output.split())
    assert "Trial 1 is taken" in shown
    assert "--where 'val.colour_mse>15'" in shown
    where = ("--where", "val.colour_mse>15", "--top", "1", "--json")
    assert [row["trial"] for row in json.loads(run("best", "written", *where).output)] == [2]
    assert "To take another" not in run("best", "lone").output
