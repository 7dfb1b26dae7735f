"""What rounding may not decide: equal conditions, dominant positives, populations without weight."""

import pytest
import torch

from contrasweep import losses
from contrasweep.losses.kernels import kernel_matrix


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("width", [3, 16, 64, 128])
@pytest.mark.parametrize("scale", [1.0, 3.7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_bias_features_weigh_nothing_in_softcon(width: int, scale: float, dtype: torch.dtype) -> None:
    labels = torch.arange(8) // 4
    one_a_class = scale * drawn(2, width, seed=1)[labels].to(dtype)
    assert losses.SoftCon(0.07)(drawn(2, 8, 16), labels, one_a_class) == 0


@pytest.mark.parametrize("negatives", ["cross", "all"])
@pytest.mark.parametrize("temperature", [0.05, 0.07, 0.5])
def test_the_gradient_keeps_its_digits_where_the_positive_dominates(
    negatives: str, temperature: float
) -> None:
    images = drawn(256, 128)
    views = torch.stack([images, images + 0.3 * drawn(256, 128, seed=1)])
    loss = losses.InfoNCE(temperature, negatives)
    single, double = views.requires_grad_(), views.detach().double().requires_grad_()
    (found,) = torch.autograd.grad(loss(single), single)
    (exact,) = torch.autograd.grad(loss(double), double)
    assert float((found - exact).norm() / exact.norm()) < 1e-4
    assert (loss.terms(single).values >= 0).all()


@pytest.mark.parametrize("form", ["kl", "jeffreys"])
def test_a_population_without_weight_contributes_nothing(form: str) -> None:
    labels = torch.arange(12) % 3
    alike = (labels[:, None] == labels).float()
    assert losses.FairKL(form)(drawn(1, 12, 16), labels, bias_similarity=alike) == 0


def test_clusters_of_equal_embeddings_have_one_concentration() -> None:
    clusters = torch.arange(10).repeat_interleave(5)
    embeddings = drawn(10, 64)[clusters]
    prototypes = losses.cluster_prototypes(embeddings, clusters)
    found = losses.cluster_concentrations(embeddings, clusters, prototypes, 0.2)
    assert found.tolist() == pytest.approx([0.2] * 10)


def test_hsic_keeps_its_digits_for_large_features() -> None:
    clusters = torch.arange(128) % 10
    features = (100 * drawn(10, 512))[clusters] + drawn(128, 512, seed=1) / 512**0.5
    biased = drawn(128, 8, seed=2)
    exact = losses.HSIC()(features.double(), biased.double())
    assert float(losses.HSIC()(features, biased)) == pytest.approx(float(exact), rel=1e-3)


def test_repeated_conditions_are_at_distance_0() -> None:
    rows = (1e3 * drawn(40, 64).double()).repeat(2, 1)
    kernel = kernel_matrix(rows, "laplacian", 1.0)
    assert (kernel[torch.arange(40), torch.arange(40) + 40] == 1).all()
