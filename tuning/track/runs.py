"""A study as a tracker shows it: runs within runs, each with its settings, its curve and its end."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.experiment import flat_settings
from contrasweep.tuning.experiment.statuses import ENDED, Status
from contrasweep.tuning.methods.metrics import tracked_metrics
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.store import ResultsStore, StudyRecord
from contrasweep.tuning.store.schema import METRIC, cells_under


@dataclass(frozen=True)
class Point:
    """The metrics of one epoch, by name, and when it ended."""

    epoch: int
    time: datetime
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class TrackedRun:
    """One run of a tracker: a study, a trial of it, or one seed of a trial.

    Attributes:
        kind: a `study`, a `trial` of several seeds, or a `run`: one seed, with its curve.
        key: what no other run has, the same each time the study is tracked.
        name: what the tracker shows.
        parent: the key of the run that this one belongs to; None for a study.
        started: when it began.
        status: how it stands.
        params: what was set.
        tags: what else is known: host, device, why it failed.
        curve: its metrics by epoch.
        final: its metrics at the end; of a trial of several seeds, the means over them.
        ended: when it ended; None for one that has not.
        seeds: of a trial of several seeds, how many it has now; its means are those over so many.
        grows: whether further seeds may come, though it has ended.
    """

    kind: Literal["study", "trial", "run"]
    key: str
    name: str
    parent: str | None
    started: datetime
    status: Status
    params: Mapping[str, Scalar]
    tags: Mapping[str, str] = field(default_factory=dict)
    curve: Sequence[Point] = ()
    final: Mapping[str, float] = field(default_factory=dict)
    ended: datetime | None = None
    seeds: int = 0
    grows: bool = False

    @property
    def whole(self) -> bool:
        """Whether nothing of the run will change any more."""
        return self.status in ENDED and not self.grows

    @property
    def points(self) -> list[Point]:
        """The curve, with the final metrics at its last epoch; without a curve, one point at `seeds`."""
        # A tracker keeps the first value of a step, and the means change with the number of seeds.
        *before, last = self.curve or [Point(self.seeds, self.ended or self.started, {})]
        points = [*before, Point(last.epoch, last.time, {**self.final, **last.metrics})]
        return points if points[-1].metrics else before


def runs_of(store: ResultsStore, study: str) -> Iterator[TrackedRun]:
    """Yield the runs of a study, each after the one it belongs to.

    A trial of one seed is one run. A trial of several is a run with its settings and mean metrics, and a run
    for each seed with its curve.

    Raises:
        StoreError: there is no such study.
    """
    record = store.study(study)
    tables = store.tables(study)
    curves = _curves(tables.epochs.to_pylist())
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in tables.trials.to_pylist():
        rows.setdefault(row["trial"], []).append(row)
    yield _study(record, store.state(study), [row for own in rows.values() for row in own])
    for outcome in trial_outcomes(tables.trials, record):
        own = rows[outcome.trial]
        key = f"{_key(record)}/{outcome.trial}"
        means = {name: found.mean for name, found in outcome.metrics.items()}
        name = f"trial {outcome.trial}"
        # Final runs may get further seeds later.
        if record.seeds == 1 and not record.is_final:
            yield _seed(own[0], key, name, _key(record), curves, outcome.values)
            continue
        ends = [row["finished"] for row in own]
        yield TrackedRun(
            kind="trial",
            key=key,
            name=name,
            parent=_key(record),
            started=min(row["started"] for row in own),
            status=outcome.status,
            params=outcome.values,
            # The sum changes whenever a seed runs again.
            tags={
                "attempts": str(sum(row["attempt"] for row in own)),
                **({} if outcome.error is None else {"error": outcome.error}),
            },
            final=means,
            ended=None if None in ends else max(ends),
            seeds=len(own),
            grows=record.is_final,
        )
        for row in own:
            own_name, values = f"{name}, seed {row['seed']}", {**outcome.values, "seed": row["seed"]}
            yield _seed(row, f"{key}/{row['seed']}", own_name, key, curves, values)


def _key(record: StudyRecord) -> str:
    """Return the key of a study: a study that was deleted may have had the same name."""
    return f"{record.name}@{record.created.isoformat()}"


def _study(record: StudyRecord, state: str, rows: Sequence[Mapping[str, Any]]) -> TrackedRun:
    ends = [row["finished"] for row in rows if row["finished"] is not None]
    ended = state == "ended"
    params: dict[str, Scalar] = {
        name: value if isinstance(value, Scalar) else str(value)
        for name, value in flat_settings(record.experiment.model_dump(mode="json")).items()
        if value is not None
    }
    params |= {"method": record.method, "dataset": record.dataset, "metric": record.search.metric}
    if not record.is_final:
        searched = record.require_search()
        params |= {"sampler": searched.sampler, "scheduler": searched.scheduler}
        params |= {"seeds": searched.seeds, "seed": searched.seed}
    # Trackers never change a parameter, and a resumed study may have more trials.
    planned = {} if record.is_final else {"trials": str(record.require_search().trials)}
    versions = {f"version.{name}": text for name, text in record.versions.items()}
    return TrackedRun(
        kind="study",
        key=_key(record),
        name=record.name,
        parent=None,
        started=record.created,
        status="completed" if ended else "running" if state == "running" else "interrupted",
        params=params,
        tags={
            "command": record.command,
            "host": record.host,
            "runs": str(len(rows)),
            **planned,
            **versions,
        },
        ended=max(ends, default=record.created) if ended else None,
    )


def _seed(
    row: Mapping[str, Any],
    key: str,
    name: str,
    parent: str,
    curves: Mapping[tuple[int, int], Sequence[Point]],
    values: Mapping[str, Scalar],
) -> TrackedRun:
    tags = {"seed": str(row["seed"]), "attempt": str(row["attempt"]), "config": row["config"]}
    told = {what: row[what] for what in ("host", "device", "error") if row[what] is not None}
    return TrackedRun(
        kind="run",
        key=key,
        name=name,
        parent=parent,
        started=row["started"],
        status=row["status"],
        params=values,
        tags={**tags, **told},
        curve=curves.get((row["trial"], row["seed"]), ()),
        final=_metrics(row),
        ended=row["finished"],
    )


def _curves(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], list[Point]]:
    curves: dict[tuple[int, int], list[Point]] = {}
    for row in rows:
        point = Point(row["epoch"], row["time"], tracked_metrics(row["epoch"], _metrics(row)))
        curves.setdefault((row["trial"], row["seed"]), []).append(point)
    return curves


def _metrics(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in cells_under(METRIC, row).items() if value is not None}
