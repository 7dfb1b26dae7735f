"""Views per second on one core: contrasweep, torchvision image by image, and Kornia in batches.

    python -m benchmarks.augment [--rounds 7] [--batch 256] [--only TEXT]

Images of 3 x 32 x 32 in uint8 become float32 views of 32 x 32. One case is crop and flip; the other one is
crop, flip, jitter (.4, .4, .4, .1; of 80 %) and greyscale (20 %). Both use bilinear and bicubic
interpolation. The libraries take turns, and the best processor time of each counts, which leaves out the time
spent waiting for a busy core. torchvision does the work of a DataLoader's worker on an image, without
decoding, collating and copying. Kornia draws one order of the jitter's operations per batch and does not
antialias. Where it is not installed, a line says so.
"""

import argparse
import importlib.util
import itertools
import platform
import time
from collections.abc import Callable
from typing import Literal

import torch
import torchvision
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2

from contrasweep.data import RandomViews, torch_generator

SIZE, SMALLEST_CROP, JITTER, JITTERED, GREY = 32, 0.08, (0.4, 0.4, 0.4, 0.1), 0.8, 0.2
AIMS = {"crop + flip": 40_000, "all": 16_000}

Interpolation = Literal["bilinear", "bicubic"]
Run = Callable[[], object]


def ours(images: Tensor, colours: bool, interpolation: Interpolation) -> Run:
    brightness, contrast, saturation, hue = JITTER if colours else (0.0,) * 4
    views = RandomViews(
        SIZE,
        SMALLEST_CROP,
        brightness=brightness,
        contrast=contrast,
        saturation=saturation,
        hue=hue,
        jitter_probability=JITTERED,
        grayscale=GREY if colours else 0.0,
        interpolation=interpolation,
    )
    generator = torch_generator("benchmark")
    return lambda: views.apply(images, views.draw(len(images), SIZE, generator))


def per_image(images: Tensor, colours: bool, interpolation: Interpolation, *, pil: bool) -> Run:
    mode = InterpolationMode(interpolation)
    steps = [v2.RandomResizedCrop(SIZE, interpolation=mode, antialias=True), v2.RandomHorizontalFlip()]
    if colours:
        steps += [v2.RandomApply([v2.ColorJitter(*JITTER)], p=JITTERED), v2.RandomGrayscale(GREY)]
    transform = v2.Compose([*steps, *([v2.ToImage()] if pil else []), v2.ToDtype(torch.float32, scale=True)])
    pictures = [v2.functional.to_pil_image(image) for image in images] if pil else list(images)
    return lambda: torch.stack([transform(picture) for picture in pictures])


def kornia_batched(images: Tensor, colours: bool, interpolation: Interpolation) -> Run:
    from kornia import augmentation

    scale = (SMALLEST_CROP, 1.0)
    steps: list[torch.nn.Module] = [
        # Kornia's default, slicing, loops over the images.
        augmentation.RandomResizedCrop(
            (SIZE, SIZE), scale, resample=interpolation, cropping_mode="resample", align_corners=False
        ),
        augmentation.RandomHorizontalFlip(p=0.5),
    ]
    if colours:
        steps += [augmentation.ColorJitter(*JITTER, p=JITTERED), augmentation.RandomGrayscale(p=GREY)]
    transform = torch.nn.Sequential(*steps)
    return lambda: transform(images.float() / 255.0)


def rivals(images: Tensor, colours: bool, interpolation: Interpolation) -> dict[str, Run]:
    ways = {
        "contrasweep": ours(images, colours, interpolation),
        "torchvision, tensors": per_image(images, colours, interpolation, pil=False),
        "torchvision, PIL": per_image(images, colours, interpolation, pil=True),
    }
    if importlib.util.find_spec("kornia"):
        ways["Kornia"] = kornia_batched(images, colours, interpolation)
    return ways


def best_seconds(ways: dict[str, Run], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(ways, float("inf"))
    for round_number in range(rounds + 1):
        for name, run in ways.items():
            start = time.process_time()
            run()
            if round_number:  # the first warms up
                best[name] = min(best[name], time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = (arguments.batch, 3, SIZE, SIZE)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch_generator("benchmark images"))
    interpolations: tuple[Interpolation, ...] = ("bilinear", "bicubic")
    print(f"{'case':24s}{'':22s}{'images/s':>12s}{'ours is':>12s}   aim")
    for name, interpolation in itertools.product(AIMS, interpolations):
        case = f"{name}, {interpolation}"
        if arguments.only not in case:
            continue
        best = best_seconds(rivals(images, name == "all", interpolation), arguments.rounds)
        for rival, seconds in best.items():
            ratio = seconds / best["contrasweep"]
            aim = f"{AIMS[name]:8,d}" if rival == "contrasweep" else ""
            print(f"{case:24s}{rival:22s}{arguments.batch / seconds:12,.0f}{ratio:10.1f} x{aim}")
    if not importlib.util.find_spec("kornia"):
        print("Kornia: not installed")
    print(f"batches of {arguments.batch}, best of {arguments.rounds}, one thread, {platform.machine()}")
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}")


if __name__ == "__main__":
    main()
