"""What a transductive dataset is: few labelled objects, and unlabelled ones that are the test set.

The objects to be classified are at hand in training, without their labels. A draw of the labelled ones is a
fold, of which every dataset has several.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from torch import Tensor

from contrasweep.data.multiview import MultiView
from contrasweep.data.spec import DatasetOption, Options, OptionValue, parse_options, spelled_name


@dataclass(frozen=True)
class TransductiveSpec:
    """What is known of a transductive dataset without loading it.

    Attributes:
        name: the name users type, with its options.
        summary: one sentence.
        classes: number of labels, which are 0..classes-1 (of a multi-label set: columns of 0 and 1).
        multi_label: whether an object has any number of labels.
        views: shape of one object in each view: ``(d,)`` float32 features or ``(C, H, W)`` uint8 images.
        labelled: labelled objects of each fold.
        unlabelled: unlabelled objects of each fold, which are its test set.
        licence: terms of use.
        source: where the data come from.
        folder: what the data root must hold, None for an embedded dataset.
        class_names: the labels' names; empty where they are their numbers.
    """

    name: str
    summary: str
    classes: int
    multi_label: bool
    views: tuple[tuple[int, ...], ...]
    labelled: tuple[int, ...]
    unlabelled: tuple[int, ...]
    licence: str
    source: str
    folder: str | None
    class_names: tuple[str, ...] = ()

    @property
    def folds(self) -> int:
        """How many draws of the labelled objects there are."""
        return len(self.labelled)

    @property
    def has_images(self) -> bool:
        """Whether the views are images, not vectors of features."""
        return len(self.views[0]) == 3

    @property
    def embedded(self) -> bool:
        """Whether it is shipped with an installed library, so that no file is needed."""
        return self.folder is None


@dataclass(frozen=True, eq=False)
class TransductiveData:
    """What training may see of one fold.

    Attributes:
        labelled: objects with their labels.
        unlabelled: objects without labels: the test objects in the order of `load_transductive_test`, then
            those of `validation`.
        validation: labelled objects held out of `labelled`, None if none were.
    """

    labelled: MultiView
    unlabelled: MultiView
    validation: MultiView | None = None


@dataclass(frozen=True)
class TransductiveFamily:
    """Transductive datasets that differ in their options alone.

    `describe(options)` gives the facts, `check(root, options)` raises `DatasetMissing` unless the files are
    in place, `read(root, fold, options)` gives the labelled and the unlabelled objects, the latter without
    labels, and `read_test(root, fold, options)` the labels of the unlabelled ones.
    """

    name: str
    summary: str
    describe: Callable[[Options], TransductiveSpec]
    check: Callable[[Path, Options], None]
    read: Callable[[Path, int, Options], tuple[MultiView, MultiView]]
    read_test: Callable[[Path, int, Options], Tensor]
    options: Mapping[str, DatasetOption] = field(default_factory=lambda: MappingProxyType({}))

    def parse(self, given: str) -> dict[str, OptionValue]:
        """Return all options' values from the text behind the name, `OPTION=VALUE,OPTION=VALUE`.

        Raises:
            ValueError: an option is unknown (with the nearest) or missing, or a value is not allowed.
        """
        return parse_options(self.name, self.options, given)

    def full_name(self, options: Options) -> str:
        """Return the name with the options that differ from their defaults."""
        return spelled_name(self.name, self.options, options)
