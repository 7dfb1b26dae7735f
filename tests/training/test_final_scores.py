"""The end of a final run: it reads the test split once and scores the trained and the untrained encoder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from contrasweep.data import MultiView, dataset_spec, load_test
from contrasweep.models import load_encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import ALWAYS, final_metrics
from contrasweep.tuning.objectives.prepared import Prepared, PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.evaluation import (
    extract_features,
    label_scores,
    probe_scores,
    scores_on_test,
)
from contrasweep.tuning.training.final_scores import scores_of_final_run
from contrasweep.tuning.training.pretrain import build_objective, pretrain

Make = Callable[..., Experiment]


def test_scores_of_trained_and_untrained_and_the_encoder_as_a_file(
    experiment: Make, data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Any] = []

    def counted(*arguments: Any, **more: Any) -> Any:
        reads.append(arguments)
        return load_test(*arguments, **more)

    monkeypatch.setattr("contrasweep.tuning.training.final_scores.load_test", counted)
    e, data = experiment("infonce"), replace(data, validation=None)
    file = tmp_path / "encoder.safetensors"
    *_, last = pretrain(e, data=data)
    assert last.device == data.device
    assert reads == []
    scores = scores_of_final_run(last)
    file.write_bytes(last.encoder_file())
    assert reads == [("colour-digits", None, 0)]
    assert (*ALWAYS, *scores) == final_metrics(METHODS["infonce"], dataset_spec("colour-digits"))
    test = load_test("colour-digits")
    for prefix, objective in (("test.", last.objective), ("test.untrained_", build_objective(e, data))):
        expected = probe_scores(objective, data.train, test, data.spec, e.probes, "logistic")
        assert {name: scores[prefix + name] for name in expected} == expected
    assert scores["test.accuracy"] != scores["test.untrained_accuracy"]
    features = extract_features(last.objective, test.images, 8)
    with torch.no_grad():
        exported = load_encoder(file)(test.images.float() / 255)
    torch.testing.assert_close(exported, features, atol=1e-5, rtol=1e-4)


def test_without_colour_there_is_no_colour_column(
    experiment: Make, small_data: Callable[[str], PreparedData]
) -> None:
    e, data = experiment("infonce", {"probes.kmeans_starts": 2}, "digits"), small_data("digits")
    scores = scores_of_final_run(next(pretrain(e, data=data)))
    assert (*ALWAYS, *scores) == final_metrics(METHODS["infonce"], dataset_spec("digits"), e.probes)
    assert scores["test.accuracy"] == scores["test.untrained_accuracy"]
    assert scores["test.cluster_accuracy"] == scores["test.untrained_cluster_accuracy"]


def test_without_a_probe_the_untrained_control_is_scored_by_its_own_classifier(
    small_data: Callable[[str], Prepared],
) -> None:
    e = resolve("herocon", "two-view-digits", {"epochs": 1, "batch_size": 32})
    data = small_data("two-view-digits")
    seen = data.data  # type: ignore[attr-defined]
    test = MultiView(seen.unlabelled.views, torch.arange(len(seen.unlabelled)) % 10)
    *_, last = pretrain(e, data=data)
    untrained = build_objective(e, data)
    scores = scores_on_test(last.objective, untrained, data, test, e)
    assert scores.keys() < set(final_metrics(METHODS["herocon"], data.spec))
    for prefix, objective in (("test.", last.objective), ("test.untrained_", untrained)):
        expected = label_scores(
            ("accuracy", "f1", "auc"), objective.predict(test.views), test, e.probes.threshold
        )
        assert {name: scores[prefix + name] for name in expected} == expected
    assert scores["test.auc"] != scores["test.untrained_auc"]
