"""Do images and objects have what the facts of their dataset state, and do the facts agree with one another?

Labels are looked at once, and no image is decoded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from contrasweep.data.facts import DatasetFacts, DatasetSpec, TransductiveSpec
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.options import Options
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.data.transductive import MultiView

_LEAST: Mapping[str, int] = {
    **dict.fromkeys(("channels", "image_size", "view_size", "train_size", "test_size"), 1),
    **dict.fromkeys(("condition_dim", "bias_classes", "revision", "labelled", "unlabelled"), 1),
    **dict.fromkeys(("classes", "unlabelled_size", "groupings"), 0),
    "views": 1,
}
"""The least number that a fact may be, or may hold."""


class Disagreement(Exception):
    """What a dataset's function returned cannot be used; the message says what it is and what is allowed."""


def kind_of(value: object) -> str:
    """Return the name of the type of a value, as messages tell it."""
    return "None" if value is None else type(value).__name__


def _check_type(returned: object, allowed: type, function: str) -> None:
    if not isinstance(returned, allowed):
        raise Disagreement(f"its {function} must return {allowed.__name__}, returned {kind_of(returned)}")


def _told(tensor: Tensor) -> str:
    return f"{tensor.dtype} {tuple(tensor.shape)}"


def check_facts(spec: DatasetFacts, kind: type[DatasetFacts]) -> None:
    """Check the type and the range of every fact alone."""
    _check_type(spec, kind, "describe")
    hints = get_type_hints(kind)
    for one in fields(spec):
        value, hint, least = getattr(spec, one.name), hints[one.name], _LEAST.get(one.name)
        if not _fits(value, hint, least):
            named = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
            bound = "" if least is None else f" of {least} or more"
            raise Disagreement(f"its describe states {one.name}={value!r:.100}; allowed: {named}{bound}")
    _check_names("class_names", spec.class_names, spec.classes, "classes")
    if isinstance(spec, DatasetSpec):
        _check_names("bias_names", spec.bias_names, spec.bias_classes or 0, "bias labels")
    if spec.has_labels and not spec.classes:
        raise Disagreement("its describe states classes=0; allowed: 1 or more, as there are labels")


def _check_names(fact: str, names: Sequence[str], number: int, of: str) -> None:
    if len(names) not in (0, number):
        raise Disagreement(
            f"its describe states {len(names)} {fact}; allowed: {number}, one for each of its {of}, or none"
        )


def _fits(value: object, hint: Any, least: int | None) -> bool:
    """Whether a value has the type of a fact, and no number in it is below the least."""
    if get_origin(hint) is UnionType:
        return any(_fits(value, one, least) for one in get_args(hint))
    if get_origin(hint) is tuple:
        inner, *_ = get_args(hint)
        return isinstance(value, tuple | list) and all(_fits(one, inner, least) for one in value)
    # To Python, a truth value is a number too.
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        return False
    return least is None or not isinstance(value, int) or value >= least


def check_spec(spec: DatasetSpec, family: DatasetFamily) -> None:
    """Check that the facts of images agree with one another and with what the family can do."""
    if spec.multi_label:
        raise Disagreement(
            "its describe states multi_label=True; allowed: False, as the validation split, methods and "
            "probes of single images take one label for each. A TransductiveSpec may state it"
        )
    if spec.unlabelled_size > spec.train_size:
        raise Disagreement(
            f"its describe states unlabelled_size={spec.unlabelled_size}; allowed: at most "
            f"{spec.train_size}, its train_size"
        )
    for fact, function in (("recolourable", "recoloured"), ("cut", "uncut")):
        if getattr(spec, fact) and getattr(family, function) is None:
            raise Disagreement(
                f"its describe states {fact}=True; allowed: False, as it has no function {function}"
            )


