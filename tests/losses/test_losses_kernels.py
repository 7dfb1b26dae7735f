"""The weights of CCL-K are exact, symmetric, cheap for low ranks, and finite under bad rounding."""

import pytest
import references
import torch
from torch import Tensor

from contrasweep.losses import FairCCLK, HardNegCCLK, WeaklySupCCLK, kernels


def condition(B: int, Z: int, seed: int = 0) -> Tensor:
    return torch.rand(B, Z, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 255


SCALES = {"rbf": 5e3, "laplacian": 80.0, "linear": 4e3, "polynomial": 1e9, "cosine": 1.0}


@pytest.mark.parametrize("kernel", kernels.KERNELS)
@pytest.mark.parametrize("Z", [1, 3, 40])
@pytest.mark.parametrize("lam", [0.01, 100.0])
def test_weights_equal_a_general_solve(kernel: str, Z: int, lam: float) -> None:
    """Z = 40 > B uses K_Z; a smaller Z uses the low-rank solution, for the kernels that have one."""
    z = condition(12, Z)
    W = kernels.conditional_weights(z, kernel, SCALES[kernel], lam)
    expected = references.conditional_weights(z, kernel, SCALES[kernel], lam)
    torch.testing.assert_close(W, expected, rtol=1e-6, atol=1e-10)
    torch.testing.assert_close(W, W.T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weights", ["released", "paper"])
@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
@pytest.mark.parametrize("loss", [FairCCLK, WeaklySupCCLK, HardNegCCLK])
def test_a_kernel_that_its_scale_divides_knows_only_the_product_of_scale_and_ridge(
    loss: type[FairCCLK | WeaklySupCCLK | HardNegCCLK], kernel: str, weights: str
) -> None:
    """With K = G / sigma2, `(K + lam I)^-1 K = (G + lam sigma2 I)^-1 G`."""
    generator = torch.Generator().manual_seed(0)
    views = torch.randn(2, 12, 5, generator=generator, dtype=torch.float64)
    z = torch.rand(12, 3, generator=generator, dtype=torch.float64) * 2

    def value(kernel: str, sigma2: float, lam: float) -> Tensor:
        made = loss(kernel, sigma2, lam=lam, temperature=0.3, weights=weights)
        return made(views, torch.stack([z, z]) if loss is HardNegCCLK else z)

    torch.testing.assert_close(value(kernel, 5.0, 0.3), value(kernel, 1.0, 1.5), rtol=1e-9, atol=0)
    torch.testing.assert_close(value(kernel, 0.1, 15.0), value(kernel, 1.0, 1.5), rtol=1e-9, atol=0)
    for other in ("rbf", "laplacian"):
        assert (value(other, 5.0, 0.3) - value(other, 1.0, 1.5)).abs() > 1e-3


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_repeated_conditions_share_their_weight(kernel: str) -> None:
    """Five images of each of ten colours: weights within a colour are nearly 1 / 5; distance 0 is exact."""
    z = condition(10, 3).repeat(5, 1)
    W = kernels.conditional_weights(z, kernel, SCALES[kernel], 0.01)
    expected = references.conditional_weights(z, kernel, SCALES[kernel], 0.01)
    torch.testing.assert_close(W, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_condition_is_exactly_like_itself(kernel: str) -> None:
    K = kernels.kernel_matrix(condition(30, 3) + 1e6, kernel, SCALES[kernel])
    assert (K.diagonal() == 1).all()


def test_single_precision_conditions_are_solved_in_double() -> None:
    """With repeated conditions and lam = 0.01, a float32 solve moves weights across the released clip."""
    z = condition(10, 3).repeat(30, 1).float()
    exact = kernels.conditional_weights(z.double(), "rbf", 5e3, 0.01)
    torch.testing.assert_close(kernels.conditional_weights(z, "rbf", 5e3, 0.01), exact)
    K = kernels.kernel_matrix(z, "rbf", 5e3)
    single = torch.linalg.solve(K + 0.01 * torch.eye(len(z)), K)
    moved = (kernels.released_weights(single) > 0) != (kernels.released_weights(exact) > 0)
    assert moved.double().mean() > 0.01


@pytest.mark.parametrize("kernel", kernels.KERNELS)
def test_weights_stay_finite_where_the_system_is_numerically_singular(kernel: str) -> None:
    """At sigma2 = 1 the polynomial kernel of 8-bit colours reaches 1e15; rounding loses lam = 1e-3."""
    z = torch.cat([condition(20, 3), condition(20, 3)])
    W = kernels.conditional_weights(z, kernel, 1.0, 1e-3)
    assert W.isfinite().all()
    assert torch.linalg.eigvalsh((W + W.T) / 2).abs().max() < 1 + 1e-6


@pytest.mark.parametrize("kernel", ["polynomial", "linear", "cosine"])
@pytest.mark.parametrize("Z", [3, 60])
def test_a_ridge_below_the_rounding_error_becomes_that_error(kernel: str, Z: int) -> None:
    """What is known of K_Z stays: `K W = K` but for the ridge, and the weights are those of that ridge."""
    z = condition(20, Z).repeat(2, 1)
    K = kernels.kernel_matrix(z, kernel, 1.0)
    rounding = kernels.ROUNDING * torch.finfo(K.dtype).eps * float(K.trace())
    W = kernels.conditional_weights(z, kernel, 1.0, rounding / 1e6)
    torch.testing.assert_close(W, kernels.conditional_weights(z, kernel, 1.0, rounding), rtol=0, atol=1e-9)
    assert (K @ W - K).abs().max() < 2 * rounding


def test_a_matrix_that_is_no_kernel_gives_nan() -> None:
    K = torch.diag(torch.tensor([1.0, -0.5], dtype=torch.float64))
    assert kernels._regularised_inverse_product(K, 0.1).isnan().all()


def test_released_weights_are_clipped() -> None:
    W = torch.tensor([[0.9, 1e-7, 0.2], [-0.3, 0.8, 2e-6], [torch.nan, 0.1, 0.7]])
    kept = kernels.released_weights(W)
    expected = torch.tensor([[0, 0, 0.2], [0, 0, 2e-6], [torch.nan, 0.1, 0]])
    torch.testing.assert_close(kept, expected, equal_nan=True)
    assert W[0, 0] == 0.9


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float32])
def test_conditions_of_any_number_type_are_taken(dtype: torch.dtype) -> None:
    z = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 1]])
    views = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    loss = FairCCLK("cosine", lam=0.1, temperature=0.5)
    torch.testing.assert_close(loss(views, z.to(dtype)), loss(views, z.double()))
    assert loss(views, z[:, 0].to(dtype)).isfinite()
