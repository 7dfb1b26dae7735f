"""Names of datasets with options: their spelling, and wrong ones."""

from pathlib import Path

import pytest
import torch

from contrasweep.data import DatasetFamily, DatasetOption, DatasetSpec, LabelledImages, scored_dataset
from contrasweep.data.options import Options


def _describe(root: Path, options: Options) -> DatasetSpec:
    raise AssertionError("a name is parsed without asking for facts")


def _read(root: Path, split: str, options: Options) -> LabelledImages:
    return LabelledImages(torch.zeros(1, 1, 2, 2, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64))


FAMILY = DatasetFamily(
    name="noisy",
    summary="a family for these tests",
    describe=_describe,
    check=lambda root, options: None,
    read=_read,
    options={
        "level": DatasetOption("how much noise", float, 0.5, low=0.0, high=1.0),
        "copies": DatasetOption("how many", int, 1, low=1),
        "kind": DatasetOption("which noise", str, "uniform", choices=("uniform", "gaussian")),
    },
)
NEEDY = DatasetFamily(
    "folder",
    "one that needs a path",
    _describe,
    lambda r, o: None,
    _read,
    {"path": DatasetOption("", str, None)},
)


def test_options_are_read_in_any_order_over_the_defaults() -> None:
    assert FAMILY.parse("") == {"level": 0.5, "copies": 1, "kind": "uniform"}
    parsed = FAMILY.parse("kind=gaussian,level=0.25")
    assert parsed == {"level": 0.25, "copies": 1, "kind": "gaussian"}
    assert FAMILY.full_name(parsed) == "noisy:level=0.25,kind=gaussian"
    assert FAMILY.full_name(FAMILY.parse("level=0.5")) == "noisy"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("levl=0.3", "option of dataset noisy 'levl'.* Did you mean 'level'"),
        ("level=1.5", "level of dataset noisy must be 0 to 1, given 1.5"),
        ("level=nan", "level of dataset noisy must be 0 to 1, given nan"),
        ("level=much", "must be a number, given 'much'"),
        ("copies=1.5", "must be a whole number, given '1.5'"),
        ("kind=gausian", "Did you mean 'gaussian'"),
        ("level", "option level of dataset noisy needs a value"),
    ],
)
def test_wrong_names_are_refused(given: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FAMILY.parse(given)


def test_an_option_without_a_default_must_be_given() -> None:
    assert NEEDY.needs_options
    assert not FAMILY.needs_options
    assert NEEDY.parse("path=/some/where") == {"path": "/some/where"}
    with pytest.raises(ValueError, match="dataset folder needs path: folder:path="):
        NEEDY.parse("")


@pytest.mark.parametrize(
    ("name", "scored"),
    [
        ("cifar10:condition=clip.npy,images=5000", "cifar10:images=5000"),
        ("imagenet100:classes=cmc,hierarchy=tree.txt,level=3,parents=first", "imagenet100:classes=cmc"),
        ("imagenet9:textures=t.csv,condition=bagnet.npy", "imagenet9:textures=t.csv"),
        ("image-folder:path=own,size=8,condition=clip.npy", "image-folder:path=own,size=8"),
        ("cub:attributes=9", "cub"),
        ("digits:images=0", "digits"),
    ],
)
def test_a_condition_is_no_part_of_what_is_scored(name: str, scored: str) -> None:
    assert scored_dataset(name) == scored
