"""Cl-InfoNCE and its baselines: the source of the clusters, their refresh, and learning from them."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import LabelledImages, cluster_information, whole_image
from contrasweep.losses import ClInfoNCE, InfoNCE, SupCon
from contrasweep.tuning.errors import InputError, TrainingDiverged
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.cl_infonce import ClusterClassifier, ClusterContrast
from contrasweep.tuning.methods.clustering import METRICS, ImageClusters
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.spaces import space_of
from contrasweep.tuning.training.pretrain import build_objective, pretrain

DATA = "colour-digits"
K = 7


@pytest.fixture
def attributes(data: PreparedData) -> PreparedData:
    """The small data with six binary attributes for a condition; the first two have the highest entropy."""
    rows = torch.arange(len(data.train))
    columns = [rows % 2, rows // 2 % 2, *(rows % (5 + n) == 0 for n in range(4))]
    return _with_condition(data, torch.stack([column.float() for column in columns], dim=1))


def _with_condition(data: PreparedData, condition: Tensor) -> PreparedData:
    train = data.train
    return replace(data, train=LabelledImages(train.images, train.labels, condition, train.bias))


def _experiment(method: str = "cl-infonce", **values: Any) -> Experiment:
    return resolve(method, DATA, {"epochs": 1, "batch_size": 32, "probes.max_steps": 5, **values})


def _started(e: Experiment, data: PreparedData) -> tuple[Objective, Batch, dict[str, float]]:
    """An objective at the start of its first epoch, the epoch's first batch and its metrics."""
    objective = build_objective(e, data)
    images = whole_image(data.train.pixels, data.spec.view_size)
    metrics = objective.on_epoch_start(1, lambda: objective.embed_images(images))
    return objective.train(), next(METHODS[e.method].feed(e, data).epoch(1)), metrics


def _groups(clusters: Tensor) -> set[frozenset[int]]:
    """The clusters as sets of rows: their numbers mean nothing."""
    return {frozenset((clusters == number).nonzero().flatten().tolist()) for number in clusters.unique()}


def _assigned(objective: Objective) -> Tensor:
    assert isinstance(objective, ClusterContrast | ClusterClassifier)
    return objective.clusters.assigned


def test_labels_for_clusters_are_supcon(data: PreparedData) -> None:
    e = _experiment(clusters_from="labels", temperature=0.2)
    objective, batch, _ = _started(e, data)
    loss, metrics = objective.step(batch)
    assert isinstance(objective, ClusterContrast)
    expected = SupCon(temperature=0.2)(objective.embed(batch.views), batch.labels)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    assert metrics["dropped_fraction"].item() == 0


def test_instances_for_clusters_are_simclr(data: PreparedData) -> None:
    objective, batch, _ = _started(_experiment(clusters_from="instances", temperature=0.2), data)
    assert isinstance(objective, ClusterContrast)
    expected = InfoNCE(0.2, negatives="all")(objective.embed(batch.views))
    torch.testing.assert_close(objective.step(batch)[0], expected, atol=1e-5, rtol=1e-5)


def test_every_distinct_condition_is_a_cluster(data: PreparedData) -> None:
    """Of a hierarchy: one column for each ancestor, however many there are."""
    ancestors = torch.arange(len(data.train)) % 5
    one_hot = functional.one_hot(ancestors, 6).float()
    objective, _, _ = _started(_experiment(clusters_from="distinct"), _with_condition(data, one_hot))
    assert _groups(_assigned(objective)) == _groups(ancestors)


def test_the_loss_looks_clusters_up_by_the_rows_of_the_global_batch(data: PreparedData) -> None:
    """Two ranks that hold the same rows: the second copy of every image is a positive of the first."""
    objective, batch, _ = _started(_experiment(clusters=K, temperature=0.2), data)
    assert isinstance(objective, ClusterContrast)

    def twice(tensor: Tensor, dim: int) -> Tensor:
        return torch.cat([tensor, tensor], dim)

    loss, _ = objective.step(batch, twice)
    clusters = _assigned(objective)[batch.index]
    expected = ClInfoNCE(0.2)(twice(objective.embed(batch.views), 1), twice(clusters, 0))
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("representation", ["features", "embedding"])
def test_k_means_groups_the_chosen_representation(representation: str, data: PreparedData) -> None:
    e = _experiment(clusters=K, representation=representation)
    objective, _, _ = _started(e, data)
    assert isinstance(objective, ClusterContrast)
    images = data.train.images.float() / 255
    objective.eval()
    with torch.no_grad():
        features = objective.encoder(images)
        expected = features
        if representation == "embedding":
            expected = functional.normalize(objective.head(features), dim=1)
    objective.train()
    torch.testing.assert_close(objective.embed_images(images), expected, atol=1e-5, rtol=1e-4)
    assert objective.training
    assert len(_assigned(objective).unique()) == K


