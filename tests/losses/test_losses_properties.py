"""Properties of every loss: invariances, gradients, precision, NaN, and that terms agree with the scalar."""

import pytest
import torch
from loss_cases import CASE_NAMES, LOSS_CASES, Inputs, LossCase, seeded_inputs, value_and_gradient
from torch import Tensor

from contrasweep import losses

every_loss = pytest.mark.parametrize("case", LOSS_CASES, ids=CASE_NAMES)

# H of Eq. 5, HSIC's kernel and variances depend on the embedding's length, and so do logits.
NOT_SCALE_FREE = (
    "herocon-unsup",
    "herocon-unsup-cross",
    "herocon-one-view",
    "biasbal",
    "gce",
    "gce-released",
    "hsic",
    "rubi",
    "learned-mixin",
    "l-softmax",
    "barlow-twins",
    "vicreg",
    "vicreg-paper",
    "dino",
)
# Their formula stops the gradient somewhere: in the condition, in the weights of the positives, in a target.
STOPS_GRADIENT = (
    "cclk-hardneg",
    "cacr-queue",
    "swav",
    "swav-crops-queue",
    "wcl-released",
    "gce-released",
    "mmcl-inv",
    "mmcl-pgd",
)
# Queries from view a against keys of view b for a < b, and moments of the first view only, are not symmetric.
# A queue belongs to its view, and DINO's teacher has outputs of the first two crops alone. The support vector
# machines of MMCL are those of the first view.
NOT_VIEW_FREE = (
    "cacr-cross",
    "cacr-rbf",
    "fairkl-released",
    "swav-crops-queue",
    "mmcl-inv",
    "mmcl-pgd",
    "dino",
)


def permuted(case: LossCase, inputs: Inputs, order: Tensor) -> Inputs:
    moved = {
        name: value.index_select(case.dim[name], order) for name, value in inputs.items() if name in case.dim
    }
    if "bias_similarity" in inputs:
        moved["bias_similarity"] = inputs["bias_similarity"][order][:, order]
    return {**inputs, **moved}


@every_loss
def test_order_of_images_does_not_matter(case: LossCase) -> None:
    inputs = seeded_inputs(case)
    order = torch.tensor([3, 0, 6, 1, 7, 2, 5, 4])
    value, gradient = value_and_gradient(case, inputs)
    moved_value, moved_gradient = value_and_gradient(case, permuted(case, inputs, order))
    torch.testing.assert_close(moved_value, value, rtol=1e-10, atol=1e-12)
    expected = gradient.index_select(case.dim[case.embedded], order)
    torch.testing.assert_close(moved_gradient, expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(
    "case",
    [case for case in LOSS_CASES if 1 in case.dim.values() and case.name not in NOT_VIEW_FREE],
    ids=lambda c: c.name,
)
def test_order_of_views_does_not_matter(case: LossCase) -> None:
    inputs = seeded_inputs(case)
    swapped = {name: value.flip(0) if case.dim.get(name) == 1 else value for name, value in inputs.items()}
    value, gradient = value_and_gradient(case, inputs)
    swapped_value, swapped_gradient = value_and_gradient(case, swapped)
    torch.testing.assert_close(swapped_value, value, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(swapped_gradient, gradient.flip(0), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e25])
@pytest.mark.parametrize(
    "case", [case for case in LOSS_CASES if case.name not in NOT_SCALE_FREE], ids=lambda c: c.name
)
def test_length_of_embeddings_does_not_matter(case: LossCase, scale: float) -> None:
    inputs = {name: single(value) for name, value in seeded_inputs(case).items()}
    value, _ = value_and_gradient(case, inputs)
    scaled, _ = value_and_gradient(case, {**inputs, case.embedded: inputs[case.embedded] * scale})
    torch.testing.assert_close(scaled, value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "case", [case for case in LOSS_CASES if case.name not in STOPS_GRADIENT], ids=lambda c: c.name
)
def test_gradient_is_that_of_the_terms(case: LossCase) -> None:
    inputs = seeded_inputs(case, B=5)
    module = case.build()
    fixed = {name: value for name, value in inputs.items() if name != case.embedded}

    def weighted_terms(embedding: Tensor) -> Tensor:
        values, valid = module.terms(**fixed, **{case.embedded: embedding})
        return values.masked_fill(~valid, 0)

    leaf = inputs[case.embedded].requires_grad_()
    assert torch.autograd.gradcheck(weighted_terms, leaf, atol=1e-6)


@pytest.mark.parametrize(
    "case", [case for case in LOSS_CASES if case.name not in STOPS_GRADIENT], ids=lambda c: c.name
)
def test_a_second_derivative_is_right_or_refused(case: LossCase) -> None:
    inputs = seeded_inputs(case, B=5)
    module = case.build()
    start, along = inputs[case.embedded], torch.ones_like(inputs[case.embedded]).cumsum(-1)

    def gradient(embedding: Tensor, *, again: bool = False) -> Tensor:
        value = module(**{**inputs, case.embedded: embedding})
        return torch.autograd.grad(value, embedding, create_graph=again)[0]

    leaf, step = start.clone().requires_grad_(), 1e-5
    try:
        found = torch.autograd.grad(gradient(leaf, again=True), leaf, along)[0]
    except RuntimeError as error:
        if "second derivative of this loss is not available" not in str(error):
            raise
        return
    above, below = (gradient((start + sign * step * along).requires_grad_()) for sign in (1, -1))
    torch.testing.assert_close(found, (above - below) / (2 * step), rtol=1e-4, atol=1e-6)


@every_loss
def test_scalar_is_the_mean_or_sum_of_the_valid_terms(case: LossCase) -> None:
    inputs = seeded_inputs(case)
    module = case.build()
    terms, value = module.terms(**inputs), module(**inputs)
    assert terms.values.shape == terms.valid.shape
    assert terms.values.dim() == 1
    assert terms.valid.dtype == torch.bool
    kept = terms.values[terms.valid]
    is_summed = case.name.startswith(("fairkl", "end", "barlow"))
    torch.testing.assert_close(value, kept.sum() if is_summed else kept.mean())


def single(value: Tensor) -> Tensor:
    return value.float() if value.is_floating_point() else value


@every_loss
def test_float32_is_close_to_float64(case: LossCase) -> None:
    inputs = seeded_inputs(case, B=32, seed=3)
    value, gradient = value_and_gradient(case, inputs)
    leaf = single(inputs[case.embedded]).requires_grad_()
    others = {name: single(other) for name, other in inputs.items()}
    approximate = case.build().float()(**{**others, case.embedded: leaf})
    assert approximate.dtype == torch.float32
    torch.testing.assert_close(approximate.double(), value, rtol=1e-4, atol=1e-6)
    (approximate_gradient,) = torch.autograd.grad(approximate, leaf)
    distance = (approximate_gradient.double() - gradient).norm() / gradient.norm()
    assert distance < 1e-4


@every_loss
def test_bfloat16_autocast_computes_in_float32(case: LossCase) -> None:
    inputs = seeded_inputs(case, B=16, seed=3)
    half = {name: v.bfloat16() if v.is_floating_point() else v for name, v in inputs.items()}
    leaf = half[case.embedded].requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = case.build().float()(**{**half, case.embedded: leaf})
    raised = {name: v.float() if v.is_floating_point() else v for name, v in half.items()}
    expected = case.build().float()(**raised)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, expected.detach(), rtol=1e-5, atol=1e-6)
    (gradient,) = torch.autograd.grad(value, leaf)
    assert gradient.isfinite().all()


