"""What an embedding of images is asked for, checked as far as it can be before torch is imported."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contrasweep.names import did_you_mean
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.files import check_file
from contrasweep.tuning.transfer.plan import check_image_dataset

SPLITS: Final = ("train", "test")


@dataclass(frozen=True)
class EmbedRequest:
    """What is embedded, and where the features go.

    Attributes:
        source: a dataset's name, or a folder; `./NAME` is a folder that has a dataset's name.
        output: the Parquet file of the features.
        split: the split of a dataset; None: its test split.
        page: the page with a map of the features; None: none is drawn.

    Raises:
        InputError: there is no such dataset or folder (with the nearest name), a split of a folder is asked
            for, or a file cannot be written.
    """

    source: str
    output: Path
    split: str | None = None
    page: Path | None = None

    def __post_init__(self) -> None:
        check_file(self.output, "-o", (".parquet",))
        if self.page is not None:
            check_file(self.page, "--map", (".html", ".htm"))
        if self.split is not None and self.split not in SPLITS:
            raise unknown_name("split", self.split, SPLITS)
        bare = self.source.partition(":")[0]
        if self.is_dataset:
            check_image_dataset(self.source)
        elif not os.path.isdir(self.source):
            near = did_you_mean(bare, DECLARED_DATASETS, "dataset")
            raise InputError(f"{self.source!r} is neither a folder nor a dataset.{near}")
        elif self.split is not None:
            raise InputError(f"--split {self.split} goes with a dataset; {self.source} is a folder")

    @property
    def is_dataset(self) -> bool:
        """Whether the source is a dataset, not a folder."""
        return self.source.partition(":")[0] in DECLARED_DATASETS
