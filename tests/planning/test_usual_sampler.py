"""The sampler that a search has if none is given."""

from contrasweep.tuning.planning.plan_sweep import plan_sweep


def test_the_sampler_follows_the_number_of_metrics_unless_it_is_given() -> None:
    for metric, expected in ((None, "curves"), ("accuracy", "curves"), ("accuracy,colour_mse", "tpe")):
        plan = plan_sweep("fair-cclk", "colour-digits", metric=metric)
        assert plan.search.sampler == expected
        assert plan.record().require_search().sampler == expected
    assert plan_sweep("infonce", "digits", sampler="random").search.sampler == "random"
