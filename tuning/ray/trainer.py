"""A run on several worker processes, the ranks of Ray Train's TorchTrainer."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import ray
import torch
from ray.exceptions import RayError
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, get_device

from contrasweep.data import data_root as folder_of_data
from contrasweep.losses import RanksLost
from contrasweep.plugin_places import plugin_fault, plugin_place, raised_by_plugin
from contrasweep.tuning.errors import InputError, SweepFailed, TrainingDiverged
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives import rank_timeouts
from contrasweep.tuning.objectives.ranks import check_batch_size, group_ranks
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.ray.cluster import local_ray
from contrasweep.tuning.ray.internals import raised_by_workers
from contrasweep.tuning.ray.nodes import take_share_of_node
from contrasweep.tuning.ray.record_boards import Board, Row
from contrasweep.tuning.ray.reserved import backend_for, of_one_worker, placement
from contrasweep.tuning.ray.torch_backend import TorchOnRaysNetwork
from contrasweep.tuning.ray.worker_group import how_telling
from contrasweep.tuning.training.devices import device_of
from contrasweep.tuning.training.pretrain import OnStep, pretrain
from contrasweep.tuning.trials.checkpoints import CHECKPOINT_SECONDS
from contrasweep.tuning.trials.gpu_errors import gpu_errors_in_words
from contrasweep.tuning.trials.worker_warnings import WarnOnce, passing_on_warnings

log = logging.getLogger(__name__)

RESTARTS = 1
"""How often a group restarts from its last checkpoint after one of its workers died."""

POLL = 0.2
"""Seconds between two reads of the workers' records."""

STEP_SECONDS = 0.5
"""Least seconds between two steps that the first worker tells of."""


POSTED: Final = {one.__name__: one for one in (InputError, SweepFailed, TrainingDiverged)}
"""The errors that the first worker posts on the board, by their names."""


def fit(
    loop: Callable[[dict[str, Any]], None], config: dict[str, Any], resources: Resources, storage: Path
) -> None:
    """Call `loop(config)` on every worker of a group, in one process group; return when all have ended.

    When a worker dies, the group ends and is started once more. The loop then goes on from what it has saved.

    Raises:
        ray.train.TrainingFailedError: a worker died again.
    """

    def on_its_gpu(given: dict[str, Any]) -> None:
        device = get_device()
        # Every worker of Ray Train sees all GPUs of its machine.
        if isinstance(device, torch.device) and device.type == "cuda":
            torch.cuda.set_device(device)
        loop(given)

    timeout = int(rank_timeouts.COLLECTIVE.total_seconds())
    TorchTrainer(
        on_its_gpu,
        train_loop_config=config,
        torch_config=TorchOnRaysNetwork(backend=backend_for(resources.gpus), timeout_s=timeout),
        scaling_config=ScalingConfig(
            num_workers=resources.workers,
            use_gpu=resources.gpus > 0,
            resources_per_worker=of_one_worker(resources),
            placement_strategy=placement(resources),
        ),
        run_config=RunConfig(storage_path=str(storage), failure_config=FailureConfig(max_failures=RESTARTS)),
    ).fit()


def pretrain_on_workers(
    experiment: Experiment,
    resources: Resources,
    *,
    state: bytes | None = None,
    data_root: Path | None = None,
    on_step: OnStep | None = None,
    keeps_states: bool = True,
) -> Iterator[tuple[Row, Callable[[], bytes]]]:
    """Train an experiment on the workers of `resources`; yield each record and a way to get the latest state.

    Args:
        experiment: a resolved experiment.
        resources: the resources of the run; their concurrency is 1.
        state: a checkpoint to go on from; any number of workers may have written it.
        data_root: the folder of the datasets.
        on_step: called now and then with the epoch, the number of the step, and the steps of an epoch.
        keeps_states: whether the workers save their state after every epoch. Otherwise they do so every
            `CHECKPOINT_SECONDS`, for a group that starts anew, and the state may be of an earlier epoch.

    Raises:
        InputError: the batches do not divide among the workers.
        TrainingDiverged: see `pretrain`.
        SweepFailed: the workers failed twice; or, once, memory ran out or a plug-in raised an error.
    """
    # Checked here and not in the generator, whose body starts with the first record.
    check_batch_size(experiment.batch_size, resources.workers)
    root = folder_of_data(data_root).absolute()
    return _records(experiment, resources, state, root, on_step, keeps_states)


