"""What the code of a method returns wrongly is told with the method's name, before anything is recorded."""

import logging
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from contrasweep.losses import LossTerms
from contrasweep.models import NonFiniteFeatures
from contrasweep.tuning.errors import NotRepeatable, TrainingDiverged, WrongReturn
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.from_loss import LossOfBatch
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.evaluation import read_own_classifier
from contrasweep.tuning.training.pretrain import pretrain

Make = Callable[..., Experiment]


class Mean(Objective):
    """A loss of the features; `metrics` are what it reports beside it, `begun` what an epoch begins with."""

    def __init__(self, encoder: Any, metrics: Any, begun: Any) -> None:
        super().__init__(encoder)
        self.metrics, self.begun = metrics, begun

    def compute(self, batch: Any, gather: Any) -> Any:
        loss = gather(self._encode(batch.views), 1).square().mean()
        return self.metrics(loss) if callable(self.metrics) else (loss, self.metrics)

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> Any:
        return self.begun


Train = Callable[..., list[dict[str, float]]]


@pytest.fixture
def train(experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Train a method that reports `metrics`, and return the metrics of its epochs."""

    def run(metrics: Any, begun: Any = None, **changes: Any) -> list[dict[str, float]]:
        build = changes.pop("build", lambda e, encoder, _: Mean(encoder, metrics, begun or {}))
        method = replace(METHODS["infonce"], build=build, **{"train_metrics": ("spread",), **changes})
        monkeypatch.setattr("contrasweep.tuning.training.pretrain.METHODS", {"infonce": method})
        return [record.metrics for record in pretrain(experiment("infonce"), data=data)]

    return run


def test_what_a_method_declares_is_recorded(train: Train) -> None:
    found = train({"spread": torch.tensor(2.0)})
    assert found[-1]["train.spread"] == 2
    assert train({}, {"spread": np.float32(3)})[-1]["train.spread"] == 3


SCALAR = torch.tensor(1.0)


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"spread": 1.0}, "the metric spread of infonce must be a tensor with one number .*, is float"),
        ({"spread": torch.ones(3)}, r"the metric spread of infonce .*, is Tensor of shape \(3,\)"),
        (
            {"other": SCALAR},
            "infonce reports the metric other: its train_metrics do not name it .they name spread",
        ),
        ({"loss": SCALAR}, "reports the metric loss: every run reports another metric of this name"),
        ({"lr": SCALAR}, "reports the metric lr"),
        (
            lambda loss: loss,
            "compute of Mean must return the loss, a tensor, and a dict of metrics, returned Tensor",
        ),
        (lambda loss: (float(loss), {}), "returned a tuple of float, dict"),
        (lambda loss: (loss.repeat(2), {}), r"the loss of infonce must be .* is Tensor of shape \(2,\)"),
        (lambda loss: None, "returned NoneType"),
    ],
)
def test_a_step_that_returns_something_else_is_told(train: Train, metrics: Any, told: str) -> None:
    with pytest.raises(WrongReturn, match=told):
        train(metrics)


@pytest.mark.parametrize(
    ("begun", "told"),
    [
        ([1.0], "on_epoch_start of infonce must return its metrics by name, returned list"),
        ({"spread": "wide"}, "the metric spread of infonce must be a number, is str"),
        ({"spread": torch.ones(2)}, "the metric spread of infonce must be a number, is Tensor"),
        ({"loss": 1.0}, "reports the metric loss"),
    ],
)
def test_an_epoch_that_begins_with_something_else_is_told(train: Train, begun: Any, told: str) -> None:
    with pytest.raises(WrongReturn, match=told):
        train({}, begun)


def test_a_method_that_builds_no_objective_is_told(train: Train) -> None:
    with pytest.raises(WrongReturn, match="build of infonce must return an Objective, returned NoneType"):
        train({}, build=lambda e, encoder, _: None)


class Growing(Mean):
    """A queue that begins without a shape, as if that were known in training alone."""

    def __init__(self, encoder: Any, first: Tensor | None) -> None:
        super().__init__(encoder, {}, {})
        self.register_buffer("queue", first)

    def compute(self, batch: Any, gather: Any) -> Any:
        self.queue = torch.zeros(8, 2)
        return super().compute(batch, gather)


@pytest.mark.parametrize(
    ("first", "told"), [(None, "queue is absent and"), (torch.zeros(0, 2), r"queue is of shape \(0, 2\) and")]
)
def test_a_buffer_that_appears_or_grows_is_told(train: Train, first: Tensor | None, told: str) -> None:
    with pytest.raises(WrongReturn, match=rf"infonce: {told} of shape \(8, 2\) before and after an epoch"):
        train({}, build=lambda e, encoder, _: Growing(encoder, first))


def test_a_constant_buffer_may_hold_infinities_and_a_weight_may_not(train: Train) -> None:
    class Masked(Mean):
        def __init__(self, encoder: Any, breaks: bool) -> None:
            super().__init__(encoder, {}, {})
            self.register_buffer("mask", torch.full((2, 2), -torch.inf).triu(1))
            self.register_buffer("seen", torch.zeros(2))
            self.breaks = breaks

        def after_step(self) -> None:
            self.seen += torch.inf if self.breaks else 1

    assert len(train({}, build=lambda e, encoder, _: Masked(encoder, breaks=False))) > 1
    with pytest.raises(TrainingDiverged, match=r"weights with NaN or Inf after epoch 1 \(seen\)"):
        train({}, build=lambda e, encoder, _: Masked(encoder, breaks=True))


class Classifying(Mean):
    """A method whose own classifier returns `outputs` of a number of objects."""

    def __init__(self, encoder: Any, outputs: Callable[[int], Tensor]) -> None:
        super().__init__(encoder, {}, {})
        self.outputs = outputs

    def predict(self, images: Any) -> Tensor:
        return self.outputs(len(images))


@pytest.mark.parametrize("shape", [(), (5,)])
def test_a_classifier_that_returns_no_score_for_each_class_is_told(
    experiment: Make, data: PreparedData, shape: tuple[int, ...]
) -> None:
    encoder, settings = data.build_encoder(experiment("infonce").encoder), experiment("infonce").probes
    objective = Classifying(encoder, lambda count: torch.zeros(count, *shape))
    with pytest.raises(
        WrongReturn, match=r"predict of Classifying must return scores \(\d+, 10\), .* Tensor"
    ):
        read_own_classifier(objective, data, data.validation, settings)


def test_a_classifier_that_returns_nan_has_no_score(experiment: Make, data: PreparedData) -> None:
    encoder, settings = data.build_encoder(experiment("infonce").encoder), experiment("infonce").probes
    objective = Classifying(encoder, lambda count: torch.full((count, 10), math.nan))
    with pytest.raises(NonFiniteFeatures, match="predict of Classifying hold NaN"):
        read_own_classifier(objective, data, data.validation, settings)


def test_a_method_that_says_it_classifies_and_does_not_is_told(train: Train) -> None:
    with pytest.raises(WrongReturn, match="infonce has classifies=True, but its Mean no predict"):
        train({}, classifies=True)


@pytest.mark.parametrize("valid", [torch.ones(4, dtype=torch.bool), torch.ones(2, 4)])
def test_terms_of_unlike_shapes_are_told(valid: Tensor) -> None:
    class Unlike(torch.nn.Module):
        def terms(self, views: Tensor) -> LossTerms:
            return LossTerms(views.sum(-1), valid)

    batch = Batch(torch.zeros(0), torch.arange(4), torch.arange(4))
    with pytest.raises(WrongReturn, match="Unlike must return LossTerms with values and bool valid"):
        LossOfBatch(Unlike(), ())(torch.ones(2, 4, 3), batch)


def test_a_need_that_there_is_not_is_told() -> None:
    with pytest.raises(ValueError, match=r"unknown need of infonce 'label'\. Did you mean 'labels'"):
        replace(METHODS["infonce"], needs=frozenset({"label"}))


@pytest.mark.parametrize("name", ["loss", "lr", "dropped_fraction", "train.spread", ""])
def test_a_metric_has_a_name_of_its_own_without_a_prefix(name: str) -> None:
    with pytest.raises(ValueError, match="train_metrics of infonce: "):
        replace(METHODS["infonce"], train_metrics=(name,))


def test_draws_of_torch_after_the_first_step_are_refused(train: Train) -> None:
    calls: list[int] = []

    def draws_later(loss: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        calls.append(1)
        return (loss + torch.rand(()) if len(calls) > 1 else loss), {}

    with pytest.raises(NotRepeatable):
        train(draws_later)
    assert len(calls) > 1


@pytest.mark.parametrize(("library", "draw"), [("numpy", np.random.rand), ("random", random.random)])
def test_draws_of_other_libraries_are_a_warning(
    library: str, draw: Callable[[], float], train: Train, caplog: pytest.LogCaptureFixture
) -> None:
    """Other threads of a process may draw from them, so they end nothing."""
    with caplog.at_level(logging.WARNING):
        train({})
        assert "global generator" not in caplog.text
        train(lambda loss: (loss + 0 * draw(), {}))
    assert f"drawn from the global generator of {library} in training" in caplog.text


def test_the_objective_of_the_document_trains(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/add-an-objective.md").read_text(encoding="utf-8")
    code = page.partition("test_the_objective_of_the_document_trains -->\n```python\n")[2].partition("```")[0]
    defined: dict[str, Any] = {}
    exec(code, defined)
    monkeypatch.setattr("contrasweep.tuning.training.pretrain.METHODS", {"infonce": defined["METHOD"]})
    weighted = experiment("infonce").model_copy(update={"hyperparameters": {"weight": 1.0}})
    *_, last = pretrain(weighted, data=data)
    assert last.metrics["train.spread"] > 0
