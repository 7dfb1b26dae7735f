"""Extreme temperatures, batches of one class, of two images and of 4,096, and no cubic memory."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from loss_cases import LOSS_CASES, LossCase, seeded_inputs, value_and_gradient
from torch import Tensor, nn

from contrasweep import losses
from tests.made_tensors import MadeTensors

WITH_TEMPERATURE: dict[str, Callable[[float], nn.Module]] = {
    "infonce": losses.InfoNCE,
    "nt-xent": lambda tau: losses.InfoNCE(tau, "all"),
    "supcon-out": losses.SupCon,
    "supcon-in": lambda tau: losses.SupCon(tau, "in"),
    "eps-supinfonce-a": lambda tau: losses.EpsSupInfoNCE(tau, 0.5, "a"),
    "eps-supinfonce-b": lambda tau: losses.EpsSupInfoNCE(tau, 0.5, "b"),
    "eps-supinfonce-c": lambda tau: losses.EpsSupInfoNCE(tau, 0.5, "c"),
    "eps-supinfonce-d": lambda tau: losses.EpsSupInfoNCE(tau, 0.5, "d"),
    "eps-supcon": lambda tau: losses.EpsSupCon(tau, 0.5),
    "hardneg": lambda tau: losses.HardNegInfoNCE(tau, 1.0, 0.1),
    "biascon": losses.BiasCon,
    "softcon": losses.SoftCon,
    "cclk-weaksup": lambda tau: losses.WeaklySupCCLK("rbf", 5e3, lam=0.01, temperature=tau),
    "cclk-fair": lambda tau: losses.FairCCLK("rbf", 5e3, lam=0.01, temperature=tau),
    "cclk-fair-paper": lambda tau: losses.FairCCLK("rbf", 5e3, lam=0.01, temperature=tau, weights="paper"),
    "cclk-hardneg": lambda tau: losses.HardNegCCLK("rbf", 2.0, lam=0.1, temperature=tau),
}


def extra_inputs(name: str, B: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)
    if name.startswith(("cclk-weaksup", "cclk-fair")):
        return {"condition": torch.rand(B, 3, generator=generator, dtype=torch.float64) * 255}
    if name == "softcon":
        features = torch.rand(B, 3, generator=generator, dtype=torch.float64)
        return {"labels": torch.arange(B) % 3, "condition": features}
    if name == "biascon":
        return {"labels": torch.arange(B) % 3, "bias": torch.arange(B) % 2}
    return {"labels": torch.arange(B) % 3} if name.startswith(("supcon", "eps-")) else {}


@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", WITH_TEMPERATURE)
def test_temperatures_keep_value_and_gradient(name: str, tau: float) -> None:
    """Compare float32 with float64; at tau = 0.01 plain exponentials would overflow (e^100)."""
    x = torch.randn(2, 12, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    results = []
    for dtype in (torch.float64, torch.float32):
        leaf = x.to(dtype).requires_grad_()
        value = WITH_TEMPERATURE[name](tau)(leaf, **extra_inputs(name, 12))
        (gradient,) = torch.autograd.grad(value, leaf)
        results.append((value.double(), gradient.double()))
    (value, gradient), (single_value, single_gradient) = results
    assert value.isfinite()
    assert gradient.norm() > 0
    torch.testing.assert_close(single_value, value, rtol=1e-4, atol=1e-6)
    assert (single_gradient - gradient).norm() < 1e-3 * gradient.norm()


def test_worst_infonce_is_exact_and_keeps_its_gradient() -> None:
    """The own view is opposite and another image's view is equal, at tau = 0.01: the loss is 200.

    An overflow would give the log of the largest float.
    """
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    views = torch.stack([x, -x]).requires_grad_()
    value = losses.InfoNCE(0.01)(views)
    assert value.item() == pytest.approx(200, rel=1e-6)
    tilted = torch.tensor([[[1.0, 0.1], [-1.0, 0.2]], [[-1.0, 0.1], [1.0, 0.1]]]).requires_grad_()
    (gradient,) = torch.autograd.grad(losses.InfoNCE(0.01)(tilted), tilted)
    assert gradient.norm() > 1


KINDS = {"one class": 0, "one image a class": 1}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("B", [2, 7])
@pytest.mark.parametrize("case", LOSS_CASES, ids=lambda c: c.name)
def test_batches_of_one_kind_stay_finite(case: LossCase, kind: str, B: int) -> None:
    B = max(B, 4) if case.name == "hsic" else B  # it takes no fewer
    inputs = seeded_inputs(case, B=B)
    for name in ("labels", "bias", "clusters"):
        if name in inputs and inputs[name].dim() == 1:
            inputs[name] = torch.arange(B) * KINDS[kind] % (4 if case.embedded == "logits" else B)
    if case.name == "biasbal":
        inputs["bias"] = inputs["bias"] % 2
    elif case.name == "herocon-sup":
        inputs["labels"] = torch.full_like(inputs["labels"], 1 - KINDS[kind])
    value, gradient = value_and_gradient(case, inputs)
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_no_positive_anywhere_is_a_zero_with_zero_gradient() -> None:
    x = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for loss in (
        losses.SupCon(0.1),
        losses.SupCon(0.1, "in"),
        losses.EpsSupInfoNCE(0.1, 0.5),
        losses.EpsSupCon(0.1, 0),
    ):
        terms = loss.terms(x, torch.arange(6))
        assert terms.dropped_fraction().item() == 1
        value = terms.mean()
        assert value.item() == 0
        assert torch.autograd.grad(value, x)[0].count_nonzero() == 0


def test_one_image_leaves_nothing_to_tell_apart() -> None:
    x = torch.randn(2, 1, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    one = torch.zeros(1, dtype=torch.long)
    for loss, extra in (
        (losses.InfoNCE(0.1), ()),
        (losses.InfoNCE(0.1, "all"), ()),
        (losses.HardNegInfoNCE(0.1, 1.0, 0.1), ()),
        (losses.SupCon(0.1), (one,)),
        (losses.HeroConUnsupervised(4).double(), ()),
        (losses.FairCCLK("rbf", 1.0, lam=0.1, temperature=0.1), (one,)),
    ):
        value = loss(x, *extra)
        assert value.item() == pytest.approx(0, abs=1e-12)
        assert torch.autograd.grad(value, x)[0].abs().max() < 1e-10


def test_three_views_of_one_image_leave_nothing_to_tell_apart() -> None:
    x = torch.randn(3, 1, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    for negatives in ("cross", "all"):
        value = losses.InfoNCE(0.1, negatives)(x)
        assert value.item() == pytest.approx(0, abs=1e-12)
        assert torch.autograd.grad(value, x)[0].abs().max() < 1e-10


def test_all_positive_pairs_in_supcon_pull_on_each_other() -> None:
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    value = losses.SupCon(0.1)(x, torch.zeros(5, dtype=torch.long))
    z = torch.nn.functional.normalize(x.flatten(0, 1), dim=1)
    scores = (z @ z.T / 0.1).fill_diagonal_(-torch.inf)
    log_shares = scores.log_softmax(1)[~torch.eye(10, dtype=torch.bool)]
    torch.testing.assert_close(value, -log_shares.mean())
    assert torch.autograd.grad(value, x)[0].norm() > 0


LARGE = 4096


@pytest.mark.parametrize(
    ("loss", "views", "extra"),
    [
        (losses.InfoNCE(0.1), 2, {}),
        (losses.SupCon(0.1), 1, {"labels": torch.arange(LARGE) % 10}),
        (losses.EpsSupInfoNCE(0.1, 0.5), 1, {"labels": torch.arange(LARGE) % 100}),
        (losses.FairKL(), 1, {"labels": torch.arange(LARGE) % 10, "bias": torch.arange(LARGE) // 10 % 7}),
        (losses.CACR(1.0, 2.0), 2, {}),
        (losses.BarlowTwins(), 2, {}),
        (losses.VICReg(), 2, {}),
        (losses.BYOL(), 2, {"targets": torch.ones(2, LARGE, 16)}),
        (losses.SimSiam(), 2, {"targets": torch.ones(2, LARGE, 16)}),
    ],
    ids=[
        "infonce",
        "supcon",
        "eps-supinfonce",
        "fairkl",
        "cacr",
        "barlow-twins",
        "vicreg",
        "byol",
        "simsiam",
    ],
)
def test_large_batches_give_finite_gradients(loss: nn.Module, views: int, extra: dict[str, Any]) -> None:
    x = torch.randn(views, LARGE, 16, generator=torch.Generator().manual_seed(0)).requires_grad_()
    value = loss(x, **extra)
    (gradient,) = torch.autograd.grad(value, x)
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert gradient.norm() > 0


@pytest.mark.parametrize(
    "case", [c for c in LOSS_CASES if c.name not in ("biasbal", "herocon-sup")], ids=lambda c: c.name
)
def test_no_tensor_is_larger_than_anchors_squared(case: LossCase) -> None:
    """With 40 images of width 50, B x B x D is 80,000 numbers; anchors squared are at most (3 * 40)^2."""
    B, D = 40, 5 if case.name.startswith(("herocon-unsup", "herocon-one", "swav", "decorr")) else 50
    inputs = seeded_inputs(case, B=B, D=D)
    anchors = B * (len(inputs["views"]) if "views" in inputs else 1)
    with MadeTensors() as made:
        value_and_gradient(case, inputs)
    given = max(value.numel() for value in inputs.values())
    assert max(made.stored) <= max(anchors**2, given, 8 * B)


@pytest.mark.parametrize("case", LOSS_CASES, ids=lambda c: c.name)
def test_graph_keeps_a_few_matrices_of_anchors_squared(case: LossCase) -> None:
    """Each anchor has 27 positives: the test notices a graph that keeps an N x N matrix for each of them."""
    inputs = seeded_inputs(case, B=40)
    anchors = 40 * (len(inputs["views"]) if "views" in inputs else 1)
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    inputs[case.embedded].requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        value = case.build()(**inputs)
    assert value.requires_grad
    total = sum(tensor.untyped_storage().nbytes() // tensor.element_size() for tensor in kept.values())
    assert total < 6 * anchors**2


def test_herocon_supervised_never_holds_all_labels_of_all_pairs() -> None:
    n, c = 400, 60
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(n, 8, generator=generator).requires_grad_()
    labels = (torch.rand(n, c, generator=generator) < 0.6).long()
    with MadeTensors() as made:
        losses.HeroConSupervised()(features, labels).backward()
    assert max(made.stored) <= n * n * c / 8


def test_herocon_label_vectors_without_anything_in_common_stay_finite() -> None:
    """sigma is 0 across classes and gamma is 0 within a class, so the padding rows of a chunk meet log(0)."""
    features = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels = torch.tensor([[1, 0]] * 4 + [[0, 1]] * 2)
    value = losses.HeroConSupervised("hamming")(features, labels)
    assert value.isfinite()
    assert torch.autograd.grad(value, features)[0].isfinite().all()


def test_herocon_chunks_do_not_change_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(30, 8, generator=generator, dtype=torch.float64)
    labels = (torch.rand(30, 12, generator=generator) < 0.4).long()
    whole = losses.HeroConSupervised()(features, labels)
    monkeypatch.setattr("contrasweep.losses.herocon.LARGEST_CHUNK", 200)
    torch.testing.assert_close(losses.HeroConSupervised()(features, labels), whole, rtol=1e-12, atol=0)
