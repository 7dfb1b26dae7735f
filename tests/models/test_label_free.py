"""The label-free scores: known values, what they do not depend on, and features that collapsed."""

import math

import pytest
import torch
from torch import Tensor

from contrasweep.models import (
    NonFiniteFeatures,
    alignment,
    feature_std,
    lidar,
    rankme,
    uniformity,
)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def orthogonal(size: int) -> Tensor:
    return torch.linalg.qr(drawn(size, size, seed=7)).Q


def of_rank(rank: int, images: int, dimensions: int) -> Tensor:
    """Return features with `rank` equal singular values, the others 0."""
    left, right = torch.linalg.qr(drawn(images, rank)).Q, torch.linalg.qr(drawn(dimensions, rank, seed=1)).Q
    return 3.0 * left @ right.T


@pytest.mark.parametrize(
    ("rank", "images", "dimensions"), [(1, 40, 12), (5, 40, 12), (12, 40, 12), (6, 6, 30)]
)
def test_rankme_of_equal_singular_values_is_their_number(rank: int, images: int, dimensions: int) -> None:
    assert rankme(of_rank(rank, images, dimensions)) == pytest.approx(rank, rel=1e-3)


def test_rankme_is_the_formula_of_the_paper() -> None:
    features = drawn(30, 8) * torch.arange(1, 9)
    values = torch.linalg.svd(features).S
    shares = values / values.abs().sum() + 1e-7
    assert rankme(features) == pytest.approx(float(torch.exp(-(shares * shares.log()).sum())), rel=1e-12)


def test_lidar_is_the_formula_of_the_paper() -> None:
    views = drawn(5, 40, 6) * torch.arange(1, 7) * 0.3 + drawn(40, 6, seed=3)
    means = views.mean(dim=0)
    between = (means - means.mean(dim=0)).T @ (means - means.mean(dim=0)) / 40
    within = sum(((view - means).T @ (view - means) for view in views), torch.zeros(6, 6)) / 200
    values, vectors = torch.linalg.eigh(within + 1e-4 * torch.eye(6))
    root = vectors @ torch.diag(values**-0.5) @ vectors.T
    eigenvalues = torch.linalg.eigvalsh(root @ between @ root)
    shares = eigenvalues / eigenvalues.sum() + 1e-7
    assert lidar(views) == pytest.approx(float(torch.exp(-(shares * shares.log()).sum())), rel=1e-9)


def test_lidar_counts_directions_in_which_images_differ_more_than_their_views() -> None:
    images = drawn(400, 8)
    images[:, 3:] = 0
    views = images + 0.01 * drawn(4, 400, 8, seed=2)
    assert lidar(views) == pytest.approx(3, abs=0.1)
    assert rankme(views[0]) > 3.1  # it counts the noise of the views too


@pytest.mark.parametrize("scale", [1e3, 1e8])
def test_lidar_of_features_so_large_that_the_ridge_is_lost_in_rounding(scale: float) -> None:
    views = (drawn(300, 16) + 0.1 * drawn(4, 300, 16, seed=2)) @ drawn(16, 64, seed=3)
    assert lidar(scale * views) == pytest.approx(lidar(views), rel=0.1)


def test_alignment_and_uniformity_of_known_points() -> None:
    x, y = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert alignment(torch.stack([torch.stack([x, x]), torch.stack([x, y])])) == pytest.approx((0 + 2) / 2)
    # Opposite points have the squared distance 4, so the potential is exp(-8).
    assert uniformity(torch.stack([x, -x])) == pytest.approx(-8)
    expected = math.log((2 * math.exp(-4) + 0 + math.exp(-8)) / 3)
    assert uniformity(torch.stack([x, y, -x])) == pytest.approx(expected)


def test_uniformity_does_not_depend_on_the_parts_it_is_computed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    features = drawn(50, 4)
    whole = uniformity(features)
    monkeypatch.setattr("contrasweep.models.label_free._ROWS", 7)
    assert uniformity(features) == pytest.approx(whole, rel=1e-12)


def test_directions_that_are_uniform_on_the_sphere_have_a_deviation_of_one() -> None:
    assert feature_std(drawn(20_000, 16)) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("change", ["rotation", "scale"])
def test_what_the_scores_do_not_depend_on(change: str) -> None:
    views = drawn(2, 50, 6) * torch.arange(1, 7)
    other = views @ orthogonal(6) if change == "rotation" else 7.0 * views
    for score in (rankme, uniformity):
        assert score(other[0]) == pytest.approx(score(views[0]), rel=1e-9)
    assert alignment(other) == pytest.approx(alignment(views), rel=1e-9)
    assert lidar(other) == pytest.approx(lidar(views), rel=1e-3)  # what is added to its diagonal has a scale
    if change == "scale":
        assert feature_std(other[0]) == pytest.approx(feature_std(views[0]), rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 2.5])
def test_constant_features_have_the_worst_scores_but_the_best_alignment(value: float) -> None:
    features = torch.full((20, 6), value)
    assert rankme(features) == pytest.approx(1, abs=1e-3)
    assert lidar(torch.stack([features, features])) == pytest.approx(1, abs=1e-3)
    assert uniformity(features) == pytest.approx(0, abs=1e-12)
    assert feature_std(features) == pytest.approx(0, abs=1e-12)
    assert alignment(torch.stack([features, features])) == 0


def test_one_image() -> None:
    views = drawn(2, 1, 6)
    assert rankme(views[0]) == pytest.approx(1, abs=1e-3)
    assert lidar(views) == 1
    assert math.isnan(uniformity(views[0]))
    assert feature_std(views[0]) == 0


def test_fewer_images_than_dimensions() -> None:
    views = drawn(2, 5, 40)
    assert 4 < rankme(views[0]) <= 5.01
    assert 1 <= lidar(views) <= 4.01


def test_the_scores_need_no_gradient_and_no_double_precision() -> None:
    views = drawn(2, 30, 6).float().requires_grad_()
    for score, of in ((rankme, views[0]), (uniformity, views[0]), (feature_std, views[0]), (lidar, views)):
        assert score(of) == pytest.approx(score(of.detach().double()), rel=1e-9)


@pytest.mark.parametrize("score", [rankme, uniformity, feature_std])
def test_features_of_another_shape_or_without_numbers_are_refused(score: object) -> None:
    assert callable(score)
    with pytest.raises(ValueError, match=r"features must be \(N, D\).*got \(0, 3\)"):
        score(torch.zeros(0, 3))
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        score(torch.zeros(3))
    with pytest.raises(NonFiniteFeatures, match="NaN or Inf"):
        score(torch.tensor([[1.0, math.nan]]))


def test_views_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match="two views, got 3"):
        alignment(drawn(3, 4, 5))
    with pytest.raises(ValueError, match="V >= 2"):
        lidar(drawn(1, 4, 5))
    with pytest.raises(NonFiniteFeatures):
        lidar(torch.full((2, 3, 4), math.inf))
