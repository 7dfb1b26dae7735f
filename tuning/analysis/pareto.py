"""The Pareto front: the points that no other point beats in everything."""

from collections.abc import Sequence


def pareto_front(points: Sequence[Sequence[float]]) -> list[int]:
    """Return the places of the points on the front, in their order; every coordinate is to be large.

    A point is on it unless another is at least as large in every coordinate, and larger in one. Equal points
    stand or fall together.
    """
    return [place for place, point in enumerate(points) if not any(_beats(other, point) for other in points)]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)
