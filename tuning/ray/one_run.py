"""One run of one experiment: in this process, or by Ray on several workers or on a part of a GPU."""

from collections.abc import Callable, Iterator

import torch

from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.planning.train_plan import TrainPlan
from contrasweep.tuning.ray.record_boards import Row
from contrasweep.tuning.training.pretrain import EpochRecord, OnStep, pretrain

Records = Iterator[tuple[EpochRecord | Row, Callable[[], bytes]]]
"""The record of each epoch, and a way to get the latest state."""


def records_of(plan: TrainPlan, *, on_step: OnStep | None = None, keeps_states: bool = True) -> Records:
    """Train; yield the record of each epoch, and a way to get the latest state.

    Args:
        plan: the run.
        on_step: called now and then with the epoch, the number of the step, and the steps of an epoch.
        keeps_states: whether workers save their state after every epoch; see `pretrain_on_workers`.

    Raises:
        InputError: there is not so much of the resources, or the batches do not divide among the workers; at
            once, not with the first record.
        TrainingDiverged: see `pretrain`.
        SweepFailed: see `pretrain_on_workers`.
    """
    if plan.asked.in_one_process:
        torch.set_num_threads(AskedResources(1, plan.asked.cpus, gpus=0.0).resources().cpus)
        records = pretrain(
            plan.experiment, plan.state, data_root=plan.data_root, device=plan.device, on_step=on_step
        )
        return ((record, record.checkpoint) for record in records)
    # Only a run on workers waits for the import of Ray.
    from contrasweep.tuning.ray.trainer import pretrain_on_workers

    return pretrain_on_workers(
        plan.experiment,
        plan.asked.resources(),
        state=plan.state,
        data_root=plan.data_root,
        on_step=on_step,
        keeps_states=keeps_states,
    )