def _records(
    experiment: Experiment,
    resources: Resources,
    state: bytes | None,
    data_root: Path,
    on_step: OnStep | None,
    keeps_states: bool,
) -> Iterator[tuple[Row, Callable[[], bytes]]]:
    with local_ray(resources.cores) as scratch:
        board: Any = ray.remote(num_cpus=0)(Board).remote(state)
        config = {"experiment": experiment, "resources": resources, "data_root": data_root, "board": board}
        config |= {"seconds": 0.0 if keeps_states else CHECKPOINT_SECONDS}
        running = ray.remote(num_cpus=0, max_retries=0)(fit).remote(
            _post, config, resources, scratch / "train"
        )
        tell, ended = WarnOnce(), False
        while not ended:
            ended = bool(ray.wait([running], timeout=POLL)[0])
            rows, step, warned = ray.get(board.take.remote())
            tell(warned)
            for row in rows:
                if row.error is not None:
                    raise POSTED[row.kind](row.error)
                yield row, lambda: ray.get(board.state.remote())
            if step is not None and on_step is not None:
                on_step(*step)
        try:
            ray.get(running)
        except RayError as error:
            raise _in_words(error) from error


def cause_of(error: RayError) -> BaseException:
    """Return the cause of a failed Ray task: that of the task, or the most telling of its group's."""
    cause = getattr(error, "cause", None) or error
    return min(raised_by_workers(cause) or [cause], key=how_telling)


def error_in_one_line(error: BaseException) -> str:
    """Return an error as one line."""
    lines = str(error).strip().splitlines() or [""]
    return lines[-1] if isinstance(error, RayError) else f"{type(error).__name__}: {lines[0]}"


def _in_words(error: RayError) -> Exception:
    cause = cause_of(error)
    if isinstance(cause, InputError | SweepFailed):
        return cause
    return SweepFailed(
        f"the workers failed {RESTARTS + 1} times, the last time with {error_in_one_line(cause)}"
    )


def _post(config: dict[str, Any]) -> None:
    """Train on this rank; the first rank posts every record to the board."""
    experiment: Experiment = config["experiment"]
    resources: Resources = config["resources"]
    torch.set_num_threads(resources.cpus)
    take_share_of_node(resources.gpus)
    ranks, board = group_ranks(), config["board"]
    told, device = ranks.rank == 0, device_of(resources.gpus)
    state = ray.get(board.state.remote()) if told else None
    on_step = now_and_then(board) if told else None
    due = every(config["seconds"])
    warnings = passing_on_warnings(board.warn.remote) if told else nullcontext()
    try:
        with warnings, gpu_errors_in_words(experiment), plugin_errors_in_words():
            for record in pretrain(
                experiment, state, data_root=config["data_root"], device=device, ranks=ranks, on_step=on_step
            ):
                if told:
                    row = Row(record.epoch, record.epochs, record.metrics)
                    ray.get(board.post.remote(row, record.checkpoint() if due() else None))
    except tuple(POSTED.values()) as error:
        # What a new group would meet again ends the run: the driver stops at the row. Subclasses are faults
        # of a GPU or of Ray, for which a new group is started.
        kind = type(error).__name__
        if told and kind in POSTED:
            ray.get(board.post.remote(Row(0, experiment.epochs, {}, str(error), kind), None))
        # All workers find a divergence, and each may end. Another error may be that of this worker alone.
        if not isinstance(error, TrainingDiverged):
            raise


@contextmanager
def plugin_errors_in_words() -> Iterator[None]:
    """Let an error of a plug-in inside the block name its line: an error leaves its traceback on its worker.

    Raises:
        SweepFailed: the error came through the code of a plug-in.
    """
    try:
        yield
    except (InputError, SweepFailed, TrainingDiverged, RanksLost):
        raise
    except BaseException as error:
        # An error without a line of a plug-in may be a passing one: the group is started once more.
        of_plugin = isinstance(error, Exception) and plugin_place(error) is not None
        told = plugin_fault(error) if of_plugin or raised_by_plugin(error) else None
        if told is None:
            raise
        raise SweepFailed(told) from error


def every(seconds: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Return what says whether so many seconds have passed since it last said so, or since now."""
    last = clock()

    def due() -> bool:
        nonlocal last
        now = clock()
        if now - last < seconds:
            return False
        last = now
        return True

    return due


def now_and_then(board: Any, clock: Callable[[], float] = time.monotonic) -> OnStep:
    """Return what posts steps to the board: one in `STEP_SECONDS`, and the last of an epoch.

    Training does not wait for the board.
    """
    last = clock()

    def post(epoch: int, step: int, steps: int) -> None:
        nonlocal last
        if step == steps or clock() - last >= STEP_SECONDS:
            last = clock()
            board.post_step.remote((epoch, step, steps))

    return post
