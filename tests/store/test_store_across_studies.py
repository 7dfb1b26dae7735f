"""All studies of a folder at once: by the reader, and by each snippet of the document with its tool."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from contrasweep.tuning.store import ResultsStore
from tests.documents.test_documents import BLOCK
from tests.studies import METRICS, Run, WrittenStudy, make_final_record, make_record, scored

# Against the usual space: a parameter of its own, one that is text here, a truth value, a whole number.
OTHER = {
    "temperature": {"log": [0.01, 1.0], "default": 0.1},
    "sigma2": {"choice": ["small", "large"], "default": "small"},
    "kernel": {"choice": [True, False], "default": True},
    "optimizer.lr": {"int": [1, 5], "default": 1},
}
VALUES = {"temperature": 0.2, "sigma2": "large", "kernel": True, "optimizer.lr": 2}
SNIPPETS = [
    block
    for block in BLOCK.findall((Path(__file__).parents[2] / "docs/store.md").read_text(encoding="utf-8"))
    if "studies" in block or "union_by_name" in block
]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of three studies with different columns; the working directory is around it."""
    folder = tmp_path / "results"
    WrittenStudy(folder, make_record("one")).write(scored(colour=3.0), scored())
    other = make_record("two", space=OTHER, metrics=(*METRICS, "val.nmi"))
    # From trial 100 on, files lie in folders of their own.
    WrittenStudy(folder, other).write(scored(values=VALUES), scored(values=VALUES, trial=100))
    final = Run(0, 7, final={"test.accuracy": 0.9}, phase="final")
    WrittenStudy(folder, make_final_record("one-final")).write(final)
    monkeypatch.chdir(tmp_path)
    return folder


def test_rows_of_all_studies_under_the_columns_of_all(results: Path) -> None:
    store = ResultsStore(results)
    trials = store.trials()
    assert trials["study"].to_pylist() == ["one", "one", "one-final", "two", "two"]
    assert trials["hp.temperature"].to_pylist() == [None, None, None, 0.2, 0.2]
    assert trials["hp.sigma2"].to_pylist() == [None, None, None, "large", "large"]
    assert trials["hp.kernel"].to_pylist() == ["cosine", "cosine", None, "true", "true"]
    assert trials["hp.optimizer.lr"].to_pylist() == [0.1, 0.1, None, 2.0, 2.0]
    assert trials["metric.test.accuracy"].to_pylist() == [None, None, 0.9, None, None]
    prefixed = [name.split(".")[0] for name in trials.column_names if "." in name]
    assert prefixed == sorted(prefixed)
    assert trials.column_names[-len(prefixed) - 1] == "gpus"
    assert store.epochs().num_rows == store.epochs("one").num_rows + store.epochs("two").num_rows
    assert store.trials("two", "one", "two")["study"].to_pylist() == ["two", "two", "one", "one"]


@pytest.mark.parametrize(
    ("value", "shown", "other", "beside"),
    [(2**53 + 1, 2.0**53, 0.5, 0.5), (1, "1", "few", "few"), (1, "1", True, "true")],
)
def test_a_whole_number_is_a_fraction_beside_fractions_and_text_beside_all_else(
    tmp_path: Path, value: int, shown: object, other: object, beside: object
) -> None:
    for name, one in (("one", value), ("two", other)):
        record = make_record(name, space={"size": {"choice": [one], "default": one}})
        WrittenStudy(tmp_path, record).write(scored(values={"size": one}))
    assert ResultsStore(tmp_path).trials()["hp.size"].to_pylist() == [shown, beside]


def test_a_folder_without_studies_gives_an_empty_typed_table(tmp_path: Path) -> None:
    trials = ResultsStore(tmp_path).trials()
    assert trials.num_rows == 0
    assert trials.schema.field("seconds").type == pa.float64()


def test_a_study_that_cannot_be_read_is_left_out_of_all_and_named(results: Path, caplog: Any) -> None:
    (results / "studies" / "two.json").write_text("{")
    assert set(ResultsStore(results).trials()["study"].to_pylist()) == {"one", "one-final"}
    assert "two" in caplog.text


@pytest.mark.parametrize("tool", ["contrasweep", "pandas", "polars", "duckdb"])
def test_each_tool_reads_all_studies_as_documented(results: Path, tool: str) -> None:
    pytest.importorskip(tool)
    (snippet,) = (block for block in SNIPPETS if f"from {tool} " in block or f"import {tool}" in block)
    names: dict[str, Any] = {}
    exec(snippet, names)
    read = names["frame"] if tool == "contrasweep" else names["trials"]
    rows = read.to_dicts() if tool == "polars" else read.to_dict("records")
    assert sorted(row["study"] for row in rows) == ["one", "one", "one-final", "two", "two"]
    (final,) = (row for row in rows if row["study"] == "one-final")
    assert (final["seed"], final["metric.test.accuracy"]) == (7, 0.9)
    by_study = [row for row in rows if row["study"] == "two"]
    assert {row["hp.temperature"] for row in by_study} == {0.2}
    assert {row["hp.sigma2"] for row in by_study} == {"large"}
    assert set(rows[0]) == set(ResultsStore(results).trials().column_names)


def test_duckdb_keeps_the_names_of_studies_that_look_like_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    for name in ("2026-11-26", "2026-11-27"):
        WrittenStudy(tmp_path / "results", make_record(name)).write(scored())
    monkeypatch.chdir(tmp_path)
    (snippet,) = (block for block in SNIPPETS if "import duckdb" in block)
    names: dict[str, Any] = {}
    exec(snippet, names)
    assert sorted(names["trials"]["study"]) == ["2026-11-26", "2026-11-27"]
