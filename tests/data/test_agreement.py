"""Whether images have the labels that the facts of their dataset state."""

import pytest
import torch

from contrasweep.data import DatasetSpec, LabelledImages
from contrasweep.data.agreement import Disagreement, check_images


def spec(unlabelled: int) -> DatasetSpec:
    return DatasetSpec(
        name="made-up",
        summary="",
        licence="",
        source="",
        folder="",
        classes=2,
        channels=1,
        image_size=4,
        view_size=4,
        train_size=6,
        test_size=2,
        unlabelled_size=unlabelled,
    )


def some_images() -> LabelledImages:
    return LabelledImages(torch.zeros(3, 1, 4, 4, dtype=torch.uint8), torch.tensor([0, -1, 1]))


def test_some_images_of_a_split_have_no_label_only_where_the_facts_state_it() -> None:
    """How many of a part have none is not known."""
    check_images(some_images(), spec(2), "train", "recoloured", 3, whole=False)
    with pytest.raises(Disagreement, match="1 images without a label; allowed: 0, its unlabelled_size"):
        check_images(some_images(), spec(0), "train", "recoloured", 3, whole=False)
