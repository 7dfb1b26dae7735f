"""The views of a step follow from its number, whatever steps and ranks they are drawn with."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from contrasweep.data import LabelledImages, RandomViews, shard, torch_generator
from contrasweep.tuning.objectives.batches import ImageFeed
from contrasweep.tuning.objectives.ranks import Ranks

SIZES = (5, 5, 5, 3, 5)


@dataclass(frozen=True)
class Uneven:
    """Batches of `SIZES` images."""

    steps_per_epoch: int = len(SIZES)

    def epoch(self, epoch: int) -> list[Tensor]:
        return list((torch.arange(sum(SIZES)) * (1 + epoch) % 23).split(SIZES))


# Every step alone; two steps of five images in two views; all equal neighbours.
@pytest.mark.parametrize("at_once", [1, 24, 4096])
@pytest.mark.parametrize("ranks", [Ranks(), Ranks(1, 2)])
def test_a_step_has_its_views(at_once: int, ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.objectives.batches._DRAWN_AT_ONCE", at_once)
    images = torch.randint(0, 256, (23, 3, 9, 9), dtype=torch.uint8, generator=torch_generator("feed"))
    wide = RandomViews(8, 0.3, hue=0.1, padding=2)
    narrow = replace(wide, size=6, min_crop=0.1, max_crop=0.2)
    train, sampler = LabelledImages(images, torch.zeros(23, dtype=torch.int64)), Uneven()
    feed = ImageFeed(train, sampler, wide, seed=7, local=narrow, local_crops=3, ranks=ranks)
    steps = list(feed.epoch(2))
    assert len(steps) == len(SIZES)
    for step, (batch, rows) in enumerate(zip(steps, sampler.epoch(2), strict=True)):
        assert batch.local is not None
        for number, (transform, made) in enumerate(
            [*((wide, one) for one in batch.views), *((narrow, one) for one in batch.local)]
        ):
            drawn = transform.draw(len(rows), 9, torch_generator(7, "views", 2, step, number))
            own = shard(torch.arange(len(rows)), ranks.rank, ranks.world)
            assert torch.equal(made, transform.apply(images[rows[own]], drawn[own]))
