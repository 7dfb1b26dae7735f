"""A process that decodes images for another one, see `data.decoding_pool`, which starts it:

    python -m contrasweep.data.decoding_process CHANNEL PIXELS

Both are numbers of files that it inherits. From the channel it takes a `DecodingTask`. It answers with `DONE`
when the pixels lie in the shared memory, or with `FAILED` if it refuses an image. It ends when the channel
does, also when the other process has been killed.
"""

import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

import torch

from contrasweep.data.decoding import load_decoders
from contrasweep.data.decoding_tasks import DONE, FAILED, DecodingTask, ImageRefused, SharedPixels, perform
from contrasweep.data.root import DatasetDamaged


def serve(channel: Connection, pixels: SharedPixels) -> None:
    """Say that this process is ready, then perform tasks until the channel ends."""
    # As many processes as there are cores decode: each is one thread.
    torch.set_num_threads(1)
    load_decoders()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        os.write(channel.fileno(), DONE)
        while True:
            _answer(channel, channel.recv(), pixels)


def _answer(channel: Connection, task: DecodingTask, pixels: SharedPixels) -> None:
    try:
        perform(task, torch.from_numpy(pixels.view(len(task.images), *task.shape)))
    except (ImageRefused, DatasetDamaged):
        os.write(channel.fileno(), FAILED)
    else:
        os.write(channel.fileno(), DONE)


if __name__ == "__main__":
    inherited = map(int, sys.argv[1:])
    serve(Connection(next(inherited)), SharedPixels(os.fdopen(next(inherited), "r+b")))
