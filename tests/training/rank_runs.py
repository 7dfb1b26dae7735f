"""Runs of every method by one process and by two, and how far their numbers are apart.

`PYTHONPATH=. python tests/training/rank_runs.py` prints them as the table of `docs/many-gpus-records.md`.
"""

import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from golden_settings import OWN, SETTINGS, resolved
from trial_steps import fitting_dataset

from contrasweep.data import shard
from contrasweep.losses import RanksLost
from contrasweep.models import build_encoder, build_head
from contrasweep.tuning.errors import InputError, TrainingDiverged
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS, clustering
from contrasweep.tuning.objectives import prepared
from contrasweep.tuning.objectives.batch_norm import synchronise_batch_norm
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import Prepared, PreparedTransductive, prepare_data
from contrasweep.tuning.objectives.ranks import ONE, Ranks, group_ranks
from contrasweep.tuning.training import evaluation, label_free
from contrasweep.tuning.training.evaluation import embed_training_set
from contrasweep.tuning.training.pretrain import build_objective, pretrain
from tests.ranks import WORLD, results_of_ranks

TRAIN = 96
QUICK = {"epochs": 2, "probes.max_steps": 5}
NO_STATISTICS = {"head.name": "mlp"}
"""A head without batch norm; the methods of two views have an encoder without it by default."""

AVERAGED = {
    "optimizer.name": "adamw",
    "optimizer.lr": 1e-3,
    "optimizer.decay_norm_and_bias": False,
    "optimizer.clip_norm": 0.5,
    "optimizer.ema": 0.9,
}


def experiment_of(method: str, **changes: Any) -> Experiment:
    """Two epochs of three steps, with the settings of the golden traces."""
    given = {**SETTINGS, **QUICK, **OWN.get(method, {}), **changes}
    return resolved(method, fitting_dataset(method), given)


def small(
    experiment: Experiment,
    held: dict[str, Prepared],
    *,
    device: str | torch.device = "cpu",
    images: int = TRAIN,
) -> Prepared:
    """The first images of the experiment's dataset; `held` keeps them, of one device and number."""
    if experiment.dataset not in held:
        whole = prepare_data(experiment, None, torch.device(device))
        if isinstance(whole, PreparedTransductive):
            seen = replace(whole.data, unlabelled=whole.data.unlabelled.subset(range(images)))
            held[experiment.dataset] = replace(whole, data=seen)
        else:
            assert whole.validation is not None
            train = whole.train.subset(range(images))
            held[experiment.dataset] = replace(
                whole,
                train=train,
                validation=whole.validation.subset(range(64)),
                probed=train,
                probe_rows=train.subset(range(images - 16)),
            )
    found = held[experiment.dataset]
    return replace(found, untrained={})


@dataclass
class Trace:
    """A run's losses by step, gradients of the first step, last state, metrics, and checkpoint of epoch 1.

    `freed` says whether its networks were gone as soon as nothing used them any more.
    """

    losses: list[float]
    gradients: dict[str, torch.Tensor]
    state: dict[str, torch.Tensor]
    metrics: list[dict[str, float]]
    checkpoint: bytes
    freed: bool


def traced(experiment: Experiment, data: Prepared, ranks: Ranks) -> Trace:
    """Run an experiment and watch it."""
    losses: list[float] = []
    gradients: dict[str, torch.Tensor] = {}

    class Watched(Ranks):
        def average_gradients(self, module: torch.nn.Module) -> None:
            super().average_gradients(module)
            if not gradients:
                named = module.named_parameters()
                gradients.update({n: p.grad.clone() for n, p in named if p.grad is not None})

    with _losses_into(losses):
        metrics, last, checkpoint = [], None, b""
        for record in pretrain(experiment, data=data, ranks=Watched(ranks.rank, ranks.world)):
            metrics.append(dict(record.metrics))
            last = record.objective
            if record.epoch == 1:
                checkpoint = record.checkpoint()
    assert last is not None
    state = {name: value.clone() for name, value in last.state_dict().items()}
    held = weakref.ref(last)
    del last, record
    return Trace(losses, gradients, state, metrics, checkpoint, freed=held() is None)


