"""All faults of an input are told at once."""

from collections.abc import Mapping
from typing import Any

import pytest

from contrasweep.tuning.errors import MOST_LEFT_OUT, Faults, InputError, every_fault


def _check(values: Mapping[str, Any]) -> int:
    """Refuse the first negative value, and two values that only go together."""
    for name, value in values.items():
        if name.startswith("number") and value < 0:
            raise InputError(f"{name} is {value}.")
    if len(values.get("mean", "")) != len(values.get("std", "")):
        raise InputError(f"mean {values.get('mean')} and std {values.get('std')} differ")
    return len(values)


def test_values_without_a_fault_give_what_the_check_gives() -> None:
    assert every_fault(_check, {"number 1": 1, "mean": "a", "std": "b"}) == 3


def test_each_fault_is_told_once_and_values_that_differ_from_each_other_are_one() -> None:
    values = {"number 1": -1, "number 2": 2, "mean": "aa", "std": "b", "number 3": -3}
    with pytest.raises(InputError) as told:
        every_fault(_check, values)
    assert str(told.value) == "number 1 is -1; number 3 is -3; mean aa and std b differ"


def test_a_fault_of_no_value_ends_the_search_for_others() -> None:
    def refuse(values: Mapping[str, Any]) -> None:
        raise InputError("the data lacks labels")

    with pytest.raises(InputError, match=r"^the data lacks labels$"):
        every_fault(refuse, {"number 1": -1})


def test_of_very_many_values_the_first_fault_is_told() -> None:
    values = {f"number {place}": -1 for place in range(MOST_LEFT_OUT + 1)}
    with pytest.raises(InputError, match=r"^number 0 is -1.$"):
        every_fault(_check, values)


def test_faults_that_were_noted_are_one_error() -> None:
    faults = Faults()
    faults.tell()
    for word in ("one.", "two."):
        with faults.noted():
            raise ValueError(word)
    with pytest.raises(InputError, match=r"^one; two\.$"):
        faults.tell()
