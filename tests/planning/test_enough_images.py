"""A search leaves out what needs more training images than there are."""

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
