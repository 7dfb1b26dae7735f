"""`pretrain`, the training loop: one record before training (the untrained encoder), one after every epoch.

It knows nothing of Ray or of the store: a trial, a final run, a test and a notebook all read the same
records. The seed of every random draw follows from its purpose and (seed, epoch, step), and draws are for the
global batch. So results do not depend on the number of workers, nor on whether the run was interrupted.
"""

import reprlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.optim import Optimizer

from contrasweep.data.seeds import drawing
from contrasweep.models import Encoder, NonFiniteFeatures
from contrasweep.names import few
from contrasweep.tuning.errors import InputError, TrainingDiverged, WrongReturn
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import label_free_views
from contrasweep.tuning.objectives.batch_norm import synchronise_batch_norm
from contrasweep.tuning.objectives.batches import Feed, of_one_shape
from contrasweep.tuning.objectives.encoders import encoder_file
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import Prepared, prepare_data
from contrasweep.tuning.objectives.ranks import ONE, Ranks, check_batch_size
from contrasweep.tuning.training.averaging import WeightAverage
from contrasweep.tuning.training.checked_returns import (
    finite_tensors,
    objective_of,
    of_epoch,
    refuse_changed_state,
    refuse_unusable_step,
    shapes_of_state,
)
from contrasweep.tuning.training.checkpoint import Snapshot, load_checkpoint, take_snapshot
from contrasweep.tuning.training.compute import compile_backbones, computing, set_precision, training_steps
from contrasweep.tuning.training.devices import AUTO, device_for
from contrasweep.tuning.training.evaluation import embed_training_set, validation_scores
from contrasweep.tuning.training.global_draws import GlobalDraws
from contrasweep.tuning.training.optimizers import build_optimizer, clip_gradients, learning_rate
from contrasweep.tuning.training.plugin_errors import suspecting_plugins


@dataclass(frozen=True)
class EpochRecord:
    """The state of a run after `epoch` epochs (0: the untrained encoder).

    Attributes:
        epoch: epochs done.
        epochs: epochs of the whole run.
        metrics: scores by flat name: `train.loss`, `val.ridge_accuracy`, and at epoch 0, the last one and
            those of `probes.at_epochs` `val.accuracy`.
        train_seconds: time spent on training this epoch.
        evaluate_seconds: time spent on its scores.
        objective: the run's own, not a copy: it changes when the next record is asked for. With
            `optimizer.ema` it has the average of the weights.
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

    @property
    def device(self) -> torch.device:
        """Where the run takes place."""
        return self.data.device

    @property
    def experiment(self) -> Experiment:
        """The settings of the run."""
        return self._run.experiment

    @property
    def data(self) -> Prepared:
        """The dataset of the run. Where several ranks train it, they score on this data together."""
        return self._run.data

    def encoder_file(self) -> bytes:
        """Return the content of the encoder's file (safetensors, with the experiment in its header)."""
        return encoder_file(self.data.spec, self.objective.encoder, self.experiment)

    def checkpoint(self) -> bytes:
        """Return the run's state for `pretrain(resume=...)`; call it before asking for the next record."""
        return self.snapshot().dumped()

    def snapshot(self) -> Snapshot:
        """Return a copy of the run's state, whose bytes are those of `checkpoint` at any later time.

        Call it before asking for the next record.
        """
        run = self._run
        return take_snapshot(run.experiment, self.epoch, self.objective, run.optimizer, run.average)


AtEnd = Callable[[EpochRecord], Mapping[str, float]]
"""Returns more metrics of a run's last record: the scores on the test split of a final run."""

OnStep = Callable[[int, int, int], object]
"""Called with the epoch, the step in it, and the steps of an epoch."""