class _losses_into:  # noqa: N801
    def __init__(self, losses: list[float]) -> None:
        self.losses = losses
        self.original = Objective.step

    def __enter__(self) -> None:
        original, losses = self.original, self.losses

        def step(own: Objective, *arguments: Any) -> Any:
            loss, metrics = original(own, *arguments)
            losses.append(float(loss.detach()))
            return loss, metrics

        Objective.step = step  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        Objective.step = self.original  # type: ignore[method-assign]


def runs() -> Iterator[tuple[str, Experiment]]:
    """Every registered method, and runs that each examine one property."""
    for method in METHODS:
        yield method, experiment_of(method)
    yield "without statistics", experiment_of("infonce", **NO_STATISTICS)
    yield "averaged", experiment_of("infonce", **AVERAGED)


def run_all(ranks: Ranks) -> dict[str, Trace]:
    """Make all runs."""
    held: dict[str, Prepared] = {}
    return {name: traced(one, small(one, held), ranks) for name, one in runs()}


def needs_compiler(ranks: Ranks) -> bool:
    """Whether torch's compiler is imported when this process has trained."""
    experiment = experiment_of("infonce")
    traced(experiment, small(experiment, {}), ranks)
    return "torch._dynamo" in sys.modules


def normed(ranks: Ranks) -> dict[str, torch.Tensor]:
    """Outputs and averaged gradients of a network with batch norm, in float64, where rounding hides nothing.

    With three images of seven, a rank has fewer than the other.
    """
    generator = torch.Generator().manual_seed(5)
    images = torch.rand(7, 3, 32, 32, generator=generator, dtype=torch.float64)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(6)
        network = torch.nn.Sequential(
            build_encoder("resnet18-cifar", 3, 32), build_head("cclk", 512, 64, 32)
        ).double()
    own = images if ranks.world == 1 else shard(torch.arange(7), ranks.rank, ranks.world)
    if ranks.world > 1:
        synchronise_batch_norm(network, torch.device("cpu"))
        outputs = ranks.gather(network(images[own]), 0)
    else:
        outputs = network(images)
    outputs.square().mul(torch.arange(1, 8)[:, None]).sum().backward()
    ranks.average_gradients(network)
    gradients = {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}
    return {"outputs": outputs.detach(), **gradients, **dict(network.named_buffers())}


def handed_over(state: bytes | None, epochs: int, ranks: Ranks) -> tuple[bytes, dict[str, float]]:
    """Go on from `state` up to epoch `epochs`; return the state there and its metrics."""
    experiment = experiment_of("moco-v2")
    for record in pretrain(experiment, state, data=small(experiment, {}), ranks=ranks):
        if record.epoch == epochs:
            break
    return record.checkpoint(), dict(record.metrics)


def embedded(ranks: Ranks) -> torch.Tensor:
    """The input of k-means, in chunks that the ranks share."""
    experiment = experiment_of("cl-infonce")
    data = small(experiment, {})
    prepared.CHUNK = 20
    try:
        return embed_training_set(build_objective(experiment, data), data.shared(ranks), 1.0)
    finally:
        prepared.CHUNK = 1024


def scored(ranks: Ranks) -> list[dict[str, float]]:
    """All scores of untrained encoders, whose images the ranks share in several chunks, or in one."""
    views = {"probes.classifier": "cacr", "probes.views": "crops", "probes.label_free_views": 2}
    clusters = {"probes.kmeans_starts": 1, "probes.label_free_views": 2}
    found, held = [], dict[str, Prepared]()
    for chunk, method, settings in (
        (20, "infonce", views),
        (96, "infonce", views),
        (20, "cross-entropy", clusters),
        (20, "herocon", {}),
    ):
        experiment = experiment_of(method, **settings)
        prepared.CHUNK = chunk
        try:
            found.append(next(pretrain(experiment, data=small(experiment, held), ranks=ranks)).metrics)
        finally:
            prepared.CHUNK = 1024
    return found


def alone_on_the_first_rank(ranks: Ranks) -> None:
    """Let what the first rank computes for all fail on the others."""

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("only the first rank clusters, and fits probes that see whole images")

    def fitted(*given: Any) -> Any:
        return refused() if evaluation.RIDGE in given else fit(*given)

    if ranks.rank:
        fit, evaluation._fit_classifier = evaluation._fit_classifier, fitted
        clustering.kmeans_clusters = evaluation.kmeans_clusters = label_free.rankme = refused


