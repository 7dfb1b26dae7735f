"""The workers that train one trial together, each a rank in a process of its own.

A group lives in the trial's own placement group, which Tune removes with the trial, and stays for the next
trial, as a single worker does. Ray Train is not used here, which starts a trainer and new workers for each
trial, and whose placement group is no part of the trial's. With Ray 2.60, a group whose trial is killed while
it starts stays, as does one that Ray's cleaner cannot ask about, because another Ray runs on the machine; the
sweep then waits for ever. docs/many-gpus-records.md has the figures.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
import torch
import torch.distributed as dist
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from contrasweep.losses import RanksLost
from contrasweep.tuning.objectives import rank_timeouts
from contrasweep.tuning.objectives.ranks import Ranks
from contrasweep.tuning.ray.network import apart_in_words, meet_on_rays_network
from contrasweep.tuning.ray.nodes import NodeLacks, TrialNowhere, take_share_of_node, trial_nowhere
from contrasweep.tuning.ray.reserved import backend_for
from contrasweep.tuning.ray.watch import report_crashes
from contrasweep.tuning.store import StoreUnavailable, TrialOvertaken
from contrasweep.tuning.trials.seeds import new_trial
from contrasweep.tuning.trials.trial import DataCache, TrialReport, TrialRequest
from contrasweep.tuning.trials.worker_warnings import KeptWarnings

log = logging.getLogger(__name__)

OTHER_RANKS_SECONDS = 30.0
"""Seconds that the other ranks may still take once a rank has failed or the first has reported."""


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

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function in the process of this rank."""
        return function(*given)

    def join(self, host: str, port: int, backend: str) -> None:
        """Join the process group of the ranks."""
        if self._store is None:
            self._store = TCPStore(host, port, self._ranks.world)
        rank, world = self._ranks.rank, self._ranks.world
        meet_on_rays_network()
        dist.init_process_group(
            backend, store=self._store, rank=rank, world_size=world, timeout=rank_timeouts.COLLECTIVE
        )

    def begin(self, request: TrialRequest) -> None:
        """Begin a trial."""
        torch.set_num_threads(request.cpus)
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

    def begin(self, request: TrialRequest) -> "RankGroup | TrialNowhere":
        """Begin a trial on the present ranks, or on new ones if there are none.

        If new ones do not reach each other, the trial that is returned raises this as `NodeLacks`.
        """
        if not self._actors:
            self._actors = self._started(request)
            apart = self._joined(request)
            if apart is not None:
                self.end()
                return TrialNowhere(NodeLacks(apart))
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
            ray.get([actor.close.remote() for actor in self._actors], timeout=OTHER_RANKS_SECONDS)
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
        return [
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

    def _execute(self, function: Callable[..., Any], *given: Any) -> list[Any]:
        results: list[Any] = ray.get([actor.call.remote(function, *given) for actor in self._actors])
        return results

    def _joined(self, request: TrialRequest) -> str | None:
        """Let all ranks join one process group; return why they cannot."""
        # A rank that starts late must find the doors of the others open.
        ray.get([actor.__ray_ready__.remote() for actor in self._actors])
        apart = apart_in_words(self._execute)
        if apart is None:
            host, port = ray.get(self._actors[0].open.remote())
            ray.get([actor.join.remote(host, port, backend_for(request.gpus)) for actor in self._actors])
        return apart


def _outcomes(calls: Sequence[Any]) -> tuple[dict[int, TrialReport], dict[int, RayError]]:
    """Return the reports and the errors of the ranks, by rank.

    Once a rank has failed or the first has reported, the others have `OTHER_RANKS_SECONDS`: they may hang.
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
            limit = OTHER_RANKS_SECONDS
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


def free_memory(device: str) -> None:
    """Give what the last trial had of the GPU's memory back: other processes may share the GPU.

    torch would keep the most that any trial of this process has taken.
    """
    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()
