"""Recorded learning curves of one study, from the store or from a small Parquet file."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from scipy.special import expit, logit

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.results.parquet_files import damage_told, read_rows_about, write_rows_about
from contrasweep.tuning.results.study_checks import refuse_as_other_seeds, refuse_conditions
from contrasweep.tuning.search.axes import Axis, axes_of, codes_of, design, values_of
from contrasweep.tuning.sensitivity.observations import Observations, observe
from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.store import ResultsStore

LEAST: Final = 20
"""The fewest configurations that trained to the last epoch from which a surrogate is made."""
EDGE: Final = 0.005
"""Shares nearer to 0 or 1 than this count as this, on the logistic scale."""
_ABOUT: Final = "contrasweep.recording"
_SAME: Final = {
    "method": "method differs from that",
    "dataset": "dataset differs from that",
    "metric": "metric differs from that",
    "rung_metric": "scores by epoch differ from those",
    "epochs": "number of epochs differs from that",
    "axes": "searched parameters differ from those",
}
"""What a study shares with that of its second seeds, and what is said where it does not."""


@dataclass(frozen=True)
class Recording:
    """Trials of one study that trained to their last epoch. Larger scores are better.

    Attributes:
        name: of the study.
        space: what it searched.
        warmup: the epochs during which the learning rate rises.
        metric, rung_metric: of the final score, and of the curves.
        codes: the configurations in units of `axes`, (trials, axes).
        scores: after epoch 1, 2, ..., and the final score, (trials, epochs + 1).
        again: the scores of the same configurations on other seeds; NaN where there are none, (trials,
            epochs + 1).
        seconds: of an epoch, (trials,).
        left_out: how many trials ended in another way.
    """

    name: str
    space: Space
    warmup: float
    metric: str
    rung_metric: str
    codes: Floats
    scores: Floats
    again: Floats
    seconds: Floats
    left_out: int = 0

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The searched parameters."""
        return axes_of(self.space)

    @property
    def epochs(self) -> int:
        """The epochs of a trial."""
        return int(self.scores.shape[1]) - 1

    @property
    def columns(self) -> Floats:
        """The configurations as a surrogate sees them, (trials, columns)."""
        return design(self.axes, self.codes).astype(np.float64)

    @cached_property
    def _is_share(self) -> bool:
        return bool((self.scores >= 0).all() and (self.scores <= 1).all())

    def spread_out(self, scores: Floats) -> Floats:
        """Return scores on the scale on which they are predicted: the logistic one if they are shares."""
        return np.asarray(logit(np.clip(scores, EDGE, 1 - EDGE))) if self._is_share else scores

    def gathered(self, values: Floats) -> Floats:
        """Return the scores of values on that scale."""
        return np.asarray(expit(values)) if self._is_share else values

    def column_of(self, values: Mapping[str, Scalar]) -> Floats:
        """Return one configuration as a surrogate sees it, (1, columns)."""
        return design(self.axes, codes_of(self.axes, [values])).astype(np.float64)

    def write(self, path: Path) -> None:
        """Write the recording as Parquet: a row for each trial."""
        rows = [
            {
                **{axis.name: None for axis in self.axes},
                **values_of(self.axes, codes),
                "scores": scores.astype(np.float32).tolist(),
                "again": None if np.isnan(again).any() else again.astype(np.float32).tolist(),
                "seconds": float(np.float32(seconds)),
            }
            for codes, scores, again, seconds in zip(
                self.codes, self.scores, self.again, self.seconds, strict=True
            )
        ]
        about = {
            "name": self.name,
            "space": self.space.forms(),
            "warmup": self.warmup,
            "metric": self.metric,
            "rung_metric": self.rung_metric,
            "left_out": self.left_out,
        }
        write_rows_about(path, rows, _ABOUT, about)