@dataclass(frozen=True)
class _Run:
    """The parts of a run in progress; between two epochs, the objective has the average of the weights."""

    experiment: Experiment
    data: Prepared
    objective: Objective
    optimizer: Optimizer
    average: WeightAverage | None
    feed: Feed
    ranks: Ranks
    on_step: OnStep | None
    same_shapes: bool
    finite: Sequence[str]
    """The tensors of the objective's state that begin without NaN and Inf; a constant mask may have Inf."""


def pretrain(
    experiment: Experiment,
    resume: bytes | Path | None = None,
    *,
    data: Prepared | None = None,
    data_root: Path | None = None,
    device: torch.device | str = AUTO,
    ranks: Ranks = ONE,
    on_step: OnStep | None = None,
) -> Iterator[EpochRecord]:
    """Train `experiment` and yield a record after every epoch, the first (epoch 0) before any training.

    Args:
        experiment: a resolved experiment (`planning.resolve`).
        resume: a checkpoint of the same experiment; the first record is the one after its epoch.
        data: the prepared dataset; None loads it from `data_root`.
        data_root: the folder that holds the datasets.
        device: where the data, the network and the probes are: torch's name, or `auto`, which is where `data`
            is, else a GPU where there is one.
        ranks: the place of this process among those that train the run together. All of them call `pretrain`
            and ask for each record together; the numbers are those of one process. The first rank's
            checkpoint counts, and any number of ranks can go on from it.
        on_step: called after each step with the epoch, the number of the step, and the steps of an epoch.

    Raises:
        InputError: a file of the experiment is missing, its batches do not divide among the ranks, or the
            checkpoint belongs to another experiment.
        TrainingDiverged: the loss became NaN or Inf, or no batch of an epoch held an anchor.
        WrongReturn: the method returns what cannot be used, or a loss that depends on nothing that is
            learned.
        RanksLost: another rank has ended.
        NotRepeatable: the encoder, the loss or the method draws from torch's global generator.
    """
    if not isinstance(experiment, Experiment):
        raise InputError(
            "pretrain takes an experiment, as `resolve` of contrasweep.tuning.planning.resolve returns it; "
            f"given {reprlib.repr(experiment)}"
        )
    check_batch_size(experiment.batch_size, ranks.world)
    place = _device(device, data)
    prepared = data if data is not None else prepare_data(experiment, data_root, place)
    with computing(experiment.compute, place), suspecting_plugins(experiment):
        run = _start(experiment, prepared, ranks, on_step)
    state = ranks.once(lambda: resume.read_bytes() if isinstance(resume, Path) else resume)
    first = 1
    if state is None:
        with computing(experiment.compute, place), suspecting_plugins(experiment):
            record = _untrained_record(run)
        yield record
    else:
        checkpoint = load_checkpoint(state, experiment)
        checkpoint.restore(run.objective, run.optimizer, run.average)
        first = checkpoint.epoch + 1
    for epoch in range(first, experiment.epochs + 1):
        with computing(experiment.compute, place), suspecting_plugins(experiment):
            record = _epoch_record(run, epoch)
        yield record


def _device(asked: torch.device | str, data: Prepared | None) -> torch.device:
    if asked != AUTO:
        return torch.device(asked)
    return torch.device(device_for(AUTO)) if data is None else data.device


def build_objective(experiment: Experiment, data: Prepared) -> Objective:
    """Return the experiment's objective on the data's device; its initial weights depend on the seed alone.

    The encoder has a stream of its own, so the untrained encoder is the same for every method and
    hyperparameter.
    """
    encoder = initial_encoder(experiment.seed, lambda: data.build_encoder(experiment.encoder))
    with drawing(experiment.seed, "objective"):
        method = METHODS[experiment.method]
        objective = objective_of(method, method.build(experiment, encoder, data)).to(data.device)
    objective.views_apart = experiment.encoder.views == "apart"
    set_precision(objective, experiment.compute)
    compile_backbones(objective, experiment.compute)
    return objective


