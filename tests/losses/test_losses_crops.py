"""The losses of many crops: the memory of a backward pass does not grow with the number of pairs."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from contrasweep.losses import DINO, SwAV
from tests.made_tensors import MadeTensors

V, B, K = 2, 3, 5


def _dino(local: int) -> Tensor:
    student = torch.ones(V + local, B, K, requires_grad=True)
    loss: Tensor = DINO()(student, torch.ones(V, B, K), torch.zeros(K))
    return loss


def _swav(local: int) -> Tensor:
    views, crops = torch.ones(V, B, 4, requires_grad=True), torch.ones(local, B, 4, requires_grad=True)
    loss: Tensor = SwAV(4, K)(views, crops)
    return loss


@pytest.mark.parametrize("loss", [_dino, _swav])
def test_as_few_gradients_of_all_crops_are_made_for_many_pairs_as_for_few(
    loss: Callable[[int], Tensor],
) -> None:
    def whole(local: int) -> int:
        value = loss(local)
        with MadeTensors() as made:
            value.backward()
        return made.entries.count((V + local) * B * K)

    assert 0 < whole(8) == whole(1)
