"""Figures of clusterings: what they say about the labels, facts of the data that no run stands behind."""

from collections.abc import Iterable
from pathlib import Path

from contrasweep.data import InformationCurve, load_clusterings
from contrasweep.tuning.tables.results import RunValue, TableResults

CURVES = ("I(Z;T)", "H(Z|T)", "-H(Z|T)", "clusters")
"""What is kept of each number k of attributes: three curves in bits, and how many clusters there are."""


def information_values(clusterings: str, data_root: Path | None = None) -> tuple[RunValue, ...]:
    """Return the curves of a set of clusterings, `kK` in the place of a row and the curve's name as column.

    Raises:
        DatasetMissing: its file is not in place.
    """
    curve = load_clusterings(clusterings, data_root).curve()
    heights: Iterable[tuple[str, Iterable[float]]] = zip(
        CURVES,
        (
            curve.information,
            curve.conditional_entropy,
            [-entropy for entropy in curve.conditional_entropy],
            map(float, curve.clusters),
        ),
        strict=True,
    )
    return tuple(
        RunValue(f"k{k}", name, None, height, study=clusterings)
        for name, values in heights
        for k, height in zip(curve.ks, values, strict=True)
    )


def information_of(results: TableResults) -> InformationCurve:
    """Return the curves that a table's results hold."""
    heights: dict[str, dict[int, float]] = {}
    for value in results.values:
        heights.setdefault(value.column, {})[int(value.row.removeprefix("k"))] = value.value
    ks = sorted(heights[CURVES[0]])
    information, entropy, _, clusters = (tuple(heights[name][k] for k in ks) for name in CURVES)
    return InformationCurve(tuple(ks), tuple(map(int, clusters)), information, entropy)
