"""DeepMTMV: the affinities of tasks as released, how groups are chosen, and how the head parts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import MultiView
from contrasweep.models.branching import BranchingHead
from contrasweep.tuning.methods.deepmtmv import GroupedTasks
from contrasweep.tuning.objectives.batches import transductive_feed
from contrasweep.tuning.objectives.prepared import PreparedTransductive, TransductiveBatch
from contrasweep.tuning.objectives.task_groups import (
    TaskAffinity,
    best_partition,
    branch_affinity,
    partition_cost,
)
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective

DATA = "two-view-digits"
RELEASED = Path(__file__).parents[1] / "golden" / "released-deepmtmv-affinity.npz"
BLOCKS = torch.tensor(
    [[1.0, 0.9, 0.2, 0.1], [0.9, 1.0, 0.1, 0.2], [0.2, 0.1, 1.0, 0.8], [0.1, 0.2, 0.8, 1.0]]
)


def test_affinities_are_those_of_the_released_code() -> None:
    with np.load(RELEASED) as archive:
        scores, labels, expected = (torch.as_tensor(archive[n]) for n in ("scores", "labels", "expected"))
    affinity = TaskAffinity(4).double()
    for of_batch, classes in zip(scores, labels, strict=True):
        affinity.update(of_batch, functional.one_hot(classes, 4))
    # The released code keeps its averages in float32.
    torch.testing.assert_close(affinity.matrix(), expected.double(), rtol=1e-6, atol=1e-6)


def test_a_grouping_costs_its_columns_and_the_unlike_tasks_in_a_group() -> None:
    together, apart = torch.tensor([0, 0, 0, 0]), torch.tensor([0, 0, 1, 1])
    assert partition_cost(BLOCKS, together, 3, separation=2.0) == pytest.approx(2.0 * (1 - 0.1))
    expected = 0.5 / 8 + 2.0 * ((1 - 0.9) + (1 - 0.8)) / 2
    assert partition_cost(BLOCKS, apart, 3, separation=2.0) == pytest.approx(expected)


def test_alike_tasks_come_together_and_dear_columns_keep_all_together() -> None:
    groups = best_partition(BLOCKS, 3, 0, separation=0.3).tolist()
    assert groups in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert best_partition(BLOCKS, 3, 0, separation=0.01).tolist() == [0, 0, 0, 0]
    assert best_partition(torch.ones(1, 1), 3, 0, separation=2.0).tolist() == [0]


def test_branches_are_as_alike_as_their_least_alike_tasks() -> None:
    found = branch_affinity(BLOCKS, torch.tensor([0, 0, 1, 1]))
    torch.testing.assert_close(found, torch.tensor([[0.9, 0.1], [0.1, 0.8]]))


def test_tasks_share_a_column_until_they_part() -> None:
    torch.manual_seed(0)
    head, features = BranchingHead(8, 3), torch.randn(5, 8)
    before = head(features)
    shared = head.third(head.second[0](head.first[0](features)))
    torch.testing.assert_close(before, shared)
    head.part(1, torch.tensor([0, 1, 1]))
    after = head(features)
    torch.testing.assert_close(after[:, 0], before[:, 0])
    own = head.third(head.second[1](head.first[0](features)))
    torch.testing.assert_close(after[:, 1:], own[:, 1:])
    head.part(0, torch.tensor([0, 1, 1]))
    own = head.third(head.second[1](head.first[1](features)))
    torch.testing.assert_close(head(features)[:, 1:], own[:, 1:])
    head(features).sum().backward()
    assert head.first[2].weight.grad is None
    restored = BranchingHead(8, 3)
    restored.load_state_dict(head.state_dict())
    assert torch.equal(restored(features), head(features))


def test_a_parting_that_is_no_tree_is_refused() -> None:
    head = BranchingHead(8, 3)
    head.part(1, torch.tensor([0, 1, 1]))
    with pytest.raises(ValueError, match=r"share a column above must be together, got \[0, 0, 1\]"):
        head.part(0, torch.tensor([0, 0, 1]))
    with pytest.raises(ValueError, match=r"one number of 0..k-1 a task, got \[0, 2, 2\]"):
        head.part(1, torch.tensor([0, 2, 2]))


def _started(data: PreparedTransductive, **values: Any) -> tuple[GroupedTasks, TransductiveBatch]:
    e = resolve("deepmtmv", DATA, {"batch_size": 64, "epochs": 9, **values})
    objective = build_objective(e, data).train()
    assert isinstance(objective, GroupedTasks)
    return objective, next(transductive_feed(e, data).epoch(1))


def _no_embeddings() -> Tensor:
    raise AssertionError("no epoch of this method reads embeddings")


def test_the_second_layer_parts_after_its_epochs_and_then_the_first(digits: PreparedTransductive) -> None:
    objective, batch = _started(digits, every=2, separation=8.0)
    groups = []
    for epoch in range(1, 6):
        groups.append(objective.on_epoch_start(epoch, _no_embeddings)["task_groups"])
        objective.step(batch)
    assert groups[:2] == [1, 1]
    assert groups[2] == groups[4] > 1
    first, second = objective.branches.columns
    assert 1 < len(first.unique()) < len(second.unique())


def test_dropout_is_of_the_step_and_of_training_alone(digits: PreparedTransductive) -> None:
    objective, batch = _started(digits)
    one = objective.step(batch)[0]
    assert torch.equal(one, objective.step(batch)[0])
    objective.after_step()
    assert not torch.equal(one, objective.step(batch)[0])
    objective.on_epoch_start(1, _no_embeddings)
    assert torch.equal(one, objective.step(batch)[0])
    # What is kept grows, so that the sum stays as it is in predictions.
    assert objective.draws.kept(torch.ones(50), 0.25).unique().tolist() == [0, 4]
    views = batch.labelled.views
    assert torch.equal(objective.predict(views), objective.predict(views))


def test_each_view_weighs_alike(digits: PreparedTransductive) -> None:
    objective, batch = _started(digits, separation=3.0)
    assert objective.separation == 1.5
    read: list[Tensor] = []
    objective.branches.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    objective.predict(batch.labelled.views)
    for own in read[0].tensor_split(2, dim=1):
        torch.testing.assert_close(own.norm(dim=1), torch.ones(len(own)))


def test_unlabelled_objects_are_not_read(digits: PreparedTransductive) -> None:
    objective, batch = _started(digits)
    other = replace(batch, unlabelled=MultiView(tuple(view.flip(-1) for view in batch.unlabelled.views)))
    assert torch.equal(objective.step(batch)[0], objective.step(other)[0])
