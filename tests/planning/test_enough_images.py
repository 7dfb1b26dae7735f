"""A search leaves out what needs more training images, or more attributes, than there are."""

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep


@pytest.mark.parametrize(("method", "factor"), [("cl-infonce", 1), ("cluster-ce", 1), ("pcl", 4)])
def test_a_search_leaves_out_more_clusters_than_training_images(method: str, factor: int) -> None:
    values = {"clusterings": 3} if method == "pcl" else {}
    plan = plan_sweep(method, "colour-digits", trials=30, sampler="random", values=values)
    allowed = max(one.high for one in plan.space.searched if one.name == "clusters")  # type: ignore[union-attr]
    study, images = plan.new_study(), 1294
    counts = [study.ask().values["clusters"] for _ in range(30)]
    assert allowed > images / factor >= max(counts)  # type: ignore[type-var]
    with pytest.raises(InputError, match=r"1,294 training images"):
        plan.experiment_of({**plan.space.defaults(), "clusters": allowed})


def test_more_clusters_than_training_images_are_refused_before_any_work() -> None:
    values = {"clusters": 1100, "validation.fraction": 0.3}
    with pytest.raises(InputError, match=r"clusters must be at most the 1,007 training images, given 1,100"):
        plan_sweep("weaklysup-infonce", "colour-digits", values=values)


def test_a_search_leaves_out_more_attributes_than_the_condition_has() -> None:
    space = {"clusters_from": {"fixed": "attributes"}, "top_k": {"log_int": [1, 8], "default": 2}}
    plan = plan_sweep("cl-infonce", "colour-digits", trials=30, sampler="random", space=space)
    study = plan.new_study()
    assert {study.ask().values["top_k"] for _ in range(30)} == {1, 2, 3}
    values = {"clusters_from": "attributes", "top_k": 4}
    with pytest.raises(InputError, match=r"top_k must be at most the 3 columns of the condition, given 4"):
        plan_sweep("cl-infonce", "colour-digits", values=values)
