"""Minibatch probes against torch's own layers and schedules."""

import math
from dataclasses import replace

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from contrasweep.models import (
    PROBE_RECIPES,
    ProbeRecipe,
    accuracy,
    fit_logistic,
    fit_minibatch,
    probe_recipe,
)
from tests.made_tensors import MadeTensors

CLASSES = 10


def _digits(rows: int) -> tuple[Tensor, Tensor]:
    stored = load_digits()
    features = torch.from_numpy(stored.data[:rows]).float() / 16
    return features, torch.from_numpy(stored.target[:rows]).long()


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _by_autograd(features: Tensor, labels: Tensor, recipe: ProbeRecipe) -> nn.Linear:
    """Do the same training with a module, a loss and autograd."""
    generator = _generator()
    layer = nn.Linear(features.shape[1], CLASSES)
    layer.weight.data = 0.01 * torch.randn(features.shape[1], CLASSES, generator=generator).T.contiguous()
    layer.bias.data.zero_()
    optimizer: torch.optim.Optimizer
    if recipe.optimizer == "adam":
        optimizer = torch.optim.Adam(
            layer.parameters(), recipe.lr, recipe.betas, weight_decay=recipe.weight_decay
        )
    else:
        optimizer = torch.optim.SGD(
            layer.parameters(),
            recipe.lr,
            recipe.momentum,
            weight_decay=recipe.weight_decay,
            nesterov=recipe.nesterov,
        )
    for epoch in range(recipe.epochs):
        optimizer.param_groups[0]["lr"] = recipe.learning_rate(epoch)
        order = torch.randperm(len(features), generator=generator)
        for start in range(0, len(order), recipe.batch_size):
            rows = order[start : start + recipe.batch_size]
            optimizer.zero_grad()
            F.cross_entropy(layer(features[rows]), labels[rows]).backward()
            optimizer.step()
    return layer


@pytest.mark.parametrize("name", list(PROBE_RECIPES))
def test_training_is_that_of_a_linear_layer(name: str) -> None:
    features, labels = _digits(50)
    recipe = replace(probe_recipe(name), epochs=4, batch_size=16)
    if recipe.lr > 1:  # at 30 rounding errors grow as fast as the weights
        recipe = replace(recipe, lr=1.0)
    probe = fit_minibatch(features, labels, CLASSES, recipe, _generator())
    expected = _by_autograd(features, labels, recipe)(features).detach()
    torch.testing.assert_close(probe(features), expected, atol=1e-4, rtol=1e-3)


def test_the_recipes_are_the_published_ones() -> None:
    moco, cacr, cosine = (PROBE_RECIPES[name] for name in ("moco", "cacr", "cl-infonce"))
    assert [moco.learning_rate(e) for e in (0, 59, 60, 79, 80, 99)] == pytest.approx([30, 30, 3, 3, 0.3, 0.3])
    assert [cacr.learning_rate(e) for e in (0, 59, 60, 80)] == pytest.approx([1e-3, 1e-3, 2e-4, 4e-5])
    assert [cosine.learning_rate(e) for e in (0, 50, 100)] == pytest.approx([0.3, 0.15015, 3e-4])
    assert (moco.batch_size, cacr.batch_size, cosine.batch_size) == (256, 128, 128)
    assert (moco.momentum, moco.nesterov, moco.weight_decay) == (0.9, False, 0)
    assert (cosine.momentum, cosine.nesterov, cosine.weight_decay) == (0.95, True, 1e-4)
    assert (cacr.optimizer, cacr.betas, cacr.weight_decay) == ("adam", (0.5, 0.999), 0)
    assert {recipe.epochs for recipe in PROBE_RECIPES.values()} == {100}


