"""Families of datasets: the members of one differ in their options alone.

A dataset is named `NAME` or `NAME:OPTION=VALUE,OPTION=VALUE` (`biased-mnist:rho=0.997`): everything that
changes its images is part of its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from torch import Tensor

from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import LabelledImages
from contrasweep.data.options import DatasetOption, Options, OptionsInName, OptionValue, spelled_name

Split = Literal["train", "test"]


@dataclass(frozen=True)
class DatasetFamily(OptionsInName):
    """Datasets that differ in their options alone.

    `describe(root, options)` gives the facts (opening at most metadata), `check(root, options)` raises
    `DatasetMissing` unless the files are in place, and `read(root, split, options)` gives the images of one
    split and opens no file of the other; what is stored encoded it gives as streamed images, and whoever
    loads it decides whether they stay on disk. `checksums()` gives the published MD5 of files by their path
    under the data root, where there are any. `recoloured(root, options, rows, seed)` gives the training
    images of `rows` (int64 `(M,)`, in their order) again, with biases drawn for `seed` that say nothing of
    the class; None where the files hold each image with one bias alone. `uncut(root, options)` gives the
    training images before classes are cut to unequal sizes, and the rows of them (int64 `(N,)`) that `read`
    gives; None where classes are never cut. `settings` are defaults for an
    experiment on the dataset (a network, a batch size), as `search_spaces.load_dataset_settings(FILE)` reads
    them; None for the ones in `search_spaces/datasets.yaml`, where contrasweep's own datasets have theirs.
    `library` is the optional library that reads the datasets, see `OptionsInName`.
    """

    name: str
    summary: str
    describe: Callable[[Path, Options], DatasetSpec]
    check: Callable[[Path, Options], None]
    read: Callable[[Path, Split, Options], LabelledImages]
    options: Mapping[str, DatasetOption] = field(default_factory=lambda: MappingProxyType({}))
    checksums: Callable[[], Mapping[str, str]] = lambda: MappingProxyType({})
    recoloured: Callable[[Path, Options, Tensor, int], LabelledImages] | None = None
    uncut: Callable[[Path, Options], tuple[LabelledImages, Tensor]] | None = None
    settings: Mapping[str, OptionValue] | None = None
    library: str = ""

    @property
    def description(self) -> str:
        """What the datasets are, in one sentence."""
        return self.summary


def family_of(
    facts: DatasetSpec,
    check: Callable[[Path, Options], None],
    read: Callable[[Path, Split, Options], LabelledImages],
    options: Mapping[str, DatasetOption] = MappingProxyType({}),
    vary: Callable[[Path, Options], Mapping[str, Any]] = lambda root, options: {},
    checksums: Callable[[], Mapping[str, str]] = lambda: MappingProxyType({}),
    uncut: Callable[[Path, Options], tuple[LabelledImages, Tensor]] | None = None,
) -> DatasetFamily:
    """Return the family of datasets with these facts.

    `vary(root, options)` gives the fields of `DatasetSpec` that options or files change, by name; the option
    `size` also sets the sizes of the images. The other arguments are as in `DatasetFamily`.
    """

    def describe(root: Path, given: Options) -> DatasetSpec:
        sides = {side: given["size"] for side in ("image_size", "view_size") if "size" in given}
        changed = {**sides, **vary(root, given)}
        return replace(facts, name=spelled_name(facts.name, options, given), **changed)

    return DatasetFamily(facts.name, facts.summary, describe, check, read, options, checksums, uncut=uncut)
