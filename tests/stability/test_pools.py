"""Pools of several methods: paired in what they share, even in all else, and inside every space."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from contrasweep.search_spaces import Space
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.enqueued import read_configurations, whole_configurations
from contrasweep.tuning.planning.request import check_request
from contrasweep.tuning.planning.rules import SearchRules
from contrasweep.tuning.stability.pool_request import PoolRequest
from contrasweep.tuning.stability.pools import common_parameters, make_pools, paired_pools


def always(method: str, values: object) -> bool:
    return True


FIRST = Space.parse(
    {
        "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
        "sigma2": {"log": [1.0, 100.0], "default": 10.0, "when": {"kernel": ["rbf"]}},
        "lr": {"log": [0.01, 1.0], "default": 0.1},
        "flip": {"choice": [0.0, 0.5, 1.0], "default": 0.5},
    }
)
SECOND = Space.parse(
    {
        "lr": {"log": [0.001, 0.1], "default": 0.01},
        "flip": {"choice": [0.0, 0.5], "default": 0.5},
        "sigma2": {"log": [1.0, 100.0], "default": 10.0},
        "clusters": {"int": [2, 20], "default": 10},
    }
)


def test_common_parameters_have_the_values_that_all_allow() -> None:
    common = common_parameters([FIRST, SECOND])
    assert list(common) == ["lr", "flip"]
    assert (common["lr"].low, common["lr"].high) == (0.01, 0.1)  # type: ignore[union-attr]
    assert common["flip"].values() == (0.0, 0.5)
    other = Space.parse({"lr": {"uniform": [0.01, 0.1], "default": 0.05}, "flip": 0.5})
    assert not common_parameters([FIRST, other])


def test_configurations_agree_in_what_is_common_and_fill_the_ranges() -> None:
    pools = paired_pools({"a": FIRST, "b": SECOND}, 32, 0, always)
    for one, other in zip(pools["a"], pools["b"], strict=True):
        assert (one["lr"], one["flip"]) == (other["lr"], other["flip"])
    assert whole_configurations(pools["a"], FIRST)
    assert whole_configurations(pools["b"], SECOND)
    assert all(("sigma2" in one) == (one["kernel"] == "rbf") for one in pools["a"])
    # Of a scrambled Sobol sequence, each of 32 equal parts of a range has one of 32 points.
    places = np.log10([float(one["lr"]) for one in pools["a"]]) + 2
    assert sorted((places * 32).astype(int)) == list(range(32))


def test_the_seed_decides() -> None:
    spaces = {"a": FIRST, "b": SECOND}
    assert paired_pools(spaces, 8, 1, always) == paired_pools(spaces, 8, 1, always)
    assert paired_pools(spaces, 8, 1, always) != paired_pools(spaces, 8, 2, always)
    assert len(paired_pools(spaces, 8, -1, always)["a"]) == 8


def test_what_one_method_cannot_run_is_left_out_for_all() -> None:
    spaces = {"a": FIRST, "b": SECOND}
    whole = paired_pools(spaces, 64, 0, always)
    pools = paired_pools(spaces, 12, 0, lambda method, values: method == "a" or values["clusters"] <= 6)
    rows = [row for row, one in enumerate(whole["b"]) if one["clusters"] <= 6][:12]
    assert pools == {name: [whole[name][row] for row in rows] for name in spaces}
    with pytest.raises(InputError, match="of 512 configurations of a, b, 0 can be run, and 8 are wanted"):
        paired_pools(spaces, 8, 0, lambda method, _: method == "a")


def test_the_files_are_what_enqueue_reads(tmp_path: Path) -> None:
    methods = ["infonce", "fair-cclk"]
    words = ["pool", *methods, "--size", "8", "-o", str(tmp_path), "--set", "views.flip=0.0", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["common"] == ["temperature", "optimizer.lr", "views.min_crop"]
    for method in methods:
        enqueue = read_configurations(Path(content["files"][method]), [method])
        rules = SearchRules(values={"views.flip": 0.0}, trials=9)
        assert len(check_request(method, "colour-digits", rules, enqueue=enqueue).enqueued) == 8


def test_python_makes_the_pools_of_the_command(tmp_path: Path) -> None:
    methods = ["infonce", "fair-cclk"]
    words = ["pool", *methods, "--size", "8", "-o", str(tmp_path), "--set", "views.flip=0.0"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    pools = make_pools(PoolRequest(methods, "colour-digits", 8, values={"views.flip": 0.0}))
    assert pools.common == ["temperature", "optimizer.lr", "views.min_crop"]
    assert pools.remarks == []
    for method, configurations in pools.configurations.items():
        assert list(read_configurations(tmp_path / f"{method}.yaml", [method])) == configurations


def test_the_commands_that_come_next_are_complete(tmp_path: Path) -> None:
    given = ["--set", "views.flip=0.0", "--set", "validation.fraction=0.4"]
    done = CliRunner().invoke(app, ["pool", "infonce", "cacr", "--size", "8", "-o", str(tmp_path), *given])
    assert done.exit_code == 0, done.output
    assert "on equal terms" not in done.output
    *sweeps, last = [line for line in done.output.splitlines() if line.startswith("contrasweep ")]
    assert last == "contrasweep stability pool-infonce pool-cacr"
    assert len(sweeps) == 2
    wanted = "--sampler random --scheduler none --set validation.halves=true --set views.flip=0.0 "
    wanted += "--set validation.fraction=0.4 --keep-weights 0 --name pool-infonce"
    assert sweeps[0].endswith(wanted)
    results = ["--results", str(tmp_path / "results"), "--dry-run"]
    planned = CliRunner().invoke(app, [*shlex.split(sweeps[0])[1:], *results])
    assert planned.exit_code == 0, planned.output


def test_a_setting_that_one_method_alone_searches_is_named(tmp_path: Path) -> None:
    """Flips of one method alone would count as its merit or fault."""
    words = ["pool", "infonce", "cross-entropy", "--size", "8", "--data", "digits", "-o", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert "views.flip is searched for infonce, and has one value for cross-entropy" in done.output
    assert "`--set views.flip=VALUE` fixes it for all" in done.output
    assert "views.flip" not in CliRunner().invoke(app, [*words, "--set", "views.flip=0.0"]).stderr


def test_more_clusters_than_images_are_not_proposed(tmp_path: Path) -> None:
    """The space of PCL reaches to 25,000 clusters, and `digits` has 1,800 images."""
    done = CliRunner().invoke(app, ["pool", "pcl", "--data", "digits", "--size", "16", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    (command,) = [line for line in done.output.splitlines() if line.startswith("contrasweep ")]
    results = ["--results", str(tmp_path / "results"), "--dry-run"]
    planned = CliRunner().invoke(app, [*shlex.split(command)[1:], *results])
    assert planned.exit_code == 0, planned.output


def test_a_pool_needs_no_files_of_the_dataset(tmp_path: Path) -> None:
    words = ["pool", "infonce", "--data", "cifar10", "--size", "8", "-o", str(tmp_path / "pools")]
    done = CliRunner().invoke(app, [*words, "--data-root", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert f"--data-root {tmp_path}" in done.output


def test_a_finite_space_repeats_itself_and_says_so(tmp_path: Path) -> None:
    given = ["temperature=0.1", "optimizer.lr=0.1", "views.min_crop=0.5"]
    words = [word for one in given for word in ("--set", one)]
    done = CliRunner().invoke(app, ["pool", "infonce", "--size", "8", "-o", str(tmp_path), *words])
    assert done.exit_code == 0, done.output
    assert "of its 8 configurations are different" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("infonce", "fair-cclkk"), "Did you mean 'fair-cclk'?"),
        (("infonce", "infonce"), "each method once"),
        (
            ("infonce", "--size", "6"),
            "--size 6: `stability` compares that many trials besides the defaults, and 8 are needed",
        ),
        (("infonce", "--size", "0"), "size must be at least 1"),
        (
            (
                *("infonce", "--set", "temperature=0.1", "--set", "optimizer.lr=0.1"),
                *("--set", "views.min_crop=0.5", "--set", "views.flip=0.0"),
            ),
            "infonce searches nothing",
        ),
        (("infonce", "--set", "validation.fraction=0"), "validation.fraction is 0: a pool is compared"),
        (("infonce", "--set", "temprature=1"), "Did you mean 'temperature'?"),
    ],
)
def test_wrong_options_of_pool_are_refused(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = CliRunner().invoke(app, ["pool", *words, "-o", str(tmp_path / "pools")])
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())
    assert not (tmp_path / "pools").exists()
