"""Random resized crop and flip alone: batched views against torchvision image by image.

Run with ``python -m benchmarks.views`` from the root of the repository. One core; 256 colour images of
28 x 28 stored as uint8 become two views each of 32 x 32. The rivals do what a DataLoader's worker would do
with an image, without its decoding, collating and copying between processes.
"""

import platform
import statistics
import time
from collections.abc import Callable

import torch
import torchvision
from torch import Tensor
from torchvision.transforms import v2

from data import RandomViews, torch_generator

IMAGES, STORED, SIZE, VIEWS, ROUNDS = 256, 28, 32, 2, 9


def batched(images: Tensor) -> Callable[[], None]:
    views = RandomViews(SIZE, min_crop=0.08)
    generator = torch_generator("benchmark")

    def run() -> None:
        for _ in range(VIEWS):
            views.apply(images, views.draw(len(images), STORED, generator))

    return run


def per_image_tensors(images: Tensor) -> Callable[[], None]:
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )

    def run() -> None:
        for _ in range(VIEWS):
            torch.stack([transform(image) for image in images])

    return run


def per_image_pil(images: Tensor) -> Callable[[], None]:
    pictures = [v2.functional.to_pil_image(image) for image in images]
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )

    def run() -> None:
        for _ in range(VIEWS):
            torch.stack([transform(picture) for picture in pictures])

    return run


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = (IMAGES, 3, STORED, STORED)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch_generator("benchmark images"))
    ways = {
        "contrasweep, batched": batched(images),
        "torchvision v2, tensor per image": per_image_tensors(images),
        "torchvision v2, PIL per image": per_image_pil(images),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for round_number in range(ROUNDS + 1):
        # In turn, so that a disturbance of the machine falls on all of them; the first round warms up.
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            if round_number:
                seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ours = medians["contrasweep, batched"]
    print(f"{IMAGES} images 3 x {STORED} x {STORED} -> {VIEWS} views of {SIZE} x {SIZE}, one core, ", end="")
    print(f"median (min..max) of {ROUNDS}")
    for name, median in medians.items():
        low, high = min(seconds[name]), max(seconds[name])
        print(
            f"{name:34s} {1e3 * median:8.2f} ms ({1e3 * low:.2f}..{1e3 * high:.2f})"
            f" {IMAGES * VIEWS / median:10,.0f} views/s {median / ours:8.1f} x"
        )
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, {platform.machine()}")


if __name__ == "__main__":
    main()
