"""Values that exclude each other are not proposed, however large their share of the space is."""

from collections.abc import Mapping

import pytest

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.search import SearchStudy

CROPS = Space.parse(
    {
        "smallest": {"uniform": [0.0, 1.0], "default": 0.2},
        "largest": {"uniform": [0.0, 1.0], "default": 0.9},
    }
)
FINITE = Space.parse(
    {
        "smallest": {"int": [1, 4], "default": 1},
        "largest": {"int": [1, 4], "default": 4},
    }
)


def fits(values: Mapping[str, Scalar]) -> bool:
    return float(values["smallest"]) <= float(values["largest"])


def barely(values: Mapping[str, Scalar]) -> bool:
    """One configuration in fifty."""
    return float(values["smallest"]) <= float(values["largest"]) - 0.8


@pytest.mark.parametrize("sampler", ["tpe", "curves", "gp", "cmaes", "random"])
def test_no_sampler_proposes_what_cannot_be_run(sampler: str) -> None:
    study = SearchStudy(CROPS, sampler=sampler, seed=1, trials=20, possible=fits)
    for number in range(20):
        values = study.ask().values
        assert fits(values)
        # Better where the crops would be of no size: samplers are drawn to what is not possible.
        study.complete(number, float(values["smallest"]) - float(values["largest"]))


def test_a_small_part_of_a_space_is_found() -> None:
    study = SearchStudy(CROPS, sampler="random", seed=1, trials=20, possible=barely)
    study.ask()  # the defaults
    assert all(barely(study.ask().values) for _ in range(19))


def test_what_is_possible_does_not_change_other_proposals() -> None:
    proposals = [
        [SearchStudy(CROPS, sampler="random", seed=seed, **more).ask().values for seed in range(5)]
        for more in ({}, {"possible": lambda values: True})
    ]
    assert proposals[0] == proposals[1]


def test_a_finite_space_is_searched_without_what_cannot_be_run() -> None:
    study = SearchStudy(FINITE, sampler="random", seed=1, trials=12, possible=fits)
    found = {tuple(study.ask().values.values()) for _ in range(10)}
    assert found == {(low, high) for low in range(1, 5) for high in range(low, 5)}
    # None is left: one that can be run is repeated.
    assert tuple(study.ask().values.values()) in found


def test_where_nothing_can_be_run_the_search_still_proposes() -> None:
    study = SearchStudy(CROPS, sampler="random", seed=1, trials=3, possible=lambda values: False)
    assert [study.ask().number for _ in range(3)] == [0, 1, 2]


def test_a_model_proposes_the_best_of_what_can_be_run() -> None:
    """The best configurations cannot be run: the search comes near to the bound, not to draws by chance."""
    study = SearchStudy(CROPS, sampler="curves", seed=1, trials=30, possible=fits)
    gaps = []
    for number in range(30):
        values = study.ask().values
        gaps.append(float(values["largest"]) - float(values["smallest"]))
        study.report(number, 1, -gaps[-1])
        study.complete(number, -gaps[-1])
    assert sum(gap < 0.05 for gap in gaps[10:]) >= 8


def test_a_sampler_without_a_model_of_all_keeps_what_it_can_of_its_draws() -> None:
    """TPE's draws lie where nothing can be run: it still learns more than draws by chance."""

    def best(sampler: str, seed: int) -> float:
        study = SearchStudy(CROPS, sampler=sampler, seed=seed, trials=40, possible=fits)
        losses = []
        for number in range(40):
            values = study.ask().values
            smallest, largest = float(values["smallest"]), float(values["largest"])
            losses.append(largest - smallest + 4 * (smallest - 0.3) ** 2)
            study.complete(number, -losses[-1])
        return min(losses)

    means = {name: sum(best(name, seed) for seed in range(6)) / 6 for name in ("tpe", "random")}
    assert means["tpe"] < means["random"] / 2


@pytest.mark.parametrize("seed", [4, 8])
def test_a_possible_configuration_is_repeated_before_an_impossible_one_is_proposed(seed: int) -> None:
    space = Space.parse({"x": {"choice": [1, 2, 3], "default": 1}})
    study = SearchStudy(
        space, sampler="random", seed=seed, first=[{"x": 2}], possible=lambda values: values["x"] != 3
    )
    assert [study.ask().values["x"] for _ in range(2)] == [1, 2]
    assert {study.ask().values["x"] for _ in range(4)} <= {1, 2}
