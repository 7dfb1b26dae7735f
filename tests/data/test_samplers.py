from collections import Counter
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from contrasweep.data import (
    OneClusterBatches,
    PairedBatches,
    SemiSupervisedBatches,
    SemiSupervisedRows,
    UniformBatches,
    shard,
)


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


Sampler = UniformBatches | OneClusterBatches | PairedBatches | SemiSupervisedBatches
KINDS: dict[str, Callable[[int], Sampler]] = {
    "uniform": lambda seed: UniformBatches(40, 8, seed),
    "one-cluster": lambda seed: OneClusterBatches(torch.arange(40) % 4, 5, seed),
    "paired": lambda seed: PairedBatches(torch.arange(40) % 4, 8, seed),
    "semi-supervised": lambda seed: SemiSupervisedBatches(10, 40, 4, 8, seed),
}
EVERY = pytest.mark.parametrize("kind", list(KINDS))


def _flat(batches: Sequence[Tensor | SemiSupervisedRows]) -> Tensor:
    parts = ((b.labelled, b.unlabelled) if isinstance(b, SemiSupervisedRows) else (b,) for b in batches)
    return torch.cat([part.flatten() for both in parts for part in both])


@EVERY
def test_an_epoch_depends_on_seed_and_number_alone(kind: str) -> None:
    sampler = KINDS[kind](0)
    third = _flat(sampler.epoch(3))
    assert third.dtype == torch.int64
    torch.manual_seed(99)
    sampler.epoch(0)
    assert torch.equal(third, _flat(sampler.epoch(3)))
    assert torch.equal(third, _flat(KINDS[kind](0).epoch(3)))
    assert not torch.equal(third, _flat(sampler.epoch(4)))
    assert not torch.equal(third, _flat(KINDS[kind](1).epoch(3)))
    assert len(sampler.epoch(3)) == sampler.steps_per_epoch


@EVERY
def test_a_run_resumed_in_mid_epoch_draws_the_same_batches(kind: str) -> None:
    straight = [batch for epoch in (1, 2) for batch in KINDS[kind](0).epoch(epoch)]
    steps = KINDS[kind](0).steps_per_epoch
    for done in (1, steps - 1):
        # A new sampler, as after a restart, knows nothing but where the run was.
        resumed = [*KINDS[kind](0).epoch(1)[done:], *KINDS[kind](0).epoch(2)]
        assert torch.equal(_flat(resumed), _flat(straight[done:]))


@EVERY
@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_share_a_batch_evenly_and_leave_nothing_out(kind: str, world: int) -> None:
    for batch in KINDS[kind](0).epoch(0):
        parts = [shard(batch, rank, world) for rank in range(world)]
        wholes = [batch.labelled, batch.unlabelled] if isinstance(batch, SemiSupervisedRows) else [batch]
        for which, whole in enumerate(wholes):
            shares = [
                (part.labelled, part.unlabelled)[which] if isinstance(part, SemiSupervisedRows) else part
                for part in parts
            ]
            sizes = [share.shape[-1] for share in shares]
            assert max(sizes) - min(sizes) <= 1
            assert torch.equal(torch.cat(shares, dim=-1), whole)


def test_a_rank_that_is_not_there_or_would_get_nothing_is_refused() -> None:
    for rank, world in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match=rf"rank must be 0\.\.world-1, got rank {rank} of world {world}"):
            shard(torch.arange(8), rank, world)
    with pytest.raises(ValueError, match="a batch of 2 images leaves some of 3 ranks without any"):
        shard(torch.arange(2), 0, 3)


