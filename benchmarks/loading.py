"""Images in memory or streamed from disk: memory and images per second, on any dataset of encoded images.

Run with ``python -m benchmarks.loading DATASET --data-root DIR`` from the root of the repository. The dataset
is a folder of Parquet files, for example ``hub-parquet:path=cifar10-jpeg``. Every measurement runs in a fresh
process with one thread of torch. The comparison is a DataLoader with one worker, whose dataset holds the
encoded images and decodes one at a time with Pillow (the worker's own memory is not counted). An epoch is all
training images in shuffled batches of 256; it is measured once without views and once with two views of each
image.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

BATCH, VIEWS = 256, 2
WAYS = ("resident", "stream", "dataloader")


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MB."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / 1024 / (1024 if sys.platform == "darwin" else 1)


def epochs_of(way: str, dataset: str, root: Path) -> Callable[[], Iterator[Tensor]]:
    """Load the training images in one of the ways; return a function that draws an epoch of uint8 batches."""
    from contrasweep.data import UniformBatches, image_batches, load_training

    if way == "dataloader":
        return dataloader(dataset, root)
    images = load_training(dataset, root, placement=way).train.images  # type: ignore[arg-type]
    batches = UniformBatches(len(images), BATCH, seed=0)
    return lambda: image_batches(images, batches.epoch(1))


def dataloader(dataset: str, root: Path) -> Callable[[], Iterator[Tensor]]:
    """Load in the usual way: a map-style dataset, one image at a time, one worker."""
    import io

    import numpy as np
    import pyarrow.parquet as pq
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    class Encoded(Dataset[Tensor]):
        def __init__(self) -> None:
            folder = root / dataset.partition("path=")[2].partition(",")[0]
            self.table = pq.read_table(sorted(folder.glob("train-*.parquet")), columns=["img"])["img"]

        def __len__(self) -> int:
            return len(self.table)

        def __getitem__(self, row: int) -> Tensor:
            with Image.open(io.BytesIO(self.table[row]["bytes"].as_py())) as image:
                return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)

    loader = DataLoader(Encoded(), BATCH, shuffle=True, drop_last=True, num_workers=1)
    return lambda: iter(loader)


def measure(way: str, dataset: str, root: Path) -> dict[str, float]:
    """Load, then draw one epoch without views and one with views; this process does nothing else."""
    # Every way needs these libraries, so their memory belongs to the baseline.
    import pyarrow.parquet  # noqa: F401
    import torchvision.io  # noqa: F401
    from PIL import Image  # noqa: F401

    from contrasweep.data import RandomViews, torch_generator

    torch.set_num_threads(1)
    floor = peak_memory()
    started = time.perf_counter()
    epoch = epochs_of(way, dataset, root)
    loaded = time.perf_counter()
    count = sum(len(images) for images in epoch())
    first = time.perf_counter()
    sum(len(images) for images in epoch())
    drawn = time.perf_counter()
    views, generator = None, torch_generator("benchmark")
    for images in epoch():
        views = views or RandomViews(size=images.shape[-1], min_crop=0.2)
        for _ in range(VIEWS):
            views.apply(images, views.draw(len(images), images.shape[-1], generator))
    ended = time.perf_counter()
    return {
        "load, s": loaded - started,
        "first epoch, images/s": count / (first - loaded),
        "images/s": count / (drawn - first),
        "images/s with 2 views": count / (ended - drawn),
        "memory over the floor, MB": peak_memory() - floor,
    }


def fresh_process(way: str, options: argparse.Namespace, cache: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.loading", options.dataset, "--way", way]
    command += ["--data-root", str(options.data_root)]
    environment = {"XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options.dataset, options.data_root)))
        return
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(options.rounds):
            # The ways take turns, so that a disturbance of the machine affects all of them.
            for way in WAYS:
                found[way].append(fresh_process(way, options, Path(cache)))
    names = list(found["resident"][0])
    print(f"{options.dataset}, batches of {BATCH}, one thread, median of {options.rounds}")
    print(f"{'':12s}" + "".join(f"{name:>28s}" for name in names))
    for way, rounds in found.items():
        medians = [statistics.median(one[name] for one in rounds) for name in names]
        print(f"{way:12s}" + "".join(f"{median:28,.1f}" for median in medians))
    print(f"torch {torch.__version__}, {platform.machine()}, {platform.system()}")


if __name__ == "__main__":
    main()