def initial_encoder(seed: int, build: Callable[[], Encoder]) -> Encoder:
    """Return the encoder that `build` makes, with the weights that a run of this seed begins with."""
    with drawing(seed, "encoder"):
        return build()


def _start(experiment: Experiment, data: Prepared, ranks: Ranks, on_step: OnStep | None) -> _Run:
    data = data.shared(ranks)
    feed = METHODS[experiment.method].feed(experiment, data)
    objective = build_objective(experiment, data)
    if ranks.world > 1:
        feed = feed.shared(ranks)
        synchronise_batch_norm(objective, data.device, compiled=experiment.compute.compile)
        ranks.copy_first(objective)
    settings = experiment.optimizer
    average = WeightAverage(objective, settings.ema) if settings.ema else None
    optimizer = build_optimizer(objective, settings)
    same_shapes = of_one_shape(feed.sampler)
    finite = finite_tensors(objective)
    return _Run(experiment, data, objective, optimizer, average, feed, ranks, on_step, same_shapes, finite)


def _untrained_record(run: _Run) -> EpochRecord:
    started = time.perf_counter()
    experiment = run.experiment
    # A method's own classifier, and the embeddings that are clustered, also depend on its head and
    # hyperparameters, so they are part of the cache key.
    values = f"{experiment.method} {sorted(experiment.hyperparameters.items())} {experiment.head}"
    own = values if METHODS[experiment.method].classifies or experiment.probes.kmeans_starts else ""
    settings = f"{experiment.encoder.model_dump_json()} {experiment.probes.model_dump_json()}"
    seen_whole = experiment.probes.views == "whole" and not label_free_views(run.data.spec, experiment.probes)
    views = "" if seen_whole else experiment.views.model_dump_json()
    key = f"{experiment.seed} {own} {settings} {views}"

    # What the first rank remembers counts: all of them compute the scores, or none.
    scores = run.ranks.once(lambda: run.data.untrained.get(key))
    if scores is None:
        scores = _scores(run, 0, full=True)
    run.data.untrained[key] = dict(scores)
    return _record(run, 0, scores, 0.0, time.perf_counter() - started)


def _epoch_record(run: _Run, epoch: int) -> EpochRecord:
    started = time.perf_counter()
    if run.average is not None:
        run.average.swap()
    metrics = _train_epoch(run, epoch)
    if run.average is not None:
        run.average.swap()
    trained = time.perf_counter()
    experiment = run.experiment
    full = epoch == experiment.epochs or epoch in experiment.probes.at_epochs
    metrics |= _scores(run, epoch, full=full)
    return _record(run, epoch, metrics, trained - started, time.perf_counter() - trained)


def _scores(run: _Run, epoch: int, *, full: bool) -> dict[str, float]:
    try:
        return validation_scores(run.objective, run.data, run.experiment, full=full)
    except NonFiniteFeatures as error:
        when = f"at the end of epoch {epoch}" if epoch else "before training"
        raise TrainingDiverged(f"{error}, {when}: {_settings(run)}") from None


def _record(run: _Run, epoch: int, metrics: dict[str, float], train: float, evaluate: float) -> EpochRecord:
    return EpochRecord(epoch, run.experiment.epochs, metrics, train, evaluate, run.objective, run)


