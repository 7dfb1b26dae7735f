"""From a dataset to the batches of an epoch: a sampler names images, and the device makes their views.

The seed of every random draw follows from its purpose and (seed, epoch, step). Draws are for the global
batch, so they do not depend on the number of ranks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, Protocol

import torch
from torch import Tensor

from contrasweep.data import (
    LabelledImages,
    RandomViews,
    SemiSupervisedBatches,
    SemiSupervisedRows,
    TransductiveData,
    UniformBatches,
    image_batches,
    named_seed,
    shard,
    torch_generator,
)
from contrasweep.data.packing import to_device
from contrasweep.data.view_plan import ViewParameters, ViewPlan
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment, ViewSettings
from contrasweep.tuning.objectives.objective import Batch
from contrasweep.tuning.objectives.prefetch import one_ahead
from contrasweep.tuning.objectives.prepared import PreparedData, PreparedTransductive, TransductiveBatch
from contrasweep.tuning.objectives.ranks import ONE, Ranks

# Views of which the parameters are drawn together: more would leave a processor's cache.
_DRAWN_AT_ONCE = 4096


class Sampler(Protocol):
    """Chooses the images of every batch: rows `(B,)`, or `(V, B)` where each view shows other images."""

    @property
    def steps_per_epoch(self) -> int:
        """Batches in every epoch."""

    def epoch(self, epoch: int) -> list[Tensor]:
        """Return the rows of every batch of the epoch."""


class Feed(Protocol):
    """The batches of a run."""

    @property
    def sampler(self) -> Sampler | SemiSupervisedBatches:
        """Chooses what is in every batch."""

    def epoch(self, epoch: int) -> Iterator[Any]:
        """Yield the batches of the epoch (from 1), as the objective takes them."""

    def shared(self, ranks: Ranks) -> "Feed":
        """Return the feed of one of several ranks: its part of the same batches.

        Raises:
            InputError: a batch has fewer images than there are ranks.
        """


@dataclass(frozen=True)
class ImageFeed:
    """Batches of random views of labelled images.

    Attributes:
        train: the images.
        sampler: chooses the images of every batch.
        transform: makes the views.
        seed: the run's.
        views: views of each image.
        clusters: int64 `(N,)`, the cluster of each training image; None where the method has none.
        local: makes the local crops; None where there are none.
        local_crops: local crops of each image.
        ranks: the rank that the batches are for. It gets its images of every batch, in the views that they
            have in the whole batch.
    """

    train: LabelledImages
    sampler: Sampler
    transform: RandomViews
    seed: int
    views: int = 2
    clusters: Tensor | None = None
    local: RandomViews | None = None
    local_crops: int = 0
    ranks: Ranks = ONE

    def epoch(self, epoch: int) -> Iterator[Batch]:
        """Yield the batches of the epoch (from 1)."""
        return one_ahead(self._batches(epoch), self.train.labels.device)

    def shared(self, ranks: Ranks) -> "ImageFeed":
        """Return the feed of one of several ranks."""
        _refuse_empty_parts(self.sampler.epoch(1), ranks)
        return replace(self, ranks=ranks)

    def _batches(self, epoch: int) -> Iterator[Batch]:
        images, whole = self.train.images, self.sampler.epoch(epoch)
        own = [_of_rank(batch, self.ranks) for batch in whole]
        # Images that are not in memory are decoded ahead, while the batch before them trains.
        decoded = None if isinstance(images, Tensor) else image_batches(images, own)
        for plan in self._plans(epoch, whole, own):
            there = to_device(plan, images.device)
            yield self._batch(there, images[there.rows] if decoded is None else next(decoded))

    def _plans(self, epoch: int, whole: Sequence[Tensor], own: Sequence[Tensor]) -> Iterator["_Plan"]:
        """Yield the plan of every batch: of `whole`, the rank's part `own`."""
        local = range(self.views, self.views + self.local_crops)
        views_of = self._drawn(self.transform, range(self.views), epoch, whole)
        local_of = None if self.local is None or not local else self._drawn(self.local, local, epoch, whole)
        channels, device = self.train.images.shape[1], self.train.images.device
        for rows, batch in zip(own, whole, strict=True):
            # The images of the first view, which local crops show too, come first.
            other = rows.shape[-1] if rows.dim() == 2 else 0
            first = [number * other for number in range(self.views)]
            yield _Plan(
                rows,
                None if self.ranks.world == 1 else _of_first_view(batch),
                self.transform.plan(next(views_of), channels, device, first),
                None
                if local_of is None or self.local is None
                else self.local.plan(next(local_of), channels, device, [0] * len(local)),
            )

    def _drawn(
        self, transform: RandomViews, numbers: range, epoch: int, batches: Sequence[Tensor]
    ) -> Iterator[ViewParameters]:
        """Yield what the views of these numbers are in every batch, for the rank's images.

        Small batches are drawn several at a time, which is less work for the CPU.
        """
        size, views = self.train.images.shape[-1], len(numbers)
        for steps in _alike([batch.shape[-1] for batch in batches], _DRAWN_AT_ONCE // views):
            count = batches[steps[0]].shape[-1]
            names = ((step, number) for step in steps for number in numbers)
            generators = [torch_generator(self.seed, "views", epoch, *name) for name in names]
            drawn = transform.draw_all(count, size, generators)
            for start in range(0, len(drawn), views * count):
                of_step = drawn[start : start + views * count]
                yield of_step if self.ranks.world == 1 else of_step[self._part(count, views)]

    def _part(self, count: int, views: int) -> Tensor:
        """Return the places of the rank's images in `views` views of `count` images, one after the other."""
        places = torch.arange(views * count).view(views, count)
        return shard(places, self.ranks.rank, self.ranks.world).flatten()

    def _batch(self, plan: "_Plan", images: Tensor) -> Batch:
        shown = images if plan.rows.dim() == 1 else images.flatten(0, 1)
        views = self.transform.make(shown, plan.views)
        local = None if plan.local is None or self.local is None else self.local.make(shown, plan.local)
        known = partial(
            self._known_of,
            views=views.view(self.views, -1, *views.shape[1:]),
            local=None if local is None else local.view(self.local_crops, -1, *local.shape[1:]),
        )
        batch = known(_of_first_view(plan.rows))
        return batch if plan.whole is None else replace(batch, whole=known(plan.whole))

    def _known_of(self, index: Tensor, *, views: Tensor, local: Tensor | None) -> Batch:
        """Return a batch of these views and of what is known of the images at the rows `index` `(B,)`."""
        train = self.train
        return Batch(
            views,
            labels=train.labels[index],
            index=index,
            condition=None if train.condition is None else train.condition[index],
            bias=None if train.bias is None else train.bias[index],
            clusters=None if self.clusters is None else self.clusters[index],
            local=local,
        )


@dataclass(frozen=True, eq=False)
class _Plan:
    """What the CPU decides of one batch: its `rows`, its views and its local crops.

    `whole` is the rows `(B,)` of the images of all ranks, where there are several.
    """

    rows: Tensor
    whole: Tensor | None
    views: ViewPlan
    local: ViewPlan | None


@dataclass(frozen=True)
class TransductiveFeed:
    """Batches of labelled and unlabelled objects; an epoch sees every unlabelled one once."""

    data: TransductiveData
    sampler: SemiSupervisedBatches
    ranks: Ranks = ONE

    def epoch(self, epoch: int) -> Iterator[TransductiveBatch]:
        """Yield the batches of the epoch (from 1)."""
        return one_ahead(self._batches(epoch), self.data.unlabelled.views[0].device)

    def _batches(self, epoch: int) -> Iterator[TransductiveBatch]:
        data = self.data
        for batch in self.sampler.epoch(epoch):
            rows = SemiSupervisedRows(
                _of_rank(batch.labelled, self.ranks), _of_rank(batch.unlabelled, self.ranks)
            )
            own = to_device(rows, data.unlabelled.views[0].device)
            yield TransductiveBatch(
                data.labelled.take(own.labelled),
                data.unlabelled.take(own.unlabelled),
                **self._of_all_ranks(batch),
            )

    def _of_all_ranks(self, batch: SemiSupervisedRows) -> dict[str, Any]:
        labels = self.data.labelled.labels
        if self.ranks.world == 1 or labels is None:
            return {}
        rows = to_device(batch.labelled, labels.device)
        return {"labels": labels[rows], "others": len(batch.unlabelled)}

    def shared(self, ranks: Ranks) -> "TransductiveFeed":
        """Return the feed of one of several ranks."""
        batches = self.sampler.epoch(1)
        _refuse_empty_parts((part for one in batches for part in (one.labelled, one.unlabelled)), ranks)
        return replace(self, ranks=ranks)


def _alike(counts: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Yield the places of `counts`: those of equal neighbours together, as many as fit into the limit."""
    for count, places in groupby(range(len(counts)), counts.__getitem__):
        run, most = list(places), max(1, limit // count)
        yield from (run[start : start + most] for start in range(0, len(run), most))


def _of_first_view(rows: Tensor) -> Tensor:
    return rows if rows.dim() == 1 else rows[0]


def _of_rank(batch: Tensor, ranks: Ranks) -> Tensor:
    return batch if ranks.world == 1 else shard(batch, ranks.rank, ranks.world)


def of_one_shape(sampler: Sampler | SemiSupervisedBatches) -> bool:
    """Return whether all batches of an epoch have as many images."""
    shapes = set()
    for batch in sampler.epoch(1):
        parts = (batch.labelled, batch.unlabelled) if isinstance(batch, SemiSupervisedRows) else (batch,)
        shapes.add(tuple(part.shape for part in parts))
    return len(shapes) == 1


def _refuse_empty_parts(batches: Iterable[Tensor], ranks: Ranks) -> None:
    smallest = min(batch.shape[-1] for batch in batches)
    if smallest < ranks.world:
        raise InputError(
            f"the smallest batch has {smallest} images, fewer than the {ranks.world} workers: "
            "give fewer workers"
        )


def image_feed(
    experiment: Experiment,
    data: PreparedData,
    *,
    views: int = 2,
    sampler: Sampler | None = None,
    clusters: Tensor | None = None,
) -> ImageFeed:
    """Return the feed of an experiment: `views` of each image, in uniform batches unless by `sampler`.

    The experiment says how many local crops there are.
    """
    if sampler is None:
        sampler = UniformBatches(len(data.train), experiment.batch_size, batches_seed(experiment))
    return ImageFeed(
        data.train,
        sampler,
        random_views(experiment.views, data.spec.view_size),
        experiment.seed,
        views,
        clusters=None if clusters is None else clusters.to(data.device),
        local=local_views(experiment.views, data.spec.view_size),
        local_crops=experiment.views.local_crops,
    )


def single_view(experiment: Experiment, data: PreparedData) -> ImageFeed:
    """Return uniform batches with one view of each image."""
    return image_feed(experiment, data, views=1)


def transductive_feed(experiment: Experiment, prepared: PreparedTransductive) -> TransductiveFeed:
    """Return batches of at most `batch_size` unlabelled and as many labelled objects."""
    data, size = prepared.data, experiment.batch_size
    sampler = SemiSupervisedBatches(
        len(data.labelled), len(data.unlabelled), size, size, batches_seed(experiment)
    )
    return TransductiveFeed(data, sampler)


def batches_seed(experiment: Experiment) -> int:
    """Return the seed of an experiment's samplers."""
    return named_seed(experiment.seed, "batches")


def random_views(settings: ViewSettings, size: int) -> RandomViews:
    """Return the random views of `size` pixels that the settings describe."""
    of_local = {name for name in ViewSettings.model_fields if name.startswith("local_")}
    return RandomViews(**{**settings.model_dump(exclude=of_local), "size": size})


def local_views(settings: ViewSettings, size: int) -> RandomViews | None:
    """Return the local crops that the settings describe beside views of `size` pixels; None for no crops."""
    if not settings.local_crops:
        return None
    return replace(
        random_views(settings, settings.local_size or size),
        min_crop=settings.local_min_crop,
        max_crop=settings.local_max_crop,
    )
