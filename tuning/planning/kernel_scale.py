"""A warning of a kernel that finds all conditions alike, because its scale is that of other numbers."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from contrasweep.data import DatasetFacts
from contrasweep.search_spaces import Choice, Parameter, Range, Space
from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
from contrasweep.tuning.experiment import Experiment

ALIKE: Final = 0.8
"""Two images whose kernel value is above this count as alike; usual choices of a scale give 0.4 to 0.6."""

_DISTANCE: Final[Mapping[object, float]] = {"rbf": 1.0, "laplacian": 0.5}
"""The kernels with a scale, and the power of the squared distance that they divide by `sigma2`."""


def kernel_scale_in_words(
    experiment: Experiment, facts: DatasetFacts, space: Space | None = None
) -> list[str]:
    """Return a warning if a kernel finds two typical images alike even at the smallest scale; else none.

    The spaces of the methods suit the datasets that come with us; a file may hold any numbers.

    Args:
        experiment: the run; of a sweep, that of the defaults.
        facts: the dataset's.
        space: what a sweep searches.
    """
    searched = {} if space is None else {one.name: one for one in space.searched}
    spread, (kernels, sigma2) = facts.condition_spread, _kernels_and_scale(experiment, searched)
    if spread is None or sigma2 is None or "condition" not in DECLARED_METHODS[experiment.method].needs:
        return []
    distances = {kernel: spread ** _DISTANCE[kernel] for kernel in kernels if kernel in _DISTANCE}
    likeness = {kernel: math.exp(-distance / sigma2) for kernel, distance in distances.items()}
    alike = [kernel for kernel, value in likeness.items() if value > ALIKE]
    if not alike:
        return []
    values = " and ".join(f"{likeness[kernel]:.2g} ({kernel})" for kernel in alike)
    wanted = " and ".join(f"{distances[kernel]:.2g} ({kernel})" for kernel in alike)
    smallest = f"{sigma2:g}, the smallest that is searched," if "sigma2" in searched else f"{sigma2:g}"
    return [
        f"sigma2 = {smallest} is large for {facts.condition_name}: two typical images are alike to {values}, "
        f"where 1 means equal. Values about {wanted} would tell images apart, or multiply the numbers."
    ]


def _kernels_and_scale(
    experiment: Experiment, searched: Mapping[str, Parameter]
) -> tuple[Sequence[object], float | None]:
    """Return the kernels that a run or a sweep uses, and its smallest `sigma2`; None where it has none."""
    kernel, scale = searched.get("kernel"), searched.get("sigma2")
    fixed = experiment.hyperparameters.get("sigma2")
    smallest = scale.low if isinstance(scale, Range) else fixed if isinstance(fixed, float | int) else None
    chosen = kernel.choices if isinstance(kernel, Choice) else (experiment.hyperparameters.get("kernel"),)
    return chosen, smallest
