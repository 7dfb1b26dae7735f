"""The optimizers without torch's compiler are those of torch."""

from typing import Any

import pytest
import torch
from torch import Tensor

from contrasweep import optimizers

SETTINGS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.01},
    "AdamW": {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.01},
    "LBFGS": {"max_iter": 3, "line_search_fn": "strong_wolfe"},
}


def _path(kind: Any, settings: dict[str, Any]) -> list[Tensor]:
    """The points that an optimizer visits; another goes on from its saved state half-way."""
    point = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = kind([point], **settings)
    visited = []

    def loss() -> Tensor:
        optimizer.zero_grad()
        found = ((point - 3) ** 2 * torch.tensor([1.0, 5.0])).sum() + point.prod().sin()
        found.backward()
        return found

    for step in range(4):
        if step == 2:
            saved = optimizer.state_dict()
            optimizer = kind([point], **settings)
            optimizer.load_state_dict(saved)
        optimizer.step(loss)
        assert point.requires_grad
        visited.append(point.detach().clone())
    return visited


@pytest.mark.parametrize("name", SETTINGS)
def test_an_optimizer_goes_where_that_of_torch_goes(name: str) -> None:
    ours, theirs = getattr(optimizers, name), getattr(torch.optim, name)
    assert issubclass(ours, theirs)
    found = _path(ours, SETTINGS[name])
    assert len({tuple(point.tolist()) for point in found}) == len(found)
    torch.testing.assert_close(found, _path(theirs, SETTINGS[name]), rtol=0, atol=0)
