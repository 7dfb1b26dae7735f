"""Datasets: a family with options, and the facts of one member of it.

A dataset is named `NAME` or `NAME:OPTION=VALUE,OPTION=VALUE` (`biased-mnist:rho=0.997`): everything that
changes its images is part of its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from torch import Tensor

from contrasweep.data.images import LabelledImages
from contrasweep.data.names import unknown

COLOUR_NAME = "background RGB colour, 0..255"
"""The `condition_name` of a background colour, which probes regress from the features."""

TOP_FIVE_FROM = 21
"""Classes from which accuracy is reported of five guesses too: of fewer, they would say little."""

Split = Literal["train", "test"]
OptionValue = float | int | str
Options = Mapping[str, OptionValue]


@dataclass(frozen=True)
class DatasetOption:
    """One option of a family: its values are `choices`, numbers from `low` to `high`, or any word.

    Where `default` is None, the option must be given.
    """

    summary: str
    kind: type[float] | type[int] | type[str]
    default: OptionValue | None
    choices: tuple[str, ...] = ()
    low: float = float("-inf")
    high: float = float("inf")

    def parse(self, dataset: str, name: str, text: str) -> OptionValue:
        """Return the value that `text` spells.

        Raises:
            ValueError: it spells no value, or one that is not allowed.
        """
        if self.kind is str:
            if self.choices and text not in self.choices:
                raise ValueError(unknown(f"{name} of dataset {dataset}", text, self.choices))
            return text
        try:
            value = self.kind(text)
        except ValueError:
            word = "whole number" if self.kind is int else "number"
            raise ValueError(f"{name} of dataset {dataset} must be a {word}, given {text!r}") from None
        assert not isinstance(value, str)
        if not self.low <= value <= self.high:
            allowed = f"{self.low:g} to {self.high:g}"
            raise ValueError(f"{name} of dataset {dataset} must be {allowed}, given {text}")
        return value


@dataclass(frozen=True, kw_only=True)
class SharedFacts:
    """What every dataset states before it is loaded, be it of images or transductive.

    Attributes:
        name: the name users type, with its options.
        summary: one sentence.
        classes: number of labels, which are 0..classes-1 (of a multi-label set: columns of 0 and 1).
        multi_label: whether an image or object has any number of labels.
        class_names: the labels' names by number; empty where they are not known.
        licence: terms of use.
        source: where the data come from.
        folder: what the data root must hold, None for an embedded dataset.
        revision: rises when a version of contrasweep makes other images or objects under the same name, whose
            runs do not compare with those before.
    """

    name: str
    summary: str
    classes: int
    multi_label: bool = False
    class_names: tuple[str, ...] = ()
    licence: str
    source: str
    folder: str | None
    revision: int = 1

    @property
    def embedded(self) -> bool:
        """Whether it is shipped with an installed library, so that no file is needed."""
        return self.folder is None


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(SharedFacts):
    """The facts of a dataset of images, known without loading them.

    Attributes:
        channels: 1 greyscale, 3 RGB.
        image_size: stored height and width in pixels, of square images.
        view_size: height and width in pixels that the network sees.
        train_size: training images, before a validation split is cut off.
        test_size: test images.
        condition_dim: width of the conditioning variable, None where there is none.
        condition_name: what the conditioning variable is, with its unit.
        bias_classes: number of values of the bias label, None where there is none.
        unlabelled_size: training images without a label (`UNLABELLED`), which are among `train_size`.
        groupings: clusterings of the test images that an unbiased accuracy is averaged over; 0: none.
        recolourable: whether training images can be made again with another bias.
        folds: the number of draws of the training data: one, the same images for every seed.
        has_images: whether an encoder takes images, not vectors of features.
        probed: whether probes are fitted on the encoder's features; else a method's own classifier is scored.
        classifier_prefix: the prefix of the scores of a method's own classifier; those of a probe have none.
    """

    channels: int
    image_size: int
    view_size: int
    train_size: int
    test_size: int
    condition_dim: int | None = None
    condition_name: str | None = None
    bias_classes: int | None = None
    unlabelled_size: int = 0
    groupings: int = 0
    recolourable: bool = False

    folds: ClassVar[int] = 1
    has_images: ClassVar[bool] = True
    probed: ClassVar[bool] = True
    classifier_prefix: ClassVar[str] = "classifier_"

    @property
    def has_colour(self) -> bool:
        """Whether the conditioning variable is a background colour."""
        return self.condition_name == COLOUR_NAME

    @property
    def offers(self) -> frozenset[str]:
        """What a method can ask for: "images", "labels", "condition", "bias"."""
        there = {
            "images": True,
            "labels": not self.unlabelled_size,
            "condition": self.condition_dim is not None,
            "bias": self.bias_classes is not None,
        }
        return frozenset(name for name, is_there in there.items() if is_there)

    @property
    def headline(self) -> str:
        """The measure that is maximised unless the user says otherwise: accuracy.

        On biased data it is averaged over (class, bias), because plain accuracy prefers the biased model.
        """
        return "accuracy" if self.bias_classes is None else "balanced_accuracy"

    def measures(self, *, test: bool) -> tuple[str, ...]:
        """Return the scores of predicted labels on test images, which alone have groupings, or others."""
        there = {
            "accuracy": True,
            "balanced_accuracy": self.bias_classes is not None,
            "worst_group_accuracy": self.bias_classes is not None,
            "top5_accuracy": self.classes >= TOP_FIVE_FROM,
            "unbiased_accuracy": bool(self.groupings) and test,
        }
        return tuple(name for name, is_there in there.items() if is_there)

    @property
    def splits(self) -> tuple[str, ...]:
        """The values of `validation.split` for the dataset; the first is the default, see `held_out_rows`."""
        biased = ("group", "class") if self.bias_classes is not None else ("class",)
        return ("recoloured", *biased) if self.recolourable else biased

    def at_view_size(self, size: int | None) -> Self:
        """Return the facts where views are made in `size` pixels, None: in the dataset's own size."""
        return replace(self, view_size=size or self.view_size)

    def check_validation(self, share: float) -> None:
        """Raise ValueError where a validation split of this share has fewer images than classes."""
        labelled = self.train_size - self.unlabelled_size
        if share and round(share * labelled) < self.classes:
            images = f"{labelled} labelled images of {self.name}"
            raise ValueError(f"{share:g} of the {images} leaves a class without any")


