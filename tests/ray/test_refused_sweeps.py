"""A new sweep that is refused before its first trial leaves no study behind; nothing else is removed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.ray import sweep as sweep_module
from contrasweep.tuning.ray.nodes import Needs
from contrasweep.tuning.ray.sweep import create_study, resume_sweep, run_sweep
from contrasweep.tuning.ray.sweep_group import sweep_group
from contrasweep.tuning.store import StoreError, StudyBusy, study_names
from tests.studies import STUDY, small_plan

Refuse = Callable[[Exception, str], None]


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Let the session of every sweep raise an error, after it wrote the file that is named, if one is."""

    def refuse(error: Exception, written: str = "") -> None:
        def session(_: Any, needs: Needs) -> NoReturn:
            if written:
                needs.location.write(written, b"")
            raise error

        monkeypatch.setattr(sweep_module, "ray_session", session)

    return refuse


def files(results: Path) -> list[str]:
    return sorted(str(file.relative_to(results)) for file in results.rglob("*") if file.is_file())


BLIND = InputError("not every node can run trials")


def test_the_name_of_a_refused_study_is_free_again(tmp_path: Path, refuse: Refuse) -> None:
    refuse(BLIND)
    for _ in range(2):
        with pytest.raises(InputError, match="not every node"):
            run_sweep(small_plan(tmp_path))
        assert files(tmp_path) == []


def test_no_study_of_a_refused_group_stays(tmp_path: Path, refuse: Refuse) -> None:
    refuse(BLIND)
    plans = [replace(small_plan(tmp_path), name=name) for name in ("one", "two")]
    with pytest.raises(InputError, match="not every node"):
        sweep_group(plans)
    assert files(tmp_path) == []


def test_a_group_is_refused_as_a_whole_for_what_is_left_of_one_study(tmp_path: Path) -> None:
    plans = [replace(small_plan(tmp_path), name=name) for name in ("one", "two")]
    left = tmp_path / "epochs" / "study=two" / "x.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"")
    with pytest.raises(StoreError, match="files of a study named 'two' without its record"):
        sweep_group(plans)
    assert files(tmp_path) == ["epochs/study=two/x.parquet"]


def test_a_study_with_a_row_stays(tmp_path: Path, refuse: Refuse) -> None:
    refuse(BLIND, f"epochs/study={STUDY}/one.parquet")
    with pytest.raises(InputError, match="not every node"):
        run_sweep(small_plan(tmp_path))
    assert f"studies/{STUDY}.json" in files(tmp_path)


def test_a_study_that_another_driver_took_stays(tmp_path: Path, refuse: Refuse) -> None:
    refuse(StudyBusy("is being run by process 1"))
    with pytest.raises(StudyBusy):
        run_sweep(small_plan(tmp_path))
    assert f"studies/{STUDY}.json" in files(tmp_path)


def test_a_resumed_study_stays(tmp_path: Path, refuse: Refuse) -> None:
    location, _ = create_study(small_plan(tmp_path))
    refuse(BLIND)
    with pytest.raises(InputError, match="not every node"):
        resume_sweep(STUDY, tmp_path)
    assert study_names(location) == [STUDY]
