"""DCL: InfoNCE with the positive left out of its denominator (Yeh et al. 2022)."""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from contrasweep.search_spaces import load_space
from contrasweep.tuning.methods import loss_method


class DCL(nn.Module):
    """The mean over the 2B images of a batch, which all other images repel, with both their views."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        if temperature <= 0:
            raise ValueError(f"temperature must be above 0, given {temperature}")
        self.temperature = temperature

    def forward(self, views: Tensor) -> Tensor:
        """Return the loss, a scalar, of the projected `views` (2, B, D)."""
        z = normalize(views, dim=2)
        positive = (z[0] * z[1]).sum(dim=1) / self.temperature
        scores = z.flatten(0, 1) @ z.flatten(0, 1).T / self.temperature
        image = torch.arange(views.shape[1], device=views.device).repeat(2)
        negative = scores.masked_fill(image[:, None] == image, -torch.inf).logsumexp(dim=1)
        return (negative - positive.repeat(2)).mean()


METHOD = loss_method(
    DCL,
    name="dcl",
    summary="InfoNCE without the positive in its denominator",
    paper="DCL (Yeh et al. 2022)",
    equation="L_DC",
    hyperparameters={"temperature": "the scale tau of the scores"},
    space=load_space(Path(__file__).with_name("dcl.yaml")),
)