def read_recording(path: Path) -> Recording:
    """Return a recording that `Recording.write` wrote.

    Raises:
        InputError: the file cannot be read, is another one, is damaged, or has too few trials.
    """
    otherwise = "is no recording; `contrasweep replay STUDY -o FILE` writes one"
    table, about = read_rows_about(path, _ABOUT, otherwise)
    _refuse_few(table.num_rows, str(path))
    with damage_told(path):
        return _recording_in(table, about)


def _recording_in(table: pa.Table, about: Mapping[str, Any]) -> Recording:
    """Return what a file holds; raise one of the errors of `damage_told` if that is no recording."""
    space = Space.parse(about["space"])
    axes = axes_of(space)
    scores = np.array(table["scores"].to_pylist(), dtype=np.float64)
    seconds = np.array(table["seconds"].to_pylist(), dtype=np.float64)
    if not (np.isfinite(scores).all() and np.isfinite(seconds).all()):
        raise ValueError("a score or the seconds of an epoch are no number")
    unknown = [np.nan] * scores.shape[1]
    again = np.array([row or unknown for row in table["again"].to_pylist()], dtype=np.float64)
    return Recording(
        name=about["name"],
        space=space,
        warmup=about["warmup"],
        metric=about["metric"],
        rung_metric=about["rung_metric"],
        codes=codes_of(axes, table.select([axis.name for axis in axes]).to_pylist()),
        scores=scores,
        again=again.reshape(scores.shape),
        seconds=seconds,
        left_out=about["left_out"],
    )


def _refuse_few(count: int, where: str) -> None:
    if count < LEAST:
        raise InputError(
            f"{where}: {count} configurations trained to their last epoch, and a replay needs {LEAST}; "
            "--sampler random --scheduler none records them without a choice of its own"
        )


def recording_of(store: ResultsStore, study: str, again: str | None = None) -> Recording:
    """Return the trials of a stored study that trained to their last epoch.

    Args:
        store: the results.
        study: a search.
        again: a study of the same configurations on other seeds.

    Raises:
        StoreError: there is no such study.
        InputError: it holds final runs, keeps conditions, searches nothing, or too few of its trials trained
            to the end; or `again` differs from it in more than its seeds, or has one of its seeds.
    """
    record = store.study(study)
    refuse_conditions(record)
    seen = observe(store, study).distinct()
    if not seen.axes:
        raise InputError(f"study {study} searches nothing, so there is nothing to replay")
    rows = _whole(seen)
    _refuse_few(int(np.count_nonzero(rows)), f"study {study}")
    return Recording(
        name=study,
        space=record.space,
        warmup=record.experiment.schedule.warmup_epochs,
        metric=seen.metric,
        rung_metric=seen.rung_metric,
        codes=seen.codes[rows],
        scores=_scores(seen)[rows],
        again=_again(store, again, seen)[rows],
        seconds=seen.seconds[rows] / seen.epochs,
        left_out=int(np.count_nonzero(~rows)),
    )


def _whole(seen: Observations) -> Any:
    return seen.completed & np.isfinite(_scores(seen)).all(axis=1)


def _scores(seen: Observations) -> Floats:
    return np.concatenate([seen.curve[:, 1:], seen.score[:, None]], axis=1)


def _again(store: ResultsStore, study: str | None, first: Observations) -> Floats:
    found = np.full_like(_scores(first), np.nan)
    if study is None:
        return found
    second = observe(store, study)
    for attribute, differs in _SAME.items():
        if getattr(second, attribute) != getattr(first, attribute):
            raise InputError(f"--again {study}: its {differs} of {first.study}")
    refuse_as_other_seeds(store, study, first.study)
    place = {key: row for row, key in enumerate(first.keys)}
    scores = _scores(second)
    for trial in np.flatnonzero(_whole(second)):
        if (row := place.get(second.keys[trial])) is not None:
            found[row] = scores[trial]
    if np.isnan(found).all():
        raise InputError(
            f"--again {study}: no configuration trained to its last epoch both there and in {first.study}"
        )
    return found
