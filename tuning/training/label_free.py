"""Scores of an encoder on held-out images that need no label, and the views that two of them compare.

They use the features of the encoder, as RankMe's paper advises, and not those of the projection head. The
views have their own generators, so they do not change the draws of the training.
"""

import torch
from torch import Tensor

from contrasweep.data import LabelledImages, torch_generator
from contrasweep.models import alignment, feature_std, lidar, rankme, uniformity
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.metrics import LABEL_FREE, label_free_views
from contrasweep.tuning.objectives.batches import random_views
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.embedding import embed_views, embed_whole

MOST_WHOLE = 10_000
"""The held-out images, drawn at random, whose features are scored whole: a rank needs many of them."""

MOST_VIEWED = 1_000
"""The held-out images, drawn at random, whose views are compared: each costs several passes."""


def label_free_scores(
    objective: Objective, data: PreparedData, held_out: LabelledImages, experiment: Experiment
) -> dict[str, float]:
    """Return the scores by name (`LABEL_FREE`); nothing where they are not computed.

    RankMe, uniformity and the deviation are of whole images, alignment of two random views of an image and
    LiDAR of all of its views. The views are made as in training, and are the same for all encoders.

    Raises:
        NonFiniteFeatures: the features hold NaN or Inf.
    """
    count = label_free_views(data.spec, experiment.probes)
    if not count:
        return {}
    whole = _whole_features(objective, _some_of(held_out, MOST_WHOLE), data, experiment)
    views = _view_features(objective, _some_of(held_out, MOST_VIEWED), data, experiment, count)

    def scores() -> dict[str, float]:
        found = (rankme(whole), lidar(views), alignment(views[:2]), uniformity(whole), feature_std(whole))
        return dict(zip(LABEL_FREE, found, strict=True))

    return data.ranks.once(scores)


def _whole_features(
    objective: Objective, shown: LabelledImages, data: PreparedData, experiment: Experiment
) -> Tensor:
    """Return the features `(N, D)` of whole images."""
    size, centre = data.spec.view_size, experiment.probes.centre
    return embed_whole(objective.features, shown.images, size, centre, data.ranks)


def _view_features(
    objective: Objective, shown: LabelledImages, data: PreparedData, experiment: Experiment, count: int
) -> Tensor:
    """Return the features `(V, N, D)` of random views."""
    views = random_views(experiment.views, data.spec.view_size)
    generators = [torch_generator("label-free views", number) for number in range(count)]
    return embed_views(objective.features, shown.images, views, generators, data.ranks)


def _some_of(images: LabelledImages, most: int) -> LabelledImages:
    """Return at most so many images, drawn at random, the same in every run: classes may follow in turn."""
    if len(images) <= most:
        return images
    drawn = torch.randperm(len(images), generator=torch_generator("label-free images"))[:most]
    return images.subset(drawn.sort().values.to(images.images.device))
