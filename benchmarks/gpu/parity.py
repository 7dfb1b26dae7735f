"""Every method's first step on the device beside the same step on the CPU, in float32 (`compute.precision`).

Clusters by k-means are computed once, on the CPU, and given to both: another order of addition can move an
image into another cluster, which says nothing about the objective. A dry run compares torch's two CPU
libraries instead (oneDNN on and off), whose rounding differs too.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from benchmarks.gpu.digits import FewImages, methods, well_conditioned_run
from benchmarks.gpu.findings import Findings, Limit, Place
from contrasweep.data import clusters
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.prepared import Prepared
from contrasweep.tuning.training.compute import computing
from contrasweep.tuning.training.evaluation import embed_training_set
from contrasweep.tuning.training.pretrain import build_objective

LOSS_TOLERANCE = 1e-5
"""The largest difference of the first loss, relative to the loss, or to 1 where the loss is smaller.

Small losses are sums of terms of opposite signs: SimSiam's is a mean of cosines.
"""

GRADIENT_TOLERANCE = 1e-2
"""The largest difference of one gradient tensor, relative to the norm of the whole gradient.

Rounding explains 1e-4. One ReLU or pooling whose input rounding moves over its edge moved gradients by up to
8e-3 between torch's two CPU libraries.
"""


@dataclass(frozen=True)
class Step:
    """The loss of a first step, and its gradients by parameter, on the CPU."""

    loss: float
    gradients: dict[str, Tensor]

    def loss_apart(self, other: "Step") -> float:
        """Return the difference of the losses, relative to this one, or to 1 where it is smaller."""
        return abs(self.loss - other.loss) / max(abs(self.loss), 1.0)

    def gradients_apart(self, other: "Step") -> float:
        """Return the largest difference of a tensor, relative to the norm of all; infinite if one lacks."""
        if self.gradients.keys() != other.gradients.keys():
            return float("inf")
        norm = torch.stack([one.double().norm() for one in self.gradients.values()]).norm()
        apart = [(one - other.gradients[name]).double().norm() for name, one in self.gradients.items()]
        return float(torch.stack(apart).max() / norm)


class SameClusters:
    """Gives the clusters that one run computed to another run, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._found: list[Tensor] = []

    @contextmanager
    def found(self) -> Iterator[None]:
        """Keep the clusters that are computed inside, which must be on the CPU."""
        compute = clusters._scikit_kmeans

        def keep(*arguments: Any) -> Tensor:
            self._found.append(compute(*arguments))
            return self._found[-1]

        with mock.patch.object(clusters, "_scikit_kmeans", keep):
            yield

    @contextmanager
    def given(self) -> Iterator[None]:
        """Give the kept clusters to whoever asks for k-means inside, on any device."""
        waiting = iter(self._found)

        def give(*_: Any, **__: Any) -> Tensor:
            return next(waiting)

        with mock.patch.multiple(clusters, _scikit_kmeans=give, lloyd_kmeans=give):
            yield


def first_step(experiment: Experiment, data: Prepared) -> Step:
    """Return the first step of a run, as `pretrain` takes it."""
    with computing(experiment.compute, data.device):
        feed = METHODS[experiment.method].feed(experiment, data)
        objective = build_objective(experiment, data)
        objective.on_epoch_start(1, lambda: embed_training_set(objective, data, experiment.probes.centre))
        objective.train()
        loss, _ = objective.step(next(iter(objective.regroup(feed).epoch(1))))
        loss.backward()  # type: ignore[no-untyped-call]
    named = ((name, weight.grad) for name, weight in objective.named_parameters())
    return Step(float(loss.detach()), {name: one.cpu() for name, one in named if one is not None})


@contextmanager
def _other_rounding(place: Place) -> Iterator[None]:
    if place.on_gpu:
        yield
        return
    with warnings.catch_warnings(action="ignore"), torch.backends.mkldnn.flags(enabled=False):
        yield


def parity(place: Place) -> Findings:
    """Compare the first step of every method on the device with the CPU's."""
    reference, other = FewImages("cpu", 96), FewImages(place.device, 96)
    losses: dict[str, float] = {}
    gradients: dict[str, float] = {}
    for method in methods(place.sized(len(METHODS), 4)):
        experiment, same = well_conditioned_run(method), SameClusters()
        with same.found():
            here = first_step(experiment, reference.of(experiment))
        with same.given(), _other_rounding(place):
            there = first_step(experiment, other.of(experiment))
        losses[method] = here.loss_apart(there)
        gradients[method] = here.gradients_apart(there)
    figures = {
        "methods": len(losses),
        "largest relative difference of a loss": max(losses.values()),
        "largest relative difference of a gradient": max(gradients.values()),
        "losses": losses,
        "gradients": gradients,
    }
    worst = max(losses, key=losses.__getitem__)
    return Findings(
        f"{len(losses)} methods; losses within {losses[worst]:.1e} ({worst}), "
        f"gradients within {max(gradients.values()):.1e}",
        figures,
        [
            Limit("largest relative difference of a loss", "at most", LOSS_TOLERANCE),
            Limit("largest relative difference of a gradient", "at most", GRADIENT_TOLERANCE),
        ],
    )
