"""`--tmp` moves temporary files, and a disk that is full ends a command in one line."""

import errno
import os
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contrasweep.data.cache import CacheUnusable
from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.errors import reporting_errors
from contrasweep.tuning.cli.temporary import MOST_CHARACTERS, use_folder
from contrasweep.tuning.errors import InputError
from tests.fuzz.stores import STUDY, write_studies


def report(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["report", STUDY, *arguments])


def test_temporary_files_go_where_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp")
    monkeypatch.setattr(tempfile, "tempdir", None)
    # pytest's own folders have names that are too long for sockets.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as folder:
        use_folder(Path(folder) / "new")
        assert tempfile.gettempdir() == f"{folder}/new" == os.environ["TMPDIR"]


def test_a_command_line_that_is_only_completed_moves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = tempfile.gettempdir()
    complete = {
        "_CONTRASWEEP_COMPLETE": "complete_bash",
        "COMP_WORDS": "contrasweep sweep --tmp new --da",
        "COMP_CWORD": "4",
    }
    result = CliRunner().invoke(app, prog_name="contrasweep", env=complete)
    assert "--data" in result.stdout
    assert not (tmp_path / "new").exists()
    assert tempfile.gettempdir() == before


@pytest.mark.parametrize(
    ("name", "said"), [("a" * (MOST_CHARACTERS + 1), "at most 40 are allowed"), ("file", "is a file")]
)
def test_a_folder_that_cannot_serve_is_refused(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given = ["sweep", "infonce", "--tmp", str(tmp_path / name), "--dry-run"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_folder_that_cannot_be_made_is_refused() -> None:
    # The permissions of /proc allow it to root.
    with pytest.raises(InputError, match=r"--tmp /proc/x "):
        use_folder(Path("/proc/x"))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EPERM])
def test_a_page_for_which_there_is_no_room_is_one_line(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_studies(tmp_path / "results")
    page = tmp_path / "page.html"

    def fsync(file: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("contrasweep.tuning.files.os.fsync", fsync)
    result = report("--results", str(tmp_path / "results"), "-o", str(page))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:] == [f"Error: [Errno {code}] {os.strerror(code)}: '{page}'"]
    assert not list(tmp_path.glob("*page*"))


def test_a_cache_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    @reporting_errors
    def datasets() -> None:
        raise CacheUnusable("the cache /full cannot be written")

    with pytest.raises(SystemExit) as ended:
        datasets()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "Error: the cache /full cannot be written\n"
