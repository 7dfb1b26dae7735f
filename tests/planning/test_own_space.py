"""A user's space file: what it takes over from a method's space, and the defaults that it leaves out."""

from pathlib import Path
from typing import Any

import pytest

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.own_space import space_of_file
from contrasweep.tuning.planning.spaces import complete_space, own_space, space_of, with_rates_of

METHOD, DATASET = "fair-cclk", "colour-digits"


def read(tmp_path: Path, text: str, method: str = METHOD, **values: Any) -> Space:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    return space_of_file(file, [method], DATASET, values)


def test_what_a_file_does_not_name_is_as_in_the_space_that_it_extends(tmp_path: Path) -> None:
    own = own_space(METHOD, DATASET)
    assert read(tmp_path, f"extends: {METHOD}").forms() == own.forms()
    changed = read(tmp_path, f"extends: {METHOD}\ntemperature: {{log: [0.1, 2.0]}}\n")
    assert set(changed.names) == set(own.names)
    assert changed["temperature"].to_form() == {"log": [0.1, 2.0], "default": own["temperature"].default}
    assert all(changed[name] == own[name] for name in own.names if name != "temperature")
    assert changed["views.min_crop"].default == 0.4, "the dataset's default, not the method's"


def test_what_depends_on_a_value_that_is_left_out_goes_too(tmp_path: Path) -> None:
    cosine = read(tmp_path, f"extends: {METHOD}\nkernel: {{choice: [cosine]}}\n")
    assert "sigma2" not in cosine
    assert "sigma2" not in space_of(METHOD, DATASET, read(tmp_path, f"extends: {METHOD}\nkernel: cosine\n"))
    some = read(tmp_path, f"extends: {METHOD}\nkernel: {{choice: [cosine, laplacian]}}\n")
    assert some["sigma2"].when == {"kernel": ("laplacian",)}
    assert some["sigma2"].given == {"kernel": ()}
    assert space_of(METHOD, DATASET, some).forms() == some.forms()


def test_rates_are_those_of_the_optimizer_in_use(tmp_path: Path) -> None:
    given = {"optimizer.name": "lars"}
    assert (
        read(tmp_path, f"extends: {METHOD}", **given)["optimizer.lr"]
        == own_space(METHOD, DATASET, given)["optimizer.lr"]
        != own_space(METHOD, DATASET)["optimizer.lr"]
    )


def test_an_optimizer_that_the_file_fixes_brings_its_rates(tmp_path: Path) -> None:
    adam = own_space(METHOD, DATASET, {"optimizer.name": "adam"})["optimizer.lr"]
    for form in ("adam", "{fixed: adam}"):
        found = read(tmp_path, f"extends: {METHOD}\noptimizer.name: {form}\n")
        assert found["optimizer.lr"] == adam != own_space(METHOD, DATASET)["optimizer.lr"]
    # A given one wins, as its value does.
    given = {"optimizer.name": "lars"}
    both = read(tmp_path, f"extends: {METHOD}\noptimizer.name: adam\n", **given)
    assert both["optimizer.lr"] == own_space(METHOD, DATASET, given)["optimizer.lr"]


def test_a_space_that_searches_the_optimizer_keeps_its_rates() -> None:
    searched = Space.parse(
        {
            "optimizer.name": {"choice": ["sgd", "adam"], "default": "sgd"},
            "optimizer.lr": {"log": [0.001, 0.1], "default": 0.01},
        }
    )
    assert with_rates_of("adam", searched) is searched


@pytest.mark.parametrize(
    ("form", "default"),
    [
        ("batch_size: {choice: [32, 64, 128]}", 128),
        ("schedule.warmup_epochs: {int: [0, 3]}", 0),
        ("optimizer.momentum: {uniform: [0, 0.99]}", 0.9),
        ("views.max_crop: {uniform: [0.3, 1]}", 1.0),
        ("temperature: {log: [0.1, 10]}", 0.2),
        ("temperature: {log: [0.01, 0.04]}", 0.02),
        ("temperature: {uniform: [1, 2]}", 1.5),
        ("kernel: {choice: [cosine, rbf]}", "rbf"),
        ("kernel: {choice: [laplacian, cosine]}", "laplacian"),
        ("batch_size: {int: [10, 20]}", 15),
        ("lam: {log: [0.1, 10], default: 5}", 5.0),
    ],
)
def test_a_default_that_is_left_out_is_the_methods_or_the_middle(
    form: str, default: Any, tmp_path: Path
) -> None:
    (parameter,) = read(tmp_path, form).searched
    assert parameter.default == (pytest.approx(default) if isinstance(default, float) else default)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "extends: fair-cclkk\n",
            ["own.yaml: extends: unknown method 'fair-cclkk'. Did you mean 'fair-cclk'?"],
        ),
        (
            f"extends: {METHOD}\nlam: {{lg: [1, 2]}}\ntemperature: {{log: [0.1]}}\nkernl: {{choice: [a]}}\n",
            ["lam: unknown key 'lg'", "temperature: log: given [0.1]", "'kernl'. Did you mean 'kernel'?"],
        ),
        ("temperature: {choice: []}\n", ["temperature: choice: given 0 values"]),
        ("", ["given nothing; allowed: a mapping"]),
        ("seed: {choice: [1, 2]}\n", ["seed is not searched: trials are compared by it; use --seeds"]),
        ("epochs: {choice: [1, 2]}\n", ["compared by it; use --epochs"]),
        (
            "optimizer: {lr: {log: [0.001, 1.0]}, momentum: 0.9}\ntemperature: [0.05, 1.0]\n",
            ["optimizer: given a section; write optimizer.lr, optimizer.momentum", "{log: [..]}"],
        ),
        (
            "hyperparameters: {temprature: 0.1, lam: 2.0}\nkernel: 3\n",
            ["hyperparameters: given a section; write temprature, lam", "unknown value of kernel: 3"],
        ),
        ("- 3\n", ["given list; allowed: a mapping"]),
    ],
)
def test_faults_are_told_together(text: str, parts: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        complete_space(METHOD, read(tmp_path, text))
    assert all(part in str(refused.value) for part in parts), str(refused.value)
