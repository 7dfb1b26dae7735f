"""The methods with a biased network beside the encoder: their losses, and which loss trains which network."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.data import torch_generator
from contrasweep.losses import HSIC, GeneralizedCrossEntropy, LearnedMixin, RUBi
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.relative_difficulty import RelativeDifficulty
from contrasweep.tuning.objectives.two_networks import first_epochs
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective

GOLDEN = Path(__file__).parents[1] / "golden"
METHODS_OF_TWO = ("lff", "dfa", "rebias", "rubi", "learned-mixin")


@pytest.fixture
def biased(small_data: Callable[[str], PreparedData]) -> PreparedData:
    return small_data("biased-digits")


def _experiment(method: str, **values: Any) -> Experiment:
    return resolve(method, "biased-digits", {"epochs": 4, "batch_size": 48, **values})


def _begun(e: Experiment, data: PreparedData, epoch: int = 1) -> tuple[Any, Batch]:
    """Return the objective in training mode at the start of an epoch, and the epoch's first batch."""
    objective = build_objective(e, data)
    objective.on_epoch_start(epoch, lambda: objective.embed_images(data.train.images.float() / 255))
    return objective.train(), next(iter(METHODS[e.method].feed(e, data).epoch(epoch)))


def _gradients(objective: Objective, batch: Batch) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Return the loss, its metrics, and the gradients of all parameters that have one."""
    loss, metrics = objective.step(batch)
    loss.backward()
    found = {name: one.grad for name, one in objective.named_parameters() if one.grad is not None}
    return loss.detach(), metrics, found


def _expect(found: dict[str, Tensor], part: nn.Module, prefix: str, loss: Tensor) -> None:
    """Check that the gradients of a part are those of one loss alone."""
    named = dict(part.named_parameters())
    wanted = torch.autograd.grad(loss, list(named.values()), retain_graph=True)
    for name, gradient in zip(named, wanted, strict=True):
        torch.testing.assert_close(found[f"{prefix}.{name}"], gradient, atol=1e-5, rtol=1e-4)


def test_the_weights_are_those_of_the_released_code() -> None:
    """The class EMA of LfF's util.py, and the lines of train.py that use it, over seven batches."""
    golden = dict(np.load(GOLDEN / "lff-weights.npz"))
    given = {name: torch.as_tensor(value) for name, value in golden.items()}
    difficulty = RelativeDifficulty(given["labels"], 3, 0.7).double()
    for index, one, two, expected in zip(
        given["index"], given["biased"], given["debiased"], given["weights"], strict=True
    ):
        torch.testing.assert_close(difficulty(one, two, index), expected, atol=1e-12, rtol=1e-9)


def test_a_class_that_both_networks_know_without_doubt_has_weight_0() -> None:
    difficulty = RelativeDifficulty(torch.tensor([0, 1]), 2, 0.7)
    weights = difficulty(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0]), torch.tensor([0, 1]))
    torch.testing.assert_close(weights, torch.tensor([0.0, 0.5]))


def test_lff_can_compare_the_losses_of_the_step(biased: PreparedData) -> None:
    """Its Algorithm 1: what came before a batch, and the images' classes, do not matter."""
    objective, batch = _begun(_experiment("lff", compared="losses"), biased)
    objective.step(batch)
    _, metrics, found = _gradients(objective, batch)
    each, biased_each = (
        functional.cross_entropy(logits, batch.labels, reduction="none")
        for logits in (
            objective.classifier(objective.encoder(batch.views[0])),
            objective.biased_classifier(objective.biased_encoder(batch.views[0])),
        )
    )
    weights = (biased_each / (biased_each + each)).detach()
    torch.testing.assert_close(metrics["weight"], weights.mean(), atol=1e-5, rtol=1e-5)
    _expect(found, objective.encoder, "encoder", (weights * each).mean())


