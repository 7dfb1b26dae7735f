"""`pretrain`: the loop. One record before training (the untrained encoder), then one after every epoch.

It knows nothing of Ray or of the store: a trial, a final run, a test and a notebook all read the same
records. Every random draw comes from a generator keyed by what it is for and by (seed, epoch, step), for the
global batch: results depend neither on the number of workers nor on whether the run was interrupted.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.optim import Optimizer

from data import OneClusterBatches, RandomViews, UniformBatches, named_seed, torch_generator
from models import NonFiniteFeatures, build_encoder
from tuning.config import Experiment
from tuning.errors import TrainingDiverged
from tuning.methods import METHODS
from tuning.training.checkpoint import dump_checkpoint, load_checkpoint
from tuning.training.evaluation import probe_scores
from tuning.training.objective import Batch, Gather, Objective, identity_gather
from tuning.training.optimizers import build_optimizer
from tuning.training.prepared import PreparedData, prepare_data
from tuning.training.schedules import learning_rate

VIEWS = 2


@dataclass(frozen=True)
class EpochRecord:
    """What is known after `epoch` epochs (0: the untrained encoder).

    `metrics` are flat names (`train.loss`, `val.ridge_accuracy`; `val.accuracy` at epoch 0 and at the last
    one); `train_seconds` and `evaluate_seconds` are the time spent on each. `objective` is the live one: it
    changes when the next record is asked for.
    """

    epoch: int
    epochs: int
    metrics: dict[str, float]
    train_seconds: float
    evaluate_seconds: float
    objective: Objective
    _run: "_Run"

    @property
    def finished(self) -> bool:
        """Whether this is the last record of the run."""
        return self.epoch == self.epochs

    def checkpoint(self) -> bytes:
        """Return the run's state, to be given to `pretrain(resume=...)`; call it before the next record."""
        return dump_checkpoint(self._run.experiment, self.epoch, self.objective, self._run.optimizer)


@dataclass(frozen=True)
class _Run:
    """The parts of a run in progress."""

    experiment: Experiment
    data: PreparedData
    objective: Objective
    optimizer: Optimizer
    batches: UniformBatches | OneClusterBatches
    views: RandomViews
    gather: Gather


def pretrain(
    experiment: Experiment,
    resume: bytes | Path | None = None,
    *,
    data: PreparedData | None = None,
    data_root: Path | None = None,
    device: torch.device | str = "cpu",
    gather: Gather = identity_gather,
) -> Iterator[EpochRecord]:
    """Train `experiment` and yield a record after every epoch, the first (epoch 0) before any training.

    Args:
        experiment: a resolved experiment (`tuning.resolve`).
        resume: a checkpoint of the same experiment: the records go on after its epoch.
        data: the prepared dataset, if it is at hand already; else it is loaded from `data_root`.
        data_root: the folder that holds the datasets.
        device: where the data, the network and the probes live.
        gather: concatenates embeddings over ranks, with gradient.

    Raises:
        InputError: the experiment asks for what is not there, or the checkpoint is not its own.
        TrainingDiverged: the loss became NaN or Inf, or a batch held no anchor.
    """
    place = torch.device(device)
    prepared = data if data is not None else prepare_data(experiment, data_root, place)
    run = _start(experiment, prepared, gather)
    first = 1
    if resume is None:
        yield _untrained_record(run)
    else:
        checkpoint = load_checkpoint(resume, experiment, place)
        run.objective.load_state_dict(checkpoint.objective)
        run.optimizer.load_state_dict(checkpoint.optimizer)
        first = checkpoint.epoch + 1
    for epoch in range(first, experiment.epochs + 1):
        yield _epoch_record(run, epoch)


def build_objective(experiment: Experiment, data: PreparedData) -> Objective:
    """Return the experiment's objective, initialised from its seed alone, on the data's device.

    The encoder is drawn before and apart from the rest, so that the untrained encoder is the same for every
    method and hyperparameter.
    """
    method, spec = METHODS[experiment.method], data.spec
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(named_seed(experiment.seed, "encoder"))
        encoder = build_encoder(experiment.encoder.name, spec.channels, spec.view_size)
        torch.manual_seed(named_seed(experiment.seed, "objective"))
        return method.build(experiment, encoder).to(data.device)


def _start(experiment: Experiment, data: PreparedData, gather: Gather) -> _Run:
    method = METHODS[experiment.method]
    seed = named_seed(experiment.seed, "batches")
    batches: UniformBatches | OneClusterBatches
    if method.clusters_of is None:
        batches = UniformBatches(len(data.train), experiment.batch_size, seed)
    else:
        clusters = method.clusters_of(experiment, data.train)
        batches = OneClusterBatches(clusters, experiment.batch_size, seed)
    settings = experiment.views
    views = RandomViews(
        size=data.spec.view_size,
        min_crop=settings.min_crop,
        max_crop=settings.max_crop,
        flip=settings.flip,
    )
    objective = build_objective(experiment, data)
    optimizer = build_optimizer(objective, experiment.optimizer)
    return _Run(experiment, data, objective, optimizer, batches, views, gather)


