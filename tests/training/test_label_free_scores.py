"""The label-free scores of a run: recorded when asked for, on views of their own, with no other effect."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.metrics import LABEL_FREE
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.results.collapse import collapse_warning
from contrasweep.tuning.training.evaluation import validation_scores
from contrasweep.tuning.training.label_free import _some_of
from contrasweep.tuning.training.pretrain import build_objective, pretrain

Make = Callable[..., Experiment]
ASKED = {"probes.label_free_views": 3}
NAMES = tuple(f"val.{name}" for name in LABEL_FREE)


def test_they_are_recorded_after_every_epoch_and_change_nothing_else(
    experiment: Make, small_data: Callable[..., PreparedData]
) -> None:
    without = [record.metrics for record in pretrain(experiment(), data=small_data())]
    records = [record.metrics for record in pretrain(experiment(values=ASKED), data=small_data())]
    for plain, scored in zip(without, records, strict=True):
        assert {name: scored[name] for name in scored if name not in NAMES} == plain
        assert set(NAMES) <= set(scored)
    assert records[0]["val.rankme"] != records[-1]["val.rankme"]
    assert 0 < records[-1]["val.alignment"] < 4
    assert -8 < records[-1]["val.uniformity"] < 0


def test_the_views_are_those_of_the_training_and_the_same_each_time(
    experiment: Make, data: PreparedData
) -> None:
    def scores(**changed: Any) -> dict[str, float]:
        e = experiment(values={**ASKED, **changed})
        found = validation_scores(build_objective(e, data), data, e, full=False)
        return {name: found[name] for name in NAMES}

    usual = scores()
    assert scores() == usual
    other = scores(**{"views.min_crop": 0.9})
    same = {name for name in NAMES if other[name] == usual[name]}
    assert same == {"val.rankme", "val.uniformity", "val.feature_std"}
    assert other["val.alignment"] < usual["val.alignment"]


def test_the_control_that_runs_share_depends_on_the_views(experiment: Make, data: PreparedData) -> None:
    runs = [experiment(values={**ASKED, "views.min_crop": crop}) for crop in (0.2, 0.9)]
    first, second = (next(pretrain(e, data=data)).metrics for e in runs)
    assert first["val.accuracy"] == second["val.accuracy"]
    assert first["val.alignment"] != second["val.alignment"]


def test_of_many_images_some_are_drawn_whatever_their_order(data: PreparedData) -> None:
    assert data.validation is not None
    count = len(data.validation)
    periodic = replace(data.validation, labels=torch.arange(count) % 10)
    drawn = _some_of(periodic, count // 10)
    assert len(drawn) == count // 10
    assert len(set(drawn.labels.tolist())) > 3, "every tenth image would be of one class"
    assert drawn.labels.equal(_some_of(periodic, count // 10).labels)
    assert _some_of(periodic, count) is periodic


def test_collapsed_features_are_warned_of_after_training_alone(experiment: Make, data: PreparedData) -> None:
    e = experiment(values=ASKED)
    assert data.validation is not None
    alike = replace(data.validation, images=torch.zeros_like(data.validation.pixels))
    scores = validation_scores(build_objective(e, data), replace(data, validation=alike), e, full=False)
    assert scores["val.feature_std"] < 1e-6
    told = collapse_warning(3, scores)
    assert told is not None
    assert "collapsed at epoch 3: val.feature_std is" in told
    assert "Try " in told
    assert collapse_warning(0, scores) is None
    assert collapse_warning(3, {"val.feature_std": 0.6, "val.rankme": 12.0}) is None
    assert "val.rankme is 1.2" in str(collapse_warning(3, {"val.feature_std": 0.6, "val.rankme": 1.2}))


def test_an_experiment_without_them_keeps_its_identity() -> None:
    usual = resolve("infonce", "digits")
    assert "label_free_views" not in usual.content()["probes"]
    assert resolve("infonce", "digits", ASKED).identity() != usual.identity()


def test_a_metric_that_needs_them_asks_for_them() -> None:
    plan = plan_sweep("infonce", "digits", metric="rankme,val.alignment")
    assert plan.search.metrics == ("val.rankme", "val.alignment")
    assert plan.rung_metric == "val.rankme"
    assert set(NAMES) <= set(plan.record().columns.metrics)
    assert plan.experiment.probes.label_free_views == 4
    given = plan_sweep("infonce", "digits", metric="val.lidar", values=ASKED)
    assert given.experiment.probes.label_free_views == 3
    assert plan_sweep("infonce", "digits").experiment.probes.label_free_views == 0


def test_data_with_views_of_its_own_has_none() -> None:
    with pytest.raises(InputError, match=r"label_free_views, for metrics that need no label, is for images"):
        resolve("herocon", "two-view-digits", ASKED)


def test_one_view_is_refused() -> None:
    with pytest.raises(InputError, match="label_free_views: given 1; allowed: 0, or 2"):
        resolve("infonce", "digits", {"probes.label_free_views": 1})
