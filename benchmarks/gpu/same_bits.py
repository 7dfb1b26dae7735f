"""The same bits twice: a deterministic run repeated, and a run that goes on from its checkpoint."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.digits import FewImages, methods, quick_run
from benchmarks.gpu.findings import Findings, Limit, Place
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain

DETERMINISTIC = {"compute.deterministic": True}
RESUMED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("infonce", {"optimizer.name": "sgd"}),
    ("infonce", {"optimizer.name": "lars"}),
    ("fair-cclk", {"optimizer.name": "adam", "optimizer.lr": 1e-3}),
    ("supcon", {"optimizer.name": "adamw", "optimizer.lr": 1e-3, "optimizer.ema": 0.9}),
    ("moco-v2", {}),
    ("pcl", {}),
    ("swav", {}),
    ("infonce", {"compute.precision": "bf16"}),
)
"""Runs whose state differs in kind: optimizers, an average, a queue, clusters, prototypes, half precision."""


@dataclass(frozen=True)
class End:
    """The end of a run: the metrics of its epochs, and the state of the objective on the CPU."""

    metrics: tuple[Mapping[str, float], ...]
    state: Mapping[str, Tensor]

    def same(self, other: "End") -> bool:
        """Return whether both ends agree in every bit, for as many epochs as both report."""
        last = min(len(self.metrics), len(other.metrics))
        states = self.state.keys() == other.state.keys() and all(
            torch.equal(value, other.state[name]) for name, value in self.state.items()
        )
        return states and self.metrics[-last:] == other.metrics[-last:]


def end_of(records: Iterable[EpochRecord]) -> End:
    """Finish a run."""
    metrics = []
    for record in records:
        metrics.append(dict(record.metrics))
        last = record
    return End(tuple(metrics), {name: value.cpu() for name, value in last.objective.state_dict().items()})


def determinism(place: Place) -> Findings:
    """Run every method twice with `compute.deterministic`: training, probes and clusters."""
    images = FewImages(place.device, place.sized(480, 96))

    def twice(experiment: Experiment) -> bool:
        one, other = (
            end_of(pretrain(experiment, data=images.of(experiment), device=place.device)) for _ in range(2)
        )
        return one.same(other)

    runs = {
        name: quick_run(name, {**DETERMINISTIC, "epochs": 1})
        for name in methods(place.sized(len(METHODS), 3))
    }
    return _compared(runs, twice)


def resume(place: Place) -> Findings:
    """Go on from the checkpoint of epoch 1 of 3, and compare with the run that was not interrupted."""
    images = FewImages(place.device, place.sized(480, 96))

    def resumed(experiment: Experiment) -> bool:
        state = b""

        def kept(records: Iterable[EpochRecord]) -> Iterable[EpochRecord]:
            nonlocal state
            for record in records:
                if record.epoch == 1:
                    state = record.checkpoint()
                yield record

        whole = end_of(kept(pretrain(experiment, data=images.of(experiment), device=place.device)))
        rest = end_of(pretrain(experiment, state, data=images.of(experiment), device=place.device))
        return rest.same(whole)

    chosen = RESUMED[:: place.sized(1, 3)]
    runs = {_named(method, values): _of_three_epochs(method, values) for method, values in chosen}
    return _compared(runs, resumed)


def _of_three_epochs(method: str, values: Mapping[str, Any]) -> Experiment:
    return quick_run(method, {**DETERMINISTIC, "epochs": 3, **values})


def _named(method: str, values: Mapping[str, Any]) -> str:
    told = [str(value) for name, value in values.items() if isinstance(value, str)]
    return ", ".join([method, *told])


def _compared(runs: Mapping[str, Experiment], same: Callable[[Experiment], bool]) -> Findings:
    different, refused = [], {}
    for name, experiment in runs.items():
        try:
            if not same(experiment):
                different.append(name)
        except RuntimeError as error:  # torch refuses an operation that is not deterministic
            refused[name] = str(error).splitlines()[0]
    figures = {
        "runs": len(runs),
        "with other bits": len(different),
        "refused": len(refused),
        "which have other bits": different,
        "which are refused": refused,
    }
    headline = f"{len(runs) - len(different) - len(refused)} of {len(runs)} runs have the same bits"
    limits = [Limit(name, "at most", 0) for name in ("with other bits", "refused")]
    return Findings(headline, figures, limits)
