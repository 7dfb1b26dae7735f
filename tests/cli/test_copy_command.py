"""`contrasweep copy` brings studies from another results folder, whole, and can be repeated."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs
from typer.testing import CliRunner, Result

from contrasweep.tuning.cli import app
from contrasweep.tuning.store import (
    Heartbeat,
    ResultsStore,
    StudyBusy,
    compact,
    open_location,
    save_study,
)
from contrasweep.tuning.store.copying import copy_studies
from contrasweep.tuning.store.filesystem import Location
from contrasweep.tuning.store.layout import heartbeat_path, record_path
from tests.studies import PlannedStudy, make_final_record, scored, small_plan

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command in a folder where `anna` holds the study `study-1`, its final runs, and a checkpoint."""
    monkeypatch.chdir(tmp_path)
    PlannedStudy(small_plan(Path("anna"))).write(scored(), scored())
    save_study(open_location("anna"), make_final_record("study-1-final", search={"searched": "study-1"}))
    for place in ("checkpoints/study-1", "exports/study-1-final", "exports/other"):
        file = Path("anna", place, "00000-0", "file")
        file.parent.mkdir(parents=True)
        file.write_text("content" * 100)
    return lambda *arguments: CliRunner().invoke(app, ["copy", *arguments])


def contents(folder: str) -> dict[str, bytes]:
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_study_comes_with_its_final_runs_and_nothing_else(run: Run) -> None:
    done = run("study-1", "--from", "anna")
    assert done.exit_code == 0, done.output
    whole = contents("anna")
    assert contents("results") == {path: whole[path] for path in whole if "exports/other" not in path}
    assert ResultsStore("results").trials("study-1").equals(ResultsStore("anna").trials("study-1"))
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["study", "study-1", "study-1-final"]
    # By default, all studies: the same.
    assert run("--from", "anna", "--results", "all").exit_code == 0
    assert contents("all") == contents("results")


def test_what_is_wrong_is_refused_before_anything_is_copied(run: Run, tmp_path: Path) -> None:
    Path("empty").mkdir()
    for arguments, told in (
        (("study-2", "--from", "anna"), "Did you mean 'study-1'?"),
        (("study-1", "study-1", "--from", "anna"), "each study once"),
        (("--from", "empty"), "There are no studies in empty."),
        (("--from", "anna", "--results", str(tmp_path / "anna")), "is the results folder itself"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 2
        assert told in refused.output
    assert not Path("results").exists()


def test_a_name_that_is_taken_is_refused(run: Run) -> None:
    PlannedStudy(small_plan(Path("results"))).write(scored())
    before = contents("results")
    refused = run("study-1", "--from", "anna")
    assert refused.exit_code == 2
    assert "A study named 'study-1' exists in results; nothing was copied." in refused.output
    assert contents("results") == before


def test_rows_without_a_study_would_be_mixed_with_those_of_the_copy(run: Run) -> None:
    stray = Path("results/epochs/study=study-1/stray.parquet")
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"rows")
    refused = run("study-1", "--from", "anna")
    assert refused.exit_code == 2
    assert "without a record, such as epochs/study=study-1/stray.parquet: delete that study" in refused.output
    assert contents("results") == {"epochs/study=study-1/stray.parquet": b"rows"}
    assert CliRunner().invoke(app, ["delete", "study-1", "--yes"]).exit_code == 0
    assert run("study-1", "--from", "anna").exit_code == 0


def test_a_study_that_is_being_run_is_refused(run: Run) -> None:
    with Heartbeat(open_location("anna"), "study-1"):
        refused = run("study-1", "--from", "anna")
    assert refused.exit_code == 2
    assert f"is being run (process {os.getpid()} on " in refused.output
    assert contents("results") == {}


def test_a_study_that_changes_meanwhile_does_not_appear(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, anna = Location.read, open_location("anna")

    def read(self: Location, relative: str) -> bytes:
        if relative.startswith("epochs/"):
            with Heartbeat(anna, "study-1"):
                pass
        return whole(self, relative)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Location, "read", read)
        refused = run("study-1", "--from", "anna")
    assert refused.exit_code == 2
    assert "Study 'study-1' changed while it was copied" in refused.output
    assert record_path("study-1") not in contents("results")
    assert run("study-1", "--from", "anna").exit_code == 0
    assert heartbeat_path("study-1") in contents("results")


def test_a_study_that_another_command_creates_meanwhile_is_left_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Location.write

    def overtaken(self: Location, relative: str, content: bytes) -> None:
        if relative.startswith("trials/"):
            write(self, record_path("study-1"), b"another")
        write(self, relative, content)

    monkeypatch.setattr(Location, "write", overtaken)
    refused = run("study-1", "--from", "anna")
    assert refused.exit_code == 2
    assert "A study named 'study-1' exists in results; it was not copied." in refused.output
    assert contents("results")[record_path("study-1")] == b"another"


def test_what_a_killed_writer_left_is_not_copied(run: Run) -> None:
    Path("anna/checkpoints/study-1/_00000-0.pt.0123abcd").write_text("half")
    assert run("study-1", "--from", "anna").exit_code == 0
    assert not [path for path in contents("results") if "/_" in path]


@pytest.mark.parametrize("torn", [False, True])
def test_a_study_that_is_merged_meanwhile_does_not_appear(
    run: Run, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    """A listing beside the merge has the files that it deletes, or neither these nor the merged one."""
    anna, listed, pending = open_location("anna"), Location.files, [True]

    def overtaken(self: Location, folder: str, *, below: bool = False) -> list[fs.FileInfo]:
        found = listed(self, folder, below=below)
        if pending and self == anna and folder.startswith("trials/"):
            pending.clear()
            compact(anna, "study-1")
            return [] if torn else found
        return found

    copies = copy_studies(anna, open_location("results", writable=True), ["study-1"])
    monkeypatch.setattr(Location, "files", overtaken)
    with pytest.raises(StudyBusy, match="changed while it was copied"):
        next(copies)
    assert record_path("study-1") not in contents("results")


def test_an_interrupted_copy_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, written = Location.write, list[str]()

    def write(self: Location, relative: str, content: bytes) -> None:
        if relative.startswith("checkpoints/") and "full" not in written:
            raise OSError("no space left on device")
        whole(self, relative, content)
        written.append(relative)

    monkeypatch.setattr(Location, "write", write)
    assert run("study-1", "--from", "anna").exit_code != 0
    assert record_path("study-1") not in contents("results")
    other, *first = [path for path in written if path.startswith(("trials", "epochs"))]
    assert first
    Path("results", other).write_text("another size")
    written[:] = ["full"]
    assert run("study-1", "--from", "anna").exit_code == 0
    assert not set(first) & set(written)
    assert other in written
    assert "checkpoints/study-1/00000-0/file" in written


def test_it_copies_between_filesystems(run: Run) -> None:
    bucket = Location(fs._MockFileSystem(), "bucket/results", "mock://bucket/results")
    list(copy_studies(open_location("anna"), bucket, ["study-1"]))
    back = open_location("results", writable=True)
    list(copy_studies(bucket, back, ["study-1"]))
    own = {path: content for path, content in contents("anna").items() if "study-1/" in path}
    assert {path: content for path, content in contents("results").items() if "study-1/" in path} == own
    assert ResultsStore(back).trials("study-1").equals(ResultsStore("anna").trials("study-1"))