def test_k_means_is_made_anew_from_the_untrained_net_on(data: PreparedData) -> None:
    e = _experiment(clusters=K, epochs=2)
    before: list[Tensor] = []
    for record in pretrain(e, data=data):
        before.append(_assigned(record.objective).clone())
    untrained = _started(e, data)[0]
    assert torch.equal(before[1], _assigned(untrained))
    assert _groups(before[1]) != _groups(before[2])


def test_the_epoch_is_part_of_k_means_seed(data: PreparedData) -> None:
    objective = build_objective(_experiment(clusters=K), data)
    embeddings = torch.rand(len(data.train), 3, generator=torch.Generator().manual_seed(0))
    found = []
    for epoch in (1, 2, 1):
        objective.on_epoch_start(epoch, lambda: embeddings)
        found.append(_groups(_assigned(objective)))
    assert found[0] == found[2] != found[1]


def test_static_clusters_ask_for_no_embeddings(data: PreparedData) -> None:
    objective = build_objective(_experiment(clusters_from="labels"), data)

    def unwanted() -> Tensor:
        raise AssertionError("nothing is to be embedded")

    assert set(objective.on_epoch_start(1, unwanted)) == set(METRICS)


def test_top_attributes_make_a_cluster_of_every_pattern(attributes: PreparedData) -> None:
    objective, _, _ = _started(_experiment(clusters_from="attributes", top_k=2), attributes)
    assert _groups(_assigned(objective)) == _groups(torch.arange(len(attributes.train)) % 4)


def test_clusters_of_a_condition_are_its_own(data: PreparedData) -> None:
    base = 100.0 * (torch.arange(len(data.train)) % 3)[:, None]
    noisy = base + torch.rand(len(base), 2, generator=torch.Generator().manual_seed(0))
    objective, _, _ = _started(
        _experiment(clusters_from="condition", clusters=3), _with_condition(data, noisy)
    )
    assert _groups(_assigned(objective)) == _groups(torch.arange(len(base)) % 3)


@pytest.mark.parametrize("method", ["cl-infonce", "cluster-ce"])
@pytest.mark.parametrize("values", [{"clusters": K}, {"clusters_from": "condition", "clusters": K}])
def test_what_clusters_tell_of_the_labels_is_reported(
    method: str, values: dict[str, Any], data: PreparedData
) -> None:
    e = _experiment(method, **values)
    last = list(pretrain(e, data=data))[-1]
    expected = cluster_information(_assigned(last.objective), data.train.labels)
    assert [last.metrics[f"train.{name}"] for name in METRICS] == list(expected)
    assert METHODS[method].train_metrics == METRICS


def test_labels_are_read_for_the_metrics_alone(data: PreparedData) -> None:
    """Whatever the labels say, k-means clusters and losses are the same."""
    e, train = _experiment(clusters=K), data.train
    other = replace(data, train=LabelledImages(train.images, 9 - train.labels, train.condition))
    here, there = (_started(e, one) for one in (data, other))
    assert torch.equal(_assigned(here[0]), _assigned(there[0]))
    assert torch.equal(here[0].step(here[1])[0], there[0].step(there[1])[0])


def test_images_without_a_label_are_clustered_but_tell_nothing(data: PreparedData) -> None:
    labels = data.train.labels.clone()
    labels[::2] = -1
    partly = replace(data, train=LabelledImages(data.train.images, labels, data.train.condition))
    objective, _, metrics = _started(_experiment(clusters=K), partly)
    assert len(_assigned(objective).unique()) == K
    expected = cluster_information(_assigned(objective)[1::2], labels[1::2])
    assert list(metrics.values()) == list(expected)
    with pytest.raises(InputError, match=r"labels on colour-digits: 48 of 96 training images have no label"):
        build_objective(_experiment(clusters_from="labels"), partly)


def test_a_sampled_partner_comes_from_the_cluster(data: PreparedData) -> None:
    e = _experiment(clusters_from="labels", pairing="sampled", temperature=0.3, **{"views.min_crop": 1.0})
    objective, batch, _ = _started(e, replace(data, train=_told_by_colour(data.train)))
    red, green, _ = (batch.views * 255).round().mean(dim=(3, 4)).long().unbind(dim=2)
    assert torch.equal(red, (20 * batch.labels).expand(2, -1))
    assert torch.equal(green[0], batch.index)
    assert bool((green[1] != batch.index).all())
    assert isinstance(objective, ClusterContrast)
    loss, _ = objective.step(batch)
    expected = ClInfoNCE(0.3, "sampled")(objective.embed(batch.views), batch.labels)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)