def check_objects_spec(spec: TransductiveSpec) -> None:
    """Check that the facts of objects agree with one another."""
    if not spec.views or any(len(view) not in (1, 3) for view in spec.views):
        raise Disagreement(
            f"its describe states views={spec.views}; allowed: (d,) or (C, H, W) for each view"
        )
    if not spec.labelled or len(spec.labelled) != len(spec.unlabelled):
        raise Disagreement(
            f"its describe states {len(spec.labelled)} folds in labelled and {len(spec.unlabelled)} in "
            "unlabelled; allowed: the same number, 1 or more"
        )


def count_of(spec: DatasetSpec, split: Split, options: Options) -> int | None:
    """Return the number of images that a split must hold; None where damaged ones are left out."""
    if options.get("corrupt") == "skip":
        return None
    return spec.train_size if split == "train" else spec.test_size


def _check_count(place: str, found: int, what: str, expected: int | None, fact: str) -> None:
    if expected not in (None, found):
        raise Disagreement(f"{place} {found:,} {what}; allowed: {expected:,}, its {fact}")


def check_images(
    images: LabelledImages,
    spec: DatasetSpec,
    split: Split,
    function: str,
    count: int | None,
    *,
    whole: bool = True,
) -> None:
    """Check images against the facts; `whole` says whether they are all images of the split."""
    _check_type(images, LabelledImages, f"{function} of the {split} split")
    place = f"its {split} split has"
    _check_count(place, len(images), "images", count, f"{split}_size" if whole else "rows")
    shape, stated = tuple(images.images.shape[1:]), (spec.channels, spec.image_size, spec.image_size)
    if shape != stated:
        raise Disagreement(
            f"{place} images of {_by(shape)}; allowed: {_by(stated)}, its channels x image_size x image_size"
        )
    _check_labels(images.labels, spec, place)
    _check_unlabelled(images.labels, spec, split, place, exact=whole and count is not None)
    _check_others(images, spec, split, place)


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _check_labels(labels: Tensor, spec: DatasetFacts, place: str, *, least: int = UNLABELLED) -> None:
    """Check the shape and the range of labels; `least` is 0 where each must have one."""
    shape = (len(labels), spec.classes) if spec.multi_label else (len(labels),)
    if tuple(labels.shape) != shape:
        stated = f"multi_label={spec.multi_label} and classes={spec.classes}"
        raise Disagreement(
            f"{place} labels of the shape {tuple(labels.shape)}; allowed: {shape}, as it has {stated}"
        )
    if not labels.numel():
        return
    low, high = (int(one) for one in labels.aminmax())
    if spec.multi_label and not 0 <= low <= high <= 1:
        raise Disagreement(
            f"{place} labels from {low} to {high}; allowed: 0 and 1, as it has multi_label=True"
        )
    if not spec.multi_label and not least <= low <= high < spec.classes:
        allowed = f"0 to {spec.classes - 1}" if spec.classes else "none"
        unlabelled = isinstance(spec, DatasetSpec) and spec.unlabelled_size
        none = f", and {UNLABELLED} for an image without one" if unlabelled else ""
        raise Disagreement(
            f"{place} labels from {low} to {high}; allowed: {allowed}, as it has classes={spec.classes}{none}"
        )


def _check_unlabelled(labels: Tensor, spec: DatasetSpec, split: Split, place: str, *, exact: bool) -> None:
    """Check the number of images without a label: all test images have one, unless no training image has."""
    stated = spec.unlabelled_size if split == "train" else 0 if spec.has_labels else len(labels)
    found = int((labels == UNLABELLED).sum())
    if found == stated or (stated and not exact):
        return
    reason = (
        "its unlabelled_size" if split == "train" else f"as {spec.unlabelled_size} training images have none"
    )
    raise Disagreement(f"{place} {found:,} images without a label; allowed: {stated:,}, {reason}")


