"""The Ray actors that run trials: one process for each, or a group of processes, one for each rank.

A group lives in the trial's own placement group, which Tune removes with the trial, and stays for the next
trial, as a single worker does. Ray Train is not used here, which starts a trainer and new workers for each
trial, and whose placement group is no part of the trial's. With Ray 2.60, a group whose trial is killed while
it starts stays, as does one that Ray's cleaner cannot ask about, because another Ray runs on the machine; the
sweep then waits for ever. docs/many-gpus.md has the figures.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
import torch
import torch.distributed as dist
from ray import tune
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from contrasweep.losses import RanksLost
from contrasweep.tuning.objectives import waiting
from contrasweep.tuning.objectives.ranks import Ranks
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.planning.seeds import new_trial
from contrasweep.tuning.planning.trial import DataCache, TrialReport, TrialRequest
from contrasweep.tuning.planning.warned import KeptWarnings
from contrasweep.tuning.ray.nodes import take_share_of_node, trial_nowhere
from contrasweep.tuning.ray.watch import report_crashes
from contrasweep.tuning.results.best import merit
from contrasweep.tuning.store import StoreUnavailable, TrialOvertaken

log = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds that the other ranks may still take once a rank has failed or the first has reported."""

TOGETHER = 0.25
"""Seconds of epochs that a worker reports at once: each report makes it wait for the driver."""


def of_one_worker(resources: Resources) -> dict[str, float]:
    """Return the CPUs and GPUs that one worker reserves, as Ray names them."""
    return {"CPU": resources.cpus, **({"GPU": resources.gpus} if resources.gpus else {})}


def bundles(resources: Resources) -> Any:
    """Return the resources that one trial reserves.

    Each of several ranks has a bundle. Their owner only waits, so its bundle is empty.
    """
    one = of_one_worker(resources)
    if resources.workers == 1:
        return one
    # Ray leaves the empty bundle out of the group, so the bundle of rank 0 is the first.
    return tune.PlacementGroupFactory([{}, *[one] * resources.workers], strategy=placement(resources))


def placement(resources: Resources) -> str:
    """Return Ray's word for where the workers of a trial are: on few nodes, or all on one."""
    return "STRICT_PACK" if resources.one_node else "PACK"


def backend_for(gpus: float) -> str:
    """Return the backend of a process group: NCCL needs a whole GPU for each rank, gloo does not."""
    return "cpu:gloo,cuda:nccl" if gpus == 1 else "gloo"


class RankActor:
    """One rank of a group, from its first trial on: rank 0 runs the `Trial`, the others follow it."""

    def __init__(self, rank: int, first: TrialRequest, crashes: str, checks_node: bool) -> None:
        report_crashes(Path(crashes))
        self._nowhere = trial_nowhere(first) if checks_node else None
        take_share_of_node(first.gpus)
        self._ranks = Ranks(rank, first.workers)
        self._device = first.device
        self._data = DataCache(first.seeds, first.device)
        self._warned = KeptWarnings()
        self._trial: Any = None
        self._store: Any = None

    def open(self) -> tuple[str, int]:
        """Open the TCP store through which the ranks meet, and return its host and port."""
        host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._store = TCPStore(host, 0, self._ranks.world, is_master=True, wait_for_workers=False)
        return host, self._store.port

    def join(self, host: str, port: int, backend: str) -> None:
        """Join the process group of the ranks."""
        if self._store is None:
            self._store = TCPStore(host, port, self._ranks.world)
        rank, world = self._ranks.rank, self._ranks.world
        dist.init_process_group(
            backend, store=self._store, rank=rank, world_size=world, timeout=waiting.COLLECTIVE
        )

    def begin(self, request: TrialRequest) -> None:
        """Begin a trial."""
        torch.set_num_threads(max(1, request.cpus))
        self._trial = self._nowhere or new_trial(request, self._data, self._ranks)

    def advance(self) -> TrialReport:
        """Train one epoch and report it.

        Raises:
            StoreUnavailable, TrialOvertaken: raised by the first rank, see `Trial`.
            NodeLacks: this node lacks what the trial needs.
            RanksLost: another rank is gone.
        """
        report: TrialReport = self._trial.advance()
        return replace(report, warned=tuple(self._warned.take()))

    def close(self) -> None:
        """Close the trial's files, and free its memory."""
        if self._trial is not None:
            self._trial.close()
            free_memory(self._device)


