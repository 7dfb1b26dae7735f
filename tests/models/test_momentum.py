import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from contrasweep.models import KeyQueue, MemoryBank, MomentumCopy


def _network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_copy_starts_equal_and_apart() -> None:
    source = _network(0)
    follower = MomentumCopy(source)
    inputs = torch.randn(5, 3)
    outputs = follower(inputs)
    torch.testing.assert_close(outputs, source(inputs).detach())
    assert not outputs.requires_grad
    assert not any(p.requires_grad for p in follower.parameters())
    assert all(p.requires_grad for p in source.parameters())
    with torch.no_grad():
        source[0].weight += 1
    torch.testing.assert_close(follower(inputs), outputs)


@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_following_is_the_moving_average(momentum: float) -> None:
    source, other = _network(0), _network(1)
    follower = MomentumCopy(source, momentum)
    follower.follow(other)
    follower.follow(other)
    remains = momentum**2
    for own, start, theirs in zip(
        follower.parameters(), source.parameters(), other.parameters(), strict=True
    ):
        torch.testing.assert_close(own, remains * start + (1 - remains) * theirs)


def test_the_copys_batch_norm_keeps_statistics_of_its_own() -> None:
    source = _network(0)
    follower = MomentumCopy(source)
    for _ in range(3):
        source(torch.randn(5, 3) + 10)
    follower.follow(source)
    mean = follower.module.state_dict()["1.running_mean"]
    assert not mean.any()
    follower(torch.randn(5, 3))
    assert mean.any()


def test_another_module_is_not_followed() -> None:
    follower = MomentumCopy(_network(0))
    with pytest.raises(ValueError, match="other parameters"):
        follower.follow(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)))
    with pytest.raises(ValueError, match=r"\[0, 1\], got 1.5"):
        MomentumCopy(_network(0), 1.5)


def _ordered(queue: KeyQueue) -> torch.Tensor:
    """Return the rows from the oldest to the newest."""
    return torch.roll(queue.keys, -int(queue.pointer), dims=0)


@pytest.mark.parametrize("batches", [[3], [2, 2, 2], [7], [3, 3, 3], [8, 1], [15, 4], [20], [0, 2]])
def test_the_queue_is_the_end_of_all_that_entered(batches: list[int]) -> None:
    size, width = 7, 4
    queue = KeyQueue(size, width, _generator())
    everything = [queue.keys.clone()]
    for index, count in enumerate(batches):
        keys = 5 * torch.randn(count, width, generator=_generator(index + 1))
        queue.enqueue(keys)
        everything.append(F.normalize(keys, dim=1))
    expected = torch.cat(everything)[-size:]
    torch.testing.assert_close(_ordered(queue), expected)
    assert int(queue.filled) == min(size, sum(batches))
    entered = min(size, sum(batches))
    found = {tuple(row) for row in queue.keys[:entered].tolist()}
    assert found == {tuple(row) for row in expected[size - entered :].tolist()}


def test_the_start_is_of_length_one_and_of_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    first, again, other = (KeyQueue(9, 4, _generator(seed)).keys for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    torch.testing.assert_close(first.norm(dim=1), torch.ones(9))


def test_a_saved_queue_goes_on_bitwise() -> None:
    queue, resumed = KeyQueue(5, 2, _generator(1)), KeyQueue(5, 2, _generator(2))
    keys = torch.randn(3, 2, 2)
    queue.enqueue(torch.cat([keys[0], keys[1]]))
    resumed.load_state_dict(queue.state_dict())
    for one in (queue, resumed):
        one.enqueue(keys[2])
    for name, value in queue.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value)


def test_keys_enter_without_their_gradient() -> None:
    queue = KeyQueue(4, 2, _generator())
    queue.enqueue(torch.randn(2, 2, requires_grad=True))
    assert not queue.keys.requires_grad
    assert not list(queue.parameters())


def test_keys_of_another_shape_are_refused() -> None:
    queue = KeyQueue(4, 2, _generator())
    with pytest.raises(ValueError, match=r"keys must be \(B, 2\), got \(3, 5\)"):
        queue.enqueue(torch.randn(3, 5))
    with pytest.raises(ValueError, match="size >= 1"):
        KeyQueue(0, 2, _generator())


def test_a_memory_moves_the_rows_that_were_seen_and_keeps_their_length() -> None:
    memory = MemoryBank(5, 3, 0.25, _generator())
    before = memory.rows.clone()
    seen = 7 * torch.randn(2, 3, generator=_generator(1))
    memory.follow(torch.tensor([3, 0]), seen)
    for row, embedding in ((3, seen[0]), (0, seen[1])):
        expected = 0.25 * before[row] + 0.75 * embedding / embedding.norm()
        torch.testing.assert_close(memory.rows[row], expected / expected.norm())
    assert torch.equal(memory.rows[[1, 2, 4]], before[[1, 2, 4]])
    restored = MemoryBank(5, 3, 0.25, _generator(2))
    restored.load_state_dict(memory.state_dict())
    assert torch.equal(restored.rows, memory.rows)


@pytest.mark.parametrize(("images", "width", "momentum"), [(0, 3, 0.5), (5, 0, 0.5), (5, 3, 1.5)])
def test_a_memory_that_cannot_be_is_refused(images: int, width: int, momentum: float) -> None:
    with pytest.raises(ValueError, match=r"images >= 1 and width >= 1|momentum must lie in \[0, 1\]"):
        MemoryBank(images, width, momentum, _generator())


def test_a_memory_takes_a_row_for_each_index() -> None:
    memory = MemoryBank(5, 3, 0.5, _generator())
    for index, embeddings in (
        (torch.tensor([0, 1]), torch.ones(1, 3)),
        (torch.tensor([0]), torch.ones(1, 1)),
    ):
        with pytest.raises(ValueError, match=r"index must be \(B,\) and embeddings \(B, 3\)"):
            memory.follow(index, embeddings)


def test_a_copy_follows_by_a_share_only() -> None:
    original = torch.nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"momentum must lie in \[0, 1\], got 2"):
        MomentumCopy(original, 0.9).follow(original, momentum=2)
