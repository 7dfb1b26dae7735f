"""Search spaces: their forms, their conditions, and the rest of the space after a value is pinned."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrasweep.search_spaces import Choice, Fixed, Range, Space, SpaceError

KERNELS = {
    "sigma2": {"log": [1.0, 1.0e5], "default": 100.0, "when": {"kernel": ["rbf", "linear"]}},
    "kernel": {"choice": ["rbf", "linear", "cosine"], "default": "cosine", "source": "Table 3"},
    "degree": {"int": [1, 3], "default": 2, "when": {"sigma_kind": ["auto"]}},
    "sigma_kind": {"choice": ["auto", "given"], "default": "auto", "when": {"kernel": ["rbf"]}},
    "optimizer.lr": {"log": [1.0e-2, 3.0], "default": 0.3},
    "weights": "released",
}


def kernels() -> Space:
    return Space.parse(KERNELS, "kernels.yaml")


def test_parents_come_before_the_parameters_that_depend_on_them() -> None:
    assert kernels().names == ("kernel", "sigma2", "sigma_kind", "degree", "optimizer.lr", "weights")


def test_every_form_is_read() -> None:
    space = Space.parse(
        {
            "a": {"choice": [False, True], "default": True},
            "b": {"uniform": [0, 1], "default": 0.5},
            "c": {"log": [1.0e-3, 1], "default": 0.1},
            "d": {"int": [1, 9], "default": 2},
            "e": {"log_int": [1, 512], "default": 64},
            "f": 0.9,
            "g": {"fixed": "all", "source": "Eq. 1"},
        }
    )
    assert [type(p) for p in space.parameters] == [Choice, Range, Range, Range, Range, Fixed, Fixed]
    kinds = {"a": "bool", "b": "float", "c": "float", "d": "int", "e": "int", "f": "float", "g": "string"}
    assert space.types() == kinds
    assert space.fixed == {"f": 0.9, "g": "all"}
    assert [p.name for p in space.searched] == ["a", "b", "c", "d", "e"]
    assert space["g"].source == "Eq. 1"


def test_defaults_hold_only_what_is_active_under_them() -> None:
    assert kernels().defaults() == {"kernel": "cosine", "optimizer.lr": 0.3, "weights": "released"}


@pytest.mark.parametrize(
    ("values", "conditional"),
    [
        ({"kernel": "cosine"}, ()),
        ({"kernel": "linear"}, ("sigma2",)),
        ({"kernel": "rbf", "sigma_kind": "given"}, ("sigma2", "sigma_kind")),
        ({"kernel": "rbf", "sigma_kind": "auto"}, ("sigma2", "sigma_kind", "degree")),
        # An inactive parent activates nothing, whatever value it is said to have.
        ({"kernel": "cosine", "sigma_kind": "auto"}, ()),
    ],
)
def test_a_parameter_is_active_when_its_parents_are_and_hold_the_right_values(
    values: dict[str, str], conditional: tuple[str, ...]
) -> None:
    active = set(kernels().active(values))
    assert active & {"sigma2", "sigma_kind", "degree"} == set(conditional)
    assert {"kernel", "optimizer.lr", "weights"} <= active


def test_complete_adds_fixed_values_drops_inactive_ones_and_misses_nothing() -> None:
    given_values = {"kernel": "cosine", "sigma2": 5.0, "optimizer.lr": 1.0}
    full = {"kernel": "cosine", "optimizer.lr": 1.0, "weights": "released"}
    assert kernels().complete(given_values) == full
    with pytest.raises(SpaceError, match=r"no value for optimizer\.lr"):
        kernels().complete({"kernel": "cosine"})


def test_a_condition_on_several_parents_needs_all_of_them() -> None:
    binary = {"choice": ["on", "off"], "default": "on"}
    both = {"when": {"a": ["on"], "b": ["on"]}, "int": [0, 3], "default": 1}
    space = Space.parse({"a": binary, "b": binary, "c": both})
    assert "c" in space.active({"a": "on", "b": "on"})
    assert "c" not in space.active({"a": "on", "b": "off"})


def test_pin_fixes_one_parameter_and_leaves_the_space_as_it_was() -> None:
    space = kernels()
    pinned = space.pin("optimizer.lr", 7)
    assert pinned.fixed["optimizer.lr"] == 7.0
    assert isinstance(pinned.fixed["optimizer.lr"], float)
    assert space.names == pinned.names
    assert "optimizer.lr" not in space.fixed


def test_pin_drops_descendants_that_can_never_be_active() -> None:
    assert kernels().pin("kernel", "cosine").names == ("kernel", "optimizer.lr", "weights")
    assert kernels().pin("kernel", "linear").names == ("kernel", "sigma2", "optimizer.lr", "weights")
    assert kernels().pin("sigma_kind", "given").names == tuple(n for n in kernels().names if n != "degree")


def test_a_pinned_parameter_keeps_its_condition() -> None:
    pinned = kernels().pin("sigma2", 9.0)
    assert "sigma2" not in pinned.active({"kernel": "cosine"})
    assert pinned.complete({"kernel": "linear", "optimizer.lr": 1.0})["sigma2"] == 9.0


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("optimizer.lr", "high", "a number, such as"),
        ("optimizer.lr", True, "a number, such as"),
        ("kernel", 3, "text, such as"),
    ],
)
def test_pin_refuses_a_value_of_another_type(name: str, value: str | bool | int, allowed: str) -> None:
    # The file of the space is not named: the value does not come from there.
    with pytest.raises(SpaceError, match=f"^{name}: given {value!r}; allowed: {allowed}"):
        kernels().pin(name, value)


def test_pin_names_the_nearest_parameter() -> None:
    with pytest.raises(
        SpaceError, match=r"kernels\.yaml: unknown parameter 'optimiser\.lr'.*'optimizer\.lr'"
    ):
        kernels().pin("optimiser.lr", 1.0)


def test_json_gives_the_same_space_back() -> None:
    for space in (kernels(), kernels().pin("kernel", "rbf"), kernels().pin("sigma2", 3.0)):
        again = Space.parse(space.forms())
        assert again.parameters == space.parameters
        assert again.difference(space) == []


def test_difference_names_what_changed() -> None:
    changed = {**KERNELS, "optimizer.lr": {"log": [1.0e-2, 9.0], "default": 0.3}, "extra": 1}
    del changed["degree"]
    assert Space.parse(changed).difference(kernels()) == [
        "optimizer.lr: was log [0.01, 3.0], default 0.3, is log [0.01, 9.0], default 0.3",
        "degree: removed (was int [1, 3], default 2 when sigma_kind in ['auto'])",
        "extra: added (fixed at 1)",
    ]


def test_difference_sees_a_condition_and_ignores_a_source() -> None:
    narrower = {**KERNELS, "sigma2": {**KERNELS["sigma2"], "when": {"kernel": ["rbf"]}}}  # type: ignore[dict-item]
    assert len(Space.parse(narrower).difference(kernels())) == 1
    sourced = {**KERNELS, "sigma2": {**KERNELS["sigma2"], "source": "elsewhere"}}  # type: ignore[dict-item]
    assert Space.parse(sourced).difference(kernels()) == []


def test_a_continuous_space_has_no_size_and_no_grid() -> None:
    assert kernels().size() is None
    with pytest.raises(SpaceError, match=r"no grid over the continuous sigma2, optimizer\.lr"):
        next(kernels().grid())


def test_the_grid_holds_each_configuration_once_with_conditions() -> None:
    finite = {k: v for k, v in KERNELS.items() if k not in ("sigma2", "optimizer.lr")}
    space = Space.parse(finite)
    grid = list(space.grid())
    # rbf: auto with three degrees, or given; linear; cosine.
    assert len(grid) == space.size() == 6
    assert len({frozenset(values.items()) for values in grid}) == 6
    assert all(tuple(values) == space.active(values) for values in grid)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 4))
def test_size_agrees_with_the_grid(sizes: list[int], shown: int) -> None:
    content: dict[str, object] = {"p0": {"choice": list(range(4)), "default": 0}}
    for i, size in enumerate(sizes, start=1):
        when = {"when": {f"p{i - 1}": list(range(min(shown, size if i == 1 else sizes[i - 2])))}}
        content[f"p{i}"] = {"choice": list(range(size)), "default": 0, **when}
    space = Space.parse(content)
    assert space.size() == len(list(space.grid()))


def test_levels_keep_the_ends_the_scale_and_the_default() -> None:
    space = Space.parse(
        {
            "lr": {"log": [0.001, 1.0], "default": 0.02},
            "crop": {"uniform": [0.0, 1.0], "default": 1.0},
            "queue": {"log_int": [1, 3], "default": 2},
            "degree": {"int": [1, 9], "default": 2},
            "scale": {"uniform": [0.0, 1.0], "default": 0.5, "when": {"degree": [8]}},
        }
    ).with_levels(4)
    assert [tuple(space[name].values()) for name in ("lr", "crop", "queue")] == [
        (0.001, 0.02, 0.1, 1.0),
        (0.0, 0.333333, 0.666667, 1.0),
        (1, 2, 3),
    ]
    assert list(space["degree"].values()) == list(range(1, 10)), "scale depends on one of its values"
    assert space.size() == 4 * 4 * 3 * (8 + 4)
    assert [space[name].default for name in ("lr", "crop", "queue")] == [0.02, 1.0, 2]
    assert Space.parse(space.forms(), space.origin) == space
    with pytest.raises(SpaceError, match="given 1 levels of a range; allowed: 2 or more"):
        space.with_levels(1)


def test_what_every_configuration_has() -> None:
    space = Space.parse(
        {
            "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
            "sigma2": {"log": [1.0, 9.0], "default": 2.0, "when": {"kernel": ["rbf"]}},
            "lam": {"log": [1.0, 9.0], "default": 2.0, "when": {"kernel": ["rbf", "cosine"]}},
            "power": {"log": [1.0, 9.0], "default": 2.0, "when": {"sigma2_on": [True]}},
            "sigma2_on": True,
        }
    )
    assert set(space.always_searched) == {"kernel", "lam", "power"}
