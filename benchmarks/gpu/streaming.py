"""JPEG files that are decoded beside the training: images a second, by how many processes decode."""

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.gpu import made_up
from benchmarks.gpu.findings import Findings, Limit, Place
from benchmarks.gpu.speed import images_a_second
from contrasweep.data import (
    LabelledImages,
    Share,
    StreamedImages,
    UniformBatches,
    image_batches,
    take_share,
    torch_generator,
)
from contrasweep.data.encoded import FileImages, open_encoded
from contrasweep.data.streaming import ImageRows
from contrasweep.machine import available_cores
from contrasweep.tuning.planning.resolve import resolve

STORED, SIZE, BATCH = 256, 224, 256
WORKERS = (1, 4, 8, 16)
CORES_JUDGED = 8
"""Cores from which several processes must decode faster than one."""


class InThreads:
    """Images on disk that only threads decode: an `ImageRows` without what `EncodedRows` adds."""

    def __init__(self, source: ImageRows) -> None:
        self.shape, self.decode = source.shape, source.decode
        self.prepare_random_access, self._count = source.prepare_random_access, len(source)

    def __len__(self) -> int:
        return self._count


def picture(number: int, size: int) -> Tensor:
    """Return a smooth made-up picture, uint8 `(3, size, size)`, whose file is as large as a photo's."""
    coarse = torch.rand(1, 3, 24, 24, generator=torch_generator("acceptance pictures", number))
    smooth = functional.interpolate(coarse, size=(size, size), mode="bicubic", align_corners=False)[0]
    return (smooth.clamp(0, 1) * 255).to(torch.uint8)


def write_pictures(folder: Path, count: int, size: int) -> list[Path]:
    """Write so many JPEG files and return their paths."""
    from torchvision.io import encode_jpeg

    def write(number: int) -> Path:
        file = folder / f"{number:06d}.jpg"
        file.write_bytes(encode_jpeg(picture(number, size), quality=90).numpy().tobytes())
        return file

    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(write, range(count)))


def decoded_a_second(images: StreamedImages, batch: int, workers: int) -> float:
    """Return the images a second of an epoch in shuffled batches, decoded and copied to the device."""
    before = torch.get_num_threads()
    # On a CPU, the workers are as many threads as torch has.
    torch.set_num_threads(workers)
    take_share(Share(workers / available_cores(), gpus=1.0))  # a GPU would get all cores
    try:
        started, seen = time.perf_counter(), 0
        last = torch.zeros(())
        for last in image_batches(images, UniformBatches(len(images), batch, seed=0).epoch(1)):
            seen += len(last)
        float(last.float().sum())  # waits for the last copy
        return seen / (time.perf_counter() - started)
    finally:
        torch.set_num_threads(before)
        take_share(Share())


def training_rates(files: Sequence[Path], streamed: LabelledImages, place: Place) -> tuple[float, float]:
    """Return the images a second of training on streamed images, and on the same images in memory."""
    size = streamed.images.shape[-1]
    experiment = resolve(
        "infonce",
        "cifar10",
        {
            "views.size": size,
            "encoder.name": "resnet18" if place.on_gpu else "small-conv",
            "compute.precision": "bf16",
            "batch_size": place.sized(BATCH, 16),
            "epochs": place.sized(3, 2),
            "validation.fraction": 0.0,
            "schedule.warmup_epochs": 0,
        },
    )
    base = made_up.cifar_like(1, place.device)
    facts = replace(base.spec, image_size=size, view_size=size, train_size=len(files))
    data = replace(base, spec=facts, train=streamed)
    rate = images_a_second(experiment, data, place.device)
    resident = replace(data, train=replace(streamed, images=streamed.pixels))
    return rate, images_a_second(experiment, resident, place.device)


def streaming(place: Place) -> Findings:
    """Decode by itself with more and more processes (on a CPU: threads), then train on what is decoded."""
    count, batch = place.sized(6144, 48), place.sized(BATCH, 16)
    stored, size = place.sized(STORED, 64), place.sized(SIZE, 32)
    cores = available_cores()
    workers = [number for number in WORKERS if number <= cores] if place.on_gpu else [1, min(2, cores)]
    with tempfile.TemporaryDirectory() as folder:
        files = write_pictures(Path(folder), count, stored)
        labels = torch.arange(count) % made_up.CLASSES
        streamed = open_encoded(FileImages(files), (3, size, size), labels).to(place.device)
        images = streamed.images
        assert isinstance(images, StreamedImages)
        decoded_a_second(images, batch, max(workers))  # the processes start
        decoded = {str(number): decoded_a_second(images, batch, number) for number in workers}
        in_threads = StreamedImages(InThreads(images.source), images.rows, images.device)
        by_threads = decoded_a_second(in_threads, batch, max(workers))
        beside, resident = training_rates(files, streamed, place)
    most = decoded[str(max(workers))]
    figures = {
        "decoded images/s by workers": decoded,
        "most workers over one": most / decoded["1"],
        "decoded images/s by as many threads": by_threads,
        "images/s of training, streamed": beside,
        "images/s of training, in memory": resident,
    }
    judged = not place.dry_run and cores >= CORES_JUDGED
    return Findings(
        f"{most:,.0f} images/s decoded by {max(workers)} workers; training {beside:,.0f} images/s streamed, "
        f"{resident:,.0f} from memory",
        figures,
        [Limit("most workers over one", "at least", 2.0, judged=judged)],
    )
