"""Configurations are counted without going through them, and the count is that of going through them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrasweep.search_spaces import Space, SpaceError


@st.composite
def spaces(draw: st.DrawFn) -> dict[str, object]:
    """Draw up to six parameters; each depends on any of those before it."""
    content: dict[str, object] = {}
    sizes: list[int] = []
    for number in range(draw(st.integers(1, 6))):
        sizes.append(draw(st.integers(1, 4)))
        when = {
            f"p{parent}": draw(st.lists(st.integers(0, sizes[parent] - 1), min_size=1))
            for parent in draw(st.sets(st.integers(0, number - 1), max_size=3) if number else st.just(set()))
        }
        form = (
            {"int": [0, sizes[number] - 1]}
            if sizes[number] > 1 and draw(st.booleans())
            else {"choice": list(range(sizes[number]))}
        )
        content[f"p{number}"] = {**form, "default": 0, **({"when": when} if when else {})}
    return content


@given(spaces())
def test_the_count_is_that_of_the_grid(content: dict[str, object]) -> None:
    space = Space.parse(content)
    assert space.size() == len(list(space.grid()))


def test_a_huge_space_is_counted_at_once() -> None:
    ten = {"choice": list(range(10)), "default": 0}
    content: dict[str, object] = {f"p{number}": ten for number in range(39)}
    assert Space.parse(content).size() == 10**39
    # Each has a child of two values, which one of its values has: 9 + 2.
    children = {
        f"c{number}": {"choice": [0, 1], "default": 0, "when": {f"p{number}": 3}} for number in range(39)
    }
    assert Space.parse({**content, **children}).size() == 11**39
    wide = {"p": {"int": [-(2**52), 2**52], "default": 0}, "c": {**ten, "when": {"p": [5]}}}
    assert Space.parse(wide).size() == 2**53 + 1 + 9


def test_conditions_that_cannot_be_counted_are_refused() -> None:
    two = {"choice": [0, 1], "default": 0}
    parents: dict[str, object] = {f"p{number}": two for number in range(40)}
    child = {"choice": [0, 1], "default": 0, "when": {name: [1] for name in parents}}
    with pytest.raises(SpaceError, match="conditions combine 41 parameters in more than 100,000 ways"):
        Space.parse({**parents, "c": child}).size()
