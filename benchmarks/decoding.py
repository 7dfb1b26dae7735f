"""JPEG files decoded by threads and by processes: images a second, alone and beside a loop of Python.

    python -m benchmarks.decoding --workers 1 2

Made-up pictures of 256 pixels a side are decoded and resized to 224, as in training on ImageNet. The loop
stands for a training loop that starts the kernels of a GPU: tiny operations of torch, one after the other, in
the main thread. Ways take turns in each round; the first epoch of processes, in which they start, is not
counted. The last column says how many steps of the loop were done in a second.
"""

import argparse
import statistics
import tempfile
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu.streaming import SIZE, STORED, write_pictures
from contrasweep.data.decoding_pool import DecodingProcesses, decoding_threads
from contrasweep.data.encoded import DecodedImages, FileImages
from contrasweep.data.streaming import IMAGES_A_TASK


def epoch(source: DecodedImages, processes: DecodingProcesses | None, workers: int) -> list[Future[None]]:
    """Have all images decoded, and return the tasks, which are not finished."""
    decode = source.decode if processes is None else partial(source.decode_in, processes)
    pool = decoding_threads(workers)
    tasks = []
    for start in range(0, len(source), IMAGES_A_TASK):
        rows = range(start, min(start + IMAGES_A_TASK, len(source)))
        tasks.append(pool.submit(decode, rows, torch.empty(len(rows), *source.shape, dtype=torch.uint8)))
    pool.shutdown(wait=False)
    return tasks


def rates(
    source: DecodedImages, processes: DecodingProcesses | None, workers: int, *, loop: bool
) -> tuple[float, float]:
    """Return images a second, and steps of the loop a second (0 without one)."""
    started, steps = time.perf_counter(), 0
    tasks = epoch(source, processes, workers)
    number = torch.zeros(())
    while loop and not tasks[-1].done():
        number = number + 1
        steps += 1
    for task in tasks:
        task.result()
    seconds = time.perf_counter() - started
    return len(source) / seconds, steps / seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    processes = DecodingProcesses()
    with tempfile.TemporaryDirectory() as folder:
        files = FileImages(write_pictures(Path(folder), options.images, STORED))
        source = DecodedImages(files, (3, SIZE, SIZE), resize=True)
        rates(source, processes, max(options.workers), loop=False)
        cases = [
            (way, n, loop)
            for loop in (False, True)
            for n in options.workers
            for way in ("threads", "processes")
        ]
        found: dict[tuple[str, int, bool], list[tuple[float, float]]] = {case: [] for case in cases}
        for _ in range(options.rounds):
            for way, workers, loop in cases:
                used = processes if way == "processes" else None
                found[way, workers, loop].append(rates(source, used, workers, loop=loop))
    processes.close()
    print(f"{'way':10s}{'workers':>8s}{'beside':>8s}{'images/s':>10s}{'steps/s':>10s}")
    for (way, workers, loop), measured in found.items():
        images, steps = (statistics.median(column) for column in zip(*measured, strict=True))
        print(f"{way:10s}{workers:8d}{'loop' if loop else 'none':>8s}{images:10,.0f}{steps:10,.0f}")


if __name__ == "__main__":
    main()
