"""The average of a run's weights against its rule written out, and what reads it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from contrasweep.models import MomentumCopy
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.averaging import WeightAverage
from contrasweep.tuning.training.pretrain import pretrain

Make = Callable[..., Experiment]


def _weights(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def test_the_average_follows_its_rule() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    average = WeightAverage(module, 0.3)
    average.swap()
    by_hand = _weights(module)
    for step in range(1, 8):
        module(torch.randn(5, 3))
        with torch.no_grad():
            for weight in module.parameters():
                weight.add_(torch.randn_like(weight))
        average.follow(step)
        decay = min(0.3, (1 + step) / (10 + step))
        for name, weight in module.state_dict().items():
            if weight.is_floating_point():
                by_hand[name] = decay * by_hand[name] + (1 - decay) * weight
    trained = _weights(module)
    average.swap()
    for name, weight in module.state_dict().items():
        expected = by_hand[name] if weight.is_floating_point() else trained[name]
        torch.testing.assert_close(weight, expected)
    average.swap()
    assert all(torch.equal(weight, trained[name]) for name, weight in module.state_dict().items())


def test_slow_copies_and_their_statistics_stay_those_of_the_training() -> None:
    learning = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    module = nn.ModuleDict({"network": learning, "copy": MomentumCopy(learning)})
    held = WeightAverage(module, 0.9).state_dict()
    assert {name.partition(".")[0] for name in held} == {"network"}
    assert "network.1.running_var" in held


def _last(e: Experiment, data: PreparedData) -> Any:
    *_, last = pretrain(e, data=data)
    return last


def test_what_is_scored_and_kept_is_the_average(experiment: Make, data: PreparedData) -> None:
    plain, averaged = (_last(experiment("infonce", {"optimizer.ema": d}), data) for d in (0.0, 0.9))
    # Training itself is the same: only what is evaluated differs.
    assert averaged.metrics["train.loss"] == plain.metrics["train.loss"]
    trained = plain.objective.state_dict()
    shown = averaged.objective.state_dict()
    assert not torch.equal(shown["encoder.body.0.weight"], trained["encoder.body.0.weight"])
    held = averaged._run.average.state_dict()
    assert all(torch.equal(value, trained[name]) for name, value in held.items())
    assert averaged.metrics["val.ridge_colour_mse"] != plain.metrics["val.ridge_colour_mse"]


def test_its_steps_are_counted_from_one_over_the_whole_run(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    monkeypatch.setattr(WeightAverage, "follow", lambda _, step: steps.append(step))
    e = experiment("infonce", {"optimizer.ema": 0.9, "epochs": 2})
    begun, *_ = [record.checkpoint() for record in pretrain(e, data=data) if record.epoch == 1]
    assert steps == list(range(1, len(steps) + 1))
    whole = steps.copy()
    steps.clear()
    list(pretrain(e, begun, data=data))
    assert steps == whole[len(whole) // 2 :]


def test_an_average_with_a_small_decay_is_nearly_the_weights(experiment: Make, data: PreparedData) -> None:
    last = _last(experiment("infonce", {"optimizer.ema": 1e-6}), data)
    shown, held = last.objective.state_dict(), last._run.average.state_dict()
    for name, value in held.items():
        torch.testing.assert_close(shown[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("clip", [1e-3, 1e6])
def test_a_clipped_gradient_moves_the_weights_less(clip: float, experiment: Make, data: PreparedData) -> None:
    settings = {"optimizer.momentum": 0.0, "optimizer.weight_decay": 0.0, "epochs": 1}
    e = experiment("infonce", settings)
    records = pretrain(e.with_values({"optimizer.clip_norm": clip}), data=data)
    start = {n: p.detach().clone() for n, p in next(records).objective.named_parameters()}
    moved = [p.detach() - start[n] for n, p in next(records).objective.named_parameters()]
    length = float(torch.stack([move.norm() for move in moved]).norm())
    plain = pretrain(e, data=data)
    assert next(plain).epoch == 0
    end = [p.detach() - start[n] for n, p in next(plain).objective.named_parameters()]
    # Three steps with gradients no longer than `clip`, at a rate of at most 0.05.
    if clip < 1:
        assert length <= 3 * 0.05 * clip * 1.001
    else:
        assert all(torch.equal(move, other) for move, other in zip(moved, end, strict=True))


def test_a_loaded_average_is_that_of_the_same_weights() -> None:
    stored = WeightAverage(nn.Linear(3, 2), 0.9).state_dict()
    average = WeightAverage(nn.Linear(3, 2), 0.9)
    average.load_state_dict(stored)
    assert all(torch.equal(value, stored[name]) for name, value in average.state_dict().items())
    with pytest.raises(ValueError, match="other weights"):
        average.load_state_dict({"weight": stored["weight"]})
    with pytest.raises(ValueError, match="the average of weight has another shape"):
        average.load_state_dict({**stored, "weight": torch.zeros(2, 4)})