class RankGroup:
    """The ranks that run one trial after another; after a failure, new ones are started.

    A `TrialWorker` uses it like the `Trial` that has begun.
    """

    def __init__(self, crashes: str, checks_node: bool) -> None:
        self._crashes = crashes
        self._checks_node = checks_node
        self._actors: list[Any] = []

    def begin(self, request: TrialRequest) -> "RankGroup":
        """Begin a trial on the present ranks, or on new ones if there are none."""
        if not self._actors:
            self._actors = self._started(request)
        ray.get([actor.begin.remote(request) for actor in self._actors])
        return self

    def advance(self) -> TrialReport:
        """Train one epoch on all ranks; return the report of the first.

        Raises:
            StoreUnavailable, TrialOvertaken: raised by the first rank.
            RayError: a rank died or failed. All ranks are ended then.
        """
        calls = [actor.advance.remote() for actor in self._actors]
        reports, errors = _outcomes(calls)
        first = reports.get(0)
        states = {(report.epoch, report.error is None) for report in reports.values()}
        if first is not None and len(reports) == len(calls) and len(states) == 1:
            return first
        self.end()
        if first is not None and (first.error is not None or first.finished):
            # The trial itself has ended, so the failure of another rank does not matter.
            return first
        silent = [rank for rank in range(len(calls)) if rank not in reports and rank not in errors]
        raise _most_telling(errors, reports, silent)

    def close(self) -> None:
        """Close the files of the trial, which may have been stopped in the middle."""
        try:
            ray.get([actor.close.remote() for actor in self._actors], timeout=PATIENCE)
        except RayError:
            log.warning("the workers of a trial did not close its files", exc_info=True)
            self.end()

    def end(self) -> None:
        """End all ranks."""
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []

    def _started(self, request: TrialRequest) -> list[Any]:
        group: Any = ray.util.get_current_placement_group()
        remote: Any = ray.remote(RankActor)
        actors = [
            remote.options(
                num_cpus=request.cpus,
                num_gpus=request.gpus,
                max_restarts=0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    group, placement_group_bundle_index=rank
                ),
            ).remote(rank, request, self._crashes, self._checks_node)
            for rank in range(request.workers)
        ]
        host, port = ray.get(actors[0].open.remote())
        ray.get([actor.join.remote(host, port, backend_for(request.gpus)) for actor in actors])
        return actors


def _outcomes(calls: Sequence[Any]) -> tuple[dict[int, TrialReport], dict[int, RayError]]:
    """Return the reports and the errors of the ranks, by rank.

    Once a rank has failed or the first has reported, the others have `PATIENCE` seconds: they may hang.
    """
    rank_of = {call: rank for rank, call in enumerate(calls)}
    reports: dict[int, TrialReport] = {}
    errors: dict[int, RayError] = {}
    waiting, limit = list(calls), None
    while waiting:
        done, waiting = ray.wait(waiting, timeout=limit)
        if not done:
            break
        rank = rank_of[done[0]]
        try:
            reports[rank] = ray.get(done[0])
        except RayError as error:
            errors[rank] = error
        if rank == 0 or rank in errors or reports[rank].error is not None:
            limit = PATIENCE
    return reports, errors


def how_telling(error: BaseException | None) -> int:
    """Return the place of an error among those of a group's workers; the lowest says most of the failure.

    What the store says comes first, because it ends more than this run. `RanksLost` says only that another
    worker has failed.
    """
    if isinstance(error, StoreUnavailable | TrialOvertaken):
        return 0
    return 2 if isinstance(error, RanksLost) else 1


def _most_telling(
    errors: dict[int, RayError], reports: dict[int, TrialReport], silent: Sequence[int]
) -> Exception:
    """Return the most informative error: the store's, then a death, an exception, an error in a report.

    Ranks that wait for one that hangs end with `RanksLost`, and the one that hangs is `silent`.
    """
    causes: dict[int, Exception] = {
        rank: error.cause for rank, error in errors.items() if isinstance(error, RayTaskError)
    }
    for cause in causes.values():
        if how_telling(cause) == 0:
            return cause
    deaths = [error for error in errors.values() if isinstance(error, RayActorError)]
    own = [error for rank, error in errors.items() if how_telling(causes.get(rank)) < 2]
    for error in (*deaths, *own):
        return error
    if silent:
        hung = " and ".join(f"worker {rank}" for rank in silent)
        waited = f"; the others: {next(iter(causes.values()))}" if causes else ""
        return RanksLost(f"{hung} hung: all others have ended the epoch, or have waited in vain{waited}")
    for error in errors.values():
        return error
    told = [f"worker {rank}: {one.error}" for rank, one in reports.items() if one.error is not None]
    return RuntimeError("; ".join(told) or "the workers of a trial are at different epochs")


