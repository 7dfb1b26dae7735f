from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data import OneClusterBatches, UniformBatches


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 60), batch_size=st.integers(1, 70), seed=st.integers(0, 3))
def test_uniform_epochs_are_exact(size: int, batch_size: int, seed: int) -> None:
    sampler = UniformBatches(size, batch_size, seed)
    for epoch in range(3):
        batches = sampler.epoch(epoch)
        assert len(batches) == sampler.steps_per_epoch == max(1, size // batch_size)
        assert {len(batch) for batch in batches} == {min(size, batch_size)}
        drawn = torch.cat(batches)
        assert len(drawn.unique()) == len(drawn)
        assert int(drawn.min()) >= 0
        assert int(drawn.max()) < size
        assert drawn.dtype == torch.int64


@settings(max_examples=40, deadline=None)
@given(
    clusters=st.lists(st.integers(-2, 5), min_size=2, max_size=60).filter(
        lambda given: max(Counter(given).values()) > 1
    ),
    batch_size=st.integers(3, 12),
)
def test_one_cluster_epochs_lose_no_image_that_has_company(clusters: list[int], batch_size: int) -> None:
    sampler = OneClusterBatches(torch.tensor(clusters), batch_size, seed=0)
    counts = Counter(clusters)
    for epoch in range(3):
        batches = sampler.epoch(epoch)
        assert len(batches) == sampler.steps_per_epoch
        assert all(2 <= len(batch) <= batch_size for batch in batches)
        assert all(len({clusters[row] for row in batch.tolist()}) == 1 for batch in batches)
        drawn = sorted(torch.cat(batches).tolist())
        assert drawn == [row for row, cluster in enumerate(clusters) if counts[cluster] > 1]
    assert sampler.dropped == sum(count == 1 for count in counts.values())


def test_a_cluster_is_dealt_to_near_equal_batches() -> None:
    sampler = OneClusterBatches(torch.zeros(257, dtype=torch.int64), 256, seed=0)
    assert sorted(len(batch) for batch in sampler.epoch(0)) == [128, 129]


def _samplers(seed: int) -> list[UniformBatches | OneClusterBatches]:
    return [UniformBatches(40, 8, seed), OneClusterBatches(torch.arange(40) % 4, 5, seed)]


@pytest.mark.parametrize("kind", [0, 1])
def test_an_epoch_depends_on_seed_and_number_alone(kind: int) -> None:
    sampler = _samplers(0)[kind]
    third = torch.cat(sampler.epoch(3))
    torch.manual_seed(99)
    sampler.epoch(0)
    assert torch.equal(third, torch.cat(sampler.epoch(3)))
    assert torch.equal(third, torch.cat(_samplers(0)[kind].epoch(3)))
    assert not torch.equal(third, torch.cat(sampler.epoch(4)))
    assert not torch.equal(third, torch.cat(_samplers(1)[kind].epoch(3)))


def test_an_image_meets_others_in_the_next_epoch() -> None:
    sampler = OneClusterBatches(torch.zeros(20, dtype=torch.int64), 10, seed=0)
    pairings = {frozenset(frozenset(batch.tolist()) for batch in sampler.epoch(epoch)) for epoch in range(5)}
    assert len(pairings) == 5


def test_the_clusters_of_successive_batches_are_mixed() -> None:
    clusters = torch.arange(400) % 4
    order = [int(clusters[batch[0]]) for batch in OneClusterBatches(clusters, 10, seed=0).epoch(0)]
    assert order != sorted(order)


def test_what_cannot_be_batched_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one image"):
        UniformBatches(0, 4, 0)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        UniformBatches(4, 0, 0)
    with pytest.raises(ValueError, match="at least 3, got 2"):
        OneClusterBatches(torch.zeros(8, dtype=torch.int64), 2, 0)
    with pytest.raises(ValueError, match="no cluster has two images: 3 images in 3 clusters"):
        OneClusterBatches(torch.arange(3), 4, 0)
    with pytest.raises(ValueError, match="int64"):
        OneClusterBatches(torch.zeros(8), 4, 0)
