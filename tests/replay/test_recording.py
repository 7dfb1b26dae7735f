"""Recordings: from a study in the store, and through a file."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.replay.recording import read_recording, recording_of
from tests.replay.recorded import recorded
from tests.studies import SPACE, WrittenStudy, make_record, scored


def study(
    results: Path, name: str = "demo", count: int = 24, first: float = 0.5, seed: int = 0, **fields: Any
) -> WrittenStudy:
    """A study of as many completed trials, and one that was stopped."""
    held = WrittenStudy(results, make_record(name, space=SPACE, **fields))
    runs = [
        scored(
            (0.3, first, 0.6 + place / 100), values={"kernel": "cosine", "optimizer.lr": 0.01 * (place + 1)}
        )
        for place in range(count)
    ]
    held.write(*(replace(one, seed=seed) for one in (*runs, scored((0.3, 0.2), "stopped", rung=1))))
    return held


def test_completed_trials_are_recorded_and_others_counted(tmp_path: Path) -> None:
    found = recording_of(study(tmp_path).store, "demo")
    assert (found.epochs, len(found.scores), found.left_out) == (2, 24, 1)
    assert found.scores[3] == pytest.approx([0.5, 0.63, 0.63])
    assert np.isnan(found.again).all()
    assert found.seconds == pytest.approx(np.full(24, 4.0))


def test_second_seeds_are_matched_by_configuration(tmp_path: Path) -> None:
    first = study(tmp_path)
    study(tmp_path, "later", count=5, first=0.7, seed=1)
    found = recording_of(first.store, "demo", "later")
    assert found.again[:5, 0] == pytest.approx(np.full(5, 0.7))
    assert np.isnan(found.again[5:]).all()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"seed": 0}, "it trained on seed 0, as demo did"),
        ({"seed": 1, "method": "supcon"}, "its method differs from that of demo"),
        ({"seed": 1, "dataset": "elsewhere"}, "its dataset differs from that of demo"),
        ({"seed": 1, "search": {"metric": "val.ridge_accuracy"}}, "its metric differs from that of demo"),
    ],
)
def test_what_is_no_second_seed_is_refused(tmp_path: Path, fields: dict[str, Any], told: str) -> None:
    first = study(tmp_path)
    study(tmp_path, "later", **fields)
    with pytest.raises(InputError, match=told):
        recording_of(first.store, "demo", "later")


def test_a_study_is_not_its_own_second_seed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it trained on seed 0, as demo did"):
        recording_of(study(tmp_path).store, "demo", "demo")


def test_a_second_seed_that_no_trial_trained_to_its_end_is_refused(tmp_path: Path) -> None:
    first = study(tmp_path)
    later = WrittenStudy(tmp_path, make_record("later", space=SPACE))
    values = {"kernel": "cosine", "optimizer.lr": 0.01}
    later.write(replace(scored((0.3, 0.7), "stopped", values=values, rung=1), seed=1))
    with pytest.raises(InputError, match="no configuration trained to its last epoch both there and in demo"):
        recording_of(first.store, "demo", "later")


def test_a_search_with_conditions_is_refused(tmp_path: Path) -> None:
    held = study(tmp_path, search={"keep": [{"metric": "val.accuracy", "comparison": ">=", "bound": 0.5}]})
    with pytest.raises(InputError, match=r"searched with --keep 'val\.accuracy >= 0\.5'"):
        recording_of(held.store, "demo")


def test_too_few_trials_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="19 configurations trained to their last epoch"):
        recording_of(study(tmp_path, count=19).store, "demo")


def test_a_file_keeps_a_recording(tmp_path: Path) -> None:
    path, first = tmp_path / "one.parquet", replace(recorded(again=5), left_out=3)
    first.write(path)
    held = read_recording(path)
    assert (held.name, held.space.forms(), held.left_out) == (first.name, first.space.forms(), 3)
    for field in ("codes", "scores", "again", "seconds"):
        assert getattr(held, field) == pytest.approx(getattr(first, field), abs=1e-6, nan_ok=True)


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    path.write_bytes(b"no parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_recording(path)
    with pytest.raises(InputError, match="there is no such file"):
        read_recording(tmp_path / "absent.parquet")
    study(tmp_path / "results")
    part = next((tmp_path / "results").rglob("*.parquet"))
    with pytest.raises(InputError, match="is no recording; `contrasweep replay STUDY -o FILE` writes one"):
        read_recording(part)


def test_a_file_with_too_few_trials_is_refused(tmp_path: Path) -> None:
    for count in (0, 1, 19):
        path = tmp_path / f"{count}.parquet"
        recorded().write(path)
        pq.write_table(pq.read_table(path).slice(0, count), path)
        with pytest.raises(
            InputError, match=f"parquet: {count} configurations trained to .* a replay needs 20"
        ):
            read_recording(path)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (lambda table: table.drop(["scores"]), "scores"),
        (lambda table: table.drop(["lr"]), "lr"),
        (lambda table: with_column(table, "scores", [[0.5, 0.6]] * 59 + [[0.5]]), "inhomogeneous"),
        (lambda table: with_column(table, "scores", [[0.5, math.nan]] * 60), "a score or the seconds"),
        (lambda table: with_column(table, "again", [[0.5]] * 60), "reshape"),
        (lambda table: with_column(table, "seconds", ["x"] * 60), "could not convert"),
        (lambda table: table.replace_schema_metadata({"contrasweep.recording": "{"}), "Expecting"),
        (lambda table: table.replace_schema_metadata({"contrasweep.recording": "{}"}), "space"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, changed: Callable[[pa.Table], pa.Table], told: str
) -> None:
    path = tmp_path / "damaged.parquet"
    recorded().write(path)
    pq.write_table(changed(pq.read_table(path)), path)
    with pytest.raises(InputError, match=f"parquet is damaged: .*{told}"):
        read_recording(path)


def with_column(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))
