"""The shipped ranges hold what the papers found, and belong to the optimizer that runs."""

from typing import Any

import pytest

from contrasweep.search_spaces import Range, Space, available_presets, method_space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.request import split_preset
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.spaces import space_of


@pytest.mark.parametrize(("method", "dataset"), available_presets())
def test_a_preset_s_value_of_a_searched_parameter_lies_inside_its_range(method: str, dataset: str) -> None:
    _, held, _ = split_preset(method, dataset, None, {})
    assert {p.name for p in method_space(method).searched} & held.keys() == set()


def test_a_search_with_another_optimizer_has_its_range_of_rates() -> None:
    def rates(method: str, dataset: str, values: dict[str, Any], **more: Any) -> tuple[float, float, float]:
        rate = space_of(method, dataset, more.get("space"), values)["optimizer.lr"]
        assert isinstance(rate, Range)
        return rate.low, rate.high, rate.default

    assert rates("infonce", "digits", {}) == (0.01, 1.0, 0.1)
    assert rates("infonce", "digits", {"optimizer.name": "lars"}) == (0.001, 5.0, 1.5)
    assert rates("fairkl", "biased-digits", {"optimizer.name": "sgd"}) == (0.01, 1.0, 0.1)
    assert rates("fairkl", "biased-digits", {"optimizer.name": "adam"}) == rates(
        "fairkl", "biased-digits", {}
    )
    mine = Space.parse({"optimizer.lr": {"log": [0.2, 0.3], "default": 0.2}})
    assert rates("infonce", "digits", {"optimizer.name": "lars"}, space=mine) == (0.2, 0.3, 0.2)
    with pytest.raises(InputError, match="not_known"):
        resolve("infonce", "digits", {"optimizer.name": "not_known"})
