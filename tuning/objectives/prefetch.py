"""Makes the next batch on a separate stream of the accelerator while the current one trains."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar

import torch

from contrasweep.data.packing import tensors_of

B = TypeVar("B")


def one_ahead(batches: Iterator[B], device: torch.device, cuda: Any = torch.cuda) -> Iterator[B]:
    """Yield the `batches`, whose tensors are on `device`; on a CUDA device, each is made one batch ahead.

    Making a batch only gives work to the device, so no thread is needed: before batch i is yielded, batch
    i + 1 is handed to a second stream, which works on it beside the training step that the caller then hands
    to the current stream. The order of batches, their draws and their values are those without this function.
    On other devices the batches pass as they are.

    Three rules keep the streams apart. The current stream waits for the batch that is yielded. The second
    stream waits for the work that the current one had when a batch was asked for, so it reads the data of the
    run as the last step left it. And the memory of a batch belongs to the second stream; torch is told that
    the current one uses it, so it is not given away before that use is over.

    `cuda` is the module of the streams.
    """
    if device.type != "cuda":
        yield from batches
        return
    side = _second_stream(cuda, device)

    def ahead() -> B | None:
        side.wait_stream(cuda.current_stream(device))
        with cuda.stream(side):
            return next(batches, None)

    try:
        following = ahead()
        while following is not None:
            batch, current = following, cuda.current_stream(device)
            # Nothing but the work for this batch has been handed to the second stream.
            current.wait_stream(side)
            for tensor in tensors_of(batch):
                tensor.record_stream(current)
            following = ahead()
            yield batch
    finally:
        # Data that the caller gives up may be read until here by a batch that nobody took.
        cuda.current_stream(device).wait_stream(side)


@lru_cache
def _second_stream(cuda: Any, device: torch.device) -> Any:
    """Return the stream of all epochs: memory that torch keeps for one stream is not given to another."""
    return cuda.Stream(device)
