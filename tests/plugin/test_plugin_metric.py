"""A metric of another distribution: scored after every epoch, searched by, and read on the test split."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from installing import install_example
from typer.testing import CliRunner

from contrasweep.data import load_test
from contrasweep.models import NonFiniteFeatures
from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.completion import complete_metrics
from contrasweep.tuning.errors import InputError, WrongReturn
from contrasweep.tuning.methods import METHODS, Metric
from contrasweep.tuning.methods.added_metrics import ADDED_METRICS
from contrasweep.tuning.methods.metrics import final_metrics, implied_settings
from contrasweep.tuning.objectives.prepared import prepare_data
from contrasweep.tuning.planning.measured import measured_metrics
from contrasweep.tuning.planning.needs import facts_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.added_scores import added_scores
from contrasweep.tuning.training.evaluation import extract_features
from contrasweep.tuning.training.final_scores import scores_of_final_run
from contrasweep.tuning.training.pretrain import pretrain

NAME = "class_separation"
CPU = torch.device("cpu")
SHORT = {"epochs": 1, "probes.max_steps": 5, "schedule.warmup_epochs": 0, "probes.metrics": [NAME]}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the documentation, as an installer would leave it."""
    paths = install_example(tmp_path, "contrasweep-separation")
    assert len(ADDED_METRICS) == 0  # complete now, so the registry of before comes back after the test
    monkeypatch.delitem(vars(ADDED_METRICS), "_items")
    monkeypatch.delitem(sys.modules, "contrasweep_separation", raising=False)
    for folder in paths:
        monkeypatch.syspath_prepend(folder)


def separation(features: torch.Tensor, labels: torch.Tensor) -> float:
    """One less the share of the variance that lies within the classes."""
    within = sum(
        float((rows - rows.mean(0)).square().sum())
        for rows in (features[labels == label] for label in labels.unique())
    )
    return 1 - within / float((features - features.mean(0)).square().sum())


def test_a_run_scores_it_before_training_and_after_every_epoch() -> None:
    experiment = resolve("infonce", "digits", SHORT)
    data = prepare_data(experiment, None, CPU)
    for record in pretrain(experiment, data=data):
        held_out = data.validation
        seen = extract_features(record.objective, held_out.images, data.spec.view_size)
        expected = separation(seen.double(), held_out.labels)
        assert record.metrics[f"val.{NAME}"] == pytest.approx(expected, rel=1e-5)


def test_a_final_run_scores_it_on_the_test_split_beside_the_untrained_encoder() -> None:
    experiment = resolve("infonce", "digits", SHORT).on_all_training_data()
    data = prepare_data(experiment, None, CPU)
    before, after = list(pretrain(experiment, data=data))
    assert f"val.{NAME}" not in after.metrics
    scores = scores_of_final_run(after)
    test = load_test("digits")
    seen = extract_features(after.objective, test.images, data.spec.view_size)
    assert scores[f"test.{NAME}"] == pytest.approx(separation(seen.double(), test.labels), rel=1e-5)
    assert scores[f"test.untrained_{NAME}"] != scores[f"test.{NAME}"]
    recorded = final_metrics(METHODS["infonce"], data.spec, experiment.probes)
    assert scores.keys() <= set(recorded)
    assert before.epoch == 0


def test_a_sweep_that_is_to_search_by_it_records_it() -> None:
    plan = plan_sweep("infonce", "digits", metric=f"{NAME},val.accuracy", keep=[f"{NAME}>=0.1"], trials=2)
    assert plan.experiment.probes.metrics == (NAME,)
    record = plan.record()
    assert record.search.metric == f"val.{NAME},val.accuracy"
    assert f"val.{NAME}" in record.columns.metrics
    assert record.versions["contrasweep-separation"] == "0.1.0"
    kept = plan_sweep("infonce", "digits", keep=[f"val.{NAME}>=0.1"], trials=2)
    assert kept.experiment.probes.metrics == (NAME,)


def test_metrics_that_were_asked_for_stay() -> None:
    assert implied_settings([NAME], {"probes.metrics": ["other"]}) == {"probes.metrics": ["other", NAME]}
    assert implied_settings(["accuracy"], {"probes.metrics": ["other"]}) == {}
    assert implied_settings(["val.rankme"], {"probes.label_free_views": 6}) == {"probes.label_free_views": 6}


def test_an_experiment_without_metrics_keeps_its_identity() -> None:
    plain = resolve("infonce", "digits")
    assert "metrics" not in plain.content()["probes"]
    assert plain.identity() != resolve("infonce", "digits", {"probes.metrics": [NAME]}).identity()


@pytest.mark.parametrize(
    ("method", "dataset", "says"),
    [
        ("infonce", "digits", r"probes.metrics: unknown metric 'clas_sep'. Did you mean 'class_separation'"),
        ("herocon", "two-view-digits", "metric class_separation needs images, which two-view-digits has not"),
    ],
)
def test_what_cannot_be_scored_is_refused(method: str, dataset: str, says: str) -> None:
    name = "clas_sep" if method == "infonce" else NAME
    with pytest.raises(InputError, match=says):
        resolve(method, dataset, {"probes.metrics": [name]})


