"""How often the k-means of an epoch starts, in every method that clusters its own representation."""

from typing import Any

import pytest
import torch
from torch import Tensor

from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.clustering import kmeans_of_epoch
from contrasweep.tuning.planning.resolve import resolve


def _experiment(method: str, **values: Any) -> Experiment:
    return resolve(method, "colour-digits", values)


def _parts(rows: Tensor, groups: Tensor) -> list[Tensor]:
    return [rows[groups == number] for number in groups.unique()]


@pytest.mark.parametrize("method", ["cl-infonce", "cluster-ce", "pcl"])
def test_the_best_of_several_starts_is_kept_and_the_seed_decides(method: str) -> None:
    """As in the released codes of Cl-InfoNCE and PCL: 5 starts of 20 iterations."""
    rows = torch.rand(96, 3, generator=torch.Generator().manual_seed(0))
    assert _experiment(method).hyperparameters["kmeans_starts"] == 5

    def squares(starts: int, seed: int) -> float:
        groups = kmeans_of_epoch(_experiment(method, kmeans_starts=starts), 1, rows, 12, seed)
        again = kmeans_of_epoch(_experiment(method, kmeans_starts=starts), 1, rows, 12, seed)
        assert torch.equal(groups, again)
        return sum(float((part - part.mean(0)).square().sum()) for part in _parts(rows, groups))

    one, five = ([squares(starts, seed) for seed in range(8)] for starts in (1, 5))
    # Only chance differs between seeds, so that one start in five is the best of five on average.
    assert sum(five) < sum(one)
    assert max(five) < max(one)
    # A study that is older than the setting goes on with one start.
    old = _experiment(method)
    values = {name: value for name, value in old.hyperparameters.items() if name != "kmeans_starts"}
    old = old.model_copy(update={"hyperparameters": values})
    first = kmeans_of_epoch(_experiment(method, kmeans_starts=1), 1, rows, 12, 0)
    assert torch.equal(kmeans_of_epoch(old, 1, rows, 12, 0), first)
