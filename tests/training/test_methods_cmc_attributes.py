"""CMC on attributes: an image against its own condition."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import LabelledImages
from contrasweep.losses import InfoNCE
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.cmc_attributes import AttributeContrast
from contrasweep.tuning.objectives.objective import Batch
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective


def _experiment(**values: Any) -> Experiment:
    given = {"epochs": 1, "batch_size": 32, "temperature": 0.2, **values}
    return resolve("cmc-attributes", "colour-digits", given)


def _started(data: PreparedData) -> tuple[AttributeContrast, Batch]:
    """An objective and the first batch of its first epoch."""
    e = _experiment()
    objective = build_objective(e, data)
    assert isinstance(objective, AttributeContrast)
    return objective.train(), next(METHODS[e.method].feed(e, data).epoch(1))


def test_cmc_contrasts_images_with_their_own_condition(data: PreparedData) -> None:
    objective, batch = _started(data)
    assert len(batch.views) == 1
    loss, metrics = objective.step(batch)
    assert batch.condition is not None
    images = objective.head(objective.encoder(batch.views[0]))
    conditions = objective.attributes(batch.condition)
    scores = functional.normalize(images, dim=1) @ functional.normalize(conditions, dim=1).T / 0.2
    own = torch.arange(32)
    expected = (functional.cross_entropy(scores, own) + functional.cross_entropy(scores.T, own)) / 2
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    assert metrics["dropped_fraction"].item() == 0
    loss.backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in objective.encoder.parameters())
    assert all(p.grad is not None for p in objective.attributes.parameters())


def test_cmc_contrasts_the_global_batch(data: PreparedData) -> None:
    objective, batch = _started(data)
    assert batch.condition is not None
    images = objective.head(objective.encoder(batch.views[0]))
    pairs = torch.stack([images, objective.attributes(batch.condition)])
    loss, _ = objective.step(batch, lambda tensor, dim: torch.cat([tensor, tensor.flip(0)], dim))
    expected = InfoNCE(0.2)(torch.cat([pairs, pairs.flip(0)], dim=1))
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)


def test_cmc_standardises_the_condition_of_the_training_images(data: PreparedData) -> None:
    condition = torch.rand(len(data.train), 3, generator=torch.Generator().manual_seed(0)) * 40 + 100
    condition[:, 1] = 5.0
    train = LabelledImages(data.train.images, data.train.labels, condition, data.train.bias)
    objective = build_objective(_experiment(), replace(data, train=train))
    assert isinstance(objective, AttributeContrast)
    seen: list[Tensor] = []
    objective.attributes.projection.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    objective.attributes(condition)
    expected = torch.tensor([1.0, 0.0, 1.0])
    torch.testing.assert_close(seen[0].std(dim=0, correction=0), expected)
    torch.testing.assert_close(seen[0].mean(dim=0), torch.zeros(3), atol=1e-5, rtol=0)


def test_cmc_s_embedding_of_the_condition_is_as_wide_as_that_of_images(data: PreparedData) -> None:
    objective = build_objective(_experiment(**{"head.hidden": 24, "head.width": 16}), data)
    assert isinstance(objective, AttributeContrast)
    widths = [tuple(p.shape) for p in objective.attributes.projection.parameters() if p.ndim == 2]
    assert widths == [(24, 3), (16, 24)]
