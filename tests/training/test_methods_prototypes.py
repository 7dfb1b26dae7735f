"""PCL and SwAV: the source of their prototypes, when these learn, and the loss."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from first_batch import started
from torch import Tensor
from torch.nn import functional

from contrasweep.data import cluster_information, whole_image
from contrasweep.losses import PrototypeNCE, QueueInfoNCE, SwAV, cluster_concentrations, cluster_prototypes
from contrasweep.tuning.errors import InputError, TrainingDiverged
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.pcl import PrototypicalContrast
from contrasweep.tuning.methods.swav import SwappedPrediction
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.optimizers import build_optimizer

DATA = "colour-digits"


def _experiment(method: str, **values: Any) -> Experiment:
    return resolve(method, DATA, {"epochs": 2, "batch_size": 24, **values})


def _pcl(data: PreparedData, **values: Any) -> tuple[PrototypicalContrast, Batch]:
    objective, batch = started(_experiment("pcl", **values), data)
    assert isinstance(objective, PrototypicalContrast)
    return objective, batch


def _swav(data: PreparedData, **values: Any) -> tuple[SwappedPrediction, Batch]:
    objective, batch = started(_experiment("swav", **values), data)
    assert isinstance(objective, SwappedPrediction)
    return objective, batch


def _embed(objective: Objective, data: PreparedData) -> Callable[[], Tensor]:
    return lambda: objective.embed_images(whole_image(data.train.images, data.spec.view_size))


def test_pcl_clusters_the_keys_of_all_images_several_times(data: PreparedData) -> None:
    objective, _ = _pcl(data, clusters=5, clusterings=3, instance_epochs=0, temperature=0.3)
    embeddings = _embed(objective, data)()
    metrics = objective.on_epoch_start(1, lambda: embeddings)
    assert [len(one.prototypes) for one in objective.clusterings] == [5, 10, 20]
    for one in objective.clusterings:
        assert one.clusters.shape == (len(data.train),)
        prototypes = cluster_prototypes(embeddings, one.clusters)
        torch.testing.assert_close(one.prototypes, prototypes)
        phi = cluster_concentrations(embeddings, one.clusters, prototypes, 0.3)
        torch.testing.assert_close(one.concentrations, phi)
    information = cluster_information(objective.clusterings[0].clusters, data.train.labels)
    assert (metrics["mutual_information"], metrics["conditional_entropy"]) == information
    assert information[0] > 0


def test_pcl_clusters_directions(data: PreparedData) -> None:
    """Lengths say nothing: two directions at lengths that would group them otherwise."""
    objective, _ = _pcl(data, clusters=2, clusterings=1, instance_epochs=0)
    directions = torch.eye(128)[torch.arange(len(data.train)) % 2]
    noise = 0.01 * torch.randn(len(data.train), 128, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([1.0, 100.0])[torch.arange(len(data.train)) // 2 % 2]
    objective.on_epoch_start(1, lambda: (directions + noise) * lengths[:, None])
    clusters = objective.clusterings[0].clusters
    assert clusters[::2].unique().numel() == clusters[1::2].unique().numel() == 1


def test_pcl_adds_the_mean_over_clusterings_to_moco(data: PreparedData) -> None:
    objective, batch = _pcl(data, clusters=5, clusterings=2, instance_epochs=0, temperature=0.3)
    objective.on_epoch_start(1, _embed(objective, data))
    with torch.no_grad():  # keys that are no longer the queries
        for parameter in objective.key_encoder.parameters():
            parameter.add_(0.05)
    queue = objective.queue.keys.clone()
    loss, metrics = objective.step(batch)
    query = objective.head(objective.encoder(batch.views[0]))
    key = objective.key_head(objective.key_encoder(batch.views[1]))
    moco = QueueInfoNCE(0.3)(query, key, queue)
    pulls = [
        PrototypeNCE()(query, one.prototypes, one.concentrations, one.clusters[batch.index])
        for one in objective.clusterings
    ]
    pulled = torch.stack(pulls).mean()
    torch.testing.assert_close(loss, moco + pulled, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(metrics["prototype_loss"], pulled.detach(), atol=1e-4, rtol=1e-4)
    assert not metrics["prototype_loss"].requires_grad


def test_pcl_begins_as_moco(data: PreparedData) -> None:
    objective, batch = _pcl(data, clusters=5, instance_epochs=1)

    def never() -> Tensor:
        raise AssertionError("nothing is clustered yet")

    metrics = objective.on_epoch_start(1, never)
    assert metrics["mutual_information"] == 0
    assert objective.clusterings == []
    assert set(metrics) | {"prototype_loss"} == set(METHODS["pcl"].train_metrics)
    assert objective.step(batch)[1]["prototype_loss"].item() == 0
    objective.on_epoch_start(2, _embed(objective, data))
    assert len(objective.clusterings) == 3


def test_pcl_s_clusterings_follow_seed_and_epoch_alone(data: PreparedData) -> None:
    objective, _ = _pcl(data, clusters=5, clusterings=1, instance_epochs=0)
    embeddings = torch.randn(len(data.train), 128, generator=torch.Generator().manual_seed(0))

    def clusters(epoch: int, **values: Any) -> Tensor:
        one = _pcl(data, clusters=5, clusterings=1, instance_epochs=0, **values)[0] if values else objective
        one.on_epoch_start(epoch, lambda: embeddings)
        return one.clusterings[0].clusters

    assert torch.equal(clusters(1), clusters(1))
    assert not torch.equal(clusters(1), clusters(2))
    assert not torch.equal(clusters(1), clusters(1, seed=1))


def test_pcl_needs_as_many_images_as_clusters(data: PreparedData) -> None:
    with pytest.raises(InputError, match=r"finest.*100 clusters, more than the 96 training images"):
        _pcl(data, clusters=25, clusterings=3)


def test_a_collapse_of_pcl_is_named(data: PreparedData) -> None:
    objective, _ = _pcl(data, clusters=5, instance_epochs=0)
    with pytest.raises(TrainingDiverged, match=r"pcl: k-means before epoch 4.*distinct rows"):
        objective.on_epoch_start(4, lambda: torch.ones(len(data.train), 128))


def test_images_without_a_label_are_clustered_and_not_scored(data: PreparedData) -> None:
    labels = data.train.labels.clone()
    labels[::2] = -1
    partly = replace(data, train=replace(data.train, labels=labels))
    objective, _ = _pcl(partly, clusters=5, clusterings=1, instance_epochs=0)
    embeddings = _embed(objective, partly)()
    metrics = objective.on_epoch_start(1, lambda: embeddings)
    clusters = objective.clusterings[0].clusters
    assert metrics["mutual_information"] == cluster_information(clusters[1::2], labels[1::2])[0]


def test_swav_is_its_loss_on_the_head_s_output(data: PreparedData) -> None:
    objective, batch = _swav(data, prototypes=9, temperature=0.2, epsilon=0.1, iterations=2)
    loss, _ = objective.step(batch)
    expected = SwAV(128, 9, 0.2, 0.1, 2)
    expected.load_state_dict(objective.prototypes.state_dict())
    torch.testing.assert_close(loss, expected(objective.embed(batch.views)), atol=1e-5, rtol=1e-5)
    assert 0 < loss.item() < 2 * math.log(9)


def test_swav_s_prototypes_stay_at_first_and_then_learn_at_length_one(data: PreparedData) -> None:
    objective, batch = _swav(data, freeze_epochs=1)
    optimizer = build_optimizer(objective, _experiment("swav").optimizer)
    weights = objective.prototypes.prototypes
    start = weights.detach().clone()

    def step(epoch: int) -> None:
        assert objective.on_epoch_start(epoch, lambda: torch.empty(0)) == {}
        optimizer.zero_grad(set_to_none=True)
        objective.step(batch)[0].backward()
        optimizer.step()
        objective.after_step()

    encoder = objective.encoder.body[0].weight
    before = encoder.detach().clone()
    step(1)
    torch.testing.assert_close(weights.detach(), start, atol=1e-6, rtol=0)
    assert not torch.equal(encoder, before)
    with torch.no_grad():
        weights.mul_(1.5)
    step(2)
    assert (weights.detach() - start).norm() > 1e-3
    torch.testing.assert_close(functional.normalize(weights.detach(), dim=1), weights.detach())


def test_swav_s_prototypes_are_as_wide_as_the_head_s_output(data: PreparedData) -> None:
    for name, width in (("cclk", 24), ("none", 64)):
        values = {"head.name": name, "head.width": 24}
        assert _swav(data, prototypes=7, **values)[0].prototypes.prototypes.shape == (7, width)


def test_swav_s_local_crops_predict_the_assignments_of_the_views(data: PreparedData) -> None:
    values = {"views.local_crops": 3, "views.local_size": 6, "views.local_min_crop": 0.1}
    objective, batch = _swav(data, prototypes=9, temperature=0.2, epsilon=0.1, iterations=2, **values)
    assert batch.local is not None
    assert (batch.views.shape[0], batch.local.shape[0], batch.local.shape[-1]) == (2, 3, 6)
    assert len({float(crop.sum()) for crop in batch.local}) == 3
    # Each size passes the encoder by itself, and all of them pass the head together.
    of_sizes = [objective.encoder(crops.flatten(0, 1)) for crops in (batch.views, batch.local)]
    embeddings = objective.head(torch.cat(of_sizes)).view(5, 24, -1)
    loss, _ = objective.step(batch)
    expected = objective.prototypes(embeddings[:2], embeddings[2:])
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)


def test_swav_s_queue_fills_after_its_epochs_and_is_used_when_it_is_full(data: PreparedData) -> None:
    values = {"views.local_crops": 2, "views.local_min_crop": 0.1}
    objective, _ = _swav(data, queue=48, queue_epochs=1, prototypes=9, **values)
    batches = list(METHODS["swav"].feed(_experiment("swav", **values), data).epoch(1))
    embeddings = [objective.embed(batch.views, batch.local).detach() for batch in batches]
    queue = objective.queue
    assert queue is not None

    def loss(crops: Tensor, queue: Tensor | None = None) -> Tensor:
        return objective.prototypes(crops[:2], crops[2:], queue).detach()

    def step(epoch: int, number: int) -> Tensor:
        objective.on_epoch_start(epoch, lambda: torch.empty(0))
        value = objective.step(batches[number])[0].detach()
        objective.after_step()
        return value

    torch.testing.assert_close(step(1, 0), loss(embeddings[0]))
    assert int(queue.filled) == 0, "the first epoch is without a queue"
    for number in (0, 1):
        torch.testing.assert_close(step(2, number), loss(embeddings[number]))
        assert int(queue.filled) == 24 * (number + 1)
    collected = torch.cat([one[:2] for one in embeddings[:2]], dim=1)
    together, alone = loss(embeddings[2], collected), loss(embeddings[2])
    assert (together - alone).abs() > 1e-4
    torch.testing.assert_close(step(3, 2), together, atol=1e-4, rtol=1e-4)


def test_local_crops_that_cannot_be_are_refused() -> None:
    crops = {"views.local_crops": 2, "views.local_size": 5}
    sizes = {"views.size": 32, "views.local_size": 16, "encoder.name": "small-alexnet"}
    with pytest.raises(InputError, match=r"no effect with infonce; these use them: dino, swav"):
        _experiment("infonce", **crops)
    with pytest.raises(InputError, match=r"'small-alexnet' does not take 32 x 32 images and 16 x 16 ones"):
        _experiment("swav", **{**crops, **sizes})
    with pytest.raises(InputError, match=r"local crops of colour-digits: blur needs a size of 20"):
        _experiment("swav", **{**crops, "views.size": 32, "views.blur": 0.5})
    with pytest.raises(InputError, match=r"views.local_min_crop 0.5 is above views.local_max_crop 0.14"):
        _experiment("swav", **{**crops, "views.local_min_crop": 0.5})


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        ("swav", {"prototypes": 1}, "prototypes must be at least 2, given 1"),
        ("swav", {"epsilon": 0.0}, "epsilon must be above 0, given 0"),
        ("swav", {"queue": -1}, "queue must be at least 0, given -1"),
        ("swav", {"iterations": 0}, "iterations must be at least 1, given 0"),
        ("pcl", {"clusters": 1}, "clusters must be at least 2, given 1"),
        ("pcl", {"clusterings": 0}, "clusterings must be at least 1, given 0"),
    ],
)
def test_a_bad_value_is_refused(method: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _experiment(method, **values)
