"""Draws of few training images of each class."""

import torch
from torch import Tensor

from contrasweep.data import torch_generator


def shot_rows(labels: Tensor, classes: int, shots: int, dataset: str, draw: int) -> Tensor:
    """Return the rows of `shots` images of each class, sorted: int64 `(classes * shots,)`.

    They depend on the dataset and the number of the draw alone, so all encoders and probes learn from the
    same images; those of fewer shots are among those of more.

    Args:
        labels: int64 `(N,)`, 0..classes-1; each class has at least `shots` images.
        classes: the number of classes.
        shots: images of each class.
        dataset: its name.
        draw: the number of the draw, from 0.
    """
    order = torch.randperm(len(labels), generator=torch_generator("few shots", dataset, draw))
    drawn, places = labels.cpu()[order].sort(stable=True)
    # Among those of its class, in the order of the draw.
    place = torch.arange(len(drawn)) - torch.searchsorted(drawn, torch.arange(classes))[drawn]
    return order[places[place < shots]].sort().values.to(labels.device)
