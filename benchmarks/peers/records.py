"""What `benchmarks.peers --keep` keeps: how each search did on each recording, in one small file."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from contrasweep.tuning.files import written_whole
from contrasweep.tuning.replay.comparison import POINTS, Standing
from contrasweep.tuning.replay.workload import Workload
from contrasweep.tuning.search.axes import design, draw_codes, strata_of

DRAWS: Final = 40_000
OURS: Final = ("contrasweep", "contrasweep: tpe", "contrasweep: scheduler curves")
"""Contrasweep as it comes (sampler `curves`, scheduler `asha`, with many trials at once `asha+curves`), and
with one of the two replaced."""


@dataclass(frozen=True)
class Setting:
    """What a set of searches was compared on.

    Attributes:
        recording: that was replayed.
        workers: trials at once.
        budget: epochs of all trials of a search together.
        earlier: whether all searches began with the best configurations of another dataset.
    """

    recording: str
    workers: int
    budget: int
    earlier: bool


@dataclass(frozen=True)
class Surrogate:
    """How far the surrogate of a recording can be trusted.

    Attributes:
        trials, again: the recorded trials, and how many of them ran again on a second seed.
        error: the root mean square error of final scores on held-out trials.
        own_error: the part of it beyond the noise of a seed.
        noise: of a seed.
        reachable: the highest expected score of `DRAWS` random configurations.
    """

    trials: int
    again: int
    error: float
    own_error: float
    noise: float
    reachable: float

    @classmethod
    def of(cls, workload: Workload) -> "Surrogate":
        """Return it of a workload with second seeds."""
        own, noise = workload.own_error, workload.seed_noise
        assert own is not None, "all recordings have second seeds"
        assert noise is not None, "all recordings have second seeds"
        recording = workload.recording
        again = int(np.isfinite(recording.again).all(axis=1).sum())
        codes = draw_codes(recording.axes, strata_of(recording.space), DRAWS, np.random.default_rng(0))
        expected = workload.surrogate.predict(design(recording.axes, codes).astype(np.float64))
        reachable = float(recording.gathered(expected)[:, -1].max())
        return cls(len(recording.scores), again, workload.error, own, noise, reachable)


@dataclass(frozen=True)
class Record:
    """How one search did: means over seeds, and half the widths of their 95 % intervals.

    Attributes:
        setting: what it was compared on.
        surrogate: of the recording.
        search: its name.
        seeds: how many times it ran.
        score, score_half: of the chosen trial on other seeds, after each of `POINTS` equal parts of the
            budget.
        rank, rank_half: at the end, among all searches of the setting.
        begun, finished: trials that began, and that trained to their last epoch.
    """

    setting: Setting
    surrogate: Surrogate
    search: str
    seeds: int
    score: tuple[float, ...]
    score_half: tuple[float, ...]
    rank: float
    rank_half: float
    begun: float
    finished: float

    @classmethod
    def of(cls, setting: Setting, surrogate: Surrogate, standing: Standing) -> "Record":
        """Return what is kept of a standing."""
        after = [standing.after(point / POINTS) for point in range(1, POINTS + 1)]
        score, half = zip(*after, strict=True)
        seeds = len(standing.chosen)
        ended = standing.begun, standing.finished
        return cls(setting, surrogate, standing.name, seeds, score, half, *standing.rank(), *ended)

    def after(self, share: float) -> tuple[float, float]:
        """Return the score after a share of the budget, and half the width of its interval."""
        place = round(share * len(self.score)) - 1
        return self.score[place], self.score_half[place]

    def epochs_to_reach(self, score: float) -> float | None:
        """Return after how many epochs the mean score is as high; None if never."""
        reached = [point for point, one in enumerate(self.score, start=1) if one >= score]
        return min(reached) / POINTS * self.setting.budget if reached else None


def keep(path: Path, records: Sequence[Record]) -> None:
    """Write records to a file, in place of those of the same settings."""
    again = {one.setting for one in records}
    kept = [one for one in read(path) if one.setting not in again] if path.exists() else []
    rows = [_row(one) for one in (*kept, *records)]
    with written_whole(path) as file:
        parquet.write_table(pa.Table.from_pylist(rows), file, compression="zstd")


def read(path: Path) -> list[Record]:
    """Return the records of a file."""
    return [_record(row) for row in parquet.read_table(path).to_pylist()]


def settings_in(records: Iterable[Record]) -> list[Setting]:
    """Return the settings of records, each once, in order."""
    return list(dict.fromkeys(one.setting for one in records))


def _row(one: Record) -> dict[str, Any]:
    row = asdict(one)
    return {**row.pop("setting"), **row.pop("surrogate"), **row}


def _record(row: dict[str, Any]) -> Record:
    def taken(kind: type[Any]) -> Any:
        return kind(**{name: row.pop(name) for name in kind.__dataclass_fields__})

    setting, surrogate = taken(Setting), taken(Surrogate)
    score, half = tuple(row.pop("score")), tuple(row.pop("score_half"))
    return Record(setting, surrogate, score=score, score_half=half, **row)
