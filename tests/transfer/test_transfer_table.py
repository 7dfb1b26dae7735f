"""Tables of an evaluation, from invented measurements whose means are known."""

import pytest
import torch

from contrasweep.tuning.transfer.measure import Measurement
from contrasweep.tuning.transfer.table import Cell, cells_of


def measured(
    seed: int, score: float, *, trained: bool = True, draw: int | None = None, confusion: list[list[int]]
) -> Measurement:
    return Measurement(
        "supcon on digits",
        seed,
        trained,
        "digits",
        "logistic",
        None if draw is None else 5,
        draw,
        {"accuracy": score},
        torch.tensor(confusion),
    )


def cell_of(*measurements: Measurement) -> Cell:
    (cell,) = cells_of(measurements)
    return cell


def test_the_accuracy_of_a_class_is_that_of_its_images() -> None:
    """A row of the confusion matrix has the images of a class; a column has what is taken for it."""
    trained = measured(0, 0.5, confusion=[[3, 1, 0], [2, 0, 0], [0, 0, 0]])
    untrained = measured(0, 0.2, trained=False, confusion=[[0, 4, 0], [2, 0, 0], [0, 0, 0]])
    assert cell_of(trained, untrained).class_accuracy == [0.75, 0.0, None]


def test_a_seed_counts_once_however_many_draws_it_has() -> None:
    scores = {(0, 0): 0.1, (0, 1): 0.3, (1, 0): 0.6, (1, 1): 0.8}
    eye = [[1, 0], [0, 1]]
    both = [
        measured(seed, score - (0.0 if trained else 0.1), draw=draw, trained=trained, confusion=eye)
        for (seed, draw), score in scores.items()
        for trained in (True, False)
    ]
    cell = cell_of(*both)
    own = cell.trained["accuracy"]
    assert (cell.over, own.n, own.mean) == ("seeds", 2, pytest.approx(0.45))
    assert own.std == pytest.approx(0.5 / 2**0.5)
    assert cell.untrained["accuracy"].mean == pytest.approx(0.35)
    assert cell.confusion.tolist() == [[4, 0], [0, 4]]
    alone = cell_of(*(one for one in both if one.seed == 0))
    assert (alone.over, alone.trained["accuracy"].n) == ("draws", 2)
    assert alone.trained["accuracy"].std == pytest.approx(0.2 / 2**0.5)
