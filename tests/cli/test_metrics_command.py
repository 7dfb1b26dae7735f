"""`metrics` lists every score that runs record, with the words of its definition, and when it is measured."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_METHODS
from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.completion import complete_metrics
from contrasweep.tuning.experiment import ProbeSettings
from contrasweep.tuning.methods.metrics import (
    LABEL_FREE_MEASURES,
    LABEL_MEASURES,
    MEASURES,
    Measure,
    final_metrics,
    search_metrics,
)
from contrasweep.tuning.planning.needs import lacking
from contrasweep.tuning.training.evaluation import MEASURES as COMPUTED

PAGE = Path(__file__).parents[2] / "docs" / "without-labels.md"
KNOWN = sorted(name for name, one in DECLARED_DATASETS.items() if one.facts is not None)


def listed(*arguments: str) -> dict[str, dict[str, Any]]:
    done = CliRunner().invoke(app, ["metrics", "--json", *arguments])
    assert done.exit_code == 0, done.output
    return {row["metric"]: row for row in json.loads(done.stdout)}


def test_each_is_told_with_its_direction_and_the_words_of_its_definition() -> None:
    rows = listed()
    shown = CliRunner().invoke(app, ["metrics"]).stdout
    assert list(rows) == list(MEASURES)
    for name, measure in MEASURES.items():
        assert rows[name]["what it measures"] == measure.summary
        assert re.search(rf"^  {name} +{re.escape(measure.summary)}$", shown, re.MULTILINE)
        assert rows[name]["better"] == ("smaller" if measure.minimised else "larger")
    assert shown.count("smaller is better") == sum(one.minimised for one in MEASURES.values()) > 0


def test_when_a_metric_is_measured() -> None:
    row = listed("--data", "colour-digits")["accuracy"]
    assert row["after every epoch"] == ["val.ridge_accuracy", "val.classifier_accuracy"]
    assert row["before training and at the end"] == ["val.accuracy"]
    assert row["in final runs"] == ["test.accuracy", "test.classifier_accuracy"]
    own = listed("--data", "two-view-digits")["accuracy"]
    assert (own["after every epoch"], own["before training and at the end"]) == (["val.accuracy"], [])
    assert listed()["accuracy"] == row
    assert listed()["unbiased_accuracy"]["after every epoch"] == []


def test_what_must_be_asked_for_is_told() -> None:
    rows = listed("--data", "digits")
    assert rows["accuracy"]["only with"] is None
    assert rows["cluster_nmi"]["only with"] == "probes.kmeans_starts"
    assert rows["rankme"]["only with"] == "probes.label_free_views"
    shown = CliRunner().invoke(app, ["metrics", "--data", "digits"]).stdout
    assert shown.startswith(f"{len(rows)} metrics on digits\n")
    assert shown.count("only with probes.kmeans_starts\n") == 2
    assert shown.count("only with probes.label_free_views, which --metric and --keep set\n") == 5


@pytest.mark.parametrize("data", KNOWN)
def test_every_score_that_a_run_records_is_listed_and_no_other(data: str) -> None:
    facts = DECLARED_DATASETS[data].facts
    assert facts is not None
    images = "images" in facts.offers
    probes = ProbeSettings(kmeans_starts=int(facts.probed), label_free_views=4 if images else 0)
    recorded: set[str] = set()
    for method in DECLARED_METHODS.values():
        if not lacking(method, facts):
            recorded |= {*search_metrics(method, facts, probes), *final_metrics(method, facts, probes)}
    told = [name for row in listed("--data", data).values() for name in _names(row)]
    assert len(told) == len(set(told))
    assert set(told) == {name for name in recorded if not re.match(r"train\.|test\.untrained_", name)}


def _names(row: dict[str, Any]) -> list[str]:
    return [*row["after every epoch"], *row["before training and at the end"], *row["in final runs"]]


def test_the_scores_of_labels_are_those_that_are_computed() -> None:
    assert {one.name for one in LABEL_MEASURES} == set(COMPUTED)


@pytest.mark.parametrize("measure", LABEL_FREE_MEASURES, ids=lambda one: one.name)
def test_the_page_about_scores_without_labels_has_the_same_words(measure: Measure) -> None:
    better = "smaller" if measure.minimised else "larger"
    assert f"| `val.{measure.name}` | {measure.summary} | {better} |" in PAGE.read_text(encoding="utf-8")


def test_the_shell_completes_the_last_of_several_metrics() -> None:
    assert complete_metrics("acc") == ["accuracy"]
    assert complete_metrics("accuracy,colour") == ["accuracy,colour_mse"]
