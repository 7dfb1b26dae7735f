"""Features in the plane: their first two principal components, or UMAP.

Shapes: P points, D features.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import numpy_generator
from contrasweep.tuning.errors import InputError

NEIGHBOURS: Final = 15
"""Nearest points that UMAP keeps near, the default of its authors."""

FEWEST_FOR_UMAP: Final = 4
"""With fewer points, UMAP has no start: it needs more than two eigenvectors of their graph."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Points in the plane.

    Attributes:
        points: `(P, 2)`, across and up, in 0..1: each direction fills its side of the map.
        note: what the directions are, as a sentence.
    """

    points: Tensor
    note: str


def projected(features: Tensor, method: str) -> Placed:
    """Return features `(P, D)` placed in the plane by a method among `PROJECTIONS`.

    The same features give the same places, on any run of one machine.

    Raises:
        InputError: there are too few points for the method.
    """
    return PROJECTIONS[method](features)


def principal_components(features: Tensor) -> tuple[Tensor, tuple[float, float]]:
    """Return the first two principal components `(P, 2)` of `features` `(P, D)`, and their share of variance.

    Each component is turned so that its largest loading is positive: the same features give the same map.
    """
    centred = features.double() - features.double().mean(dim=0)
    _, values, axes = torch.linalg.svd(centred, full_matrices=False)
    axes, variance = axes[:2], values.square()
    turned = axes * axes.gather(1, axes.abs().argmax(dim=1, keepdim=True)).sign()
    points = centred @ turned.T
    points = functional.pad(points, (0, 2 - points.shape[1]))
    shares = [*(variance / variance.sum().clamp(min=1e-300)).tolist(), 0.0, 0.0]
    return points, (shares[0], shares[1])


def _by_pca(features: Tensor) -> Placed:
    points, shares = principal_components(features)
    across, up = (f"{100 * share:.1f} %" for share in shares)
    note = f"Across the first principal component ({across} of the variance), up the second ({up})."
    return Placed(_in_unit(points), note)


def _by_umap(features: Tensor) -> Placed:
    """Place by UMAP (McInnes, Healy and Melville, arXiv 1802.03426), with the package's own defaults."""
    count = len(features)
    if count < FEWEST_FOR_UMAP:
        raise InputError(f"UMAP places {FEWEST_FOR_UMAP} images or more, given {count}: use --map-method pca")
    # Slow to import, and an extra: `request.check_map_method` has found it.
    from umap import UMAP

    seed = int(numpy_generator("umap").integers(2**31))
    # With a seed, it runs in one thread.
    found = UMAP(n_neighbors=min(NEIGHBOURS, count - 1), random_state=seed, n_jobs=1)
    points = torch.from_numpy(found.fit_transform(features.float().numpy()))
    return Placed(_in_unit(points.double()), "By UMAP: near points are near, far distances mean little.")


PROJECTIONS: Final[Mapping[str, Callable[[Tensor], Placed]]] = {"pca": _by_pca, "umap": _by_umap}
"""The methods by name; `request.MAP_METHODS` has their names without torch, and a test holds them equal."""


def _in_unit(points: Tensor) -> Tensor:
    low, high = points.min(dim=0).values, points.max(dim=0).values
    return (points - low) / (high - low).clamp(min=1e-12)
