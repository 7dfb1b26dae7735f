"""IDFD and WCL, and Cl-InfoNCE with a second head: which embeddings their losses see, and IDFD's memory."""

from typing import Any

import pytest
import torch
from first_batch import started
from torch import Tensor
from torch.nn.functional import normalize

from contrasweep.losses import WCL, ClInfoNCE, FeatureDecorrelation, InfoNCE, InstanceDiscrimination
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.cl_infonce import ClusterContrast
from contrasweep.tuning.methods.idfd import MemoryDiscrimination
from contrasweep.tuning.objectives.objective import ContrastiveObjective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective, pretrain


def _experiment(method: str, **values: Any) -> Experiment:
    return resolve(method, "colour-digits", {"epochs": 1, "batch_size": 24, **values})


def test_idfd_tells_an_image_apart_from_the_memory_of_all(data: PreparedData) -> None:
    e = _experiment("idfd", temperature=0.4, feature_temperature=1.5, weight=0.3)
    objective, batch = started(e, data)
    assert isinstance(objective, MemoryDiscrimination)
    assert batch.views.shape[0] == 1
    assert objective.memory.rows.shape == (len(data.train), 128)
    loss, metrics = objective.step(batch)
    embeddings = objective.head(objective.encoder(batch.views[0]))
    apart = InstanceDiscrimination(0.4)(embeddings, objective.memory.rows, batch.index)
    correlated = FeatureDecorrelation(1.5)(embeddings)
    torch.testing.assert_close(loss, apart + 0.3 * correlated, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["decorrelation"], correlated.detach(), atol=1e-5, rtol=1e-5)


def test_idfd_s_memory_follows_the_images_of_a_step_alone(data: PreparedData) -> None:
    objective, batch = started(_experiment("idfd", memory_m=0.25), data)
    assert isinstance(objective, MemoryDiscrimination)
    before = objective.memory.rows.clone()
    torch.testing.assert_close(before.norm(dim=1), torch.ones(len(data.train)))
    objective.step(batch)
    assert torch.equal(objective.memory.rows, before), "the loss uses the memory as it was"
    with torch.no_grad():
        seen = normalize(objective.head(objective.encoder(batch.views[0])), dim=1)
    objective.after_step()
    expected = before.clone()
    expected[batch.index] = normalize(0.25 * before[batch.index] + 0.75 * seen, dim=1)
    torch.testing.assert_close(objective.memory.rows, expected, atol=1e-5, rtol=1e-5)


def test_what_idfd_clusters_is_the_head_s_output(data: PreparedData) -> None:
    objective = build_objective(_experiment("idfd"), data)
    assert isinstance(objective, MemoryDiscrimination)
    images = data.train.pixels[:8].float() / 255
    objective.eval()
    expected = normalize(objective.head(objective.encoder(images)), dim=1)
    torch.testing.assert_close(objective.embed_images(images), expected.detach())


def _two_heads(objective: ContrastiveObjective, views: Tensor) -> tuple[Tensor, Tensor]:
    """Return the embeddings of both heads for the same features."""
    assert objective.second is not None
    features = objective.encoder(views.flatten(0, 1))
    first, second = (
        head(features).view(2, views.shape[1], -1) for head in (objective.head, objective.second.head)
    )
    assert not torch.equal(first, second)
    return first, second


@pytest.mark.parametrize("form", ["paper", "released"])
def test_wcl_has_a_head_for_images_and_one_for_weak_labels(form: str, data: PreparedData) -> None:
    objective, batch = started(_experiment("wcl", temperature=0.2, weight=0.7, form=form), data)
    assert isinstance(objective, ContrastiveObjective)
    assert objective.second is not None
    loss, metrics = objective.step(batch)
    first, second = _two_heads(objective, batch.views)
    weak = WCL(0.2, form)(second)
    expected = InfoNCE(0.2, "all")(first) + 0.7 * weak
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["second_loss"], weak.detach(), atol=1e-5, rtol=1e-5)
    (last,) = [p for n, p in objective.second.named_parameters() if p.shape == (128, 64)]
    ours, theirs = (torch.autograd.grad(value, last)[0] for value in (loss, expected))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-3)


def test_cl_infonce_s_second_head_tells_images_apart(data: PreparedData) -> None:
    e = _experiment("cl-infonce-instances", temperature=0.2, weight=0.7, clusters=5)
    objective, batch = started(e, data)
    assert isinstance(objective, ClusterContrast)
    objective.on_epoch_start(1, lambda: torch.rand(len(data.train), 4))
    loss, metrics = objective.step(batch)
    first, second = _two_heads(objective, batch.views)
    instances = InfoNCE(0.2, "all")(second)
    clustered = ClInfoNCE(0.2)(first, objective.clusters.of(batch.index))
    torch.testing.assert_close(loss, clustered + 0.7 * instances, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["second_loss"], instances.detach(), atol=1e-5, rtol=1e-5)


def test_without_weight_the_second_head_changes_nothing(data: PreparedData) -> None:
    """Both heads start as the seed has it, the first one as in Cl-InfoNCE."""
    values = {"temperature": 0.2, "clusters": 5, "kmeans_starts": 1}
    runs = [_experiment("cl-infonce", **values), _experiment("cl-infonce-instances", weight=0.0, **values)]
    *_, first = pretrain(runs[0], data=data)
    *_, second = pretrain(runs[1], data=data)
    assert first.metrics["train.loss"] == second.metrics["train.loss"]
    assert first.metrics["val.accuracy"] == second.metrics["val.accuracy"]
