import random
import sys
from types import ModuleType

import pytest
import torch

from contrasweep.data import kmeans_clusters
from contrasweep.data.clusters import _distinct_rows


def _blobs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(300) % 3
    centres = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    return centres[truth] + 0.5 * torch.randn(300, 2, generator=generator), truth


def test_the_global_generator_is_untouched_by_what_scikit_learn_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sklearn.cluster as real

    class Drawing(ModuleType):
        def __getattr__(self, name: str) -> object:
            random.random()
            return getattr(real, name)

    monkeypatch.setitem(sys.modules, "sklearn.cluster", Drawing("sklearn.cluster"))
    before = random.getstate()
    kmeans_clusters(_blobs()[0], 3, seed=0)
    assert random.getstate() == before


def test_separate_groups_are_found() -> None:
    features, truth = _blobs()
    found = kmeans_clusters(features, 3, seed=0)
    assert found.dtype == torch.int64
    assert len({(a, b) for a, b in zip(truth.tolist(), found.tolist(), strict=True)}) == 3
    assert found.unique().tolist() == [0, 1, 2]


def test_the_seed_decides() -> None:
    features = torch.rand(400, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(kmeans_clusters(features, 8, seed=3), kmeans_clusters(features, 8, seed=3))
    assert not torch.equal(kmeans_clusters(features, 8, seed=3), kmeans_clusters(features, 8, seed=4))


def test_large_sets_take_mini_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.cluster

    monkeypatch.setattr("contrasweep.data.clusters._MINI_BATCH_ABOVE", 100)
    monkeypatch.setattr(sklearn.cluster, "KMeans", None)
    features, truth = _blobs()
    found = kmeans_clusters(features, 3, seed=0)
    assert len({(a, b) for a, b in zip(truth.tolist(), found.tolist(), strict=True)}) == 3


def test_distinct_rows_are_counted() -> None:
    rows = torch.tensor([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0], [3.0, 1.0]]).double()
    assert _distinct_rows(rows, enough=10) == 3
    assert _distinct_rows(rows, enough=2) == 2
    # The last row counts too, however many repeat before it.
    many = torch.zeros(10_000, 1)
    many[-1] = 1.0
    assert _distinct_rows(many, enough=3) == 2


def test_bad_input_of_clusters_is_refused() -> None:
    rows = torch.tensor([[1.0], [2.0], [2.0]])
    with pytest.raises(ValueError, match="at most the 2 distinct rows, got 3"):
        kmeans_clusters(rows, 3, seed=0)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        kmeans_clusters(rows, 0, seed=0)
    for starts, iterations in ((0, 5), (5, 0)):
        with pytest.raises(ValueError, match=f"at least 1, got {starts} and {iterations}"):
            kmeans_clusters(rows, 1, seed=0, starts=starts, iterations=iterations)
    with pytest.raises(ValueError, match="finite"):
        kmeans_clusters(torch.tensor([[1.0], [float("nan")]]), 1, seed=0)
    for wrong in (torch.rand(4), torch.zeros(4, 2, dtype=torch.int64)):
        with pytest.raises(ValueError, match="floating"):
            kmeans_clusters(wrong, 1, seed=0)