def _train_epoch(run: _Run, epoch: int) -> dict[str, float]:
    experiment, objective, steps = run.experiment, run.objective, run.feed.sampler.steps_per_epoch
    trace: dict[str, list[torch.Tensor]] = {"loss": []}
    drawn = GlobalDraws(run.data.device, compiled=experiment.compute.compile)
    centre = experiment.probes.centre
    method, state = METHODS[experiment.method], shapes_of_state(objective)
    begun = of_epoch(
        method, objective.on_epoch_start(epoch, lambda: embed_training_set(objective, run.data, centre))
    )
    objective.train()
    with training_steps(experiment.compute, same_shapes=run.same_shapes):
        for step, batch in enumerate(objective.regroup(run.feed).epoch(epoch)):
            done = (epoch - 1) * steps + step
            rate = learning_rate(
                experiment.optimizer.lr,
                done,
                steps_per_epoch=steps,
                epochs=experiment.epochs,
                schedule=experiment.schedule,
            )
            loss, metrics = objective.step(batch, run.ranks.gather_of(batch))
            refuse_unusable_step(method, loss, metrics)
            _refuse_no_gradient(run, loss, epoch, step)
            if step == 0:
                drawn.refuse(objective)
            _update(run, loss, rate, done + 1)
            for name, value in {"loss": loss.detach(), **metrics}.items():
                trace.setdefault(name, []).append(value)
            if run.on_step is not None:
                run.on_step(epoch, step + 1, steps)
    drawn.refuse(objective)
    refuse_changed_state(method, state, shapes_of_state(objective))
    stacked = {name: torch.stack(values) for name, values in trace.items()}
    stacked["loss"] = run.ranks.agreed(stacked["loss"], experiment.method)
    read = _on_host(stacked)
    _refuse_divergence(run, epoch, read["loss"], read["dropped_fraction"])
    of_steps = {f"train.{name}": float(values.float().mean()) for name, values in read.items()}
    return {**of_steps, "train.lr": rate, **{f"train.{name}": value for name, value in begun.items()}}


def _on_host(trace: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the values `(steps,)` of an epoch by name, in the host's memory.

    They are read in one copy an epoch: the host would wait for an accelerator after every step, or value.
    """
    place = trace["loss"].device
    together = torch.cat([values.to(place) for values in trace.values()]).cpu()
    parts = torch.split(together, [len(values) for values in trace.values()])
    return dict(zip(trace, parts, strict=True))


def _update(run: _Run, loss: torch.Tensor, rate: float, step: int) -> None:
    """Take the optimizer's step `step` (from 1 in the run) at a learning rate, and what follows it."""
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    run.optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    run.ranks.average_gradients(run.objective)
    clip_gradients(run.objective, run.experiment.optimizer.clip_norm)
    run.optimizer.step()
    run.objective.after_step()
    if run.average is not None:
        run.average.follow(step)


def _refuse_no_gradient(run: _Run, loss: torch.Tensor, epoch: int, step: int) -> None:
    # A loss that a batch makes constant can depend on what is learned all the same, with a gradient of zero.
    if not loss.requires_grad:
        raise WrongReturn(
            f"the loss of {run.experiment.method} has no gradient at epoch {epoch}, step {step}: compute it "
            "from the views by operations of torch, without .detach(), .item() or no_grad; where a batch "
            "has nothing to learn from, return 0 * views.sum()"
        )


def _refuse_divergence(run: _Run, epoch: int, losses: torch.Tensor, dropped: torch.Tensor) -> None:
    where = _settings(run)
    broken = (~torch.isfinite(losses)).nonzero()
    if len(broken):
        step = int(broken[0])
        raise TrainingDiverged(f"loss {float(losses[step])} at epoch {epoch}, step {step}: {where}")
    # No loss has been computed with the weights of the last step.
    broken_ones = sorted(set(run.finite).difference(finite_tensors(run.objective)))
    if broken_ones:
        raise TrainingDiverged(f"weights with NaN or Inf after epoch {epoch} ({few(broken_ones)}): {where}")
    # The gradient of a step without an anchor is zero (`LossTerms.mean`); an epoch of them is in vain.
    if bool((dropped >= 1).all()):
        raise TrainingDiverged(
            f"no anchor with a positive in epoch {epoch}: {where}, batches of {run.experiment.batch_size} "
            "images; larger ones (batch_size) would help"
        )


def _settings(run: _Run) -> str:
    experiment = run.experiment
    values = {**experiment.hyperparameters, "optimizer.lr": experiment.optimizer.lr}
    return f"{experiment.method} with {values}"
