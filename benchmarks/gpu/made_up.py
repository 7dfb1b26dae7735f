"""Made-up images and features of the sizes of real ones: nothing is downloaded."""

from dataclasses import replace

import torch
from torch import Tensor

from contrasweep.data import LabelledImages, dataset_spec, torch_generator
from contrasweep.data.facts import DatasetSpec
from contrasweep.tuning.objectives.prepared import PreparedData

CLASSES = 10


def images(count: int, size: int, device: str, channels: int = 3) -> Tensor:
    """Return uint8 noise `(count, channels, size, size)`."""
    generator = torch_generator("acceptance images", size)
    shape = (count, channels, size, size)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator).to(device)


def features(count: int, width: int, device: str, *, spread: float = 8.0) -> tuple[Tensor, Tensor]:
    """Return features `(count, width)` around one centre a class, and the classes `(count,)`.

    The distance between centres is about `spread` standard deviations of a feature, whatever the width.
    """
    generator = torch_generator("acceptance features", width)
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    centres = torch.randn(CLASSES, width, generator=generator) * spread / (2 * width) ** 0.5
    noise = torch.randn(count, width, generator=generator)
    return (centres[labels] + noise).to(device), labels.to(device)


def cifar_like(count: int, device: str) -> PreparedData:
    """Return made-up labelled images of CIFAR-10's size, without a validation split: no probe runs."""
    pixels = images(count, 32, device)
    labels = torch.arange(count) % CLASSES
    facts = dataset_spec("cifar10")
    assert isinstance(facts, DatasetSpec)
    train = LabelledImages(pixels, labels.to(device))
    return PreparedData(replace(facts, train_size=count), train, None, None, None, torch.device(device))
