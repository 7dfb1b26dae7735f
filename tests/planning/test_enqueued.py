"""Configurations that run first: the file that names them, what is refused, what a resumed search does."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contrasweep.search_spaces import Space
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.enqueued import read_configurations, whole_configurations
from contrasweep.tuning.planning.plan import plan_of
from contrasweep.tuning.planning.spaces import in_own_type
from contrasweep.tuning.search import PastTrial
from tests.studies import small_plan

SPACE = Space.parse(
    {
        "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
        "sigma2": {"log": [1.0, 1e4], "default": 100.0, "when": {"kernel": ["rbf"]}},
        "optimizer.lr": {"uniform": [0.01, 0.3], "default": 0.1},
        "weights": {"fixed": "released"},
    }
)


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ({}, {"kernel": "rbf", "sigma2": 100.0, "optimizer.lr": 0.1}),
        ({"sigma2": 5}, {"kernel": "rbf", "sigma2": 5.0, "optimizer.lr": 0.1}),
        ({"kernel": "cosine"}, {"kernel": "cosine", "optimizer.lr": 0.1}),
        ({"weights": "released"}, {"kernel": "rbf", "sigma2": 100.0, "optimizer.lr": 0.1}),
        ({"kernel": "cosine", "optimizer.lr": 0.1}, {"kernel": "cosine", "optimizer.lr": 0.1}),
    ],
)
def test_what_is_left_out_takes_its_default(given: dict[str, Any], whole: dict[str, Any]) -> None:
    (found,) = whole_configurations([given], SPACE)
    assert found == whole
    assert [type(value) for value in found.values()] == [type(value) for value in whole.values()]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sigma": 5}, "configuration 2 of --enqueue: sigma is not searched. Did you mean 'sigma2'?"),
        ({"sigma2": 0.5}, "sigma2: given 0.5; allowed: "),
        ({"sigma2": [5]}, "sigma2: given [5]; allowed: "),
        ({"kernel": "cosine", "sigma2": 5.0}, "sigma2 has no meaning beside its other values"),
    ],
)
def test_what_the_space_does_not_allow_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        whole_configurations([{}, given], SPACE)
    assert message in str(refused.value)


def test_the_faults_of_all_configurations_are_told() -> None:
    with pytest.raises(InputError) as refused:
        whole_configurations([{"kernl": "rbf", "sigma2": 0.5}, {}, {"weights": "paper"}], SPACE)
    told = str(refused.value)
    for part in (
        "configuration 1 of --enqueue: kernl is not searched. Did you mean 'kernel'?",
        "; sigma2: given 0.5; ",
        "; configuration 3 of --enqueue: weights: given 'paper'; ",
    ):
        assert part in told
    with pytest.raises(InputError) as refused:
        whole_configurations([{}, *[{"lr": 1}] * 1000], SPACE)
    assert "configuration 11 " in str(refused.value)
    assert "configuration 12 " not in str(refused.value)


def test_a_file_is_a_list_or_a_best_yaml(tmp_path: Path) -> None:
    file = tmp_path / "first.yaml"
    file.write_text("- {kernel: cosine}\n- {sigma2: 5}\n")
    assert read_configurations(file, ["fair-cclk"]) == [{"kernel": "cosine"}, {"sigma2": 5}]
    file.write_text("contrasweep: 0.1.0\nvalues: {kernel: cosine}\n")
    assert read_configurations(file, ["fair-cclk"]) == [{"kernel": "cosine"}]
    file.write_text("experiment: {method: infonce}\nvalues: {temperature: 0.1}\n")
    assert read_configurations(file, ["fair-cclk", "infonce"]) == [{"temperature": 0.1}]
    with pytest.raises(
        InputError, match=r"is a configuration of infonce; allowed: one of fair-cclk, triplet"
    ):
        read_configurations(file, ["fair-cclk", "triplet"])
    for text in ("kernel: cosine\n", "[]\n", "- 3\n"):
        file.write_text(text)
        with pytest.raises(InputError, match="holds no list of configurations"):
            read_configurations(file, ["fair-cclk"])


def test_they_follow_the_defaults_also_in_a_resumed_search(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, trials=5, enqueue=[{"kernel": "cosine"}, {"sigma2": 5}])
    record = plan.record()
    again = plan_of(type(record).model_validate_json(record.model_dump_json()), str(tmp_path))
    whole, resumed = plan.new_study(), again.new_study()
    asked = [whole.ask() for _ in range(4)]
    assert asked[1].values["kernel"] == "cosine"
    assert asked[2].values["sigma2"] == 5.0
    resumed.restore([PastTrial(one.number, one.values, "running") for one in asked[:2]])
    assert [resumed.ask() for _ in range(2)] == asked[2:]


def test_more_than_there_are_trials_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gives 2 configurations beside the defaults, which is more than"):
        small_plan(tmp_path, trials=2, enqueue=[{"kernel": "cosine"}, {"sigma2": 5}])
    with pytest.raises(InputError, match="a grid runs all of its points"):
        small_plan(tmp_path, trials=None, sampler="grid", grid_points=2, enqueue=[{"kernel": "cosine"}])


def test_the_command_reads_them_before_any_work(tmp_path: Path) -> None:
    file = tmp_path / "first.yaml"
    file.write_text("- {kernel: cosin}\n")
    given = ["sweep", "fair-cclk", "--data", "colour-digits", "--enqueue", str(file)]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 2
    assert "kernel: given 'cosin'" in " ".join(done.output.split())
    file.write_text("- {kernel: cosine}\n")
    done = CliRunner().invoke(app, [*given, "--trials", "3", "--dry-run"])
    assert done.exit_code == 0, done.output
    (second,) = (line for line in done.output.splitlines() if line.startswith("1\t"))
    assert second.startswith("1\tcosine\t")


@pytest.mark.parametrize(("given", "own"), [(1.0, 1), (0, 0), (1, 1)])
def test_a_choice_is_taken_in_its_own_type(given: float, own: int) -> None:
    """The column of the store has whole numbers: 1.0 would end the sweep after its first trial."""
    space = Space.parse({"views.flip": {"choice": [0, 1], "default": 0}})
    (found,) = whole_configurations([{"views.flip": given}], space)
    assert found == {"views.flip": own}
    assert type(found["views.flip"]) is int
    lr = Space.parse({"lr": {"uniform": [0.0, 3.0], "default": 1.0}})["lr"]
    assert type(in_own_type(lr, 1)) is float
