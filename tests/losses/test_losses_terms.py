"""LossTerms: the mean over valid anchors; invalid anchors influence neither value nor gradient. And Loss."""

import pytest
import torch
from torch import Tensor

from contrasweep.losses import Loss, LossTerms
from contrasweep.losses.validation import Positive, rule_of


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


class Scaled(Loss):
    """The values times a factor."""

    factor: Positive = 2.0

    def terms(self, values: Tensor) -> LossTerms:
        return LossTerms.all_valid(values * self.factor)


class Summed(Scaled):
    """The same, added."""

    sums_terms = True


def test_a_loss_states_its_hyperparameters_as_fields() -> None:
    values = torch.tensor([1.0, 3.0])
    assert Scaled()(values).item() == 4
    assert Scaled(3)(values=values).item() == 6
    assert Summed(factor=3)(values).item() == 12
    assert isinstance(Scaled(3).factor, float)
    assert len({Scaled(), Scaled()}) == 2
    assert rule_of(Summed, "factor") == rule_of(Scaled, "factor")
    with pytest.raises(ValueError, match="factor must be above 0, given 0"):
        Scaled(0)
