"""HeroCon: the parts of its loss, the data that it may read, and its scores."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import MultiView, dataset_spec
from contrasweep.losses import HeroConSupervised, InfoNCE, SupCon
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods.herocon import HeterogeneousObjective, _label_contrast
from contrasweep.tuning.objectives.batches import transductive_feed
from contrasweep.tuning.objectives.prepared import (
    PreparedTransductive,
    TransductiveBatch,
    fold_and_part,
    preparation_key,
    prepare_data,
)
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.evaluation import label_scores
from contrasweep.tuning.training.pretrain import build_objective, pretrain

DATA = "two-view-digits"


def _parts(
    data: PreparedTransductive, **values: Any
) -> tuple[Tensor, dict[str, Tensor], HeterogeneousObjective, TransductiveBatch]:
    e = resolve("herocon", DATA, {"batch_size": 64, **values})
    objective = build_objective(e, data).train()
    assert isinstance(objective, HeterogeneousObjective)
    batch = next(transductive_feed(e, data).epoch(1))
    loss, metrics = objective.step(batch)
    return loss, metrics, objective, batch


def _features(objective: HeterogeneousObjective, objects: MultiView) -> list[Tensor]:
    """Of one kind of objects: batch norm takes its statistics from them alone."""
    return objective.encoder.by_view([view.float() / 255 for view in objects.views])


def _embedded(objective: HeterogeneousObjective, batch: TransductiveBatch) -> Tensor:
    """Of both views of all objects, each kind by itself."""
    views = []
    for view, embed in enumerate(objective.embed.of_features):
        kinds = (batch.labelled, batch.unlabelled)
        views.append(torch.cat([embed(_features(objective, objects)[view]) for objects in kinds]))
    return torch.stack(views)


def _labels(batch: TransductiveBatch) -> Tensor:
    assert batch.labelled.labels is not None
    return batch.labelled.labels


def test_the_loss_is_classification_and_two_weighted_contrasts(digits: PreparedTransductive) -> None:
    loss, parts, objective, batch = _parts(digits, alpha=0.3, beta=0.6)
    expected = parts["classification"] + 0.3 * parts["between_views"] + 0.6 * parts["between_labels"]
    torch.testing.assert_close(loss.detach(), expected, atol=1e-5, rtol=1e-5)
    joined, labels = torch.cat(_features(objective, batch.labelled), dim=1), _labels(batch)
    supervised = HeroConSupervised()(joined, labels)
    torch.testing.assert_close(parts["between_labels"], supervised.detach(), atol=1e-4, rtol=1e-4)
    targets = functional.one_hot(labels, 10).float()
    classification = functional.binary_cross_entropy_with_logits(objective.classifier(joined), targets)
    torch.testing.assert_close(parts["classification"], classification.detach(), atol=1e-4, rtol=1e-4)


def test_data_with_several_labels_have_one_distance_in_every_batch(digits: PreparedTransductive) -> None:
    """Also in a batch whose objects all have one label: there Eq. 7 weighs negatives by 2, Eq. 6 by 1."""
    experiment = resolve("herocon", DATA, {"batch_size": 64})
    features, labels = (
        torch.randn(6, 5, generator=torch.Generator().manual_seed(0)),
        torch.eye(3).repeat(2, 1),
    )
    found = []
    for several in (False, True):
        of_kind = replace(digits, spec=replace(digits.spec, multi_label=several))
        contrast = _label_contrast(experiment, of_kind)
        assert contrast is not None
        found.append(contrast(features, labels).mean())
    expected = [HeroConSupervised(distance)(features, labels) for distance in ("indicator", "hamming")]
    torch.testing.assert_close(torch.stack(found), torch.stack(expected))
    assert found[0] != found[1]


def test_infonce_in_the_place_of_the_contrast_of_views(digits: PreparedTransductive) -> None:
    _, parts, objective, batch = _parts(digits, between_views="infonce", temperature=0.5, alpha=1.0)
    expected = InfoNCE(0.5, "all")(_embedded(objective, batch))
    torch.testing.assert_close(parts["between_views"], expected.detach(), atol=1e-4, rtol=1e-4)


def test_one_view_is_contrasted_with_a_map_of_its_input(digits: PreparedTransductive) -> None:
    """Eq. 4: the second embedding of an object is of the object itself."""
    (shape, _), held = digits.spec.views, digits.data
    one = replace(
        digits,
        spec=replace(digits.spec, views=(shape,)),
        data=replace(
            held,
            labelled=MultiView(held.labelled.views[:1], held.labelled.labels),
            unlabelled=MultiView(held.unlabelled.views[:1]),
        ),
    )
    loss, parts, objective, batch = _parts(one, between_views="infonce", temperature=0.5, alpha=1.0)
    of_features, of_input = objective.embed.of_features, objective.embed.of_input
    kinds = (batch.labelled, batch.unlabelled)
    features = torch.cat([of_features(*_features(objective, objects)) for objects in kinds])
    pictures = torch.cat([objects.views[0] for objects in kinds]).float() / 255
    views = torch.stack([features, of_input(pictures.flatten(1))])
    torch.testing.assert_close(
        parts["between_views"], InfoNCE(0.5, "all")(views).detach(), atol=1e-4, rtol=1e-4
    )
    assert objective.classifier.in_features == features.shape[1], "the classifier sees the one view"
    loss.backward()
    assert of_input.weight.grad.abs().sum() > 0


def test_supcon_in_the_place_of_the_contrast_of_labels(digits: PreparedTransductive) -> None:
    _, parts, objective, batch = _parts(digits, between_labels="supcon", label_temperature=0.5)
    labels = _labels(batch)
    joined = torch.cat(_features(objective, batch.labelled), dim=1)
    expected = SupCon(0.5)(joined[None], labels)
    torch.testing.assert_close(parts["between_labels"], expected.detach(), atol=1e-4, rtol=1e-4)
    # Of several labels, equal sets are one label; the fourth object shares one label with all others.
    sets = torch.tensor([[1.0, 1, 0], [0, 1, 1], [1, 1, 0], [0, 1, 0], [0, 1, 1]])
    expected = SupCon(0.5)(joined[None, :5], torch.tensor([0, 1, 0, 2, 1]))
    torch.testing.assert_close(objective.label_contrast(joined[:5], sets).mean(), expected)


def test_labelled_objects_are_normalised_by_themselves(digits: PreparedTransductive) -> None:
    """As in the released code: in one batch with the unlabelled ones they are overfitted."""
    _, parts, objective, batch = _parts(digits, between_labels="none", alpha=1.0)
    others = replace(batch, unlabelled=MultiView(tuple(view.flip(-1) for view in batch.unlabelled.views)))
    _, changed = objective.step(others)
    assert changed["classification"] == parts["classification"]
    assert changed["between_views"] != parts["between_views"]


def test_without_either_it_is_a_classifier(digits: PreparedTransductive) -> None:
    loss, parts, _, _ = _parts(digits, between_views="none", between_labels="none")
    assert parts["between_views"] == parts["between_labels"] == 0
    torch.testing.assert_close(loss.detach(), parts["classification"])


def test_every_part_learns(digits: PreparedTransductive) -> None:
    loss, _, objective, _ = _parts(digits, alpha=1.0, beta=1.0)
    loss.backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in objective.parameters())
    weight_nets = [name for name, _ in objective.named_parameters() if "weight_net" in name]
    assert weight_nets, "the learned weights of L_u are the objective's"


def test_each_seed_has_its_own_fold_and_no_test_label_is_seen() -> None:
    spec = dataset_spec(DATA)
    first, second = (
        prepare_data(resolve("herocon", DATA, {"seed": seed}), None, torch.device("cpu")) for seed in (0, 1)
    )
    assert isinstance(first, PreparedTransductive)
    assert isinstance(second, PreparedTransductive)
    assert not torch.equal(first.data.labelled.views[0], second.data.labelled.views[0])
    assert first.data.unlabelled.labels is None
    assert fold_and_part(resolve("herocon", DATA, {"seed": spec.folds + 2}), spec) == (2, 0)


def test_data_is_shared_by_seeds_with_the_same_fold() -> None:
    folds = dataset_spec(DATA).folds
    keys = [preparation_key(resolve("herocon", DATA, {"seed": seed})) for seed in (0, 1, folds)]
    assert keys[0] != keys[1]
    assert keys[0] == keys[2]


def test_the_test_objects_are_the_first_unlabelled_ones(digits: PreparedTransductive) -> None:
    test = digits.test_data(torch.zeros(5, dtype=torch.int64))
    assert len(test) == 5 < len(digits.data.unlabelled)
    for shown, whole in zip(test.views, digits.data.unlabelled.views, strict=True):
        assert torch.equal(shown, whole[:5])


def test_a_share_that_cannot_be_held_out_is_refused_before_the_run() -> None:
    with pytest.raises(InputError, match=r"0\.001 of the 100 labelled objects of .* holds out no object"):
        resolve("herocon", DATA, {"validation.fraction": 0.001})


def test_multi_label_scores_are_f1_at_the_threshold_and_auc() -> None:
    probabilities = torch.tensor([[0.9, 0.1], [0.45, 0.8], [0.2, 0.3]])
    objects = MultiView((probabilities,), torch.tensor([[1, 0], [1, 1], [0, 0]]))
    names = replace(dataset_spec(DATA), multi_label=True).measures(test=False)
    at_04 = label_scores(names, probabilities, objects, 0.4)
    assert at_04 == {"f1": pytest.approx(1.0), "auc": pytest.approx(1.0)}
    assert label_scores(names, probabilities, objects, 0.5)["f1"] < 1


def test_single_labels_are_scored_by_the_most_probable() -> None:
    probabilities = torch.tensor([[0.9, 0.1, 0.0], [0.4, 0.3, 0.3], [0.2, 0.3, 0.5], [0.1, 0.2, 0.7]])
    objects = MultiView((probabilities,), torch.tensor([0, 1, 2, 2]))
    scores = label_scores(dataset_spec(DATA).measures(test=True), probabilities, objects, 0.5)
    # F1: 2/3 of class 0, 0 of class 1, 1 of class 2, which has half of the objects.
    assert scores["accuracy"] == 0.75
    assert scores["f1"] == pytest.approx((2 / 3 + 0 + 2 * 1) / 4)
    # Of class 1, the one positive ties with one of three negatives and is above the others.
    assert scores["auc"] == pytest.approx((1 + 2.5 / 3 + 1) / 3)


def test_it_learns_what_few_labels_say() -> None:
    e = resolve("herocon", DATA, {"epochs": 12, "between_views": "none", "between_labels": "none"})
    data = prepare_data(e, None, torch.device("cpu"))
    records = list(pretrain(e, data=data))
    assert records[-1].metrics["train.classification"] < 0.5 * records[1].metrics["train.classification"]


def test_images_are_no_views_of_their_own() -> None:
    with pytest.raises(InputError, match=rf"herocon needs objects with views of their own.*{DATA}"):
        resolve("herocon", "digits")
    with pytest.raises(InputError, match="infonce needs images, which scene has not"):
        resolve("infonce", "scene")


def test_an_encoder_of_images_takes_no_vectors() -> None:
    with pytest.raises(
        InputError, match=r"encoder 'herocon-cnn' does not take the vectors of scene.*herocon-mlp"
    ):
        resolve("herocon", "scene", {"encoder.name": "herocon-cnn"})
