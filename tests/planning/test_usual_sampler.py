"""The sampler that a search has if none is given, and what is said of it."""

import pytest

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.request import repeats, usual_scheduler


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


def test_more_trials_than_configurations_are_remarked_on() -> None:
    four = Space.parse({"a": {"choice": ["x", "y"], "default": "x"}, "b": {"choice": [0, 1], "default": 0}})
    (remark,) = repeats(10, four)
    assert remark.startswith("the space has 4 configurations, so 6 of 10 trials run one again")
    assert repeats(4, four) == ()
    assert repeats(10**6, Space.parse({"a": {"uniform": [0.0, 1.0], "default": 0.5}})) == ()
    # So many that they cannot be counted are enough.
    uncounted = {f"p{n}": {"choice": [0, 1], "default": 0} for n in range(60)}
    uncounted |= {f"c{n}": {"choice": [0, 1], "default": 0, "when": {f"p{n}": [1]}} for n in range(60)}
    assert repeats(10**6, Space.parse(uncounted)) == ()


@pytest.mark.parametrize(
    ("sampler", "metrics", "concurrency", "scheduler"),
    [
        ("curves", ("val.accuracy",), 4, "asha"),
        ("curves", ("val.accuracy",), 5, "asha+curves"),
        ("tpe", ("val.accuracy",), 50, "asha"),
        ("tpe", ("val.accuracy", "val.colour_mse"), 50, "asha"),
    ],
)
def test_with_many_trials_at_once_the_model_of_curves_stops_trials_too(
    sampler: str, metrics: tuple[str, ...], concurrency: int, scheduler: str
) -> None:
    assert usual_scheduler(sampler, metrics, concurrency) == scheduler


def test_the_plan_has_the_usual_scheduler_of_its_concurrency() -> None:
    plans = [plan_sweep("infonce", "digits", concurrency=count) for count in (2, 8)]
    assert [plan.search.scheduler for plan in plans] == ["asha", "asha+curves"]
    given = plan_sweep("infonce", "digits", concurrency=8, scheduler="asha")
    assert given.search.scheduler == "asha"
    front = plan_sweep("infonce", "colour-digits", concurrency=8, metric="accuracy,colour_mse")
    assert (front.search.sampler, front.search.scheduler) == ("tpe", "asha")
    # No more trials run at once than there are.
    assert plan_sweep("infonce", "digits", trials=3, concurrency=8).search.scheduler == "asha"
