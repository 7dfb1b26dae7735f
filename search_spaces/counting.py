"""How many configurations a finite space has, counted without going through them.

A parameter's values count only by the conditions that they meet. So the parameters are passed once, parents
first, and what is kept of a parent is which of the conditions on it hold, until its last child is passed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from contrasweep.search_spaces.parameters import Parameter, Scalar, SpaceError, among

MOST_CASES = 100_000
"""The largest number of combinations of conditions that are told apart."""

Met = tuple[bool, ...]
"""Which of the conditions on a parent its value meets, in the order of its children."""

Case = tuple[tuple[str, Met], ...]
"""The parents that children are still to come of, each with the conditions that it meets."""


def count_configurations(parameters: Sequence[Parameter]) -> int:
    """Return the number of configurations of parameters that all have a number of values, parents first.

    Raises:
        SpaceError: conditions combine so many parameters that more than `MOST_CASES` cases are to be told
            apart.
    """
    return math.prod(_count(group) for group in _related(parameters))


def _related(parameters: Iterable[Parameter]) -> list[list[Parameter]]:
    """Return the parameters in groups without a condition between them, each with parents first."""
    groups: list[list[Parameter]] = []
    for parameter in parameters:
        near = [group for group in groups if any(one.name in parameter.when for one in group)]
        groups = [group for group in groups if not any(group is other for other in near)]
        groups.append([*(one for group in near for one in group), parameter])
    return groups


def _count(parameters: Sequence[Parameter]) -> int:
    children = {one.name: [child for child in parameters if one.name in child.when] for one in parameters}
    cases: Counter[Case] = Counter({(): 1})
    for number, parameter in enumerate(parameters):
        own = children[parameter.name]
        ways = {True: _ways(parameter, own), False: Counter({(False,) * len(own): 1})}
        place = {parent: children[parent].index(parameter) for parent in parameter.when}
        later = {name for one in parameters[number + 1 :] for name in one.when}
        passed: Counter[Case] = Counter()
        for case, configurations in cases.items():
            met = dict(case)
            active = all(met[parent][child] for parent, child in place.items())
            kept = tuple((name, conditions) for name, conditions in case if name in later)
            for conditions, values in ways[active].items():
                new = ((parameter.name, conditions),) if own else ()
                passed[kept + new] += configurations * values
        if len(passed) > MOST_CASES:
            raise SpaceError(
                f"conditions combine {len(parameters)} parameters in more than {MOST_CASES:,} ways: "
                "its configurations cannot be counted"
            )
        cases = passed
    return cases.total()


def _ways(parameter: Parameter, children: Sequence[Parameter]) -> Counter[Met]:
    """Return the number of values of a parameter by the conditions that they meet."""
    named: list[Scalar] = []
    for value in (value for child in children for value in child.when[parameter.name]):
        if parameter.contains(value) and not among(value, named):
            named.append(value)
    ways = Counter(tuple(among(v, child.when[parameter.name]) for child in children) for v in named)
    others = (parameter.size() or 0) - len(named)
    if others:
        ways[(False,) * len(children)] += others
    return ways
