"""k-means in tensor operations, called directly on the CPU, against scikit-learn."""

import pytest
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from contrasweep.data import kmeans_clusters, lloyd_kmeans
from contrasweep.data.clusters import _means, _nearest, _without_empty


def _blobs(groups: int = 12, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(60 * groups) % groups
    centres = 8 * torch.randn(groups, 5, generator=generator)
    return (centres[truth] + torch.randn(len(truth), 5, generator=generator)).to(dtype), truth


def _inertia(rows: Tensor, labels: Tensor) -> float:
    rows = rows.double()
    return sum(float((part - part.mean(dim=0)).square().sum()) for part in _members(rows, labels))


def _members(rows: Tensor, labels: Tensor) -> list[Tensor]:
    return [rows[labels == cluster] for cluster in labels.unique()]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_separate_groups_are_found(dtype: torch.dtype) -> None:
    rows, truth = _blobs(dtype=dtype)
    found = lloyd_kmeans(rows, 12, seed=0)
    assert found.dtype == torch.int64
    assert len({(a, b) for a, b in zip(truth.tolist(), found.tolist(), strict=True)}) == 12


@pytest.mark.parametrize("clusters", [7, 40])
def test_as_good_as_scikit_learn(clusters: int) -> None:
    """If the numbers of clusters and groups differ, many local optima are about equally good."""
    rows, _ = _blobs()
    found = [_inertia(rows, lloyd_kmeans(rows, clusters, seed)) for seed in range(5)]
    theirs = [KMeans(clusters, n_init=3, random_state=seed).fit(rows.numpy()).inertia_ for seed in range(5)]
    assert sum(found) == pytest.approx(sum(theirs), rel=0.02)


def test_mini_batches_come_close_to_all_rows_also_with_many_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(300, 8, generator=generator)
    drawn = torch.randint(0, 300, (6000,), generator=generator)
    rows = centres[drawn] + 0.4 * torch.randn(6000, 8, generator=generator)
    exact = _inertia(rows, kmeans_clusters(rows, 600, 0, starts=1, iterations=20))
    monkeypatch.setattr("contrasweep.data.clusters._MINI_BATCH_ABOVE", 5000)
    assert _inertia(rows, kmeans_clusters(rows, 600, 0, starts=1)) < 1.02 * exact


def test_far_from_the_origin_digits_are_not_lost() -> None:
    rows, truth = _blobs()
    found = lloyd_kmeans(rows + 3e4, 12, seed=0)
    assert len({(a, b) for a, b in zip(truth.tolist(), found.tolist(), strict=True)}) == 12


def test_the_seed_decides() -> None:
    rows = torch.rand(400, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(lloyd_kmeans(rows, 8, seed=3), lloyd_kmeans(rows, 8, seed=3))
    assert not torch.equal(lloyd_kmeans(rows, 8, seed=3), lloyd_kmeans(rows, 8, seed=4))


def test_more_starts_and_iterations_find_better_clusters() -> None:
    rows = torch.rand(400, 3, generator=torch.Generator().manual_seed(1))

    def mean_inertia(starts: int, iterations: int) -> float:
        found = [lloyd_kmeans(rows, 20, s, starts=starts, iterations=iterations) for s in range(4)]
        return sum(_inertia(rows, labels) for labels in found) / 4

    assert mean_inertia(5, 20) < mean_inertia(1, 20) < mean_inertia(1, 1)


def test_global_chance_is_neither_used_nor_moved() -> None:
    rows, _ = _blobs()
    torch.manual_seed(0)
    first, state = lloyd_kmeans(rows, 7, seed=0), torch.get_rng_state()
    torch.manual_seed(1)
    assert torch.equal(lloyd_kmeans(rows, 7, seed=0), first)
    torch.manual_seed(0)
    assert torch.equal(torch.get_rng_state(), state)


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = _blobs(dtype=torch.float64)
    whole = lloyd_kmeans(rows, 9, seed=0)
    monkeypatch.setattr("contrasweep.data.clusters._BLOCK_CELLS", 9 * 7)
    assert torch.equal(lloyd_kmeans(rows, 9, seed=0), whole)


def test_the_steps_of_lloyd_by_hand() -> None:
    rows = torch.tensor([[0.0], [1.0], [9.0], [11.0]])
    labels = _nearest(rows, torch.tensor([[2.0], [20.0]]))
    assert labels.tolist() == [0, 0, 0, 1 * (20 - 11 < 11 - 2)]
    assert _means(rows, torch.tensor([0, 0, 1, 1]), 2).tolist() == [[0.5], [10.0]]


def test_an_empty_cluster_takes_the_farthest_row_of_another() -> None:
    rows = torch.tensor([[0.0], [1.0], [5.0], [40.0]])
    centres = torch.tensor([[0.0], [90.0], [32.0], [95.0]])
    # The row at 40 is 8 from its centre but alone there; the one at 5 is next, then the one at 1.
    labels = _without_empty(rows, torch.tensor([0, 0, 0, 2]), centres)
    assert labels.tolist() == [0, 3, 1, 2]


def test_a_cluster_that_gave_its_rows_away_gives_no_more() -> None:
    rows = torch.tensor([[10.0], [12.0], [50.0], [50.5]])
    centres = torch.tensor([[0.0], [50.0], [90.0], [95.0]])
    # After 12 has left, 10 is alone in its cluster; the next is the nearer one at 50.5.
    labels = _without_empty(rows, torch.tensor([0, 0, 1, 1]), centres)
    assert labels.tolist() == [0, 2, 1, 3]


def test_no_cluster_stays_empty_where_rows_repeat() -> None:
    rows = torch.tensor([[0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [1.0], [100.0]])
    for seed in range(10):
        found = lloyd_kmeans(rows, 3, seed)
        assert found[:6].unique().numel() == 1
        assert found.unique().tolist() == [0, 1, 2]
    assert lloyd_kmeans(torch.zeros(4, 2), 4, seed=0).unique().tolist() == [0, 1, 2, 3]
    assert lloyd_kmeans(rows, 1, seed=0).tolist() == [0] * 8


def test_features_on_an_accelerator_take_this_way(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnAccelerator(torch.Tensor):
        """A tensor in the CPU's memory that claims to be on an accelerator."""

        @property
        def device(self) -> torch.device:  # type: ignore[override]
            return torch.device("cuda")

    calls: list[tuple[int, ...]] = []

    def recorded(rows: Tensor, clusters: int, seed: int, *, starts: int, iterations: int) -> Tensor:
        calls.append((len(rows), clusters, seed, starts, iterations))
        return torch.full((len(rows),), 5)

    monkeypatch.setattr("contrasweep.data.clusters._scikit_kmeans", None)
    monkeypatch.setattr("contrasweep.data.clusters.lloyd_kmeans", recorded)
    rows = _blobs()[0].as_subclass(OnAccelerator)
    assert kmeans_clusters(rows, 12, seed=3).eq(5).all()
    kmeans_clusters(rows, 12, seed=4, starts=1, iterations=20)
    assert calls == [(720, 12, 3, 3, 300), (720, 12, 4, 1, 20)]
    with pytest.raises(ValueError, match="at most the 720 distinct rows, got 721"):
        kmeans_clusters(rows, 721, seed=0)


def test_fewer_starts_and_iterations_stop_earlier() -> None:
    rows, _ = _blobs()
    for group in (kmeans_clusters, lloyd_kmeans):
        best = [_inertia(rows, group(rows, 40, seed)) for seed in range(4)]
        quick = [_inertia(rows, group(rows, 40, seed, starts=1, iterations=20)) for seed in range(4)]
        hasty = [_inertia(rows, group(rows, 40, seed, starts=1, iterations=1)) for seed in range(4)]
        assert sum(best) < sum(quick) < sum(hasty)
        assert sum(quick) == pytest.approx(sum(best), rel=0.05)
