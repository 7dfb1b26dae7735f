"""A ColorMNIST training epoch, and its views alone: contrasweep against a per-image torchvision DataLoader.

Run with ``python -m benchmarks.epoch --data-root DIR`` from the root of the repository; ``--steps N``
shortens the epoch. Both ways train the same network (LeNet-5 and projection head, in the same memory layout)
with the same loss (InfoNCE) and optimizer (SGD) on the same 60,000 images in batches of 256. They differ in
how they make a batch: contrasweep works on the device with a whole batch of a resident uint8 tensor; the
DataLoader works image by image with PIL in worker processes, as most training scripts do. The two take turns
within every round; the first round warms up. The DataLoader's workers stay alive between epochs, so their
start does not count. The main process has ``--threads`` threads in both cases; the DataLoader has its workers
in addition.
"""

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from contrasweep.data import RandomViews, UniformBatches, torch_generator
from contrasweep.machine import available_cores
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.objective import Batch
from contrasweep.tuning.objectives.prepared import PreparedData, prepare_data
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.optimizers import build_optimizer
from contrasweep.tuning.training.pretrain import build_objective, pretrain

DATASET, BATCH, SIZE, VIEWS = "colormnist", 256, 32, 2
OURS, RIVAL = "contrasweep, batched on the device", "torchvision DataLoader, per image"


class TwoViews(Dataset[tuple[Tensor, Tensor]]):
    """Two random views of each image, made in the usual way: transform a PIL image twice."""

    def __init__(self, images: Tensor, min_crop: float, flip: float) -> None:
        self.images = images.permute(0, 2, 3, 1).contiguous().numpy()
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(SIZE, scale=(min_crop, 1.0)),
                transforms.RandomHorizontalFlip(flip),
                transforms.ToTensor(),
            ]
        )

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        image = Image.fromarray(np.asarray(self.images[index]))
        return self.transform(image), self.transform(image)


def experiment_of(rounds: int) -> Experiment:
    values = {"epochs": rounds + 1, "batch_size": BATCH, "optimizer.name": "sgd", "schedule.name": "constant"}
    return resolve("infonce", DATASET, {**values, "validation.fraction": 0.0})


def our_epochs(experiment: Experiment, data: PreparedData) -> Callable[[], float]:
    """Return a function that trains an epoch with `pretrain` and returns its seconds.

    There is no validation split, so no probe runs.
    """
    records = pretrain(experiment, data=data)
    next(records)  # the untrained encoder
    return lambda: next(records).train_seconds


def rival_epochs(
    experiment: Experiment, data: PreparedData, loader: DataLoader[tuple[Tensor, Tensor]]
) -> Callable[[], float]:
    objective = build_objective(experiment, data).train()
    optimizer = build_optimizer(objective, experiment.optimizer)
    nothing = torch.zeros(BATCH, dtype=torch.int64)

    def epoch() -> float:
        started = time.perf_counter()
        total = 0.0
        for first, second in loader:
            batch = Batch(torch.stack([first, second]), nothing, nothing)
            loss, _ = objective.step(batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        return time.perf_counter() - started

    return epoch


def our_views(experiment: Experiment, data: PreparedData) -> Callable[[], float]:
    views = RandomViews(size=SIZE, min_crop=experiment.views.min_crop, flip=experiment.views.flip)
    batches = UniformBatches(len(data.train), BATCH, seed=0)

    def epoch() -> float:
        started = time.perf_counter()
        for step, rows in enumerate(batches.epoch(0)):
            images = data.train.images[rows]
            for view in range(VIEWS):
                generator = torch_generator("benchmark", step, view)
                views.apply(images, views.draw(len(images), images.shape[-1], generator))
        return time.perf_counter() - started

    return epoch


def rival_views(loader: DataLoader[tuple[Tensor, Tensor]]) -> Callable[[], float]:
    def epoch() -> float:
        started = time.perf_counter()
        for _ in loader:
            pass
        return time.perf_counter() - started

    return epoch


def alternate(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each way in each round after the first.

    The ways take turns, so that a disturbance affects both.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            spent = way()
            if number:
                seconds[name].append(spent)
    return seconds


def report(what: str, seconds: dict[str, list[float]], images: int) -> Iterator[str]:
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    yield f"{what}: {medians[RIVAL] / medians[OURS]:.2f} x as fast"
    for name, values in seconds.items():
        rate = images / medians[name]
        spread = f"{min(values):.2f}..{max(values):.2f}"
        yield f"  {name:36s} median {medians[name]:7.2f} s ({spread}) {rate:10,.0f} images/s"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", type=Path, help="the folder that holds MNIST/raw")
    parser.add_argument("--steps", type=int, help="batches per epoch (default: all 234)")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds after the warm-up")
    parser.add_argument("--workers", type=int, default=2, help="worker processes of the DataLoader")
    parser.add_argument("--threads", type=int, default=available_cores(), help="threads of each main process")
    return parser.parse_args()


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    experiment = experiment_of(options.rounds)
    data = prepare_data(experiment, options.data_root, torch.device("cpu"))
    if options.steps is not None:
        few = data.train.subset(range(min(options.steps * BATCH, len(data.train))))
        data = PreparedData(data.spec, few, None, few, few, data.device)
    loader = DataLoader(
        TwoViews(data.train.images, experiment.views.min_crop, experiment.views.flip),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )
    images = len(data.train) // BATCH * BATCH
    print(f"{images:,} images of ColorMNIST in batches of {BATCH}, {options.rounds} rounds, ", end="")
    print(f"{options.threads} threads of {available_cores()} cores, {options.workers} loader workers")
    views = {OURS: our_views(experiment, data), RIVAL: rival_views(loader)}
    epochs = {OURS: our_epochs(experiment, data), RIVAL: rival_epochs(experiment, data, loader)}
    for what, ways in (("views alone", views), ("training epoch", epochs)):
        print("\n".join(report(what, alternate(ways, options.rounds), images)))
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, {platform.machine()}")


if __name__ == "__main__":
    main()
