"""Rows of an ablation: one configuration with other settings, and nothing else changed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.cli.run import _rows
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Value
from contrasweep.tuning.planning import ablation
from contrasweep.tuning.planning.ablation import ablated, ablated_rows
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.store import check_study_name, final_name


@pytest.fixture
def best() -> BestConfig:
    values: dict[str, Value] = {"kernel": "rbf", "sigma2": 300.0, "temperature": 0.2, "optimizer.lr": 0.3}
    experiment = resolve("fair-cclk", "colour-digits", values)
    return BestConfig("demo", 7, values, experiment, seeds=2)  # type: ignore[arg-type]


def test_a_row_differs_in_its_settings_alone(best: BestConfig) -> None:
    row = ablated(best, {"temperature": 1})
    assert row.study == "demo-with-temperature-1.0"
    assert row == replace(
        best,
        study=row.study,
        values={**best.values, "temperature": 1.0},
        experiment=best.experiment.with_values({"temperature": 1.0}),
    )
    assert type(row.values["temperature"]) is float


def test_a_setting_that_was_not_searched_becomes_a_value_of_the_row(best: BestConfig) -> None:
    row = ablated(best, {"views.min_crop": 0.5, "encoder.mean": [0.5, 0.5, 0.5], "encoder.std": [0.5] * 3})
    assert row.values == {**best.values, "views.min_crop": 0.5}
    assert row.experiment.encoder.mean == (0.5, 0.5, 0.5)


def test_what_has_no_effect_any_more_is_left_out(best: BestConfig) -> None:
    row = ablated(best, {"kernel": "cosine"})
    assert row.study == "demo-with-kernel-cosine"
    assert row.values == {"kernel": "cosine", "temperature": 0.2, "optimizer.lr": 0.3}
    assert row.experiment == resolve("fair-cclk", "colour-digits", row.values)
    with pytest.raises(InputError, match="needs sigma2"):
        ablated(row, {"kernel": "rbf"})
    back = ablated(row, {"kernel": "rbf", "sigma2": 300})
    assert back.experiment == best.experiment
    assert back.study == "demo-with-kernel-cosine-with-kernel-rbf-sigma2-300.0"


def test_the_data_are_looked_for_in_the_given_folder(
    best: BestConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path | None] = []
    monkeypatch.setattr(ablation, "check_experiment", lambda experiment, root: looked.append(root))
    searched = replace(best, data_root=tmp_path)
    ablated(searched, {"temperature": 1.0})
    ablated(searched, {"temperature": 1.0}, tmp_path / "given")
    assert looked == [tmp_path, tmp_path / "given"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperatur": 0.5}, "Did you mean 'temperature'"),
        ({"lamb": 0.5, "kernl": 0.5}, "Did you mean 'lam'.*; .*Did you mean 'kernel'"),
        ({"temperature": 0.2}, "changes no final run: the configuration has temperature=0.2"),
        ({"validation.fraction": 0.3}, "changes no final run: the configuration has validation.fraction="),
        ({"validation.seed": 3}, "changes no final run: the configuration has validation.seed=0"),
        ({"optimizer.trust": 0.01}, "optimizer.trust has no effect with optimizer.name=sgd: leave it out"),
        ({"kernel": "cosine", "sigma2": 10.0}, "sigma2 has no effect with kernel=cosine: leave it out"),
        ({"kernel": "gauss"}, "kernel"),
        ({"seed": 5}, "seed is not ablated: all configurations run on the same fresh seeds"),
        ({"epochs": 5}, "epochs is not ablated: --epochs is for all configurations"),
        ({"encoder.name": "herocon-mlp"}, "encoder 'herocon-mlp' does not take the images"),
    ],
)
def test_what_is_no_row_of_an_ablation_is_refused(
    best: BestConfig, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ablated(best, changes)


def test_the_faults_of_all_rows_are_told(best: BestConfig) -> None:
    with pytest.raises(InputError, match=r"Did you mean 'lam'.*; seed is not ablated"):
        ablated_rows(best, [{"lamb": 0.5}, {"temperature": 0.5}, {"seed": 3}])
    assert ablated_rows(best, [{"lam": 0.5}]) == [ablated(best, {"lam": 0.5})]


def test_a_text_of_the_command_holds_the_settings_of_a_row() -> None:
    given = ["kernel=cosine", " temperature=0.5  encoder.mean=[0.5, 0.5]\tviews.min_crop=1 "]
    values = {"temperature": 0.5, "encoder.mean": [0.5, 0.5], "views.min_crop": 1}
    assert _rows(given) == [{"kernel": "cosine"}, values]
    for wrong in ("", "kernel", "  "):
        with pytest.raises(InputError, match="--ablate takes PATH=VALUE"):
            _rows([wrong])


def test_long_changes_give_different_names_that_studies_can_have(best: BestConfig) -> None:
    long = replace(best, study="x" * 80)
    names = {ablated(long, {"kernel": "cosine", "temperature": one}).study for one in (0.51, 0.52)}
    assert len(names) == 2
    assert all(check_study_name(final_name(name)) for name in names)
