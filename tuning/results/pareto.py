"""The Pareto front: the points that no other point beats in everything."""

from collections.abc import Sequence


def pareto_front(points: Sequence[Sequence[float]]) -> list[int]:
    """Return the places of the points on the front, in their order; every coordinate is to be large.

    A point is on it unless another is at least as large in every coordinate, and larger in one. Equal points
    stand or fall together.
    """
    front: list[int] = []
    # What beats a point comes before it in this order, and so does a point of the front that beats it.
    for place in sorted(range(len(points)), key=lambda place: tuple(points[place]), reverse=True):
        if not any(_beats(points[other], points[place]) for other in front):
            front.append(place)
    return sorted(front)


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)
