"""CACR: its number of views, its loss, its metrics, and its keys with a momentum encoder."""

import math
from typing import Any

import pytest
import torch
from first_batch import started
from torch import Tensor

from contrasweep.losses import CACR
from contrasweep.search_spaces import method_space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.momentum import MomentumObjective, embed
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve

DATA = "colour-digits"


def _experiment(method: str = "cacr", **values: Any) -> Experiment:
    return resolve(method, DATA, {"epochs": 1, "batch_size": 24, **values})


def _embeddings(objective: Objective, batch: Batch) -> Tensor:
    return embed(objective.encoder, objective.head, batch.views)


@pytest.mark.parametrize("method", ["cacr", "cacr-moco"])
@pytest.mark.parametrize("positives", [1, 3])
def test_an_image_has_a_view_more_than_positives(method: str, positives: int, data: PreparedData) -> None:
    e = _experiment(method, positives=positives)
    batch = next(METHODS[method].feed(e, data).epoch(1))
    assert batch.views.shape[:2] == (positives + 1, 24)
    assert len({tuple(view[0].flatten().tolist()) for view in batch.views}) == positives + 1


@pytest.mark.parametrize(
    ("values", "loss"),
    [
        ({}, CACR(1.0, 2.0)),
        ({"t_pos": 0.7, "t_neg": 2.9, "negatives": "same"}, CACR(0.7, 2.9, "same")),
        ({"attraction": "off"}, CACR(1.0, 2.0, attraction=False)),
        ({"repulsion": "off"}, CACR(1.0, repulsion=False)),
        ({"cost": "rbf", "precision": 1.5}, CACR(1.0, 2.0, cost="rbf", precision=1.5)),
    ],
    ids=["default", "scales", "uniform attraction", "uniform repulsion", "rbf"],
)
def test_every_setting_reaches_the_loss(values: dict[str, Any], loss: CACR, data: PreparedData) -> None:
    objective, batch = started(_experiment(positives=2, **values), data)
    found, metrics = objective.step(batch)
    views = _embeddings(objective, batch)
    torch.testing.assert_close(found, loss(views), atol=1e-5, rtol=1e-5)
    expected = loss.repulsion_entropy(views)
    torch.testing.assert_close(metrics["repulsion_entropy"], expected, atol=1e-5, rtol=1e-5)
    assert not metrics["repulsion_entropy"].requires_grad
    assert metrics["repulsion_entropy"].item() <= math.log(23) + 1e-5
    assert metrics["dropped_fraction"].item() == 0


def test_detached_weights_change_the_gradient_and_not_the_loss(data: PreparedData) -> None:
    values, gradients = [], []
    for switch in ("off", "on"):
        e = _experiment(positives=2, t_pos=3.0, detach_positive_weights=switch)
        objective, batch = started(e, data)
        loss, _ = objective.step(batch)
        loss.backward()
        values.append(loss.item())
        gradients.append(objective.encoder.body[0].weight.grad)
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert (gradients[0] - gradients[1]).norm() > 1e-3 * gradients[0].norm()


def test_what_has_no_effect_is_refused() -> None:
    for values, name in (
        ({"attraction": "off", "t_pos": 2.0}, "t_pos"),
        ({"repulsion": "off", "t_neg": 2.0}, "t_neg"),
        ({"precision": 2.0}, "precision"),
    ):
        with pytest.raises(InputError, match=f"{name} has no effect"):
            _experiment(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"positives": 0}, "positives must be at least 1, given 0"),
        ({"t_neg": 0.0}, "t_neg must be above 0, given 0"),
        ({"negatives": "crss"}, r"value of negatives.*cross"),
        ({"attraction": "of"}, r"value of attraction.*off, on"),
    ],
)
def test_a_bad_value_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _experiment(**values)


def test_switches_are_words_in_the_space_file() -> None:
    assert method_space("cacr").defaults()["attraction"] == "on"
    assert method_space("cacr-moco").defaults()["detach_positive_weights"] == "on"


def test_with_momentum_all_views_meet_all_keys_and_the_queue(data: PreparedData) -> None:
    e = _experiment("cacr-moco", positives=2, queue=40)
    objective, batch = started(e, data)
    assert isinstance(objective, MomentumObjective)
    with torch.no_grad():  # keys that are no longer the queries
        for parameter in objective.key_encoder.parameters():
            parameter.add_(0.05)
    queue = objective.queue.keys.clone()
    loss, metrics = objective.step(batch)
    views = _embeddings(objective, batch)
    keys = embed(objective.key_encoder, objective.key_head, batch.views)
    cacr = CACR(1.0, 2.0, "same", detach_positive_weights=True)
    torch.testing.assert_close(loss, cacr(views, queue, keys), atol=1e-5, rtol=1e-5)
    entropy = cacr.repulsion_entropy(views, queue)
    torch.testing.assert_close(metrics["repulsion_entropy"], entropy, atol=1e-5, rtol=1e-5)
    objective.after_step()
    assert objective.queue.filled.item() == 24
    last = torch.nn.functional.normalize(keys[-1], dim=1)
    torch.testing.assert_close(objective.queue.keys[:24], last, atol=1e-5, rtol=1e-5)
    assert torch.equal(objective.queue.keys[24:], queue[24:])
