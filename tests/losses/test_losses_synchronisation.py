"""No loss makes a device wait: none reads a value of its inputs, and sizes follow from shapes alone."""

import pytest
import torch
from loss_cases import CASE_NAMES, LOSS_CASES, LossCase, seeded_inputs, value_and_gradient

from contrasweep.losses import EnD, FairKL, HeroConSupervised
from contrasweep.losses.groups import group_index, group_sizes, group_sums
from contrasweep.losses.projection import project_out
from tests.synchronising import reading_synchronises_everywhere

READS = {"eps-supinfonce-d"}
"""Variant d passes over the positives one by one, and reads how many there are at most."""

without_reading = pytest.mark.parametrize(
    "case",
    [case for case in LOSS_CASES if case.name not in READS],
    ids=[n for n in CASE_NAMES if n not in READS],
)


@without_reading
def test_no_value_of_the_inputs_is_read(case: LossCase) -> None:
    """Meta tensors have no values: what reads one, or has a size that values give, raises an error."""
    inputs = {name: value.to("meta") for name, value in seeded_inputs(case).items()}
    inputs[case.embedded].requires_grad_()
    module = case.build().to("meta")
    module(**inputs).backward()
    assert inputs[case.embedded].grad is not None


@without_reading
@pytest.mark.parametrize("seed", [0, 1])
def test_what_reads_nothing_computes_the_same(case: LossCase, seed: int) -> None:
    inputs = seeded_inputs(case, seed=seed)
    with reading_synchronises_everywhere():
        value, gradient = value_and_gradient(case, inputs)
    expected, expected_gradient = value_and_gradient(case, inputs)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


def test_labels_that_are_no_rows_of_0_and_1_give_nan_where_they_are_not_read() -> None:
    labels = torch.tensor([[0, 1], [1, 0], [2, 1]])
    with reading_synchronises_everywhere():
        assert HeroConSupervised()(torch.randn(3, 4), labels).isnan()


def test_groups_are_numbered_in_the_order_of_their_values() -> None:
    first, second = torch.tensor([7, -2, 7, 3, -2]), torch.tensor([True, True, False, True, True])
    assert group_index(first).tolist() == [2, 0, 2, 1, 0]
    assert group_index(first, second).tolist() == [3, 0, 2, 1, 0]
    assert group_index(second).tolist() == [1, 1, 0, 1, 1]
    assert group_sizes(group_index(first)).tolist() == [2, 2, 2, 1, 2]
    x = torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0]])
    assert group_sums(x, group_index(first)).flatten().tolist() == [5, 18, 5, 8, 18]


@pytest.mark.parametrize("loss", [FairKL("kl"), FairKL("moments"), EnD(1.0, 1.0)])
def test_a_batch_without_pairs_has_no_gradient(loss: torch.nn.Module) -> None:
    """One image in one view pairs with nothing but itself."""
    views = torch.randn(1, 1, 4).requires_grad_()
    with reading_synchronises_everywhere():
        value = loss(views, torch.tensor([0]), torch.tensor([0]))
    value.backward()
    assert value.isfinite()
    assert views.grad is not None
    assert (views.grad == 0).all()


def test_a_projection_reads_nothing() -> None:
    logits, superficial = (torch.randn(6, 2, device="meta", requires_grad=True) for _ in range(2))
    project_out(logits, superficial).sum().backward()
    assert superficial.grad is not None
