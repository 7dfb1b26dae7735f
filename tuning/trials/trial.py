"""One trial: a `pretrain` run that writes its results to the store and resumes from its checkpoint.

It does not know Ray: workers of a sweep and final runs both advance a `Trial`.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch

from contrasweep.losses import RanksLost
from contrasweep.plugin_places import raised_by_plugin
from contrasweep.tuning.errors import TrainingDiverged
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.experiment.statuses import ENDED, Status
from contrasweep.tuning.methods.metrics import tracked_metrics
from contrasweep.tuning.objectives.prepared import Prepared, preparation_key, prepare_data
from contrasweep.tuning.objectives.ranks import ONE, Ranks
from contrasweep.tuning.store import Location, StoreError, StoreUnavailable, StudyRecord, layout
from contrasweep.tuning.store.attempts import TrialOvertaken, row_of
from contrasweep.tuning.store.schema import METRIC, Phase, cells_under
from contrasweep.tuning.store.tensorboard import TrialEvents
from contrasweep.tuning.store.writer import TrialInfo, TrialWriter, end_trial
from contrasweep.tuning.training.checkpoint import checkpoint_epoch
from contrasweep.tuning.training.devices import device_of
from contrasweep.tuning.training.pretrain import AtEnd, EpochRecord, pretrain
from contrasweep.tuning.trials.checkpoints import Checkpoints
from contrasweep.tuning.trials.gpu_errors import reason_of, refuse_result
from contrasweep.tuning.trials.worker_warnings import Warned

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrialRequest:
    """Everything a worker needs to run one trial, as plain data that can be sent.

    `experiment` is complete; `values` holds the active hyperparameters, searched and fixed, for the store.
    `flush_at` holds the epochs after which the scheduler may stop the trial: the trial writes its rows before
    it reports them, because a stopped trial gets no other chance. `workers` processes train it together, each
    with `cpus` cores and `gpus` GPUs. `keeps_encoder` says that a completed trial writes its encoder, and
    `snapshots` after how many epochs each it writes one before. `alone` says that no other trial uses its
    GPUs, although `gpus` may be a part of one.
    """

    location: Location
    study: StudyRecord
    trial: int
    experiment: Experiment
    values: Mapping[str, Any]
    phase: Phase = "search"
    flush_at: frozenset[int] = frozenset()
    data_root: Path | None = None
    cpus: int = 1
    seeds: int = 1
    workers: int = 1
    gpus: float = 0.0
    keeps_encoder: bool = False
    snapshots: int | None = None
    alone: bool = False

    @property
    def device(self) -> str:
        """The device on which each worker trains."""
        return device_of(self.gpus)

    @property
    def shares_gpu(self) -> bool:
        """Whether other trials may use the memory of the same GPUs."""
        return 0 < self.gpus < 1 and not self.alone

    def replicates(self) -> "tuple[TrialRequest, ...]":
        """Return a request for each seed: the experiment's seed and those that follow it."""
        first = self.experiment.seed
        return tuple(
            replace(self, seeds=1, experiment=self.experiment.with_values({"seed": seed}))
            for seed in range(first, first + self.seeds)
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the request itself: it is frozen, and Tune copies configurations several times."""
        return self

    def __str__(self) -> str:
        """Return a name: Tune makes a tag of it."""
        return f"trial {self.trial} of {self.study.name}"

    def info(self) -> TrialInfo:
        """Return what the store records about the trial before it runs."""
        return TrialInfo(
            trial=self.trial,
            seed=self.experiment.seed,
            phase=self.phase,
            config=self.experiment.identity(),
            hyperparameters=self.values,
            epochs=self.experiment.epochs,
            device=self.device,
            cpus=self.cpus * self.workers,
            gpus=self.gpus * self.workers,
        )

    @property
    def events_folder(self) -> str | None:
        """Where the trial's TensorBoard events go; TensorBoard's own writer needs a local results folder."""
        location = self.location
        if location.filesystem.type_name != "local":
            return None
        return location.path(layout.run_events_folder(*self._run))

    @property
    def events_group(self) -> str:
        """The trial's name in TensorBoard, which shows its seeds together; studies may share a log folder."""
        return f"{self.study.name}/{self.trial:05d}"

    @property
    def checkpoint_path(self) -> str:
        """Where the trial's state is kept while it runs, within the results folder."""
        return layout.checkpoint_path(*self._run)

    @property
    def encoder_path(self) -> str:
        """Where the trial's encoder goes at its end, within the results folder."""
        return layout.encoder_path(*self._run)

    def snapshot_path(self, epoch: int) -> str:
        """Return where the encoder goes that the trial has after an epoch, within the results folder."""
        return layout.snapshot_path(*self._run, epoch)

    @property
    def _run(self) -> tuple[str, int, int]:
        return self.study.name, self.trial, self.experiment.seed


@dataclass(frozen=True)
class TrialReport:
    """One epoch as the scheduler sees it; `error` says why a trial ended without finishing.

    `std` holds the sample standard deviations of metrics that are means over several seeds. `warned` holds
    what a worker has warned of since its last report.
    """

    epoch: int
    metrics: Mapping[str, float]
    train_seconds: float
    finished: bool = False
    error: str | None = None
    std: Mapping[str, float] = field(default_factory=dict)
    warned: tuple[Warned, ...] = ()


def completed_report(request: TrialRequest) -> TrialReport | None:
    """Return the last report of a run that the store holds as completed; None of any other."""
    row = row_of(request.location, request.study, request.trial, request.experiment.seed)
    if row is None or row["status"] != "completed":
        return None
    metrics = {name: value for name, value in cells_under(METRIC, row).items() if value is not None}
    return TrialReport(row["epoch"], metrics, row["train_seconds"], finished=True)


def end_from_outside(request: TrialRequest, status: Status, **details: Any) -> Status:
    """Record the end of a trial that cannot record it itself: the scheduler stopped it, or its worker died.

    `details` are those of `store.end_trial`. Returns the status that the store now holds.
    """
    held = end_trial(request.location, request.study, request.info(), status, **details)
    with closing(TrialEvents(request.events_folder)) as events:
        events.session_end(held)
    if held in ENDED:
        request.location.delete(request.checkpoint_path)
    return held


class DataCache:
    """The prepared datasets that this process keeps: one, or one for each seed of a trial.

    A sweep has one dataset, but each seed of a transductive dataset has its own fold.
    """

    def __init__(self, size: int = 1, device: str = "cpu") -> None:
        self._size = size
        self._device = torch.device(device)
        self._held: dict[str, Prepared] = {}

    def get(self, experiment: Experiment, data_root: Path | None) -> Prepared:
        """Return the experiment's prepared data, loading it if the last experiment used other data."""
        key = preparation_key(experiment, data_root)
        if key not in self._held:
            while len(self._held) >= self._size:
                del self._held[next(iter(self._held))]
            self._held[key] = prepare_data(experiment, data_root, self._device)
        return self._held[key]


class Trial:
    """A trial in progress: `advance` trains one epoch, writes it, and reports it.

    `at_end` adds metrics to the result of the last epoch. If several `ranks` train it together, this is the
    first one; the others are `Follower`s. `checkpoints` are those that it shares with other trials; by
    default it has its own, by `clock`.
    """

    def __init__(
        self,
        request: TrialRequest,
        data: DataCache,
        *,
        at_end: AtEnd | None = None,
        clock: Callable[[], float] = time.monotonic,
        ranks: Ranks = ONE,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self._request = request
        self._ranks = ranks
        self._at_end = at_end
        self._writer = TrialWriter(request.location, request.study, request.info())
        self._events = TrialEvents(None)
        self._data = data
        self._state: bytes | None = None
        self._records: Iterator[EpochRecord] | None = None
        self._started = False
        self._ended = False
        self._has_checkpoint = False
        self._epoch = 0
        self._checkpoints = checkpoints if checkpoints is not None else Checkpoints(clock)

    def advance(self) -> TrialReport:
        """Train and record one epoch (first: the untrained encoder); report a failure, do not raise it.

        Raises:
            StoreUnavailable: the results cannot be kept. The trial is not at fault, and can go on later.
            TrialOvertaken: another worker has the trial now; this one writes nothing more.
            RanksLost: another process of the trial is gone. The trial is not at fault.
            GpuFault: the GPU no longer serves this process, which must end.
            SharedGpuFull: memory ran out on a GPU that other trials use too.
        """
        if self._ended:
            raise StoreError(f"trial {self._request.trial} has ended: there is nothing to advance")
        started = time.perf_counter()
        try:
            if self._records is None:
                # All ranks must leave out a trial that has completed, or the others would train alone.
                held = self._ranks.once(self._claim)
                if held is not None:
                    return held
                self._records = self._begin()
            record = next(self._records)
            added = self._at_end(record) if self._at_end is not None and record.finished else {}
            encoders = self._encoders(record)
        except (StoreUnavailable, TrialOvertaken, RanksLost):
            raise
        except TrainingDiverged as error:
            return self._fail(str(error))
        except BaseException as error:  # any fault of one trial is recorded, and the sweep goes on
            if not isinstance(error, Exception) and not raised_by_plugin(error):
                raise
            # Another try would begin from the last checkpoint.
            self._checkpoints.end()
            refuse_result(error, shared=self._request.shares_gpu)
            log.exception("trial %d failed", self._request.trial)
            return self._fail(reason_of(error, self._request.experiment))
        self._epoch = record.epoch
        metrics = {**record.metrics, **added}
        try:
            self._write(record, metrics, encoders, time.perf_counter() - started)
        except RuntimeError as error:
            # CUDA tells of a fault when it is waited for, such as for a copy of the state.
            refuse_result(error, shared=self._request.shares_gpu)
            raise
        return TrialReport(record.epoch, metrics, record.train_seconds, finished=record.finished)

    def fail(self, error: str) -> None:
        """End the trial as failed for an outside reason, unless it has ended."""
        if not self._ended:
            self._fail(error)

    def close(self) -> None:
        """Close the files and let go of the networks; the trial may have been stopped before its end."""
        self._checkpoints.end()
        self._events.close()
        self._records = None

    def _claim(self) -> TrialReport | None:
        """Start an attempt; if the store says that the trial has completed, return its last report instead.

        A worker may die after one seed has ended and before the others have, or before Ray hears of the end.
        """
        request = self._request
        try:
            state = _read_if_there(request.location, request.checkpoint_path)
            done = None if state is None else checkpoint_epoch(state)
            self._has_checkpoint = state is not None
            self._start(done)
        except StoreUnavailable:
            raise
        except Exception:
            held = completed_report(request)
            if held is None:
                raise
            self._ended = True
            return held
        self._state = state
        self._events = TrialEvents(request.events_folder, resumed_from=done)
        self._events.session_start(request.values, group=request.events_group)
        return None

    def _begin(self) -> Iterator[EpochRecord]:
        request = self._request
        state, self._state = self._state, None
        data = self._data.get(request.experiment, request.data_root)
        self._checkpoints.begin()
        return pretrain(request.experiment, state, data=data, device=request.device, ranks=self._ranks)

    def _write(
        self,
        record: EpochRecord,
        metrics: Mapping[str, float],
        encoders: Mapping[str, bytes],
        seconds: float,
    ) -> None:
        """Write the rows, the encoders (by path) and the state; a completed trial has its encoder's file."""
        self._writer.add_epoch(
            record.epoch,
            metrics,
            seconds=seconds,
            train_seconds=record.train_seconds,
            evaluate_seconds=record.evaluate_seconds,
        )
        self._events.scalars(record.epoch, tracked_metrics(record.epoch, metrics))
        if record.epoch in self._request.flush_at:
            self._writer.flush()
        if encoders:
            self._refuse_overtaken()
        for path, content in encoders.items():
            self._request.location.write(path, content)
        if record.finished:
            self._end("completed", metrics)
            return
        if self._checkpoints.due(record.epoch):
            # Rows come before the checkpoint: a checkpoint without its rows would leave a hole in the curve.
            self._writer.flush()
            self._refuse_overtaken()
            self._has_checkpoint = True
            path = self._request.checkpoint_path
            self._checkpoints.save(record.snapshot, partial(self._request.location.write, path))
        if record.epoch in self._request.flush_at:
            # The checkpoint of a stopped trial is deleted: none may be written after that.
            self._checkpoints.wait()

    def _encoders(self, record: EpochRecord) -> dict[str, bytes]:
        """Return the encoder files that are due after an epoch: their contents by path."""
        request = self._request
        due = [request.encoder_path] if record.finished and request.keeps_encoder else []
        if request.snapshots and record.epoch and record.epoch % request.snapshots == 0:
            due.append(request.snapshot_path(record.epoch))
        return dict.fromkeys(due, record.encoder_file()) if due else {}

    def _fail(self, error: str) -> TrialReport:
        if not self._started:
            self._start(None)
        self._end("failed", {}, error)
        return TrialReport(self._epoch, {}, 0.0, error=error)

    def _start(self, done: int | None) -> None:
        self._writer.start(epoch=done)
        self._started = True

    def _refuse_overtaken(self) -> None:
        # All attempts share the trial's checkpoint: an overtaken worker must not touch it.
        if self._writer.overtaken():
            raise TrialOvertaken(f"trial {self._request.trial} was taken over by another worker")

    def _end(self, status: Status, metrics: Mapping[str, float], error: str | None = None) -> None:
        if self._has_checkpoint:
            self._refuse_overtaken()
        self._ended = True
        self._writer.finish(status, metrics, error=error)
        self._events.session_end(status)
        self.close()
        if self._has_checkpoint:
            self._request.location.delete(self._request.checkpoint_path)


def _read_if_there(location: Location, path: str) -> bytes | None:
    try:
        return location.read(path)
    except FileNotFoundError:
        return None
