"""A dataset: images with bright rows or bright columns."""

from pathlib import Path

import torch

from contrasweep.data import DatasetFamily, DatasetSpec, LabelledImages, torch_generator
from contrasweep.data.options import Options
from contrasweep.data.spec import Split
from contrasweep.search_spaces import load_dataset_settings

SIZES = {"train": 96, "test": 32}


def describe(root: Path, options: Options) -> DatasetSpec:
    """Return what is known of the dataset without its images."""
    return DatasetSpec(
        name=DATASET.full_name(options),
        summary=DATASET.summary,
        classes=2,
        channels=1,
        image_size=8,
        view_size=8,
        train_size=SIZES["train"],
        test_size=SIZES["test"],
        licence="none: the images are made up",
        source="contrasweep-stripes",
        folder=None,
    )


def check(root: Path, options: Options) -> None:
    """Accept: no file is needed."""


def read(root: Path, split: Split, options: Options) -> LabelledImages:
    """Return the images of a split, uint8 `(N, 1, 8, 8)`, with the labels 0 (rows) and 1 (columns)."""
    count, generator = SIZES[split], torch_generator("stripes", split)
    labels = torch.arange(count) % 2
    bright = torch.randint(0, 2, (count, 8), generator=generator, dtype=torch.uint8) * 255
    rows = bright[:, :, None].expand(count, 8, 8)
    images = torch.where(labels[:, None, None] == 0, rows, rows.transpose(1, 2))
    return LabelledImages(images[:, None].contiguous(), labels)


DATASET = DatasetFamily(
    name="stripes",
    summary="images with bright rows or bright columns",
    describe=describe,
    check=check,
    read=read,
    settings=load_dataset_settings(Path(__file__).with_name("stripes.yaml")),
)