@every_loss
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_nan_and_inf_come_out(case: LossCase, bad: float) -> None:
    inputs = seeded_inputs(case)
    inputs[case.embedded].view(-1)[2] = bad
    value = case.build()(**inputs)
    assert not value.isfinite()


@pytest.mark.parametrize(
    "case", [c for c in LOSS_CASES if "condition" in seeded_inputs(c)], ids=lambda c: c.name
)
def test_nan_in_the_condition_comes_out(case: LossCase) -> None:
    inputs = seeded_inputs(case)
    condition = inputs["condition"].double()
    condition.view(-1)[1] = torch.nan
    assert case.build()(**{**inputs, "condition": condition}).isnan()


@pytest.mark.parametrize("form", ["kl", "jeffreys", "moments", "mean"])
def test_nan_in_a_similarity_comes_out(form: str) -> None:
    similarity = torch.full((12, 12), 0.5)
    similarity[3, 5] = torch.nan
    value = losses.FairKL(form)(
        torch.randn(1, 12, 4, generator=torch.Generator().manual_seed(0)),
        torch.arange(12) % 2,
        bias_similarity=similarity,
    )
    assert value.isnan()


@every_loss
@pytest.mark.parametrize("kind", [torch.uint8, torch.int16])
def test_class_numbers_of_any_integer_type_mean_the_same(case: LossCase, kind: torch.dtype) -> None:
    inputs = seeded_inputs(case)
    small = {name: one if one.is_floating_point() else one.to(kind) for name, one in inputs.items()}
    assert torch.equal(case.build()(**small), case.build()(**inputs))


@every_loss
def test_a_zero_embedding_gives_finite_gradients(case: LossCase) -> None:
    inputs = seeded_inputs(case)
    inputs[case.embedded].select(case.dim[case.embedded], 2).zero_()
    value, gradient = value_and_gradient(case, inputs)
    assert value.isfinite()
    assert gradient.isfinite().all()


@every_loss
def test_collapsed_embeddings_give_finite_gradients(case: LossCase) -> None:
    inputs = seeded_inputs(case)
    constant = torch.ones_like(inputs[case.embedded])
    value, gradient = value_and_gradient(case, {**inputs, case.embedded: constant})
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_a_network_of_half_precision_takes_codes_of_its_own() -> None:
    loss = losses.JensenShannon(3, hidden=4)
    codes = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    expected = loss(codes)
    found = loss.bfloat16()(codes.bfloat16())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0.05)


def test_two_losses_of_zero_weigh_nothing_in_half_precision() -> None:
    assert losses.relative_difficulty(*torch.zeros(2, 3, dtype=torch.float16)).tolist() == [0.0, 0.0, 0.0]