def _check_others(images: LabelledImages, spec: DatasetSpec, split: Split, place: str) -> None:
    """Check what the facts state besides images and labels; what they leave out may be there."""
    # Test images may lack a condition: one that a file gives is of training images alone.
    condition = spec.condition_dim if split == "train" or images.condition is not None else None
    groupings = spec.groupings if split == "test" else None
    for name, tensor, stated, fact in (
        ("the condition", images.condition, condition, "condition_dim"),
        ("groupings", images.groupings, groupings, "groupings"),
    ):
        found = 0 if tensor is None else tensor.shape[1]
        if stated and found != stated:
            raise Disagreement(f"{place} {found} columns of {name}; allowed: {stated}, its {fact}")
    if spec.bias_classes is None:
        return
    if images.bias is None:
        raise Disagreement(
            f"{place} no bias; allowed: int64 (N,), as it has bias_classes={spec.bias_classes}"
        )
    low, high = (int(one) for one in images.bias.aminmax()) if len(images) else (0, 0)
    if not 0 <= low <= high < spec.bias_classes:
        allowed = f"0 to {spec.bias_classes - 1}, as it has bias_classes={spec.bias_classes}"
        raise Disagreement(f"{place} a bias from {low} to {high}; allowed: {allowed}")


def _check_pair(returned: object, types: tuple[type, type], function: str) -> None:
    """Check that a function returned a tuple of two objects of these types."""
    given = returned if isinstance(returned, tuple) else (returned,)
    if len(given) != 2 or not all(isinstance(one, kind) for one, kind in zip(given, types, strict=True)):
        allowed, kinds = (
            ", ".join(names) for names in ((one.__name__ for one in types), map(kind_of, given))
        )
        raise Disagreement(f"its {function} must return a tuple ({allowed}), returned ({kinds})")


def check_uncut(returned: tuple[LabelledImages, Tensor], spec: DatasetSpec, count: int | None) -> None:
    """Check images before a cut to unequal classes, and the `count` rows of them that are left."""
    _check_pair(returned, (LabelledImages, Tensor), "uncut")
    images, rows = returned
    check_images(images, spec, "train", "uncut", None)
    if rows.dtype != torch.int64 or rows.dim() != 1:
        raise Disagreement(f"its uncut must return rows torch.int64 (N,), returned {_told(rows)}")
    _check_count("its uncut gives", len(rows), "rows", count, "train_size")
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(images):
        raise Disagreement(
            f"its uncut returned rows from {int(rows.min())} to {int(rows.max())}; allowed: 0 to "
            f"{len(images) - 1}"
        )


def check_fold(returned: tuple[MultiView, MultiView], spec: TransductiveSpec, fold: int) -> None:
    """Check the labelled and the unlabelled objects of a fold."""
    _check_pair(returned, (MultiView, MultiView), f"read of fold {fold}")
    labelled, unlabelled = returned
    for objects, fact, count in (
        (labelled, "labelled", spec.labelled[fold]),
        (unlabelled, "unlabelled", spec.unlabelled[fold]),
    ):
        _check_count(f"its fold {fold} has", len(objects), f"{fact} objects", count, fact)
        shapes = tuple(tuple(view.shape[1:]) for view in objects.views)
        if shapes != tuple(map(tuple, spec.views)):
            raise Disagreement(f"its {fact} objects have views of {shapes}; allowed: {spec.views}, its views")
    if labelled.labels is None:
        raise Disagreement("its labelled objects have no labels; allowed: a label for each")
    _check_labels(labelled.labels, spec, "its labelled objects have", least=0)
    if unlabelled.labels is not None:
        raise Disagreement("its unlabelled objects have labels; allowed: none, because they are the test set")


def check_test_labels(labels: Tensor, spec: TransductiveSpec, fold: int) -> None:
    """Check the labels of the unlabelled objects of a fold."""
    _check_type(labels, Tensor, "read_test")
    if labels.dtype != torch.int64 or labels.dim() not in (1, 2):
        raise Disagreement(f"its read_test must return torch.int64 (N,) or (N, c), returned {_told(labels)}")
    _check_count(
        f"its read_test of fold {fold} gives", len(labels), "labels", spec.unlabelled[fold], "unlabelled"
    )
    _check_labels(labels, spec, "its unlabelled objects have", least=0)
