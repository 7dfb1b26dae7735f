"""A run that cannot go on raises an error that explains why."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from contrasweep.losses.terms import LossTerms
from contrasweep.tuning.errors import TrainingDiverged, WrongReturn
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.method import Method, with_projection_head
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.pretrain import pretrain

Make = Callable[..., Experiment]


def test_an_absurd_rate_is_named_with_its_step_and_settings(experiment: Make, data: PreparedData) -> None:
    e = experiment("fair-cclk", {"optimizer.lr": 1e30, "lam": 0.25, "kernel": "rbf"})
    with pytest.raises(TrainingDiverged) as diverged:
        list(pretrain(e, data=data))
    message = str(diverged.value)
    for part in ("loss nan", "epoch 1", "step 1", "fair-cclk", "'optimizer.lr': 1e+30", "'lam': 0.25", "rbf"):
        assert part in message


def test_weights_that_overflow_in_the_last_step_of_an_epoch_are_divergence_too(
    experiment: Make, data: PreparedData
) -> None:
    # One step in an epoch: its loss is still finite, and the probe is the first to use the broken encoder.
    e = experiment("infonce", {"optimizer.lr": 1e30, "batch_size": 96})
    with pytest.raises(TrainingDiverged, match=r"epoch 1.*infonce.*1e\+30"):
        list(pretrain(e, data=data))


def _faulty(loss: Callable[[Tensor], LossTerms | Tensor]) -> Method:
    """InfoNCE with another loss: terms, or a scalar, of the embeddings `(V, B, D)`."""
    return replace(
        METHODS["infonce"],
        build=lambda e, encoder, _: with_projection_head(e, encoder, lambda views, _: loss(views)),
    )


def _per_anchor(views: Tensor) -> tuple[Tensor, Tensor]:
    values = views.square().sum(dim=2).flatten()
    return values, torch.ones(len(values), dtype=torch.bool)


def _run_with(method: Method, e: Experiment, data: PreparedData, patch: pytest.MonkeyPatch) -> list[int]:
    patch.setattr("contrasweep.tuning.training.pretrain.METHODS", {"infonce": method})
    return [record.epoch for record in pretrain(e, data=data)]


def test_an_epoch_without_an_anchor_is_an_error_and_a_batch_is_none(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def some(views: Tensor, empty: Callable[[int], bool]) -> LossTerms:
        calls.append(1)
        values, valid = _per_anchor(views)
        return LossTerms(values, valid & (not empty(len(calls))))

    one = _faulty(lambda views: some(views, lambda step: step == 5))
    assert _run_with(one, experiment("infonce"), data, monkeypatch)[-1] == experiment("infonce").epochs
    calls.clear()
    last = _faulty(lambda views: some(views, lambda step: step >= 4))
    with pytest.raises(TrainingDiverged) as diverged:
        _run_with(last, experiment("infonce"), data, monkeypatch)
    message = str(diverged.value)
    for part in ("no anchor", "epoch 2", "infonce", "'temperature': 0.1", "batches of 32 images"):
        assert part in message


def test_a_batch_with_one_anchor_left_is_none(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_left(views: Tensor) -> LossTerms:
        values, valid = _per_anchor(views)
        return LossTerms(values, valid & (torch.arange(len(values)) == 3))

    assert _run_with(_faulty(one_left), experiment("infonce"), data, monkeypatch) == [0, 1, 2]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_first_step_whose_loss_is_not_finite_is_named(
    value: float, experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def breaks_at_the_second_step(views: Tensor) -> LossTerms:
        calls.append(1)
        values, valid = _per_anchor(views)
        return LossTerms(values + (value if len(calls) == 2 else 0.0), valid)

    with pytest.raises(TrainingDiverged, match=f"loss {value} at epoch 1, step 1: infonce"):
        _run_with(_faulty(breaks_at_the_second_step), experiment("infonce"), data, monkeypatch)


@pytest.mark.parametrize(
    "detached", [lambda views: views.detach().square(), lambda views: views.new_zeros(3)]
)
def test_a_loss_without_a_gradient_is_named_with_its_step(
    detached: Callable[[Tensor], Tensor],
    experiment: Make,
    data: PreparedData,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(WrongReturn, match="the loss of infonce has no gradient at epoch 1, step 0"):
        _run_with(_faulty(lambda views: detached(views).mean()), experiment("infonce"), data, monkeypatch)


def test_a_loss_that_is_constant_may_have_a_gradient_of_zero(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    constant = _faulty(lambda views: 0 * views.sum() + 1)
    assert _run_with(constant, experiment("infonce"), data, monkeypatch) == [0, 1, 2]


def test_the_literal_weights_report_the_anchors_they_drop(experiment: Make, data: PreparedData) -> None:
    # A linear kernel of colours that all point the same way makes no M_i negative; centred ones do.
    assert data.train.condition is not None
    train = replace(data.train, condition=data.train.condition - 127.5)
    e = experiment("fair-cclk", {"weights": "paper", "kernel": "linear", "sigma2": 1e4, "lam": 0.01})
    dropped = [
        r.metrics["train.dropped_fraction"] for r in pretrain(e, data=replace(data, train=train)) if r.epoch
    ]
    assert all(0 < share < 1 for share in dropped)
