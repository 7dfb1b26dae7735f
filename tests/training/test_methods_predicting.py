"""BYOL, SimSiam and DINO: predictions, targets and where the gradient stops; and the momentum's way to 1."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.losses import BYOL, DINO, SimSiam, moved_centre
from contrasweep.models import build_encoder, feature_std, rising_momentum
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.byol import MomentumTargets
from contrasweep.tuning.methods.dino import SelfDistillation
from contrasweep.tuning.objectives.momentum import embed
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective
from contrasweep.tuning.objectives.predicted_views import PredictedViews
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective

SMALL = {"predictor_hidden": 6, "head.hidden": 20, "head.width": 10}
BATCH = Batch(torch.rand(2, 4, 3, 8, 8), torch.arange(4), torch.arange(4))


def _experiment(method: str, **values: Any) -> Experiment:
    return resolve(method, "colour-digits", {"epochs": 2, "batch_size": 24, **SMALL, **values})


def _started(method: str, data: PreparedData, **values: Any) -> tuple[PredictedViews, Batch]:
    e = _experiment(method, **values)
    objective = build_objective(e, data).train()
    assert isinstance(objective, PredictedViews)
    objective.on_epoch_start(1, lambda: torch.zeros(0))
    return objective, next(METHODS[method].feed(e, data).epoch(1))


def _predictions(objective: PredictedViews, views: Tensor) -> tuple[Tensor, Tensor]:
    """Embeddings and predictions of views; a copy, whose running statistics nobody else sees."""
    apart = copy.deepcopy(objective)
    embeddings = embed(apart.encoder, apart.head, views)
    return embeddings, apart.predictor(embeddings.flatten(0, 1)).view_as(embeddings)


def test_simsiam_predicts_its_own_embeddings(data: PreparedData) -> None:
    objective, batch = _started("simsiam", data)
    embeddings, predictions = _predictions(objective, batch.views)
    loss, metrics = objective.step(batch)
    torch.testing.assert_close(loss, SimSiam()(predictions, embeddings), atol=1e-5, rtol=1e-5)
    deviations = [feature_std(view) for view in embeddings.detach()]
    assert float(metrics["embedding_std"]) == pytest.approx(sum(deviations) / 2, abs=1e-5)
    assert metrics["dropped_fraction"] == 0


def test_byol_predicts_the_embeddings_of_the_copies(data: PreparedData) -> None:
    objective, batch = _started("byol", data)
    assert isinstance(objective, MomentumTargets)
    with torch.no_grad():
        for parameter in objective.target_encoder.parameters():
            parameter.add_(0.05)
    apart = copy.deepcopy(objective)
    targets = embed(apart.target_encoder, apart.target_head, batch.views)
    embeddings, predictions = _predictions(objective, batch.views)
    loss, _ = objective.step(batch)
    torch.testing.assert_close(loss, BYOL()(predictions, targets), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(loss, BYOL()(predictions, embeddings), atol=1e-3)


def test_simsiam_s_targets_have_no_gradient(data: PreparedData) -> None:
    """The gradient is that of fixed targets, and not that of moving ones."""
    objective, batch = _started("simsiam", data)
    weight = objective.encoder.body[0].weight

    def gradient(stopped: bool) -> Tensor:
        apart = copy.deepcopy(objective)
        z = embed(apart.encoder, apart.head, batch.views)
        p = apart.predictor(z.flatten(0, 1)).view_as(z)
        others = (z.detach() if stopped else z).flip(0)
        loss = -functional.cosine_similarity(p, others, dim=2).mean()
        (found,) = torch.autograd.grad(loss, apart.encoder.body[0].weight)
        return found

    objective.step(batch)[0].backward()
    torch.testing.assert_close(weight.grad, gradient(stopped=True), atol=1e-6, rtol=1e-4)
    assert (weight.grad - gradient(stopped=False)).norm() > 0.1 * weight.grad.norm()


def test_each_view_can_pass_by_itself(data: PreparedData) -> None:
    together, batch = _started("byol", data)
    apart, _ = _started("byol", data, **{"encoder.views": "apart"})
    apart.load_state_dict(together.state_dict())
    norms = [m for m in apart.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    assert apart.step(batch)[0] != together.step(batch)[0]
    assert {int(norm.num_batches_tracked) for norm in norms} == {2}


def test_the_copies_follow_ever_more_slowly(data: PreparedData) -> None:
    objective, batch = _started("byol", data, momentum_m=0.6)
    assert isinstance(objective, MomentumTargets)
    assert objective.steps == 2 * objective.steps_per_epoch == 2 * (len(data.train) // 24)
    pairs = [(objective.encoder, objective.target_encoder), (objective.head, objective.target_head)]
    for epoch in (1, 2):
        told = objective.on_epoch_start(epoch, lambda: torch.zeros(0))
        for step in range(2):
            done = (epoch - 1) * objective.steps_per_epoch + step
            share = 1 - 0.4 * (math.cos(math.pi * done / objective.steps) + 1) / 2
            if step == 0:
                assert told == {"momentum": pytest.approx(share)}
            objective.step(batch)[0].backward()
            with torch.no_grad():
                for parameter in objective.parameters():
                    if parameter.requires_grad:
                        parameter.add_(0.1)
            before = [copy.deepcopy(follower.state_dict()) for _, follower in pairs]
            objective.after_step()
            for (own, follower), state in zip(pairs, before, strict=True):
                for name, moved in own.named_parameters():
                    expected = share * state[f"module.{name}"] + (1 - share) * moved
                    torch.testing.assert_close(dict(follower.module.named_parameters())[name], expected)


def test_dino_s_student_sees_all_crops_and_its_teacher_the_views(data: PreparedData) -> None:
    crops = {"views.local_crops": 3, "views.local_size": 6, "views.local_min_crop": 0.1}
    e = resolve("dino", "colour-digits", {"epochs": 2, "batch_size": 24, "prototypes": 7, **crops})
    objective = build_objective(e, data).train()
    assert isinstance(objective, SelfDistillation)
    objective.centre.uniform_(-0.1, 0.1)
    with torch.no_grad():
        for parameter in objective.teacher_encoder.parameters():
            parameter.add_(0.05)
    batch = next(METHODS["dino"].feed(e, data).epoch(1))
    apart = copy.deepcopy(objective)
    teacher, student = apart.teacher(batch.views), apart.student(batch.views, batch.local)
    assert (student.shape, teacher.shape) == ((5, 24, 7), (2, 24, 7))
    assert student.detach().abs().max() <= 1 + 1e-6
    objective.on_epoch_start(1, lambda: torch.zeros(0))
    assert not objective.outputs.weight.requires_grad
    loss, metrics = objective.step(batch)
    expected = DINO(0.1, 0.04)(student, teacher, objective.centre)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    mean = ((teacher - objective.centre) / 0.04).softmax(2).flatten(0, 1).mean(0)
    entropy = -(mean * mean.log()).sum() / math.log(7)
    torch.testing.assert_close(metrics["teacher_entropy"], entropy, atol=1e-5, rtol=1e-5)
    loss.backward()
    before = [
        copy.deepcopy(one) for one in (objective.centre, dict(objective.teacher_head.named_parameters()))
    ]
    with torch.no_grad():
        for parameter in (*objective.head.parameters(), objective.outputs.weight):
            parameter.add_(0.1)
    objective.after_step()
    outputs = objective.outputs.weight
    torch.testing.assert_close(objective.teacher_outputs.module.weight, outputs - 0.95 * 0.1)
    torch.testing.assert_close(objective.centre, moved_centre(before[0], teacher, 0.9))
    for name, moved in objective.head.named_parameters():
        follower = dict(objective.teacher_head.named_parameters())[f"module.{name}"]
        torch.testing.assert_close(follower, 0.95 * before[1][f"module.{name}"] + 0.05 * moved)
    objective.on_epoch_start(2, lambda: torch.zeros(0))
    assert objective.outputs.weight.requires_grad


def test_dino_s_workers_exchange_losses_of_images_and_no_outputs_of_the_student(data: PreparedData) -> None:
    objective = build_objective(resolve("dino", "colour-digits", {"prototypes": 7}), data).train()
    learned: list[tuple[int, ...]] = []

    def gather(tensor: Tensor, dim: int) -> Tensor:
        assert tensor.shape[dim] == 4
        if tensor.requires_grad:
            learned.append(tuple(tensor.shape))
        return tensor

    objective.step(BATCH, gather)
    assert learned == [(2, 4)]


def test_the_momentum_rises_from_its_start_to_one() -> None:
    shares = [rising_momentum(0.9, step, 10) for step in range(11)]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(0.9)
    assert shares[5] == pytest.approx(0.95)
    assert shares[10] == 1


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        ("simsiam", {"predictor_hidden": 0}, "predictor_hidden must be at least 1, given 0"),
        ("byol", {"momentum_m": 1.1}, "momentum_m must be at most 1, given 1.1"),
        ("barlow-twins", {"lam": -1.0}, "lam must be at least 0, given -1"),
        ("dino", {"teacher_temperature": 0.0}, "teacher_temperature must be above 0, given 0"),
        ("dino", {"prototypes": 1}, "prototypes must be at least 2, given 1"),
        ("vicreg", {"form": "code"}, "unknown value of form: 'code'"),
    ],
)
def test_settings_out_of_bounds_are_refused(method: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve(method, "digits", values)


class OwnObjective(Objective):
    """An objective that reports nothing, as a plug-in's may."""

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        return self.encoder(batch.views[0]).square().mean(), {}


def test_an_objective_that_says_nothing_of_anchors_drops_none() -> None:
    _, metrics = OwnObjective(build_encoder("small-conv", 3, 8)).step(BATCH)
    assert metrics == {"dropped_fraction": torch.zeros(())}
