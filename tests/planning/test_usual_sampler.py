"""The sampler that a search has if none is given."""

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep


def test_the_sampler_follows_the_number_of_metrics_unless_it_is_given() -> None:
    for metric, expected in ((None, "curves"), ("accuracy", "curves"), ("accuracy,colour_mse", "tpe")):
        plan = plan_sweep("fair-cclk", "colour-digits", metric=metric)
        assert plan.search.sampler == expected
        assert plan.record().require_search().sampler == expected
    both = plan_sweep("fair-cclk", "colour-digits", metric="accuracy", asha_metric="colour_mse")
    assert both.search.sampler == "tpe"
    assert plan_sweep("infonce", "digits", sampler="random").search.sampler == "random"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sampler": "curves"}, "--asha-metric colour_mse does not go with --sampler curves"),
        ({"scheduler": "none"}, "--asha-metric colour_mse goes with --scheduler asha, given none"),
    ],
)
def test_a_metric_of_asha_s_own_is_refused_where_it_would_mislead(options: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        plan_sweep("fair-cclk", "colour-digits", asha_metric="colour_mse", **options)
