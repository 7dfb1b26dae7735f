"""Linear probes trained as in the papers: minibatches, a falling learning rate, raw features.

Their result depends on the scale of the features, on the recipe and a little on the generator; the result of
the probes that are solved to the optimum does not. Minibatch probes exist to reproduce published protocols.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from contrasweep.models.probes.linear import (
    LinearProbe,
    on_raw_features,
    require_labels,
    require_samples,
    standardised,
)
from contrasweep.names import unknown
from contrasweep.optimizers import SGD, Adam

_INITIAL_DEVIATION = 0.01

FeaturesOfEpoch = Callable[[int], Tensor]
"""Takes an epoch, counted from 0; returns the features `(N, D)` of the samples in it."""


@dataclass(frozen=True)
class ProbeRecipe:
    """The settings for training a linear probe.

    Attributes:
        source: the paper or code that the recipe comes from.
        optimizer: plain SGD with `momentum` (`nesterov` or not), or Adam with `betas`.
        lr: the learning rate of the first epoch.
        batch_size: samples per batch; the last batch of an epoch may be smaller.
        epochs: the number of passes over the samples.
        milestones: epochs after which the learning rate is multiplied by `decay`; empty: a cosine schedule.
        decay: the factor at each milestone; for a cosine, the last learning rate as a share of the first.
        weight_decay: the weight decay of weights and bias.
    """

    source: str
    optimizer: Literal["sgd", "adam"]
    lr: float
    batch_size: int = 128
    epochs: int = 100
    milestones: tuple[int, ...] = ()
    decay: float = 0.0
    momentum: float = 0.0
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0

    def learning_rate(self, epoch: int) -> float:
        """Return the learning rate of `epoch`, counted from 0."""
        if self.milestones:
            return self.lr * self.decay ** sum(epoch >= milestone for milestone in self.milestones)
        cosine = (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        return self.lr * (self.decay + (1 - self.decay) * cosine)


PROBE_RECIPES: Mapping[str, ProbeRecipe] = {
    "moco": ProbeRecipe(
        "MoCo (He et al. 2020), Section 4.1 and released code; CACR on ImageNet",
        "sgd",
        lr=30.0,
        batch_size=256,
        milestones=(60, 80),
        decay=0.1,
        momentum=0.9,
    ),
    "cl-infonce": ProbeRecipe(
        "Cl-InfoNCE, released linear evaluation",
        "sgd",
        lr=0.3,
        decay=1e-3,
        momentum=0.95,
        nesterov=True,
        weight_decay=1e-4,
    ),
    "cacr": ProbeRecipe(
        "CACR, Section B.1, after Align+Uniform",
        "adam",
        lr=1e-3,
        milestones=(60, 80),
        decay=0.2,
        betas=(0.5, 0.999),
    ),
}


def probe_recipe(name: str) -> ProbeRecipe:
    """Return the recipe called `name`.

    Raises:
        ValueError: no recipe has this name.
    """
    if name not in PROBE_RECIPES:
        raise ValueError(unknown("probe recipe", name, PROBE_RECIPES))
    return PROBE_RECIPES[name]


def fit_minibatch(
    features: Tensor | FeaturesOfEpoch,
    labels: Tensor,
    classes: int,
    recipe: ProbeRecipe,
    generator: torch.Generator,
    *,
    standardise: bool = False,
) -> LinearProbe:
    """Train a linear classifier with cross-entropy, by a recipe, on the device of the features.

    `features` are `(N, D)`, or a function that gives those of each epoch, for example of other views of the
    samples; `labels` are `(N,)` integers in `[0, classes)`; the outputs are `(N, classes)`. The
    generator draws the initial weights, from N(0, 0.01^2), and the order of the samples. `standardise` trains
    on standardised features; published protocols train on raw ones.

    Raises:
        ValueError: no sample, shapes that do not match, labels out of range, or features that are not finite.
    """
    given = features if isinstance(features, Tensor) else features(0)
    require_samples(given, labels.shape[0])
    require_labels(labels, classes)
    inputs = given.detach().float()
    shift, scale = torch.zeros_like(inputs[0]), torch.ones_like(inputs[0])
    if standardise:
        inputs, shift, scale = standardised(inputs)
    start = torch.randn(inputs.shape[1], classes, generator=generator, device=generator.device)
    weight = (_INITIAL_DEVIATION * start).to(inputs.device)
    bias = torch.zeros(classes, device=inputs.device)
    optimizer = _optimizer(recipe, [weight, bias])
    targets = labels.long()
    for epoch in range(recipe.epochs):
        if epoch and not isinstance(features, Tensor):
            require_samples(given := features(epoch), labels.shape[0])
            inputs = (given.detach().float() - shift) / scale
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate(epoch)
        order = torch.randperm(len(inputs), generator=generator, device=generator.device)
        _train_epoch(inputs, targets, order.to(inputs.device), weight, bias, optimizer, recipe.batch_size)
    return on_raw_features(weight, bias, shift, scale)


def _optimizer(recipe: ProbeRecipe, parameters: list[Tensor]) -> torch.optim.Optimizer:
    if recipe.optimizer == "adam":
        return Adam(parameters, recipe.lr, recipe.betas, weight_decay=recipe.weight_decay)
    return SGD(
        parameters, recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay, nesterov=recipe.nesterov
    )


@torch.no_grad()
def _train_epoch(
    inputs: Tensor,
    targets: Tensor,
    order: Tensor,
    weight: Tensor,
    bias: Tensor,
    optimizer: torch.optim.Optimizer,
    batch_size: int,
) -> None:
    """Train one pass over the samples in `order` `(N,)`; `weight` and `bias` change in place.

    `targets` `(N,)` are the classes.
    """
    for rows in torch.split(order, batch_size):
        batch = inputs[rows]
        # This is the gradient of the mean cross-entropy in its outputs; autograd would cost more.
        error = torch.addmm(bias, batch, weight).softmax(dim=1)
        error[torch.arange(len(rows), device=rows.device), targets[rows]] -= 1
        error /= len(rows)
        weight.grad, bias.grad = batch.T @ error, error.sum(dim=0)
        optimizer.step()
