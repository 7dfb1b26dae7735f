"""Claims about two methods, `fair-cclk > infonce`, and the numbers of trials that a user asks about."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contrasweep.names import names_in
from contrasweep.tuning.errors import InputError, refuse_repeats, unknown_name

ALL: Final = "all"
"""The budget of a whole pool, as a user names it."""


@dataclass(frozen=True)
class Claim:
    """The claim that the first study's method is better than the second's: their places, and how it reads."""

    first: int
    second: int
    text: str


def names_of(studies: Sequence[tuple[str, str]]) -> list[str]:
    """Return what each study is called: its method where no other study has it, else the study itself.

    Args:
        studies: the name and the method of each.
    """
    methods = [method for _, method in studies]
    return [method if methods.count(method) == 1 else study for study, method in studies]


def claims_of(given: Sequence[str], studies: Sequence[tuple[str, str]]) -> list[Claim]:
    """Return the claims that a user gave, each as `A > B`; without any, one for each pair in the order given.

    Args:
        given: the claims; A and B are studies, or methods that one study has.
        studies: the name and the method of each study.

    Raises:
        InputError: a claim has another form, names no study (with the nearest name) or one twice, or is
            given twice.
    """
    names = names_of(studies)
    if not given:
        pairs = itertools.combinations(range(len(names)), 2)
        return [Claim(first, second, f"{names[first]} > {names[second]}") for first, second in pairs]
    found = [_claim(text, names, [study for study, _ in studies]) for text in given]
    refuse_repeats("claim", [one.text for one in found])
    return found


def budgets_of(given: str | None, size: int) -> list[int]:
    """Return numbers of trials, ascending: those of a list with commas, else powers of two, half and all.

    Args:
        given: `1,4,16,all`, say.
        size: of the smallest pool.

    Raises:
        InputError: one is no number, is above the size of the pool, or is given twice.
    """
    if given is None:
        powers = {2**power for power in range(size.bit_length()) if 2**power < size}
        return sorted({*powers, size // 2, size})
    words = names_in(given)
    refuse_repeats("number of trials", words)
    for word in words:
        if word != ALL and not (word.isdecimal() and 1 <= int(word) <= size):
            raise InputError(
                f"--budgets: given {word}; allowed: 1 to {size}, the size of the smallest pool, or all"
            )
    return sorted({size if word == ALL else int(word) for word in words})


def _claim(text: str, names: Sequence[str], studies: Sequence[str]) -> Claim:
    sides = [side.strip() for side in text.split(">")]
    if len(sides) != 2 or not all(sides):
        raise InputError(f"--claim: given {text!r}; allowed: A > B, as in 'fair-cclk > infonce'")
    first, second = (_place(side, names, studies) for side in sides)
    if first == second:
        raise InputError(f"--claim: given {text!r}; allowed: two different studies")
    return Claim(first, second, f"{names[first]} > {names[second]}")


def _place(name: str, names: Sequence[str], studies: Sequence[str]) -> int:
    for known in (names, studies):
        if name in known:
            return list(known).index(name)
    raise unknown_name("study or method of --claim", name, {*names, *studies})
