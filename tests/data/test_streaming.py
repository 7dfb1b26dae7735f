"""Images on disk replace a tensor: the same shape, indexing and pixels, decoded a few batches ahead."""

import threading
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from contrasweep.data import (
    LabelledImages,
    StreamedImages,
    image_batches,
    image_chunks,
    machine_share,
    streaming,
)
from contrasweep.data.streaming import BATCHES_AHEAD, place

STORED = torch.randint(0, 256, (50, 3, 4, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


class Recorded:
    """Rows of STORED that record requests; row `broken` raises."""

    shape = (3, 4, 4)

    def __init__(self, broken: int | None = None) -> None:
        self.broken = broken
        self.prepared = 0
        self.decoded: list[int] = []
        self.lock = threading.Lock()

    def __len__(self) -> int:
        return len(STORED)

    def prepare_random_access(self) -> None:
        self.prepared += 1

    def decode(self, rows: Sequence[int], out: Tensor) -> None:
        with self.lock:
            self.decoded.extend(rows)
        if self.broken in rows:
            raise ValueError(f"row {self.broken} is broken")
        out.copy_(STORED[list(rows)])


def _shuffled(batch: int = 7) -> list[Tensor]:
    return list(torch.split(torch.randperm(50, generator=torch.Generator().manual_seed(1)), batch))


@pytest.fixture(params=[1, 4])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(torch, "get_num_threads", lambda: request.param)
    return int(request.param)


def test_a_stream_gives_the_batches_of_the_tensor(threads: int) -> None:
    streamed, batches = StreamedImages(Recorded()), _shuffled()
    for one, other in zip(image_batches(streamed, batches), image_batches(STORED, batches), strict=True):
        assert torch.equal(one, other)
    # A view for each of two images: rows of any shape.
    pairs = [torch.tensor([[3, 1, 4], [1, 5, 9]])]
    assert torch.equal(next(image_batches(streamed, pairs)), STORED[pairs[0]])
    assert torch.equal(torch.cat(list(image_chunks(streamed, 16))), STORED)
    assert [len(chunk) for chunk in image_chunks(streamed, 16)] == [16, 16, 16, 2]


def test_it_stands_where_a_tensor_stands() -> None:
    streamed = StreamedImages(Recorded())
    assert streamed.shape == STORED.shape
    assert (len(streamed), streamed.dtype, streamed.nbytes) == (50, STORED.dtype, STORED.nbytes)
    assert torch.equal(streamed[torch.tensor([7, 0, 7])], STORED[[7, 0, 7]])
    assert torch.equal(streamed.resident(), STORED)
    part = streamed.subset(torch.tensor([40, 2])).subset(torch.tensor([1]))
    assert torch.equal(part.resident(), STORED[[2]])
    assert streamed.to("meta").device.type == "meta"
    assert streamed.to("meta")[torch.tensor([1])].device.type == "meta"


def test_no_more_is_decoded_than_a_few_batches_ahead() -> None:
    source, batches = Recorded(), _shuffled(5)
    drawn = image_batches(StreamedImages(source), batches)
    next(drawn)
    drawn.close()
    allowed = torch.cat(batches[: BATCHES_AHEAD + 1]).tolist()
    assert set(batches[0].tolist()) <= set(source.decoded) <= set(allowed)


def test_only_rows_out_of_order_ask_for_random_access() -> None:
    source = Recorded()
    streamed = StreamedImages(source)
    list(image_chunks(streamed.subset(torch.arange(0, 50, 2)), 4))
    streamed.resident()
    assert source.prepared == 0
    list(image_batches(streamed, _shuffled()))
    assert source.prepared == 1


def test_an_error_in_a_thread_reaches_the_reader() -> None:
    drawn = image_batches(StreamedImages(Recorded(broken=20)), [torch.arange(10), torch.arange(10, 30)])
    assert torch.equal(next(drawn), STORED[:10])
    with pytest.raises(ValueError, match="row 20 is broken"):
        next(drawn)


def test_small_splits_are_in_memory_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    streamed = StreamedImages(Recorded())
    fits = place(streamed, "auto")
    assert isinstance(fits, Tensor)
    assert torch.equal(fits, STORED)
    assert place(streamed, "stream") is streamed
    assert place(STORED, "stream") is STORED
    monkeypatch.setattr(machine_share, "RESIDENT_LIMIT", STORED.nbytes - 1)
    assert place(streamed, "auto") is streamed
    assert isinstance(place(streamed, "resident"), Tensor)
    with pytest.raises(ValueError, match="auto, resident, stream, given 'disk'"):
        place(streamed, "disk")  # type: ignore[arg-type]


def test_labelled_images_stay_on_disk_until_they_are_placed() -> None:
    split = LabelledImages(StreamedImages(Recorded()), torch.arange(50))
    part = split.subset([4, 2]).to("cpu")
    assert isinstance(part.images, StreamedImages)
    assert torch.equal(part.pixels, STORED[[4, 2]])
    assert part.labels.tolist() == [4, 2]
    placed = part.placed()
    assert isinstance(placed.images, Tensor)
    assert torch.equal(placed.pixels, STORED[[4, 2]])
    with pytest.raises(ValueError, match="50 images, 2 labels"):
        LabelledImages(StreamedImages(Recorded()), torch.arange(2))


def test_the_device_of_images_says_how_many_are_held_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        streaming, "resident_limit", lambda device: asked.append(device.type) or STORED.nbytes
    )
    split = LabelledImages(StreamedImages(Recorded()), torch.arange(50))
    there = split.placed("auto", "meta")
    assert asked == ["meta"]
    assert isinstance(there.images, Tensor)
    assert there.images.device.type == there.labels.device.type == "meta"


def test_a_stream_goes_to_a_gpu_as_its_labels_do() -> None:
    split = LabelledImages(StreamedImages(Recorded()), torch.zeros(50, dtype=torch.int64))
    # Tensors without storage know the index that "cuda" gets, here without a GPU.
    with FakeTensorMode(allow_non_fake_inputs=True):
        there = split.to("cuda")
    assert there.images.device == there.labels.device == torch.device("cuda", 0)