@settings(max_examples=40, deadline=None)
@given(clusters=st.lists(st.integers(-2, 5), min_size=1, max_size=60), batch_size=st.integers(1, 20))
def test_partners_are_others_of_the_same_cluster(clusters: list[int], batch_size: int) -> None:
    sampler = PairedBatches(torch.tensor(clusters), batch_size, seed=0)
    counts = Counter(clusters)
    assert sampler.alone == sum(count == 1 for count in counts.values())
    pairs = torch.cat(sampler.epoch(0), dim=1)
    size = min(batch_size, len(clusters))
    assert pairs.shape == (2, len(clusters) // size * size)
    assert len(pairs[0].unique()) == pairs.shape[1]
    for image, partner in pairs.T.tolist():
        assert clusters[image] == clusters[partner]
        assert (image == partner) == (counts[clusters[image]] == 1)


def _partners(seed: int, epoch: int) -> list[int]:
    images, partners = torch.cat(PairedBatches(torch.arange(40) % 2, 8, seed).epoch(epoch), dim=1)
    return partners[images.argsort()].tolist()


def _labelled(seed: int, epoch: int) -> list[int]:
    return torch.cat([b.labelled for b in SemiSupervisedBatches(30, 40, 5, 8, seed).epoch(epoch)]).tolist()


@pytest.mark.parametrize("drawn", [_partners, _labelled])
def test_partners_and_labelled_images_change_with_seed_and_epoch(
    drawn: Callable[[int, int], list[int]],
) -> None:
    assert drawn(0, 1) == drawn(0, 1)
    assert drawn(0, 1) != drawn(0, 2)
    assert drawn(0, 1) != drawn(1, 1)


def test_every_other_image_of_a_cluster_is_a_partner_as_often() -> None:
    clusters = torch.tensor([7, 1, 7, 7, 1, 7])
    sampler = PairedBatches(clusters, 6, seed=0)
    partners: Counter[int] = Counter()
    for epoch in range(600):
        (batch,) = sampler.epoch(epoch)
        partners[int(batch[1, (batch[0] == 3).nonzero()[0, 0]])] += 1
    assert set(partners) == {0, 2, 5}
    # 200 each is expected, with a standard deviation of 11.5.
    assert all(abs(count - 200) < 60 for count in partners.values())


@settings(max_examples=40, deadline=None)
@given(
    labelled=st.integers(1, 30),
    unlabelled=st.integers(1, 60),
    labelled_size=st.integers(1, 40),
    unlabelled_size=st.integers(1, 70),
)
def test_semi_supervised_epochs_are_exact(
    labelled: int, unlabelled: int, labelled_size: int, unlabelled_size: int
) -> None:
    sampler = SemiSupervisedBatches(labelled, unlabelled, labelled_size, unlabelled_size, seed=0)
    batches = sampler.epoch(2)
    assert len(batches) == sampler.steps_per_epoch == max(1, unlabelled // unlabelled_size)
    drawn = torch.cat([batch.unlabelled for batch in batches])
    assert len(drawn.unique()) == len(drawn) == len(batches) * min(unlabelled_size, unlabelled)
    for batch in batches:
        assert len(batch.labelled.unique()) == len(batch.labelled) == min(labelled_size, labelled)
    counts = torch.cat([batch.labelled for batch in batches]).bincount(minlength=labelled)
    assert len(counts) == labelled
    assert int(counts.max() - counts.min()) <= 1


def test_an_image_meets_others_in_the_next_epoch() -> None:
    sampler = OneClusterBatches(torch.zeros(20, dtype=torch.int64), 10, seed=0)
    pairings = {frozenset(frozenset(batch.tolist()) for batch in sampler.epoch(epoch)) for epoch in range(5)}
    assert len(pairings) == 5


def test_the_clusters_of_successive_batches_are_mixed() -> None:
    clusters = torch.arange(400) % 4
    order = [int(clusters[batch[0]]) for batch in OneClusterBatches(clusters, 10, seed=0).epoch(0)]
    assert order != sorted(order)


def test_bad_input_of_samplers_is_refused() -> None:
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
    with pytest.raises(ValueError, match="clusters must be int64"):
        PairedBatches(torch.zeros(8), 4, 0)
    with pytest.raises(ValueError, match="clusters must hold at least one image"):
        PairedBatches(torch.zeros(0, dtype=torch.int64), 4, 0)
    with pytest.raises(ValueError, match="labelled must be at least 1, got 0"):
        SemiSupervisedBatches(0, 4, 1, 1, 0)
    with pytest.raises(ValueError, match="labelled_size must be at least 1, got 0"):
        SemiSupervisedBatches(4, 4, 0, 1, 0)
