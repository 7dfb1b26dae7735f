"""`contrasweep delete` removes one study, whole, and can be repeated."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contrasweep.tuning.cli import app
from contrasweep.tuning.store import Heartbeat, open_location, save_study
from contrasweep.tuning.store.filesystem import Location
from contrasweep.tuning.store.removal import delete_study
from tests.studies import PlannedStudy, make_final_record, scored, small_plan

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command in a folder whose `results` hold the study `study-1` and one that begins with its name."""
    monkeypatch.chdir(tmp_path)
    plan = small_plan(Path("results"))
    PlannedStudy(plan).write(scored(), scored())
    for place in ("checkpoints", "exports", "tensorboard"):
        for study in ("study-1", "study-1-final"):
            file = tmp_path / "results" / place / study / "00000-0" / "file"
            file.parent.mkdir(parents=True)
            file.write_text("content" * 100)
    (tmp_path / "results" / "studies" / "study-1-final.json").write_text("{}")
    return lambda *arguments, **more: CliRunner().invoke(app, list(arguments), **more)


def places() -> set[str]:
    files = (path for path in Path("results").rglob("*") if path.is_file())
    return {path.relative_to("results").as_posix() for path in files}


def test_it_asks_and_says_what_goes(run: Run) -> None:
    before = places()
    asked = run("delete", "study-1", input="n\n")
    assert asked.exit_code == 1
    rows = [line.split("\t") for line in asked.stdout.splitlines() if "\t" in line]
    assert ["exports/study-1", "1", "1"] in rows, "its place, its files, its size in kB"
    assert "Delete study study-1?" in asked.output
    assert "Its final runs stay: study-1-final." in asked.output
    assert places() == before
    assert run("delete", "study-1", input="y\n").exit_code == 0
    assert places() == {path for path in before if "study-1-final" in path}
    assert not Path("results/trials/study=study-1").exists()


def test_final_runs_of_another_search_are_not_named(run: Run) -> None:
    record = make_final_record("study-1-6-epochs-final", search={"searched": "study-1-6-epochs"})
    save_study(open_location("results", writable=True), record)
    asked = run("delete", "study-1", input="n\n")
    assert "Its final runs stay: study-1-final." in asked.output


def test_an_unknown_one_is_refused_with_the_nearest(run: Run) -> None:
    refused = run("delete", "study-2", "--yes")
    assert refused.exit_code == 2
    assert "Did you mean 'study-1'?" in refused.output


def test_one_with_a_damaged_record_is_deleted(run: Run) -> None:
    record = Path("results/studies/study-1.json")
    record.write_text("{")
    asked = run("delete", "study-1", input="n\n")
    told = " ".join(asked.output.split())
    assert "study-1.json is damaged:" in told
    assert ". Its record, studies/study-1.json, goes last. Its final runs stay: study-1-final." in told
    assert run("delete", "study-1", "--yes").exit_code == 0
    assert all("study-1-final" in path for path in places())


def test_what_remains_without_a_record_is_deleted(run: Run) -> None:
    Path("results/studies/study-1.json").unlink()
    asked = run("delete", "study-1", input="n\n")
    assert "Its record, studies/study-1.json, is gone already." in " ".join(asked.output.split())
    assert run("delete", "study-1", "--yes").exit_code == 0
    assert all("study-1-final" in path for path in places())
    assert run("delete", "study-1", "--yes").exit_code == 2


@pytest.mark.parametrize("name", ["../studies", "", "a/b"])
def test_what_is_no_name_of_a_study_is_refused(run: Run, name: str) -> None:
    before = places()
    refused = run("delete", name, "--yes")
    assert refused.exit_code == 2
    assert "is not allowed" in refused.output
    assert places() == before


def test_one_that_is_being_run_is_refused(run: Run) -> None:
    before = places()
    with Heartbeat(open_location("results"), "study-1"):
        refused = run("delete", "study-1", "--yes")
    assert refused.exit_code == 2
    assert "is being run" in refused.output
    assert before <= places()


@pytest.mark.parametrize(
    ("deletes", "until"), [("delete_folder", "exports/study-1"), ("delete", "studies/study-1.heartbeat")]
)
def test_an_interrupted_one_is_repeated(
    run: Run, monkeypatch: pytest.MonkeyPatch, deletes: str, until: str
) -> None:
    with monkeypatch.context() as broken:
        whole = getattr(Location, deletes)

        def until_there(location: Location, place: str) -> None:
            if place == until:
                raise KeyboardInterrupt
            whole(location, place)

        broken.setattr(Location, deletes, until_there)
        with pytest.raises(KeyboardInterrupt):
            delete_study(open_location("results"), "study-1")
    assert Path("results/studies/study-1.json").exists()
    assert run("delete", "study-1", "--yes").exit_code == 0
    assert not [path for path in places() if "study-1-final" not in path]


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["spaces", "fair-"], ["fair-cclk", "fair-infonce"]),
        (["sweep", "infonce", "--data", "colour-"], ["colour-digits"]),
        (["show", "study"], ["study-1", "study-1-final"]),
        (["show", "--results", "elsewhere", "study"], []),
    ],
)
def test_names_are_completed(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: list[str], completed: list[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", " ".join(["contrasweep", *typed]))
    monkeypatch.setenv("COMP_CWORD", str(len(typed)))
    monkeypatch.setenv("_CONTRASWEEP_COMPLETE", "complete_bash")
    assert os.environ["_CONTRASWEEP_COMPLETE"]
    assert run(prog_name="contrasweep").output.split() == completed
