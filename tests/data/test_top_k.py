import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contrasweep.data import rank_by_entropy, top_k_clusterings, top_k_clusters

# Ones in 1, 4, 5 (rarer side 3), 2 of 8 images.
_VALUES = torch.tensor(
    [
        [1, 1, 0, 0],
        [0, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 1],
        [0, 0, 0, 1],
    ]
)


def test_the_ranking_falls_with_the_entropy() -> None:
    assert rank_by_entropy(_VALUES).tolist() == [1, 2, 3, 0]


def test_equal_entropies_stay_in_the_order_of_the_columns() -> None:
    # 1 and 6 of 7: the same entropy, though computed from the shares they differ in the last bit.
    column = torch.arange(7) < 1
    values = torch.stack([column, ~column, column, torch.arange(7) < 3], dim=1)
    assert rank_by_entropy(values).tolist() == [3, 0, 1, 2]
    # So many that a sort without a promise would mix them.
    assert rank_by_entropy(torch.cat([values] * 100, dim=1))[100:].tolist() == [
        n for n in range(400) if n % 4 != 3
    ]


def test_clusters_are_the_patterns_in_their_order() -> None:
    # Columns 1 and 2: patterns 10 10 11 11 01 01 01 00.
    assert top_k_clusters(_VALUES, 2).tolist() == [2, 2, 3, 3, 1, 1, 1, 0]
    assert top_k_clusters(_VALUES, 1).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert top_k_clusters(_VALUES, 2).dtype == torch.int64
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(top_k_clusters(_VALUES[order], 3), top_k_clusters(_VALUES, 3)[order])


@given(st.lists(st.lists(st.sampled_from([0, 1]), min_size=5, max_size=5), min_size=1, max_size=30))
def test_images_share_a_cluster_exactly_if_they_share_the_pattern(rows: list[list[int]]) -> None:
    values = torch.tensor(rows)
    ranked = values[:, rank_by_entropy(values)]
    for k, clusters in top_k_clusterings(values, range(1, 6)):
        patterns = sorted({tuple(row) for row in ranked[:, :k].tolist()})
        assert clusters.tolist() == [patterns.index(tuple(row)) for row in ranked[:, :k].tolist()]
        assert torch.equal(clusters, top_k_clusters(values, k))


@pytest.mark.parametrize("k", [0, 5, -1])
def test_k_beyond_the_attributes_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=rf"k must be 1\.\.4, the number of attributes, got {k}"):
        top_k_clusters(_VALUES, k)


def test_values_that_are_not_binary_are_refused() -> None:
    with pytest.raises(ValueError, match=r"0 or 1, got 0\.5 in row 1, column 0"):
        top_k_clusters(torch.tensor([[1.0, 0.0], [0.5, 2.0]]), 1)
    with pytest.raises(ValueError, match="got nan in row 0"):
        rank_by_entropy(torch.tensor([[math.nan]]))
    wrong: list[Tensor] = [torch.ones(3), torch.ones(0, 2), torch.ones(2, 0)]
    for values in wrong:
        with pytest.raises(ValueError, match=r"\(N, A\) and not empty"):
            rank_by_entropy(values)


def test_descending_numbers_are_refused_before_any_work() -> None:
    with pytest.raises(ValueError, match=r"must ascend, got \[3, 2\]"):
        top_k_clusterings(_VALUES, [3, 2])