def test_it_is_listed_with_its_summary_where_the_data_have_what_it_takes() -> None:
    listed = {row["metric"]: row for row in json.loads(CliRunner().invoke(app, ["metrics", "--json"]).stdout)}
    assert listed[NAME] == {
        "metric": NAME,
        "what it measures": ADDED_METRICS[NAME].summary,
        "better": "larger",
        "after every epoch": [f"val.{NAME}"],
        "before training and at the end": [],
        "in final runs": [f"test.{NAME}"],
        "only with": "probes.metrics",
    }
    names = {
        data: {one.name for one in measured_metrics(facts_of(data, None))} for data in ("digits", "scene")
    }
    assert (NAME in names["digits"], NAME in names["scene"]) == (True, False)
    assert complete_metrics("accuracy,class_s") == [f"accuracy,{NAME}"]


def test_the_nearest_metric_of_a_sweep_may_be_of_a_plug_in() -> None:
    with pytest.raises(InputError, match=f"Did you mean '{NAME}'"):
        plan_sweep("infonce", "digits", metric="clas_separation", trials=2)


def test_what_the_data_lack_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gap = Metric("bias_gap", "", lambda features, bias: 0.0)
    monkeypatch.setitem(vars(ADDED_METRICS), "_items", {"bias_gap": gap})
    with pytest.raises(InputError, match="the metric bias_gap needs a bias label, which digits has not"):
        resolve("infonce", "digits", {"probes.metrics": ["bias_gap"]})
    assert resolve("infonce", "biased-digits", {"probes.metrics": ["bias_gap"]}).probes.metrics


@pytest.mark.parametrize(
    ("name", "score", "says"),
    [
        ("Mine", lambda features: 0, "given 'Mine'"),
        ("my-score", lambda features: 0, "given 'my-score'"),
        ("accuracy", lambda features: 0, "one of contrasweep's own"),
        ("ridge_mine", lambda features: 0, "one of contrasweep's own"),
        ("mine", lambda images: 0, "must be features, given 'images'"),
        ("mine", lambda: 0, "must be features, given ''"),
        ("mine", lambda features, label: 0, "takes 'label', which no image has. Did you mean 'labels'"),
    ],
)
def test_a_metric_that_cannot_be_is_refused(name: str, score: Callable[..., Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Metric(name, "", score)


def test_images_without_what_it_takes_are_not_scored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A condition from a file covers the training images alone: the final runs of such a search go on."""
    experiment = resolve("infonce", "digits", SHORT)
    data = prepare_data(experiment, None, CPU)
    record = next(pretrain(experiment, data=data))
    metric = Metric(NAME, "", lambda features, condition: float(condition.sum()))
    monkeypatch.setitem(vars(ADDED_METRICS), "_items", {NAME: metric})
    assert added_scores(record.objective, data, data.validation, experiment) == {}
    assert f"The metric {NAME} is left out: these images have no condition" in caplog.text


def test_what_it_returns_is_a_number_of_finite_features(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = resolve("infonce", "digits", {**SHORT, "epochs": 1})
    data = prepare_data(experiment, None, CPU)
    record = next(pretrain(experiment, data=data))

    def scored_by(score: Callable[..., Any]) -> dict[str, float]:
        monkeypatch.setitem(vars(ADDED_METRICS), "_items", {NAME: Metric(NAME, "", score)})
        return added_scores(record.objective, data, data.validation, experiment)

    assert scored_by(lambda features: torch.tensor(2)) == {NAME: 2.0}
    with pytest.raises(WrongReturn, match=f"the metric {NAME} must return a number, returned Tensor"):
        scored_by(lambda features: features)
    state = torch.random.get_rng_state()
    draws = [scored_by(lambda features: torch.rand(())) for _ in range(2)]
    assert draws[0] == draws[1]  # what a metric draws follows from the run's seed
    assert torch.equal(torch.random.get_rng_state(), state)
    with pytest.raises(WrongReturn, match="returned int"):
        scored_by(lambda features: 10**400)
    with pytest.raises(WrongReturn, match="returned NoneType"):
        scored_by(lambda features: None)
    with pytest.raises(WrongReturn, match="must return a finite number, returned nan"):
        scored_by(lambda features: torch.tensor(math.nan))
    with pytest.raises(WrongReturn, match="must return a finite number, returned -inf"):
        scored_by(lambda features: -math.inf)
    with torch.no_grad():
        next(record.objective.encoder.parameters()).fill_(torch.nan)
    with pytest.raises(NonFiniteFeatures, match=f"the features for {NAME} hold NaN or Inf"):
        scored_by(lambda features: 0.0)