@pytest.mark.parametrize("name", list(PROBE_RECIPES))
def test_a_recipe_learns_digits(name: str) -> None:
    features, labels = _digits(300)
    recipe = replace(probe_recipe(name), batch_size=32)
    if name == "cacr":  # made for features of ReLUs after batch norm, thousands of them
        recipe = replace(recipe, lr=1e-2)
    probe = fit_minibatch(features, labels, CLASSES, recipe, _generator())
    assert accuracy(probe, features, labels) > 0.95


def test_no_table_of_all_samples_and_classes_is_made() -> None:
    """On ImageNet-1K, it would have 1.3 billion entries."""
    samples, classes = 60, 50
    recipe = replace(probe_recipe("moco"), epochs=1, batch_size=4)
    with MadeTensors() as made:
        fit_minibatch(torch.ones(samples, 3), torch.arange(samples) % classes, classes, recipe, _generator())
    assert max(made.stored) < samples * classes / 2


def test_only_the_generator_is_random() -> None:
    features, labels = _digits(40)
    recipe = replace(probe_recipe("cacr"), epochs=2)
    state = torch.random.get_rng_state()
    first, again, other = (
        fit_minibatch(features, labels, CLASSES, recipe, _generator(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)
    assert not first.weight.requires_grad


def test_every_epoch_may_have_features_of_its_own() -> None:
    features, labels = _digits(40)
    recipe = replace(probe_recipe("cacr"), epochs=3)
    asked: list[int] = []

    def of_epoch(epoch: int) -> Tensor:
        asked.append(epoch)
        return features if epoch != 1 else -features

    for standardise in (True, False):
        same, once = (
            fit_minibatch(given, labels, CLASSES, recipe, _generator(), standardise=standardise)
            for given in (lambda _: features, features)
        )
        assert torch.equal(same.weight, once.weight)
    other = fit_minibatch(of_epoch, labels, CLASSES, recipe, _generator())
    assert asked == [0, 1, 2]
    assert not torch.equal(other.weight, same.weight)
    with pytest.raises(ValueError, match="NaN or Inf"):
        fit_minibatch(lambda epoch: features / (1 - epoch), labels, CLASSES, recipe, _generator())


def test_standardised_training_does_not_see_scale_and_shift() -> None:
    features, labels = _digits(60)
    recipe = replace(probe_recipe("cl-infonce"), epochs=3)
    plain = fit_minibatch(features, labels, CLASSES, recipe, _generator(), standardise=True)
    moved = 1e3 * features + 50
    again = fit_minibatch(moved, labels, CLASSES, recipe, _generator(), standardise=True)
    torch.testing.assert_close(again(moved), plain(features), atol=0.02, rtol=0.01)


@pytest.mark.parametrize("features", [torch.zeros(30, 4), torch.full((30, 4), 2.0)])
@pytest.mark.parametrize("standardise", [True, False])
def test_constant_features_give_the_majority(features: Tensor, standardise: bool) -> None:
    labels = torch.tensor([7] * 20 + [2] * 10)
    recipe = replace(probe_recipe("cl-infonce"), epochs=20)
    probe = fit_minibatch(features, labels, CLASSES, recipe, _generator(), standardise=standardise)
    assert accuracy(probe, features, labels) == pytest.approx(2 / 3)


def test_what_cannot_be_fitted_is_refused() -> None:
    features, labels = _digits(10)
    recipe = probe_recipe("cacr")
    with pytest.raises(ValueError, match=r"unknown probe recipe 'cacr2'\. Did you mean 'cacr'"):
        probe_recipe("cacr2")
    with pytest.raises(ValueError, match=r"labels must lie in 0..4"):
        fit_minibatch(features, labels, 5, recipe, _generator())
    with pytest.raises(ValueError, match=r"integers \(N,\), got torch.float32"):
        fit_minibatch(features, labels.float(), CLASSES, recipe, _generator())
    with pytest.raises(ValueError, match="NaN or Inf"):
        fit_minibatch(features * math.inf, labels, CLASSES, recipe, _generator())
    with pytest.raises(ValueError, match=r"labels must lie in 0..4"):
        fit_logistic(features, labels, 5)
