"""The check of what the functions of a family of datasets return, before anything else uses it.

A plug-in may return anything: another type, labels out of range, fewer images than it states. `DATASETS`
holds checked families alone, so whoever describes or reads a dataset gets what its facts state.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from contrasweep.data.agreement import (
    Disagreement,
    check_facts,
    check_fold,
    check_images,
    check_objects_spec,
    check_spec,
    check_test_labels,
    check_uncut,
    count_of,
    kind_of,
)
from contrasweep.data.facts import DatasetSpec, TransductiveSpec
from contrasweep.data.images import LabelledImages, WrongTensors
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import DatasetDamaged, DatasetMissing
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.data.transductive import MultiView, TransductiveFamily
from contrasweep.plugin_packages import distribution_of
from contrasweep.plugin_places import plugin_place
from contrasweep.plugins import WrongReturn

Family = DatasetFamily | TransductiveFamily

Read = TypeVar("Read")


def checked_images(family: DatasetFamily, *, of_plugin: bool = False) -> DatasetFamily:
    """Return the same family, whose functions check what they return.

    Raises (its functions):
        WrongReturn: a plug-in's function returned what cannot be used, or what its facts do not state.
        DatasetDamaged: the same of our own families: their files hold something else.

    Raises:
        ValueError: a part of the family is no function, or not what options are.
    """
    _check_parts(family, ("describe", "check", "read", "checksums"), ("recoloured", "uncut"))
    owner = _Owner(family, of_plugin)

    def describe(root: Path, options: Options) -> DatasetSpec:
        spec = family.describe(root, options)
        with owner.told(options):
            check_facts(spec, DatasetSpec)
            check_spec(spec, family)
        return spec

    def read(root: Path, split: Split, options: Options) -> LabelledImages:
        spec = describe(root, options)
        with owner.told(options):
            images = owner.reading(lambda: family.read(root, split, options))
            check_images(images, spec, split, "read", count_of(spec, split, options))
        return images

    def recoloured(root: Path, options: Options, rows: Tensor, seed: int) -> LabelledImages:
        assert family.recoloured is not None, "given where the family can"
        make, spec = family.recoloured, describe(root, options)
        with owner.told(options):
            images = owner.reading(lambda: make(root, options, rows, seed))
            check_images(images, spec, "train", "recoloured", len(rows), whole=False)
        return images

    def uncut(root: Path, options: Options) -> tuple[LabelledImages, Tensor]:
        assert family.uncut is not None, "given where the family can"
        make, spec = family.uncut, describe(root, options)
        with owner.told(options):
            returned = owner.reading(lambda: make(root, options))
            check_uncut(returned, spec, count_of(spec, "train", options))
        return returned

    return replace(
        family,
        describe=describe,
        check=owner.check,
        read=read,
        recoloured=None if family.recoloured is None else recoloured,
        uncut=None if family.uncut is None else uncut,
    )


def checked_objects(family: TransductiveFamily, *, of_plugin: bool = False) -> TransductiveFamily:
    """Return the same family, whose functions check what they return, see `checked_images`."""
    _check_parts(family, ("describe", "check", "read", "read_test"))
    owner = _Owner(family, of_plugin)

    def describe(root: Path, options: Options) -> TransductiveSpec:
        spec = family.describe(root, options)
        with owner.told(options):
            check_facts(spec, TransductiveSpec)
            check_objects_spec(spec)
        return spec

    def read(root: Path, fold: int, options: Options) -> tuple[MultiView, MultiView]:
        spec = describe(root, options)
        with owner.told(options):
            returned = owner.reading(lambda: family.read(root, fold, options))
            check_fold(returned, spec, fold)
        return returned

    def read_test(root: Path, fold: int, options: Options) -> Tensor:
        spec = describe(root, options)
        with owner.told(options):
            labels = owner.reading(lambda: family.read_test(root, fold, options))
            check_test_labels(labels, spec, fold)
        return labels

    return replace(family, describe=describe, check=owner.check, read=read, read_test=read_test)


@dataclass(frozen=True)
class _Owner:
    """Who answers for what a family returns: the plug-in that brings it, or else its files."""

    family: Family
    of_plugin: bool

    @contextmanager
    def told(self, options: Options) -> Iterator[None]:
        """Say of which dataset something is wrong in the block, and whose fault it is."""
        try:
            yield
        except Disagreement as wrong:
            name = self.family.full_name(options)
            if not self.of_plugin:
                raise DatasetDamaged(f"dataset {name!r} is damaged: {wrong}") from None
            distribution = distribution_of("dataset", self.family.name)
            raise WrongReturn(f"dataset {name!r} of the plug-in {distribution} is wrong: {wrong}") from None

    def reading(self, read: Callable[[], Read]) -> Read:
        """Return what a function of the family reads.

        Raises:
            Disagreement: a plug-in's tensors cannot be images or objects.
            RuntimeError: a plug-in raised another ValueError. As such it would count as the user's mistake.
        """
        try:
            return read()
        except ValueError as error:
            if not self.of_plugin or isinstance(error, DatasetMissing):
                raise
            if isinstance(error, WrongTensors):
                raise Disagreement(f"{error}, at {plugin_place(error)}") from None
            raise RuntimeError(f"dataset {self.family.name!r} cannot be read: {error}") from error

    def check(self, root: Path, options: Options) -> None:
        """Check the files as the family does, which must raise where they are not in place."""
        with self.told(options):
            check: Callable[[Path, Options], object] = self.family.check
            if check(root, options) is False:
                raise Disagreement("its check must raise DatasetMissing if files are missing, returned False")


def _check_parts(family: Family, functions: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    for name in (*functions, *optional):
        part = getattr(family, name)
        if not callable(part) and not (name in optional and part is None):
            raise ValueError(f"its {name} must be a function, given {kind_of(part)}")
    options: object = family.options
    if not isinstance(options, Mapping) or not all(
        isinstance(one, DatasetOption) for one in options.values()
    ):
        raise ValueError(f"its options must be a mapping of name to DatasetOption, given {options!r:.100}")