def test_lff_weighs_each_network_s_loss_for_that_network_alone(biased: PreparedData) -> None:
    objective, batch = _begun(_experiment("lff", form="paper", q=0.6), biased)
    loss, metrics, found = _gradients(objective, batch)
    images = batch.views[0]
    logits = objective.classifier(objective.encoder(images))
    biased_logits = objective.biased_classifier(objective.biased_encoder(images))
    each, biased_each = (
        functional.cross_entropy(x, batch.labels, reduction="none") for x in (logits, biased_logits)
    )
    # After one batch an average is that batch's loss, and its class's largest is in the batch too.
    weights = torch.zeros(len(each))
    for label in batch.labels.unique():
        rows = batch.labels == label
        one, two = biased_each[rows] / biased_each[rows].max(), each[rows] / each[rows].max()
        weights[rows] = (one / (one + two)).detach()
    own, other = (weights * each).mean(), GeneralizedCrossEntropy(0.6)(biased_logits, batch.labels)
    torch.testing.assert_close(loss, own.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["biased_loss"], other.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["weight"], weights.mean(), atol=1e-5, rtol=1e-5)
    _expect(found, objective.encoder, "encoder", own)
    _expect(found, objective.biased_encoder, "biased_encoder", other)


@pytest.mark.parametrize("epoch", [1, 2])
def test_dfa_swaps_bias_features_after_its_first_epochs(biased: PreparedData, epoch: int) -> None:
    weights = {"lambda_dis": 2.0, "lambda_swap": 0.5, "lambda_swap_b": 3.0, "swap_from": 0.25}
    objective, batch = _begun(_experiment("dfa", **weights), biased, epoch)
    loss, metrics, found = _gradients(objective, batch)
    own, other = objective.encoder(batch.views[0]), objective.biased_encoder(batch.views[0])
    each = functional.cross_entropy(
        objective.classifier(torch.cat([own, other.detach()], 1)), batch.labels, reduction="none"
    )
    biased_logits = objective.biased_classifier(torch.cat([own.detach(), other], 1))
    biased_each = functional.cross_entropy(biased_logits, batch.labels, reduction="none")
    fresh = RelativeDifficulty(biased.train.labels, 10, 0.7)
    weight = fresh(biased_each.detach(), each.detach(), batch.index)
    gce = GeneralizedCrossEntropy(0.7, "released")
    expected, expected_biased = (weight * each).mean(), 2.0 * gce(biased_logits, batch.labels)
    if epoch == 2:
        order = torch.randperm(len(own), generator=torch_generator("feature swaps", 0, 2, 0))
        swapped, labels = other[order], batch.labels[order]
        mixed = functional.cross_entropy(
            objective.classifier(torch.cat([own, swapped.detach()], 1)), batch.labels, reduction="none"
        )
        expected = expected + 0.5 * (weight * mixed).mean()
        mixed_biased = objective.biased_classifier(torch.cat([own.detach(), swapped], 1))
        expected_biased = expected_biased + 0.5 * 3.0 * gce(mixed_biased, labels)
    torch.testing.assert_close(loss, expected.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["biased_loss"], expected_biased.detach(), atol=1e-5, rtol=1e-5)
    _expect(found, objective.encoder, "encoder", expected)
    _expect(found, objective.biased_encoder, "biased_encoder", expected_biased)


def test_dfa_swaps_otherwise_in_every_step(biased: PreparedData) -> None:
    objective, batch = _begun(_experiment("dfa", swap_from=0.0), biased, 2)
    with torch.no_grad():
        first = objective.step(batch)[0]
        again = objective.step(batch)[0]
        objective.after_step()
        later = objective.step(batch)[0]
    # The moving averages of equal losses stay as they are.
    torch.testing.assert_close(again, first, atol=1e-5, rtol=1e-5)
    assert (later - first).abs() > 1e-4


def test_hsic_is_a_cost_of_one_network_and_a_gain_of_the_other(biased: PreparedData) -> None:
    e = _experiment("rebias", lambda_f=3.0, lambda_g=5.0, radius="sigma", sigma=1.5)
    objective, batch = _begun(e, biased)
    loss, metrics, found = _gradients(objective, batch)
    own, other = objective.encoder(batch.views[0]), objective.biased_encoder(batch.views[0])
    dependence = HSIC(1.5, 1.5)(own, other)
    expected = functional.cross_entropy(objective.classifier(own), batch.labels) + 3.0 * dependence
    gained = functional.cross_entropy(objective.biased_classifier(other), batch.labels) - 5.0 * dependence
    torch.testing.assert_close(loss, expected.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["hsic"], dependence.detach(), atol=1e-6, rtol=1e-4)
    _expect(found, objective.encoder, "encoder", expected)
    _expect(found, objective.biased_encoder, "biased_encoder", gained)


