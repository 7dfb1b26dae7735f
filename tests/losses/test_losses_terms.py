"""LossTerms: the mean over valid anchors; invalid anchors influence neither value nor gradient."""

import pytest
import torch

from contrasweep.losses import LossTerms


def test_mean_is_over_valid_anchors() -> None:
    terms = LossTerms(torch.tensor([1.0, 5.0, 3.0]), torch.tensor([True, False, True]))
    assert terms.mean().item() == 2
    assert terms.sum().item() == 4
    assert terms.dropped_fraction().item() == pytest.approx(1 / 3)


def test_no_valid_anchor_is_a_zero_attached_to_the_graph() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    terms = LossTerms(x * 3, torch.tensor([False, False]))
    value = terms.mean()
    assert value.item() == 0
    value.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 0]
    assert terms.dropped_fraction().item() == 1


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_bad_values_pass_where_valid_and_vanish_where_not(bad: float) -> None:
    values = torch.tensor([1.0, bad], requires_grad=True)
    assert not LossTerms(values, torch.tensor([True, True])).mean().isfinite()
    value = LossTerms(values, torch.tensor([True, False])).mean()
    assert value.item() == 1
    assert torch.autograd.grad(value, values)[0].tolist() == [1, 0]


def test_dropped_fraction_has_no_gradient() -> None:
    values = torch.tensor([1.0], requires_grad=True)
    assert not LossTerms(values, torch.tensor([True])).dropped_fraction().requires_grad
