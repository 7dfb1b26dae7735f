"""Objectives with a momentum encoder and a queue, and MoCo-v2 above all."""

import copy
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.losses import QueueAlignUniform, QueueHardNegInfoNCE, QueueInfoNCE
from contrasweep.losses.terms import LossTerms
from contrasweep.models import build_encoder
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.momentum import Contrast, MomentumObjective, embed
from contrasweep.tuning.objectives.objective import Batch
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.optimizers import build_optimizer
from contrasweep.tuning.training.pretrain import build_objective

DATA = "colour-digits"
MOMENTUM_METHODS = ["moco-v2", "cacr-moco", "pcl"]


def _experiment(method: str = "moco-v2", **values: Any) -> Experiment:
    return resolve(method, DATA, {"epochs": 1, "batch_size": 24, **values})


def _started(e: Experiment, data: PreparedData) -> tuple[MomentumObjective, Batch]:
    objective = build_objective(e, data).train()
    assert isinstance(objective, MomentumObjective)
    return objective, next(METHODS[e.method].feed(e, data).epoch(1))


def _moved(e: Experiment, data: PreparedData) -> tuple[MomentumObjective, Batch]:
    """An objective whose momentum encoder is no longer a copy, as after some steps."""
    objective, batch = _started(e, data)
    with torch.no_grad():
        for parameter in objective.key_encoder.parameters():
            parameter.add_(0.05)
    return objective, batch


def _unit(embeddings: Tensor) -> Tensor:
    return functional.normalize(embeddings, dim=-1)


