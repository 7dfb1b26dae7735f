"""Measurements as a table: means over draws and seeds with intervals, beside the encoders before training."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
from torch import Tensor

from contrasweep.tuning.results.best import beats, not_beaten_in_words
from contrasweep.tuning.results.columns import INTERVAL, score_in_words, score_interval
from contrasweep.tuning.results.final_runs import main_score
from contrasweep.tuning.results.numbers import interval_text, mean_and_std
from contrasweep.tuning.statistics import Summary, summarise
from contrasweep.tuning.transfer.measure import Clustering, Measurement
from contrasweep.tuning.transfer.plan import shots_in_words

TITLE: Final = "Test scores, beside those of the same networks before training"
Over = Literal["seeds", "draws"]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Cell:
    """The scores of an encoder on a dataset by one probe, with so many training images of each class.

    Attributes:
        encoder, dataset, probe, shots: as in `Measurement`.
        over: what the summaries are over: the seeds of the encoder's runs (each is the mean of its draws), of
            a single run the draws of few images; None for a single number.
        trained: by the name of the score.
        untrained: the same of the networks before training.
        score: the name of the main score.
        confusion: int64 `(C, C)`, of the trained encoders, summed over seeds and draws.
    """

    encoder: str
    dataset: str
    probe: str
    shots: int | None
    over: Over | None
    trained: dict[str, Summary]
    untrained: dict[str, Summary]
    score: str
    confusion: Tensor

    @property
    def interval(self) -> Interval | None:
        """The interval of the mean of the main score (Student's t); None with too few values for one."""
        return score_interval(self.score, self.trained[self.score])

    @property
    def class_accuracy(self) -> list[float | None]:
        """The accuracy on the test images of each class; None where there is no image of it."""
        counts = self.confusion.sum(dim=1).tolist()
        right = self.confusion.diagonal().tolist()
        return [one / count if count else None for one, count in zip(right, counts, strict=True)]

    def content(self, *, detail: bool) -> dict[str, Any]:
        """Return the cell as plain values; `detail` adds accuracy by class and the confusion matrix."""
        found: dict[str, Any] = {
            "encoder": self.encoder,
            "dataset": self.dataset,
            "probe": self.probe,
            "shots": shots_in_words(self.shots),
            "over": self.over,
            "score": self.score,
            "trained": {name: _content(name, one) for name, one in self.trained.items()},
            "untrained": {name: _content(name, one) for name, one in self.untrained.items()},
        }
        if detail:
            found |= {"class_accuracy": self.class_accuracy, "confusion": self.confusion.tolist()}
        return found


HEADS: Final = ("dataset", "encoder", "score", "n")
"""The columns of `rows_of` that need not be said in every row."""


def rows_of(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return a row for each cell: its main score with the interval, and that of the untrained encoder.

    Rows of one dataset stand together, and in it those of different encoders by the same probe.
    """
    datasets = list(dict.fromkeys(cell.dataset for cell in cells))
    probes = list(dict.fromkeys((cell.probe, cell.shots) for cell in cells))
    order = sorted(cells, key=lambda one: (datasets.index(one.dataset), probes.index((one.probe, one.shots))))
    return [_row(cell) for cell in order]


def said_of(cells: Sequence[Cell]) -> str:
    """Return what stands below a table of `rows_of`: what its means and intervals are over."""
    said = {
        "seeds": "Over the seeds of an encoder, each the mean of its draws of few images.",
        "draws": "Over the draws of few images, for a single encoder.",
    }
    over = [text for name, text in said.items() if name in {cell.over for cell in cells}]
    return " ".join(["Mean ± sample standard deviation, intervals by Student's t from 3 values on.", *over])


def not_beaten(cells: Sequence[Cell]) -> str:
    """Say in how many cells training did not beat the untrained encoder; empty if it did in all."""
    worse = [
        one
        for one in cells
        if not beats(one.score, one.trained[one.score].mean, one.untrained[one.score].mean)
    ]
    if not worse:
        return ""
    where = f"{len(worse)} of {len(cells)} scores" if len(cells) > 1 else "the score"
    return not_beaten_in_words(where)


def cells_of(measurements: Iterable[Measurement]) -> list[Cell]:
    """Return a cell for each encoder, dataset, probe and number of shots, in their order."""
    groups: dict[tuple[str, str, str, int | None], list[Measurement]] = {}
    for one in measurements:
        groups.setdefault((one.encoder, one.dataset, one.probe, one.shots), []).append(one)
    return [_cell(*key, own) for key, own in groups.items()]


def summarised_clusters(found: Iterable[Clustering]) -> list[dict[str, Any]]:
    """Return ACC and NMI over the seeds of each encoder on each dataset, trained and untrained."""
    groups: dict[tuple[str, str], list[Clustering]] = {}
    for one in found:
        groups.setdefault((one.encoder, one.dataset), []).append(one)
    return [
        {
            "encoder": encoder,
            "dataset": dataset,
            **{
                state: {
                    name: _content(name, summary)
                    for name in own[0].scores
                    if (summary := summarise(one.scores[name] for one in own if one.trained == trained))
                }
                for state, trained in (("trained", True), ("untrained", False))
            },
        }
        for (encoder, dataset), own in groups.items()
    ]


def measurement_rows(measurements: Sequence[Measurement]) -> pa.Table:
    """Return a row for each measurement: what was measured, and its scores as `test.NAME`."""
    names = list(dict.fromkeys(name for one in measurements for name in one.scores))
    return pa.Table.from_pylist(
        [
            {
                "encoder": one.encoder,
                "seed": one.seed,
                "trained": one.trained,
                "dataset": one.dataset,
                "probe": one.probe,
                "shots": one.shots,
                "draw": one.draw,
                **{f"test.{name}": one.scores.get(name) for name in names},
            }
            for one in measurements
        ],
        schema=pa.schema(
            [
                ("encoder", pa.string()),
                ("seed", pa.int64()),
                ("trained", pa.bool_()),
                ("dataset", pa.string()),
                ("probe", pa.string()),
                ("shots", pa.int64()),
                ("draw", pa.int64()),
                *((f"test.{name}", pa.float64()) for name in names),
            ]
        ),
    )


def _cell(
    encoder: str, dataset: str, probe: str, shots: int | None, measurements: Sequence[Measurement]
) -> Cell:
    trained = [one for one in measurements if one.trained]
    seeds = len({one.seed for one in trained})
    over: Over | None = "seeds" if seeds > 1 else "draws" if shots is not None else None
    names = list(trained[0].scores)
    return Cell(
        encoder,
        dataset,
        probe,
        shots,
        over,
        _summaries(trained, names, over),
        _summaries([one for one in measurements if not one.trained], names, over),
        main_score(names),
        sum((one.confusion for one in trained[1:]), trained[0].confusion),
    )


def _summaries(
    measurements: Sequence[Measurement], names: Sequence[str], over: Over | None
) -> dict[str, Summary]:
    found = {}
    for name in names:
        by_seed: dict[int, list[float]] = {}
        for one in measurements:
            by_seed.setdefault(one.seed, []).append(one.scores[name])
        means = [summary.mean for own in by_seed.values() if (summary := summarise(own)) is not None]
        summary = summarise(means if over == "seeds" else [one for own in by_seed.values() for one in own])
        if summary is not None:
            found[name] = summary
    return found


def _row(cell: Cell) -> dict[str, Any]:
    own = cell.trained[cell.score]
    return {
        "dataset": cell.dataset,
        "encoder": cell.encoder,
        "probe": cell.probe,
        "shots": shots_in_words(cell.shots),
        "score": score_in_words(cell.score),
        "trained": mean_and_std(own),
        INTERVAL: interval_text(cell.interval),
        "untrained": mean_and_std(cell.untrained[cell.score]),
        "n": f"{own.n} {cell.over}" if cell.over else 1,
    }


def _content(score: str, summary: Summary) -> dict[str, Any]:
    interval = score_interval(score, summary)
    return {"mean": summary.mean, "std": summary.std, "n": summary.n, "interval": interval}
