"""A batch is made beside the step before it, and the streams wait for each other where they must."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from contrasweep.tuning.objectives.prefetch import one_ahead

CUDA = torch.device("cuda", 0)


class Stream:
    """Work handed to it begins after the work that it knows of; a wait tells it what another one knows."""

    def __init__(self, device: torch.device) -> None:
        assert device == CUDA
        self.known: set[str] = set()

    def wait_stream(self, other: "Stream") -> None:
        self.known |= other.known


class Streams:
    """Stands in for `torch.cuda`: notes what is handed over, in this order, and what must end before it."""

    def __init__(self) -> None:
        self.main = self.active = Stream(CUDA)
        self.others: list[Stream] = []
        self.ends_before: dict[str, set[str]] = {}

    def Stream(self, device: torch.device) -> Stream:  # noqa: N802 - as in torch.cuda
        self.others.append(Stream(device))
        return self.others[-1]

    def current_stream(self, device: torch.device) -> Stream:
        assert device == CUDA
        return self.active

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self.active = self.active, stream
        try:
            yield
        finally:
            self.active = before

    def work(self, name: str) -> None:
        self.ends_before[name] = set(self.active.known)
        self.active.known.add(name)


class Made(Tensor):
    """A tensor that knows which streams use it."""

    users: list[Stream]

    def record_stream(self, stream: Stream) -> None:  # type: ignore[override]
        self.users.append(stream)


@dataclass(frozen=True)
class Batch:
    number: int
    views: Made
    condition: None
    pair: tuple[Made, Made]


def _made() -> Made:
    tensor = torch.zeros(1).as_subclass(Made)
    tensor.users = []
    return tensor


def _batches(streams: Streams, count: int) -> Iterator[Batch]:
    for number in range(count):
        streams.work(f"make {number}")
        yield Batch(number, _made(), None, (_made(), _made()))


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_batch_is_made_beside_the_step_before_it(count: int) -> None:
    streams = Streams()
    streams.work("load")
    seen = []
    for batch in one_ahead(_batches(streams, count), CUDA, streams):
        for tensor in (batch.views, *batch.pair):
            assert tensor.users == [streams.main]
        streams.work(f"step {batch.number}")
        seen.append(batch.number)
    assert seen == list(range(count))
    order, before = list(streams.ends_before), streams.ends_before
    for number in range(count):
        make, step = f"make {number}", f"step {number}"
        assert "load" in before[make]
        assert make in before[step]
        if number:
            # It is handed over first, so that a step that makes the host wait does not delay it.
            assert order.index(make) < order.index(f"step {number - 1}")
            assert f"step {number - 1}" not in before[make]
        if number > 1:
            assert f"step {number - 2}" in before[make]


@pytest.mark.parametrize("taken", [1, 2])
def test_a_reader_that_stops_waits_for_the_batch_made_ahead(taken: int) -> None:
    streams = Streams()
    batches = one_ahead(_batches(streams, 5), CUDA, streams)
    for _ in range(taken):
        next(batches)
    assert f"make {taken}" not in streams.main.known
    batches.close()  # type: ignore[attr-defined]
    assert f"make {taken}" in streams.main.known
    assert streams.active is streams.main


def test_all_epochs_share_a_stream() -> None:
    streams = Streams()
    for _ in range(2):
        list(one_ahead(_batches(streams, 3), CUDA, streams))
    assert len(streams.others) == 1


def test_an_error_in_the_next_batch_does_not_leave_the_stream_changed() -> None:
    streams = Streams()

    def broken() -> Iterator[Batch]:
        yield from _batches(streams, 1)
        raise ValueError("an image is broken")

    with pytest.raises(ValueError, match="an image is broken"):
        list(one_ahead(broken(), CUDA, streams))
    assert streams.active is streams.main


def test_on_a_cpu_batches_are_made_when_they_are_asked_for() -> None:
    streams = Streams()
    for batch in one_ahead(_batches(streams, 3), torch.device("cpu"), streams):
        streams.work(f"step {batch.number}")
        assert not batch.views.users
    expected = [f"{what} {number}" for number in range(3) for what in ("make", "step")]
    assert list(streams.ends_before) == expected
