"""What a sensitivity page says and labels: directions, safe epochs, categories, lone parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from contrasweep.tuning.reports.page import Section
from contrasweep.tuning.sensitivity import forest
from contrasweep.tuning.sensitivity.analyse import StudySensitivity, analyse_observations
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.page import sensitivity_sections
from tests.sensitivity.analysed_studies import study
from tests.sensitivity.synthetic import observed, space_of


@pytest.fixture(scope="module", autouse=True)
def small_forests() -> Iterator[None]:
    """A page shows what a forest of any size says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "TREES", 10)
        yield


def analysed(one: Observations) -> StudySensitivity:
    return analyse_observations([one]).studies[0]


def sections_of(one: Observations) -> Mapping[str, Section]:
    return {section.title: section for section in sensitivity_sections(analysed(one))}


def test_a_minimised_metric_is_said_to_be_turned() -> None:
    one = replace(study(20), metric="-val.alignment", rung_metric="-val.alignment")
    opened = sections_of(one)["In short"].text
    assert "Smaller values of val.alignment are better. This page turns their sign" in opened
    assert "turns" not in sections_of(study(20))["In short"].text


def test_stopping_is_safe_from_the_first_epoch_after_the_last_unsafe_one_and_before_the_end() -> None:
    one = observed(space_of(a="unit"), lambda x: x["a"], 30, epochs=4)
    told = sections_of(one)["Was stopping early safe?"].text
    assert "safe from epoch 1 on" in told
    noise = np.random.default_rng(0).random(30)
    curve = one.curve.copy()
    curve[:, 2] = noise
    told = sections_of(replace(one, curve=curve))["Was stopping early safe?"].text
    assert "safe from epoch 3 on" in told
    curve[:, 3] = noise
    told = sections_of(replace(one, curve=curve))["Was stopping early safe?"].text
    assert "No epoch before the end is surely safe" in told


def test_parameters_that_never_vary_together_have_no_interaction() -> None:
    kernel = {"choice": ["rbf", "cosine"], "default": "rbf"}
    sigma = {"log": [1.0, 100.0], "default": 10.0, "when": {"kernel": ["rbf"]}}
    for space, first in ((space_of(lr="unit"), "lr"), (space_of(kernel=kernel, sigma2=sigma), "kernel")):
        found = sections_of(observed(space, lambda x, first=first: 0 * x[first], 60, noise=1.0))
        assert "Two parameters together" not in found
        lacking = found["Too few to tell"].text
        assert "0 pairs of searched parameters that vary together, 1 needed" in lacking
    three = sections_of(observed(space_of(kernel=kernel, sigma2=sigma, lr="unit"), lambda x: x["lr"], 60))
    (table,) = three["Two parameters together"].tables
    assert {row[1] for row in table.rows} == {"kernel x lr", "sigma2 x lr"}


def test_each_of_twelve_categories_is_labelled() -> None:
    names = [f"augmentation-policy-{number:02d}" for number in range(12)]
    space = space_of(policy={"choice": names, "default": names[0]}, lr="unit")
    found = sections_of(observed(space, lambda x: x["policy"], 60))
    curve = found["One parameter at a time"].figures[0]
    assert list(curve.layout.xaxis.ticktext) == names
    # Slanted labels at the right edge would leave the figure, and plotly hides such labels.
    assert list(curve.layout.xaxis.autotickangles) == [0, 90]
    (drawn,) = found["Two parameters together"].figures
    assert list(drawn.layout.yaxis.ticktext) == names


def test_the_mark_of_chance_has_an_edge_that_stands_out_from_bars() -> None:
    figure = sections_of(study(30))["Importance"].figures[1]
    _, edge, mark = figure.data
    assert edge.x == mark.x
    assert (edge.marker.line.color, edge.marker.line.width > mark.marker.line.width) == ("white", True)


def test_what_a_forest_predicts_and_whether_to_rely_on_it_stand_together() -> None:
    one = observed(space_of(lr="unit"), lambda x: 0 * x["lr"], 60, noise=1.0)
    ending = np.where(np.arange(60) % 3 == 0, "failed", "completed")
    failed = replace(one, score=np.where(ending == "failed", np.nan, one.score), ending=ending)
    told = sections_of(failed)["One parameter at a time"].text
    assert "of unseen trials. That is next to nothing" in told
    assert told.endswith("20 ended trials without a score are left out of it.")


def test_trials_without_a_score_are_named_only_if_there_are_any() -> None:
    assert "without a final score" not in sections_of(study(30))["Score against budget"].text