def _embeddings(objective: MomentumObjective, views: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys of views; a copy, whose running statistics nobody else sees."""
    apart = copy.deepcopy(objective)
    queries = embed(apart.encoder, apart.head, views)
    return queries, embed(apart.key_encoder, apart.key_head, views)


def test_the_first_view_s_queries_meet_the_second_view_s_keys(data: PreparedData) -> None:
    objective, batch = _moved(_experiment(temperature=0.3, queue=50), data)
    queue = objective.queue.keys.clone()
    queries, keys = _embeddings(objective, batch.views[:1])[0], _embeddings(objective, batch.views[1:])[1]
    loss, metrics = objective.step(batch)
    expected = QueueInfoNCE(0.3)(queries[0], keys[0], queue)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    assert set(metrics) == {"dropped_fraction"}
    objective.after_step()
    torch.testing.assert_close(objective.queue.keys[:24], _unit(keys[0]), atol=1e-5, rtol=1e-5)
    assert torch.equal(objective.queue.keys[24:], queue[24:])


def test_symmetric_goes_both_ways_and_enqueues_both_views(data: PreparedData) -> None:
    objective, batch = _moved(_experiment(temperature=0.3, queue=50, symmetric="on"), data)
    queue = objective.queue.keys.clone()
    queries, keys = _embeddings(objective, batch.views)
    loss, _ = objective.step(batch)
    one, other = (QueueInfoNCE(0.3)(queries[v], keys[1 - v], queue) for v in (0, 1))
    torch.testing.assert_close(loss, (one + other) / 2, atol=1e-5, rtol=1e-5)
    objective.after_step()
    torch.testing.assert_close(objective.queue.keys[:48], _unit(keys).flatten(0, 1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("method", "values", "loss"),
    [
        (
            "align-uniform-moco",
            {"t": 2.0, "align_weight": 0.5, "uniform_weight": 0.7, "intra_batch": "off"},
            QueueAlignUniform(2.0, 0.5, 0.7, intra_batch=False),
        ),
        (
            "hardneg-moco",
            {"temperature": 0.3, "beta": 0.5, "tau_plus": 0.1},
            QueueHardNegInfoNCE(0.3, 0.5, 0.1),
        ),
    ],
)
def test_a_baseline_puts_its_own_loss_in_moco_s_place(
    method: str, values: dict[str, Any], loss: nn.Module, data: PreparedData
) -> None:
    objective, batch = _moved(_experiment(method, queue=50, **values), data)
    queue = objective.queue.keys.clone()
    queries, keys = _embeddings(objective, batch.views[:1])[0], _embeddings(objective, batch.views[1:])[1]
    torch.testing.assert_close(
        objective.step(batch)[0], loss(queries[0], keys[0], queue), atol=1e-5, rtol=1e-5
    )


def test_cmc_compares_every_view_with_every_other_and_stores_the_last(data: PreparedData) -> None:
    objective, batch = _moved(_experiment("cmc-moco", temperature=0.3, queue=50, positives=2), data)
    queue = objective.queue.keys.clone()
    queries, keys = _embeddings(objective, batch.views)
    loss, pair = objective.step(batch)[0], QueueInfoNCE(0.3)
    expected = [pair(queries[a], keys[b], queue) for a, b in permutations(range(3), 2)]
    torch.testing.assert_close(loss, torch.stack(expected).mean(), atol=1e-5, rtol=1e-5)
    objective.after_step()
    torch.testing.assert_close(objective.queue.keys[:24], _unit(keys[-1]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("method", MOMENTUM_METHODS)
def test_copies_start_equal_and_learn_by_following_alone(method: str, data: PreparedData) -> None:
    e = _experiment(method, momentum_m=0.8)
    objective, batch = _started(e, data)
    pairs = [(objective.encoder, objective.key_encoder), (objective.head, objective.key_head)]
    start = [copy.deepcopy(own.state_dict()) for own, _ in pairs]
    for (own, follower), state in zip(pairs, start, strict=True):
        assert all(torch.equal(v, state[n]) for n, v in follower.module.state_dict().items())
        assert not any(parameter.requires_grad for parameter in follower.parameters())
        assert all(parameter.requires_grad for parameter in own.parameters())
    optimizer = build_optimizer(objective, e.optimizer)
    objective.step(batch)[0].backward()
    optimizer.step()
    for (_, follower), state in zip(pairs, start, strict=True):
        assert all(torch.equal(value, state[name]) for name, value in follower.module.named_parameters())
    objective.after_step()
    for (own, follower), state in zip(pairs, start, strict=True):
        for name, moved in own.named_parameters():
            expected = 0.8 * state[name] + 0.2 * moved
            torch.testing.assert_close(dict(follower.module.named_parameters())[name], expected)
    encoder, follower = pairs[0]
    assert any(
        not torch.equal(a, b) for a, b in zip(encoder.parameters(), follower.parameters(), strict=True)
    )


def test_keys_have_running_statistics_of_their_own(data: PreparedData) -> None:
    objective, batch = _started(_experiment(), data)
    one = copy.deepcopy(objective)
    objective.step(batch)
    one.step(Batch(batch.views.flip(0), batch.labels, batch.index))

    def means(module: nn.Module) -> list[Tensor]:
        return [norm.running_mean for norm in module.modules() if isinstance(norm, nn.BatchNorm2d)]

    for own, key, swapped in zip(
        means(objective.encoder), means(objective.key_encoder), means(one.key_encoder), strict=True
    ):
        assert not torch.equal(own, key)
        torch.testing.assert_close(own, swapped)


@pytest.mark.parametrize("method", MOMENTUM_METHODS)
def test_evaluation_reads_the_query_encoder_and_clusters_the_keys(method: str, data: PreparedData) -> None:
    objective, _ = _started(_experiment(method), data)
    with torch.no_grad():
        for parameter in objective.key_encoder.parameters():
            parameter.add_(0.1)
    images = torch.rand(5, 3, 8, 8)
    features, embedded = objective.features(images), objective.embed_images(images)
    assert objective.training
    objective.eval()
    with torch.no_grad():
        torch.testing.assert_close(features, objective.encoder(images), atol=1e-5, rtol=1e-4)
        keys = objective.key_head(objective.key_encoder(images))
    torch.testing.assert_close(embedded, keys, atol=1e-5, rtol=1e-4)
    assert keys.shape == (5, 128)


@pytest.mark.parametrize("method", MOMENTUM_METHODS)
def test_the_queue_s_start_follows_the_seed_alone(method: str, data: PreparedData) -> None:
    def start(**values: Any) -> Tensor:
        return _started(_experiment(method, queue=30, **values), data)[0].queue.keys

    assert start().shape == (30, 128)
    assert torch.equal(start(), start(momentum_m=0.9, **{"optimizer.lr": 0.02}))
    assert not torch.equal(start(), start(seed=1))
    assert start(**{"head.width": 16}).shape == (30, 16)
    assert start(**{"head.name": "none"}).shape == (30, 64)


def test_everything_is_gathered_over_ranks() -> None:
    seen: list[Contrast] = []

    def loss(contrast: Contrast) -> tuple[LossTerms, dict[str, Tensor]]:
        seen.append(contrast)
        values = contrast.queries.square().sum((0, 2))
        return LossTerms(values, torch.ones_like(values, dtype=torch.bool)), {"own": values.detach().sum()}

    torch.manual_seed(0)
    e = _experiment(**{"head.width": 5, "queue": 9, "momentum_m": 0.9})
    objective = MomentumObjective(e, build_encoder("small-conv", 3, 8), loss, enqueued=slice(-1, None))
    batch = Batch(torch.rand(3, 4, 3, 8, 8), torch.arange(4), torch.arange(4))
    _, metrics = objective.step(batch, lambda tensor, dim: torch.cat([tensor, tensor + 1], dim))
    assert set(metrics) == {"dropped_fraction", "own"}
    (contrast,) = seen
    assert contrast.queries.shape == contrast.keys.shape == (3, 8, 5)
    assert contrast.queries.requires_grad
    assert not contrast.keys.requires_grad
    assert contrast.batch.index.tolist() == [0, 1, 2, 3, 1, 2, 3, 4]
    objective.after_step()
    torch.testing.assert_close(objective.queue.keys[:8], _unit(contrast.keys[-1]))
    assert objective.queue.filled.item() == 8


def test_a_loss_may_be_a_scalar(data: PreparedData) -> None:
    def loss(contrast: Contrast) -> tuple[Tensor, dict[str, Tensor]]:
        return contrast.queries.square().mean(), {}

    objective = MomentumObjective(_experiment(), build_encoder("small-conv", 3, 8), loss)
    value, metrics = objective.step(Batch(torch.rand(2, 4, 3, 8, 8), torch.arange(4), torch.arange(4)))
    assert value.dim() == 0
    assert metrics == {"dropped_fraction": torch.zeros(())}


def test_weights_are_convolved_with_the_channels_last(data: PreparedData) -> None:
    objective, batch = _started(_experiment(), data)
    layouts: list[bool] = []

    def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        layouts.append(inputs[0].is_contiguous(memory_format=torch.channels_last))

    for network in (objective.encoder, objective.key_encoder.module):
        network.register_forward_pre_hook(note)
        weight = next(p for p in network.parameters() if p.ndim == 4 and p.shape[1] > 1)
        assert weight.is_contiguous(memory_format=torch.channels_last)
    objective.step(batch)
    objective.features(batch.views[0])
    objective.embed_images(batch.views[0])
    assert layouts == [True] * 4


@pytest.mark.parametrize("method", MOMENTUM_METHODS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"momentum_m": 1.5}, "momentum_m must be at most 1, given 1.5"),
        ({"momentum_m": -0.1}, "momentum_m must be at least 0, given -0.1"),
        ({"queue": 0}, "queue must be at least 1, given 0"),
    ],
)
def test_a_bad_value_is_refused(method: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _experiment(method, **values)


def test_a_momentum_of_one_never_moves_and_of_zero_copies(
    small_data: Callable[[str], PreparedData],
) -> None:
    for m, expected in ((1.0, False), (0.0, True)):
        objective, batch = _started(_experiment(momentum_m=m), small_data(DATA))
        objective.step(batch)
        with torch.no_grad():
            for parameter in objective.encoder.parameters():
                parameter.add_(1.0)
        objective.after_step()
        pairs = zip(objective.encoder.parameters(), objective.key_encoder.parameters(), strict=True)
        assert all(torch.allclose(one, other) for one, other in pairs) is expected
