"""Clusters matched with labels: against all permutations, and known values."""

from itertools import permutations

import pytest
import torch

from contrasweep.data import cluster_information, clustering_accuracy, clustering_nmi, renumbered


def drawn(rows: int, clusters: int, seed: int) -> torch.Tensor:
    return torch.randint(clusters, (rows,), generator=torch.Generator().manual_seed(seed))


def test_clusters_are_renumbered_to_agree_with_those_before() -> None:
    before = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])
    permuted = torch.tensor([2, 2, 2, 0, 0, 0, 1, 1, 1])
    assert torch.equal(renumbered(permuted, before, 3), before)
    # Cluster 0 overlaps most with number 1, but number 1 saves more elsewhere: the total decides.
    clusters = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])
    earlier = torch.tensor([1, 1, 1, 0, 0, 1, 1, 1])
    assert renumbered(clusters, earlier, 2).tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert renumbered(torch.tensor([0, 1]), torch.tensor([2, 2]), 3).unique().numel() == 2


@pytest.mark.parametrize(("clusters", "classes"), [(4, 4), (3, 5), (5, 3)])
def test_accuracy_is_the_best_over_all_ways_to_match(clusters: int, classes: int) -> None:
    for seed in range(5):
        z, t = drawn(40, clusters, seed), drawn(40, classes, seed + 100)
        ways = permutations(range(max(clusters, classes)))
        best = max(float((torch.tensor(way)[z] == t).double().mean()) for way in ways)
        assert clustering_accuracy(z, t) == pytest.approx(best, abs=1e-12)


def test_nmi_is_the_information_over_the_mean_entropy() -> None:
    z, t = drawn(60, 4, 0), drawn(60, 3, 1)
    information, rest = cluster_information(z, t)
    own = sum(cluster_information(t, t))
    assert clustering_nmi(z, t) == pytest.approx(2 * information / (information + rest + own))


def test_a_perfect_clustering_and_one_that_says_nothing() -> None:
    t = torch.arange(12) % 3
    assert clustering_accuracy((t + 1) % 3, t) == clustering_nmi((t + 1) % 3, t) == 1.0
    assert clustering_accuracy(torch.zeros_like(t), t) == pytest.approx(1 / 3)
    assert clustering_nmi(torch.arange(12) // 3 // 2, t) == pytest.approx(0.0, abs=1e-9)


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"must both be \(N,\), N >= 1; got \(3,\) and \(2,\)"):
        clustering_accuracy(torch.zeros(3, dtype=torch.int64), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"got \(0,\) and \(0,\)"):
        clustering_nmi(*torch.zeros(2, 0, dtype=torch.int64))
