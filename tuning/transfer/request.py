"""The request for an embedding of images, and the checks that need no torch."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from contrasweep.names import did_you_mean
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.files import check_file
from contrasweep.tuning.transfer.plan import check_image_dataset

SPLITS: Final = ("train", "test")

PCA: Final = "pca"
"""How a map places features unless the user says otherwise."""

MAP_METHODS: Final[Mapping[str, str | None]] = {PCA: None, "umap": "umap"}
"""How a map can place features, and the package that this needs, which is the extra's name too."""


def check_map_method(method: str) -> None:
    """Raise InputError unless there is such a way to place features, and its package is installed."""
    if method not in MAP_METHODS:
        raise unknown_name("map method", method, MAP_METHODS)
    package = MAP_METHODS[method]
    if package is not None and find_spec(package) is None:
        raise InputError(f"--map-method {method} needs umap-learn: pip install 'contrasweep[{package}]'")


def map_method_of(given: str | None, *, map_asked: bool) -> str:
    """Return the method that `--map-method` names, by default `PCA`.

    Raises:
        InputError: it was given without `--map`; or see `check_map_method`.
    """
    if given is not None and not map_asked:
        raise InputError("--map-method given; allowed: with --map, which draws the map")
    method = given or PCA
    check_map_method(method)
    return method


@dataclass(frozen=True)
class EmbedRequest:
    """What is embedded, and where the features go.

    Attributes:
        source: a dataset's name, or a folder; `./NAME` is a folder that has a dataset's name.
        output: the Parquet file of the features.
        split: the split of a dataset; None: its test split.
        page: the page with a map of the features; None: none is drawn.
        method: how the map places them, among `MAP_METHODS`.
        skip_corrupt: whether damaged images of a folder are left out.

    Raises:
        InputError: there is no such dataset or folder (with the nearest name), a split of a folder is asked
            for, or that damaged images of a dataset are left out; a file cannot be written, or the map's
            method is unknown or needs a package.
    """

    source: str
    output: Path
    split: str | None = None
    page: Path | None = None
    method: str = PCA
    skip_corrupt: bool = False

    def __post_init__(self) -> None:
        check_file(self.output, "-o", (".parquet",))
        if self.page is not None:
            check_file(self.page, "--map", (".html", ".htm"))
        check_map_method(self.method)
        if self.split is not None and self.split not in SPLITS:
            raise unknown_name("split", self.split, SPLITS)
        bare = self.source.partition(":")[0]
        if self.is_dataset:
            check_image_dataset(self.source)
            if self.skip_corrupt:
                raise InputError(
                    f"--skip-corrupt goes with a folder; {bare} is a dataset. "
                    "Datasets of image files have the option corrupt=skip"
                )
        elif not os.path.isdir(self.source):
            near = did_you_mean(bare, DECLARED_DATASETS, "dataset")
            raise InputError(f"{self.source!r} is neither a folder nor a dataset.{near}")
        elif self.split is not None:
            raise InputError(f"--split {self.split} goes with a dataset; {self.source} is a folder")

    @property
    def is_dataset(self) -> bool:
        """Whether the source is a dataset, not a folder."""
        return self.source.partition(":")[0] in DECLARED_DATASETS