def test_the_kernels_radii_follow_the_median_distances(biased: PreparedData) -> None:
    objective, _ = _begun(_experiment("rebias", radius="median", sigma=2.0), biased)
    images = biased.train.images.float() / 255
    objective.eval()
    with torch.no_grad():
        features = objective.encoder(images), objective.biased_encoder(images)
    medians = [2.0 * float(torch.pdist(one).median()) for one in features]
    hsic = objective.minimax.hsic
    assert [hsic.sigma, hsic.biased_sigma] == pytest.approx(medians, rel=1e-4)


@pytest.mark.parametrize("branch", ["mlp", "linear", "fixed"])
def test_rubi_s_branch_learns_from_biased_features_that_it_does_not_change(
    biased: PreparedData, branch: str
) -> None:
    objective, batch = _begun(_experiment("rubi", weight=0.5, branch=branch), biased)
    loss, _, found = _gradients(objective, batch)
    own, other = objective.encoder(batch.views[0]), objective.biased_encoder(batch.views[0])
    mask = objective.loss.mask(other.detach())
    answer = objective.loss.answer(mask)
    expected = RUBi(0.5)(objective.classifier(own), mask, answer, batch.labels)
    classified = functional.cross_entropy(objective.biased_classifier(other), batch.labels)
    torch.testing.assert_close(loss, expected.detach(), atol=1e-5, rtol=1e-5)
    _expect(found, objective.encoder, "encoder", expected)
    _expect(found, objective.biased_encoder, "biased_encoder", classified)
    assert any(name.startswith("loss.mask") for name in found) == (branch != "fixed")
    assert any(name.startswith("loss.answer") for name in found) == (branch == "mlp")


@pytest.mark.parametrize("factor", ["learned", "fixed"])
def test_learned_mixin_learns_the_bias_first_and_then_beside_it(biased: PreparedData, factor: str) -> None:
    e = _experiment("learned-mixin", bias_first=0.25, entropy_weight=0.2, factor=factor)
    objective, batch = _begun(e, biased, 1)
    loss, _, found = _gradients(objective, batch)
    other = objective.biased_classifier(objective.biased_encoder(batch.views[0]))
    of_biased = functional.cross_entropy(other, batch.labels)
    torch.testing.assert_close(loss, of_biased.detach())
    _expect(found, objective.biased_encoder, "biased_encoder", of_biased)
    assert {name.split(".")[0] for name in found} == {"biased_encoder", "biased_classifier"}
    objective, batch = _begun(e, biased, 2)
    loss, _, found = _gradients(objective, batch)
    own = objective.encoder(batch.views[0])
    other = objective.biased_classifier(objective.biased_encoder(batch.views[0])).detach()
    share = functional.softplus(objective.loss.factor(own)).squeeze(1)
    expected = LearnedMixin(0.2)(objective.classifier(own), other, share, batch.labels)
    torch.testing.assert_close(loss, expected.detach(), atol=1e-5, rtol=1e-5)
    _expect(found, objective.encoder, "encoder", expected)
    parts = {name.split(".")[0] for name in found}
    assert parts == {"encoder", "classifier", *(("loss",) if factor == "learned" else ())}


@pytest.mark.parametrize(
    ("share", "epochs", "expected"), [(0.0, 5, 0), (0.07, 100, 7), (0.06, 80, 5), (0.5, 1, 0), (0.9, 3, 2)]
)
def test_a_share_of_the_epochs_never_reaches_the_last(share: float, epochs: int, expected: int) -> None:
    assert first_epochs(share, epochs) == expected


@pytest.mark.parametrize("method", METHODS_OF_TWO)
def test_both_networks_normalise_images_and_train_in_the_same_precision(
    method: str, biased: PreparedData
) -> None:
    settings = {"encoder.mean": [0.4], "encoder.std": [0.3], "compute.precision": "bf16"}
    e = _experiment(method, **settings, biased_encoder="simple-conv-1x1")
    objective = build_objective(e, biased)
    assert isinstance(objective.biased_encoder, Encoder)
    for one in (objective.encoder, objective.biased_encoder):
        assert one.trains_in_bf16
        assert one.body[0].mean.flatten().tolist() == pytest.approx([0.4])