SAMPLED: dict[str, Any] = {
    "clusters": K,
    "pairing": "sampled",
    "epochs": 3,
    "views.min_crop": 1.0,
    "views.flip": 0.0,
}


def test_sampled_partners_follow_the_k_means_of_the_epoch(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = replace(data, train=_told_by_colour(data.train))
    pairs: list[tuple[Tensor, Tensor]] = []
    original = ClusterContrast.step

    def spy(self: ClusterContrast, batch: Batch, *rest: Any) -> Any:
        row, partner = (batch.views[:, :, 1] * 255).round().mean(dim=(2, 3)).long()
        assert torch.equal(row, batch.index)
        own, other = _assigned(self)[row], _assigned(self)[partner]
        assert torch.equal(own, other)
        alone = torch.bincount(_assigned(self))[own] == 1
        assert torch.equal(row == partner, alone)
        pairs.append((row, partner))
        return original(self, batch, *rest)

    monkeypatch.setattr(ClusterContrast, "step", spy)
    clusters = [_assigned(record.objective).clone() for record in pretrain(_experiment(**SAMPLED), data=told)]
    assert len(pairs) == 9
    assert _groups(clusters[1]) != _groups(clusters[2])
    # Partners of one epoch that the clusters of the next would not have drawn.
    row, partner = (torch.cat(parts) for parts in zip(*pairs[:3], strict=True))
    assert bool((clusters[2][row] != clusters[2][partner]).any())


def test_sampled_partners_come_back_after_a_resume(data: PreparedData) -> None:
    e, checkpoint, whole = _experiment(**SAMPLED), b"", []
    for record in pretrain(e, data=data):
        whole.append(record.metrics)
        if record.epoch == 1:
            checkpoint = record.checkpoint()
    resumed = list(pretrain(e, checkpoint, data=data))
    assert [record.metrics for record in resumed] == whole[2:]
    there, here = (one.objective.state_dict() for one in (record, resumed[-1]))
    assert all(torch.equal(there[name], here[name]) for name in there)
    # In mid-epoch: the batches are a function of the clusters and of the epoch's number.
    objective = resumed[-1].objective
    feed = objective.regroup(METHODS[e.method].feed(e, data))
    again = objective.regroup(METHODS[e.method].feed(e, data))
    rest = list(feed.epoch(3))[1:]
    for one, other in zip(list(again.epoch(3))[1:], rest, strict=True):
        assert torch.equal(one.index, other.index)
        assert torch.equal(one.views, other.views)


def test_of_k_means_pairing_is_left_out_unless_given(data: PreparedData) -> None:
    """An experiment that says nothing of it is the one that it was before it could."""
    e = Experiment(
        method="cl-infonce",
        dataset="digits",
        hyperparameters={
            "clusters_from": "kmeans",
            "clusters": 50,
            "representation": "features",
            "temperature": 0.1,
        },
    )
    assert e.identity() == "52c0cf65588ef21b"
    now = {**e.hyperparameters, "kmeans_starts": 5}
    assert resolve("cl-infonce", "digits").hyperparameters == now
    for given in ({}, {"clusters_from": "kmeans"}):
        found = resolve("cl-infonce", "digits", {**given, "pairing": "sampled"})
        assert found.hyperparameters == {**now, "pairing": "sampled"}
    feed = METHODS["cl-infonce"].feed(_experiment(clusters=K), data)
    assert build_objective(_experiment(clusters=K), data).regroup(feed) is feed


def _told_by_colour(train: LabelledImages) -> LabelledImages:
    """Images of one colour each: the red says their label, the green their row."""
    images = torch.zeros_like(train.pixels)
    images[:, 0] = (20 * train.labels)[:, None, None]
    images[:, 1] = torch.arange(len(train))[:, None, None]
    return LabelledImages(images, train.labels, train.condition)


def test_the_classifier_learns_the_clusters_of_one_view(data: PreparedData) -> None:
    objective, batch, _ = _started(_experiment("cluster-ce", clusters=K), data)
    assert isinstance(objective, ClusterClassifier)
    assert len(batch.views) == 1
    loss, metrics = objective.step(batch)
    logits = objective.classifier(objective.encoder(batch.views[0]))
    assert logits.shape == (32, K)
    torch.testing.assert_close(loss, functional.cross_entropy(logits, _assigned(objective)[batch.index]))
    assert metrics["dropped_fraction"].item() == 0


def test_the_classifier_s_clusters_keep_their_numbers_over_epochs_and_a_resume(data: PreparedData) -> None:
    embeddings = torch.rand(len(data.train), 3, generator=torch.Generator().manual_seed(0))

    def clusters_of(keep: bool, epochs: range, state: dict[str, Tensor] | None = None) -> ImageClusters:
        clusters = ImageClusters(_experiment("cluster-ce", clusters=K), data, keep_numbers=keep)
        clusters.load_state_dict(state or clusters.state_dict())
        for epoch in epochs:
            clusters.start_epoch(epoch, lambda: embeddings)
        return clusters

    first, kept, loose = (
        clusters_of(*a) for a in ((True, range(1, 2)), (True, range(1, 3)), (False, range(1, 3)))
    )
    assert _groups(kept.assigned) == _groups(loose.assigned)
    agree = (kept.assigned == first.assigned).sum()
    assert agree > (loose.assigned == first.assigned).sum()
    resumed = clusters_of(True, range(2, 3), first.state_dict())
    assert torch.equal(resumed.assigned, kept.assigned)
    assert not loose.state_dict()
    for method, keeps in (("cluster-ce", True), ("cl-infonce", False)):
        objective = build_objective(_experiment(method, clusters=K), data)
        assert ("clusters.assigned" in objective.state_dict()) == keeps


@pytest.mark.parametrize(
    ("values", "dataset", "message"),
    [
        (
            {"clusters_from": "condition", "clusters": K},
            "digits",
            r"clusters_from=condition needs a conditioning variable, which digits has not; .*colour-digits",
        ),
        ({"clusters_from": "attributes", "top_k": 2}, "digits", r"clusters_from=attributes needs a condit"),
        ({"top_k": 2}, DATA, r"top_k has no effect with clusters_from=kmeans: leave it out"),
        ({"pairing": "sample"}, DATA, r"value of pairing: 'sample'.*'sampled'"),
        ({"clusters_from": "labels", "clusters": 5}, DATA, r"clusters has no effect with clusters_from=lab"),
        ({"clusters_from": "atributes"}, DATA, r"value of clusters_from: 'atributes'.*'attributes'"),
        ({"clusters": 1}, DATA, r"clusters must be at least 2, given 1"),
        ({"clusters_from": "attributes", "top_k": 0}, DATA, r"top_k must be at least 1, given 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(values: dict[str, Any], dataset: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve("cl-infonce", dataset, values)


def test_what_only_the_data_can_tell_is_refused_before_training(
    data: PreparedData, attributes: PreparedData
) -> None:
    with pytest.raises(InputError, match=r"attributes on colour-digits: binary attributes must be 0 or 1"):
        build_objective(_experiment(clusters_from="attributes"), data)
    with pytest.raises(InputError, match=r"attributes on colour-digits: k must be 1..6.*got 7"):
        build_objective(_experiment(clusters_from="attributes", top_k=7), attributes)
    with pytest.raises(InputError, match=r"condition on colour-digits: clusters must be at most .*got 200"):
        build_objective(_experiment(clusters_from="condition", clusters=200), attributes)
    with pytest.raises(InputError, match=r"clusters must be at most the 96 training images, given 97"):
        build_objective(_experiment(clusters=97), data)


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [(torch.zeros(96, 4), "1 distinct rows, got 7"), (torch.full((96, 4), torch.nan), "must be finite")],
)
def test_a_collapsed_representation_ends_the_run(
    embeddings: Tensor, message: str, data: PreparedData
) -> None:
    objective = build_objective(_experiment(clusters=K), data)
    with pytest.raises(TrainingDiverged, match=rf"cl-infonce: k-means before epoch 3: .*{message}"):
        objective.on_epoch_start(3, lambda: embeddings)


def test_the_default_space_searches_k_means_alone() -> None:
    """Neither needs what the data may lack, nor reads labels, unless asked."""
    space = space_of("cl-infonce", "digits", None)
    assert {"clusters", "representation"} < {p.name for p in space.searched}
    assert not {"top_k", "pairing"} & set(space.names)
    by_attributes = space_of("cl-infonce", DATA, None, {"clusters_from": "attributes"})
    assert "top_k" in {p.name for p in by_attributes.searched}
    assert not {"clusters", "representation"} & set(by_attributes.names)