def exchanges_of_lengths() -> list[tuple[int, ...]]:
    """Return a list that gets the shape of every tensor that is gathered without known lengths."""
    found: list[tuple[int, ...]] = []
    losses_gather = sys.modules["contrasweep.losses.gather"]  # the package has a function of that name
    original = losses_gather._exchanged_lengths

    def counted(tensor: torch.Tensor, dim: int) -> list[int]:
        found.append(tuple(tensor.shape))
        return original(tensor, dim)

    losses_gather._exchanged_lengths = counted  # type: ignore[attr-defined]
    return found


def told(ranks: Ranks) -> dict[str, Any]:
    """Results and errors of the exchange between ranks."""
    found: dict[str, Any] = {"once": ranks.once(lambda: f"computed by {ranks.rank}")}

    def fail() -> None:
        raise TrainingDiverged(f"seen by {ranks.rank}")

    def fail_with_a_lock() -> None:
        error = RuntimeError(f"locked by {ranks.rank}")
        vars(error)["lock"] = threading.Lock()
        raise error

    for name, action in {
        "error": lambda: ranks.once(fail),
        "unsendable": lambda: ranks.once(fail_with_a_lock),
        "disagreement": lambda: ranks.agreed(torch.tensor([1.0, 1.0 + ranks.rank]), "infonce"),
        "undivided": lambda: next(pretrain(experiment_of("infonce", batch_size=33), ranks=ranks)),
    }.items():
        try:
            action()
        except (RuntimeError, InputError, TrainingDiverged) as error:
            found[name] = type(error).__name__, str(error)
    return found


def run_rank(rank: int, folder: str) -> None:
    """Act as one of the ranks: make all runs and write their results into the folder."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORLD)
    ranks = group_ranks()
    alone_on_the_first_rank(ranks)
    exchanged = exchanges_of_lengths()
    found = {
        "compiler": needs_compiler(ranks),
        "runs": run_all(ranks),
        "scored": scored(ranks),
        "exchanged": list(exchanged),
        "normed": normed(ranks),
        "halfway": handed_over(None, 1, ranks),
        "embedded": embedded(ranks),
        "told": told(ranks),
    }
    alone = Path(folder) / "alone"
    if rank == 0:
        alone.write_bytes(handed_over(None, 1, ONE)[0])
    dist.barrier()
    # Runs go on from the first rank's state.
    found["continued"] = handed_over(alone.read_bytes() if rank == 0 else None, 2, ranks)
    if rank == 0:
        try:
            group_ranks().gather(torch.zeros(3), 0)
        except RanksLost as error:
            found["lost"] = str(error)
    torch.save(found, Path(folder) / f"rank-{rank}.pt")
    dist.destroy_process_group()


def run_group(folder: Path) -> list[dict[str, Any]]:
    """Return the results of every rank of one group."""
    return results_of_ranks(run_rank, folder, "contrasweep.tuning.training.pretrain")


def difference(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> float:
    """The largest difference of gradients, relative to the length of all of them together."""
    length = torch.stack([value.double().norm() for value in one.values()]).norm()
    return max(float((one[name] - other[name]).double().norm() / length) for name in one)


def loss_difference(one: Trace, other: Trace) -> float:
    """The largest relative difference between the losses of a step."""
    return max(abs(a - b) / abs(a) for a, b in zip(one.losses, other.losses, strict=True))


def table(found: list[dict[str, Any]], alone: Mapping[str, Trace]) -> Iterator[str]:
    """Yield a line for each run: how far two ranks are from one process, and whether both hold the same."""
    yield f"{'method':20} {'loss, step 1':>14} {'gradients':>12} {'loss, all steps':>16} {'ranks equal':>12}"
    for name, whole in alone.items():
        one, other = (rank["runs"][name] for rank in found)
        first = abs(whole.losses[0] - one.losses[0]) / abs(whole.losses[0])
        same = all(torch.equal(value, other.state[key]) for key, value in one.state.items())
        gradients, losses = difference(whole.gradients, one.gradients), loss_difference(whole, one)
        yield f"{name:20} {first:14.1e} {gradients:12.1e} {losses:16.1e} {same!s:>12}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        sys.stdout.write("\n".join(table(run_group(Path(scratch)), run_all(ONE))) + "\n")
