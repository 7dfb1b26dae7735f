"""Every use of chance has its own stream: more draws of one kind do not change another."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from contrasweep.data import RandomViews
from contrasweep.models import Encoder
from contrasweep.tuning.errors import NotRepeatable
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.pretrain import pretrain

Make = Callable[..., Experiment]


class _Seen(list[Batch]):
    """The batches of a run."""

    @property
    def rows(self) -> list[list[int]]:
        return [batch.index.tolist() for batch in self]

    @property
    def views(self) -> torch.Tensor:
        return torch.stack([batch.views for batch in self])


@pytest.fixture
def batches(data: PreparedData, monkeypatch: pytest.MonkeyPatch) -> Callable[..., _Seen]:
    def run(e: Experiment, resume: bytes | None = None) -> _Seen:
        seen, original = _Seen(), Objective.step

        def spy(self: Objective, batch: Batch, *rest: Any) -> Any:
            seen.append(batch)
            return original(self, batch, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(Objective, "step", spy)
            for _ in pretrain(e, resume, data=data):
                pass
        return seen

    return run


def test_other_hyperparameters_see_the_same_batches_and_views(
    experiment: Make, batches: Callable[..., _Seen]
) -> None:
    first = batches(experiment("infonce"))
    for other in (
        experiment("infonce", {"temperature": 0.9, "optimizer.lr": 0.5, "head.width": 16, "head.hidden": 8}),
        experiment("fair-cclk", {"kernel": "rbf", "optimizer.name": "lars"}),
    ):
        again = batches(other)
        assert again.rows == first.rows
        assert torch.equal(again.views, first.views)


def test_views_have_no_say_in_batches(experiment: Make, batches: Callable[..., _Seen]) -> None:
    first = batches(experiment("infonce"))
    milder = batches(experiment("infonce", {"views.min_crop": 0.7, "views.flip": 0.0}))
    assert milder.rows == first.rows
    assert not torch.equal(milder.views, first.views)


def test_a_generator_that_is_used_more_changes_no_other_step(
    experiment: Make, batches: Callable[..., _Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = batches(experiment("infonce"))
    original = RandomViews.draw_all

    def greedy(self: RandomViews, count: int, size: Any, generators: list[torch.Generator]) -> Any:
        drawn = original(self, count, size, generators)
        for generator in generators:
            torch.rand(1000, generator=generator)
        return drawn

    monkeypatch.setattr(RandomViews, "draw_all", greedy)
    again = batches(experiment("infonce"))
    assert again.rows == first.rows
    assert torch.equal(again.views, first.views)


def test_a_longer_run_begins_like_a_shorter_one(experiment: Make, batches: Callable[..., _Seen]) -> None:
    short, long = batches(experiment("infonce", {"epochs": 1})), batches(experiment("infonce"))
    assert long.rows[: len(short)] == short.rows
    assert torch.equal(long.views[: len(short)], short.views)


def test_epochs_steps_and_seeds_differ(experiment: Make, batches: Callable[..., _Seen]) -> None:
    fixed = {"views.min_crop": 0.3}
    seen = batches(experiment("infonce", fixed))
    assert sorted(seen.rows[0] + seen.rows[1] + seen.rows[2]) == list(range(96))
    assert seen.rows[:3] != seen.rows[3:]
    other = batches(experiment("infonce", {**fixed, "seed": 1}))
    assert other.rows != seen.rows


def test_a_network_that_draws_from_torchs_own_generator_is_refused(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = data.build_encoder

    def with_dropout(*arguments: Any) -> Encoder:
        encoder = built(*arguments)
        encoder.body = nn.Sequential(encoder.body, nn.Dropout(0.1))
        return encoder

    monkeypatch.setattr(PreparedData, "build_encoder", lambda self, *arguments: with_dropout(*arguments))
    run = pretrain(experiment("infonce"), data=data)
    next(run)
    with pytest.raises(NotRepeatable, match=r"Layers that drop: 'encoder\.body\.1'$"):
        next(run)


def test_a_loss_that_draws_from_torchs_own_generator_is_refused(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Objective.step
    monkeypatch.setattr(Objective, "step", lambda self, *rest: (torch.rand(1), step(self, *rest))[1])
    run = pretrain(experiment("infonce"), data=data)
    next(run)
    with pytest.raises(NotRepeatable, match=r"epoch, step\)$"):
        next(run)
