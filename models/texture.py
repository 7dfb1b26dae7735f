"""NGLCM: a co-occurrence matrix of grey levels whose thresholds are learned.

Source: Wang et al. 2019, "Learning robust representations by projecting superficial statistics out" (ICLR),
https://openreview.net/forum?id=rJEjjoR9K7, section 3.1, and its released code.
Shapes: B images, S pixels a side, L levels, P = S * S pixels.
"""

import torch
from torch import Tensor, nn


class NeuralGlcm(nn.Module):
    """Texture features of grey images: which changes occur at which grey levels, summarised by one layer.

    A pixel of level g (0..L-1, by the brightest pixel of its image), whose left neighbour is brighter by d,
    counts `clip(d - change_k, 0, 1) clip(g - level_l, 0, 1)` in the entry (k, l). The L changes and L levels
    are learned from random starts in 0..L, and so is the layer that reads the (L, L) entries.
    """

    def __init__(self, levels: int, outputs: int) -> None:
        super().__init__()
        self.changes = nn.Parameter(levels * torch.rand(levels))
        self.levels = nn.Parameter(levels * torch.rand(levels))
        self.summary = nn.Linear(levels * levels, outputs)
        nn.init.trunc_normal_(self.summary.weight, std=0.1, a=-0.2, b=0.2)
        nn.init.zeros_(self.summary.bias)

    def forward(self, grey: Tensor) -> Tensor:
        """Return features `(B, outputs)`, 0 or more, of `grey` `(B, S, S)` in 0..1."""
        graded = _graded(grey, len(self.levels))
        left = nn.functional.pad(graded, (1, 0))[..., :-1]
        change, level = (values.flatten(1)[:, None] for values in (left - graded, graded))
        changed = (change - self.changes[:, None]).clamp(0, 1)
        reached = (level - self.levels[:, None]).clamp(0, 1)
        counts = changed @ reached.transpose(1, 2)
        features: Tensor = self.summary(counts.flatten(1)).relu()
        return features


def _graded(grey: Tensor, levels: int) -> Tensor:
    """Return whole levels `(B, S, S)`, 0..levels-1 as floats; an image's brightest pixel has the last one."""
    brightest = grey.amax((1, 2), keepdim=True)
    # In float32, x / x * 15 can fall short of 15.
    return (grey / torch.where(brightest > 0, brightest, 1) * (levels - 1) + 1e-4).floor()
