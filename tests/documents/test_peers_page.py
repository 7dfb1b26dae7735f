"""The pages on replayed searches show what the kept results say, and their numbers are computed rightly."""

import re
from pathlib import Path

import pytest

from benchmarks.filled import filled
from benchmarks.peers.page import PAGES, RECORDS, share_of_best_peer, tables
from benchmarks.peers.records import Record, Setting, Surrogate, keep, read

SURROGATE = Surrogate(trials=200, again=40, error=0.05, own_error=0.03, noise=0.04, reachable=0.9)


def record(search: str, *score: float, workers: int = 2) -> Record:
    setting = Setting("a-recording", workers, budget=400, earlier=False)
    half = tuple(0.01 for _ in score)
    return Record(
        setting, SURROGATE, search, 30, score, half, rank=2.0, rank_half=0.3, begun=50.0, finished=20.0
    )


def by_search(*records: Record) -> dict[str, Record]:
    return {one.search: one for one in records}


def test_the_pages_are_what_the_records_say() -> None:
    found, shown = tables(read(RECORDS)), []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        assert page == filled(page, found), f"python -m benchmarks.peers.page fills {path.name} again"
        shown += re.findall(r"<!-- filled: (\S+) -->", page)
    assert sorted(shown) == sorted(found)


def test_epochs_are_a_share_of_those_that_the_best_peer_needs() -> None:
    found = by_search(
        record("contrasweep", 0.1, 0.2, 0.3, 0.4),
        record("contrasweep: scheduler curves", 0.5, 0.7, 0.8, 0.9),
        record("Optuna", 0.2, 0.3, 0.6, 0.6),
        record("Ray Tune", 0.2, 0.3, 0.4, 0.5),
        record("random", 0.9, 0.9, 0.9, 0.9),
    )
    # Optuna has its last score after three quarters; the model of curves passes it after two.
    assert share_of_best_peer(found, "contrasweep: scheduler curves") == pytest.approx(2 / 3)
    assert share_of_best_peer(found, "contrasweep") is None


def test_results_of_a_setting_take_the_place_of_older_ones(tmp_path: Path) -> None:
    path = tmp_path / "peers.parquet"
    keep(path, [record("random", 0.1, 0.2), record("Optuna", 0.3, 0.4)])
    keep(path, [record("random", 0.5, float("nan"), workers=8)])
    keep(path, [record("random", 0.6, 0.7)])
    assert [(one.search, one.setting.workers) for one in read(path)] == [("random", 8), ("random", 2)]
    assert read(path)[1] == record("random", 0.6, 0.7)