class TrialWorker(tune.Trainable):
    """Advances a `Trial` by one epoch at each step; Tune reuses the actor for the next trial.

    A trial that fails by itself (its loss becomes NaN, for example) ends as a normal result with `error` set:
    another try would fail again. A fault of the GPU is raised: it ends this actor, and Tune tries the trial
    again in another one. If the store cannot be used, or another attempt has overtaken the trial, the result
    has `lost` set: the driver then stops the sweep, and a resumed sweep goes on with the trial. So it does if
    the node lacks what the trial needs. Ray notices by itself when a worker dies. The workers of a trial that
    has several are in a `RankGroup`; this actor only waits for them.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Begin the first trial."""
        report_crashes(Path(config["crashes"]))
        request: TrialRequest = config["request"]
        self._device = request.device
        self._data = DataCache(request.seeds, request.device)
        self._warned = KeptWarnings()
        checks = bool(config["checks_node"])
        self._group = RankGroup(config["crashes"], checks) if request.workers > 1 else None
        self._nowhere = trial_nowhere(request) if checks and self._group is None else None
        take_share_of_node(request.gpus)
        self._begin(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Begin the next trial in this actor."""
        self._let_go()
        self._begin(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Train one epoch and report it."""
        try:
            report = self._trial.advance()
            if report.finished or report.error is not None:
                self._let_go()
            lost = None
        except (StoreUnavailable, TrialOvertaken) as error:
            report, lost = TrialReport(0, {}, 0.0), str(error)
        report = replace(report, warned=(*report.warned, *self._warned.take()))
        return report_of(report, self._rung_metric, lost)

    def train_buffered(self, *limits: Any) -> list[dict[str, Any]]:
        """Train epochs for `TOGETHER` seconds; an epoch after which the trial may be stopped comes alone.

        Tune calls this in place of `train`, and passes `limits` in another order than it names them. Each
        result says by its `age` how many seconds ago its epoch ended.
        """
        results: list[dict[str, Any]] = []
        ended: list[float] = []
        begun = time.monotonic()
        while True:
            last: dict[str, Any] = self.train()  # type: ignore[no-untyped-call]
            results.append(last)
            ended.append(time.monotonic())
            # A driver that dies before it hears of such an epoch must find none in the store: a resumed sweep
            # takes it that the trial was let go on.
            may_stop = not self._stops_at.isdisjoint((last["epoch"], last["epoch"] + 1))
            if last["done"] or may_stop or ended[-1] - begun >= TOGETHER:
                break
        return [{**result, "age": ended[-1] - then} for result, then in zip(results, ended, strict=True)]

    def cleanup(self) -> None:
        """Close the files of the last trial and end its workers."""
        self._trial.close()
        if self._group is not None:
            self._group.end()

    def _let_go(self) -> None:
        self._trial.close()
        free_memory(self._device)

    def _begin(self, config: dict[str, Any]) -> None:
        request: TrialRequest = config["request"]
        torch.set_num_threads(max(1, int(request.cpus)))
        self._rung_metric: str = config["rung_metric"]
        self._stops_at = request.flush_at
        self._trial = self._nowhere or (
            new_trial(request, self._data) if self._group is None else self._group.begin(request)
        )
        # Otherwise Tune would send the configuration back with every result.
        self.config = {}


def free_memory(device: str) -> None:
    """Give what the last trial had of the GPU's memory back: other processes may share the GPU.

    torch would keep the most that any trial of this process has taken.
    """
    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()


def report_of(report: TrialReport, rung_metric: str, lost: str | None = None) -> dict[str, Any]:
    """Return a trial's report as the flat mapping that Ray Tune takes as a result.

    Its `score` is the merit of the rung metric: the larger is the better. `lost` says why the trial can
    report nothing: it ends here, and a resumed sweep goes on with it.
    """
    # ASHA compares every result. NaN is never below another score, so failures report minus infinity.
    there = report.error is None and rung_metric in report.metrics
    score = merit(rung_metric, report.metrics[rung_metric]) if there else float("-inf")
    return {
        "epoch": report.epoch,
        "score": score if score == score else float("-inf"),
        "metrics": dict(report.metrics),
        "std": dict(report.std),
        "train_seconds": report.train_seconds,
        "finished": report.finished,
        "error": report.error,
        "warned": list(report.warned),
        "lost": lost,
        "done": report.finished or report.error is not None or lost is not None,
    }