class OptionsInName:
    """A family of datasets whose name takes options: `NAME` or `NAME:OPTION=VALUE,OPTION=VALUE`."""

    name: str
    options: Mapping[str, DatasetOption]

    @property
    def needs_options(self) -> bool:
        """Whether an option has no default, so that the bare name is no dataset."""
        return any(option.default is None for option in self.options.values())

    def parse(self, given: str) -> dict[str, OptionValue]:
        """Return the values of all options from the text behind the name, `OPTION=VALUE,OPTION=VALUE`.

        Raises:
            ValueError: an option is unknown (with the nearest) or missing, or a value is not allowed.
        """
        values: dict[str, OptionValue] = {}
        for item in filter(None, given.split(",")):
            name, equals, text = item.partition("=")
            if name not in self.options:
                raise ValueError(unknown(f"option of dataset {self.name}", name, self.options))
            if not equals or not text:
                raise ValueError(f"option {name} of dataset {self.name} needs a value: {name}=...")
            values[name] = self.options[name].parse(self.name, name, text)
        for name, option in self.options.items():
            if name not in values:
                if option.default is None:
                    raise ValueError(f"dataset {self.name} needs {name}: {self.name}:{name}=...")
                values[name] = option.default
        return {name: values[name] for name in self.options}

    def full_name(self, options: Options) -> str:
        """Return the name with the options that differ from their defaults."""
        return spelled_name(self.name, self.options, options)


@dataclass(frozen=True)
class DatasetFamily(OptionsInName):
    """Datasets that differ in their options alone.

    `describe(root, options)` gives the facts (opening at most metadata), `check(root, options)` raises
    `DatasetMissing` unless the files are in place, and `read(root, split, options)` gives the images of one
    split and opens no file of the other; what is stored encoded it gives as streamed images, and whoever
    loads it decides whether they stay on disk. `checksums()` gives the published MD5 of files by their path
    under the data root, where there are any. `recoloured(root, options, rows, seed)` gives the training
    images of `rows` (int64 `(M,)`, in their order) again, with biases drawn for `seed` that say nothing of
    the class; None where the files hold each image with one bias alone. `settings` are defaults for an
    experiment on the dataset (a network, a batch size), as `search_spaces.load_dataset_settings(FILE)` reads
    them; None for the ones in `search_spaces/datasets.yaml`, where contrasweep's own datasets have theirs.
    """

    name: str
    summary: str
    describe: Callable[[Path, Options], DatasetSpec]
    check: Callable[[Path, Options], None]
    read: Callable[[Path, Split, Options], LabelledImages]
    options: Mapping[str, DatasetOption] = field(default_factory=lambda: MappingProxyType({}))
    checksums: Callable[[], Mapping[str, str]] = lambda: MappingProxyType({})
    recoloured: Callable[[Path, Options, Tensor, int], LabelledImages] | None = None
    settings: Mapping[str, OptionValue] | None = None

    @property
    def description(self) -> str:
        """What the datasets are, in one sentence."""
        return self.summary


def spelled_name(dataset: str, known: Mapping[str, DatasetOption], options: Options) -> str:
    """Return a dataset's name with the options that differ from their defaults."""
    parts = [f"{name}={value}" for name, value in options.items() if value != known[name].default]
    return f"{dataset}:{','.join(parts)}" if parts else dataset


def family_of(
    facts: DatasetSpec,
    check: Callable[[Path, Options], None],
    read: Callable[[Path, Split, Options], LabelledImages],
    options: Mapping[str, DatasetOption] = MappingProxyType({}),
    vary: Callable[[Path, Options], Mapping[str, Any]] = lambda root, options: {},
    checksums: Callable[[], Mapping[str, str]] = lambda: MappingProxyType({}),
) -> DatasetFamily:
    """Return the family of datasets with these facts.

    `vary(root, options)` gives the fields of `DatasetSpec` that options or files change, by name; the option
    `size` also sets the sizes of the images. The other arguments are as in `DatasetFamily`.
    """

    def describe(root: Path, given: Options) -> DatasetSpec:
        sides = {side: given["size"] for side in ("image_size", "view_size") if "size" in given}
        changed = {**sides, **vary(root, given)}
        return replace(facts, name=spelled_name(facts.name, options, given), **changed)

    return DatasetFamily(facts.name, facts.summary, describe, check, read, options, checksums)
