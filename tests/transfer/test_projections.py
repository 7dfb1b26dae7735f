"""Features in the plane: principal components, and UMAP, or what is said where it is not installed."""

import pytest
import torch

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.transfer.projections import PROJECTIONS, principal_components, projected
from contrasweep.tuning.transfer.request import MAP_METHODS, check_map_method


def draws(count: int = 200) -> torch.Tensor:
    """Return points whose spread differs by direction."""
    spread = torch.tensor([1, 9, 2, 4, 1.0])
    return torch.randn(count, 5, generator=torch.Generator().manual_seed(0)) * spread


def test_both_lists_of_methods_are_the_same() -> None:
    assert list(PROJECTIONS) == list(MAP_METHODS)


def test_principal_components_are_those_of_the_covariance() -> None:
    found = draws()
    points, shares = principal_components(found + 7)
    variances = torch.linalg.eigvalsh(found.double().T.cov()).flip(0)
    torch.testing.assert_close(points.var(dim=0), variances[:2])
    assert shares == pytest.approx((variances[:2] / variances.sum()).tolist())
    one, (first, second) = principal_components(found[:1])
    assert (one.tolist(), first, second) == ([[0.0, 0.0]], 0.0, 0.0)


@pytest.mark.parametrize("count", [1, 2, 200])
def test_a_map_fills_its_square(count: int) -> None:
    points = projected(draws(count), "pca").points
    assert points.min() == 0
    assert points.max() == (0 if count == 1 else 1)


def test_umap_gives_the_same_map_again_and_keeps_groups_apart() -> None:
    pytest.importorskip("umap")
    apart = draws(60)
    apart[:30] += 100
    first, second = (projected(apart, "umap").points for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    near = torch.cdist(first, first).fill_diagonal_(torch.inf).argmin(dim=1)
    assert torch.equal(near < 30, torch.arange(60) < 30)
    assert projected(draws(4), "umap").points.isfinite().all()
    with pytest.raises(InputError, match="UMAP places 4 images or more, given 3"):
        projected(draws(3), "umap")


def test_umap_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.transfer.request.find_spec", lambda name: None)
    check_map_method("pca")
    with pytest.raises(InputError, match=r"needs umap-learn: pip install 'contrasweep\[umap\]'"):
        check_map_method("umap")
