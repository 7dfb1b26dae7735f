"""What the workers of a final run do: train one configuration on one seed, and test it once."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import ray
import torch

from contrasweep.tuning.objectives.ranks import group_ranks
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.ray.nodes import refuse_this_node, take_share_of_node
from contrasweep.tuning.ray.record_boards import STARTED
from contrasweep.tuning.ray.trainer import fit
from contrasweep.tuning.training.final_scores import scores_of_final_run
from contrasweep.tuning.trials.seeds import new_trial
from contrasweep.tuning.trials.trial import DataCache, TrialReport, TrialRequest
from contrasweep.tuning.trials.worker_warnings import passing_on_warnings

Tell = Callable[[int], object]
"""Called with the epoch that a run has ended."""


def run_one(request: TrialRequest, tell: Tell = lambda epoch: None) -> TrialReport:
    """Train and test one configuration on one seed, from its checkpoint if an earlier attempt left one.

    Every rank of a group calls this function; the first one tests and writes, and calls `tell`.
    """
    torch.set_num_threads(request.cpus)
    ranks, at_end = group_ranks(), partial(scores_of_final_run, data_root=request.data_root)
    trial = new_trial(request, DataCache(device=request.device), ranks, at_end)
    report = trial.advance()
    while not report.finished and report.error is None:
        if ranks.rank == 0:
            tell(report.epoch)
        report = trial.advance()
    return report


def run_group(request: TrialRequest, name: str, board: Any, resources: Resources, storage: Path) -> None:
    """Train and test one configuration on one seed, on several workers together."""
    config = {"request": request, "name": name, "board": board, "checks_node": resources.machine is not None}
    fit(_run_rank, config, resources, storage)


def _run_rank(config: dict[str, Any]) -> None:
    run_on_ray(**config)


def run_on_ray(request: TrialRequest, name: str, board: Any, checks_node: bool = False) -> TrialReport:
    """Do `run_one`, and post its beginning, each epoch and its failure on an `EpochBoard`, under its `name`.

    Where the first worker of a group records a failure, the others raise its error, and Ray Train starts the
    group anew as after a death. The new group finds the failure on the board and does not train again.

    Raises:
        NodeLacks: the node is to be checked, and lacks what the run needs.
    """
    if checks_node:
        refuse_this_node(request)
    take_share_of_node(request.gpus)
    ranks = group_ranks()
    board.post.remote(name, STARTED)
    if ranks.world > 1:
        error: str | None = ranks.once(lambda: ray.get(board.error.remote(name)))
        if error is not None:
            return TrialReport(STARTED, {}, 0.0, error=error)
    with passing_on_warnings(board.warn.remote) if ranks.rank == 0 else nullcontext():
        report = run_one(request, lambda epoch: board.post.remote(name, epoch))
    if ranks.world > 1 and report.error is not None:
        ray.get(board.fail.remote(name, report.error))
    return report