def _untrained_record(run: _Run) -> EpochRecord:
    started = time.perf_counter()
    key = f"{run.experiment.encoder.name} {run.experiment.seed} {run.experiment.probes.model_dump_json()}"
    if key not in run.data.untrained:
        run.data.untrained[key] = _validate(run, full=True)
    scores = run.data.untrained[key]
    return _record(run, 0, dict(scores), 0.0, time.perf_counter() - started)


def _epoch_record(run: _Run, epoch: int) -> EpochRecord:
    started = time.perf_counter()
    metrics = _train_epoch(run, epoch)
    trained = time.perf_counter()
    try:
        metrics.update(_validate(run, full=epoch == run.experiment.epochs))
    except NonFiniteFeatures as error:
        raise TrainingDiverged(f"{error}, at the end of epoch {epoch}: {_settings(run)}") from None
    return _record(run, epoch, metrics, trained - started, time.perf_counter() - trained)


def _record(run: _Run, epoch: int, metrics: dict[str, float], train: float, evaluate: float) -> EpochRecord:
    return EpochRecord(epoch, run.experiment.epochs, metrics, train, evaluate, run.objective, run)


def _train_epoch(run: _Run, epoch: int) -> dict[str, float]:
    experiment, steps = run.experiment, run.batches.steps_per_epoch
    losses, dropped = [], []
    run.objective.train()
    for step, index in enumerate(run.batches.epoch(epoch)):
        rate = learning_rate(
            experiment.optimizer.lr,
            (epoch - 1) * steps + step,
            steps_per_epoch=steps,
            epochs=experiment.epochs,
            schedule=experiment.schedule,
        )
        for group in run.optimizer.param_groups:
            group["lr"] = rate
        batch = _draw_batch(run, index, epoch, step)
        loss, metrics = run.objective.step(batch, run.gather)
        run.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        run.optimizer.step()
        losses.append(loss.detach())
        dropped.append(metrics["dropped_fraction"])
    # Read once an epoch: asking after every step would make an accelerator wait for the host.
    loss_trace, dropped_trace = torch.stack(losses), torch.stack(dropped)
    _refuse_divergence(run, epoch, loss_trace, dropped_trace)
    return {
        "train.loss": float(loss_trace.mean()),
        "train.dropped_fraction": float(dropped_trace.mean()),
        "train.lr": rate,
    }


def _draw_batch(run: _Run, index: torch.Tensor, epoch: int, step: int) -> Batch:
    train = run.data.train
    rows = index.to(train.images.device)
    images = train.images[rows]
    views = []
    for view in range(VIEWS):
        generator = torch_generator(run.experiment.seed, "views", epoch, step, view)
        views.append(run.views.apply(images, run.views.draw(len(rows), images.shape[-1], generator)))
    condition = None if train.condition is None else train.condition[rows]
    return Batch(torch.stack(views), train.labels[rows], condition, rows)


def _refuse_divergence(run: _Run, epoch: int, losses: torch.Tensor, dropped: torch.Tensor) -> None:
    where = _settings(run)
    broken = (~torch.isfinite(losses)).nonzero()
    if len(broken):
        step = int(broken[0])
        raise TrainingDiverged(f"loss {float(losses[step])} at epoch {epoch}, step {step}: {where}")
    # The last step's weights have not met a loss yet.
    if not all(bool(torch.isfinite(weight).all()) for weight in run.objective.state_dict().values()):
        raise TrainingDiverged(f"weights with NaN or Inf after epoch {epoch}: {where}")
    empty = (dropped >= 1).nonzero()
    if len(empty):
        raise TrainingDiverged(
            f"no anchor with a positive at epoch {epoch}, step {int(empty[0])}: {where}, "
            f"batches of {run.experiment.batch_size} images"
        )


def _settings(run: _Run) -> str:
    experiment = run.experiment
    values = {**experiment.hyperparameters, "optimizer.lr": experiment.optimizer.lr}
    return f"{experiment.method} with {values}"


def _validate(run: _Run, *, full: bool) -> dict[str, float]:
    data, settings = run.data, run.experiment.probes
    if data.validation is None:
        return {}
    fast = probe_scores(run.objective, data.probe_rows, data.validation, data.spec, settings, "ridge")
    scores = {f"val.ridge_{name}": score for name, score in fast.items()}
    if full:
        exact = probe_scores(run.objective, data.train, data.validation, data.spec, settings, "logistic")
        scores |= {f"val.{name}": score for name, score in exact.items()}
    return scores
