"""Settings that follow from the data: which images validate, and the revision of images that are made."""

import pytest
import torch

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.objectives.prepared import prepare_data
from contrasweep.tuning.planning.resolve import check_experiment, resolve


@pytest.mark.parametrize(
    ("method", "dataset", "split"),
    [
        ("infonce", "digits", "class"),
        ("fairkl", "biased-digits", "recoloured"),
        ("fairkl", "biased-mnist:rho=0.999", "recoloured"),
        ("fairkl", "bffhq", "group"),
        ("fairkl", "corrupted-cifar10:percent=2", "group"),
        ("fairkl", "corrupted-cifar10:percent=2,layout=derived", "recoloured"),
        ("herocon", "two-view-digits", "class"),
        ("herocon", "scene", "folds"),
    ],
)
def test_the_validation_split_suits_the_data_and_is_none_of_a_final_run(
    method: str, dataset: str, split: str
) -> None:
    e = resolve(method, dataset)
    assert e.validation.split == split
    # Final runs hold nothing out: those of earlier versions, which had no such setting, count for the same.
    halved = e.with_values({"validation.halves": True})
    for one in (e, halved):
        assert one.on_all_training_data().content()["validation"] == {"fraction": 0.0, "seed": 0}
    assert halved.identity() != e.identity()
    # A search that scores on other images is another search.
    assert (e.identity() == e.with_values({"validation.split": "class"}).identity()) == (split == "class")


@pytest.mark.parametrize(
    ("method", "dataset", "split", "allowed"),
    [
        ("infonce", "digits", "group", "class"),
        ("fairkl", "corrupted-cifar10", "recoloured", "group, class"),
        ("fairkl", "biased-digits", "folds", "recoloured, group, class"),
        ("herocon", "two-view-digits", "group", "class, folds"),
    ],
)
def test_a_validation_split_that_the_data_do_not_allow_is_refused(
    method: str, dataset: str, split: str, allowed: str
) -> None:
    with pytest.raises(InputError) as refused:
        resolve(method, dataset, {"validation.split": split})
    assert str(refused.value) == f"validation.split of {dataset}: given {split}; allowed: {allowed}"


def test_images_that_are_made_in_another_way_now_make_another_run() -> None:
    e = resolve("fairkl", "biased-mnist:rho=0.999")
    before = e.with_values({"data_revision": 1})
    assert (e.data_revision, resolve("infonce", "digits").data_revision) == (2, 1)
    assert e.identity() != before.identity()
    assert "data_revision" not in before.content()
    said = r"data_revision of biased-mnist:rho=0\.999: given 1; allowed: 2, because its images are made"
    for refused in (
        lambda: check_experiment(before),
        lambda: prepare_data(before, None, torch.device("cpu")),
        lambda: resolve("fairkl", "biased-mnist:rho=0.999", {"data_revision": 1}),
    ):
        with pytest.raises(InputError, match=said):
            refused()
