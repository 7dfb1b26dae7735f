"""Check the files of a dataset that a user has just put in place: are they complete and undamaged?"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from contrasweep.data.datasets import parse_image_dataset
from contrasweep.data.encoded import MOST_NAMED, DecodedImages
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.root import DatasetDamaged, data_root
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.data.streaming import StreamedImages, image_chunks
from contrasweep.names import few

_CHUNK = 1024


@dataclass(frozen=True)
class SplitReport:
    """The contents of one split.

    Attributes:
        split: "train" or "test".
        images: the number of images.
        shape: channels, height and width.
        decoded: the number of images decoded for `mean_level`.
        mean_level: the mean of all their pixels and channels, 0..255.
        class_counts: images of each class; in a multi-label set, an image counts for each of its labels.
        unlabelled: the number of images without a label.
        group_counts: images of each class with each bias label, a row for each class; None without a bias.
    """

    split: Split
    images: int
    shape: tuple[int, int, int]
    decoded: int
    mean_level: float
    class_counts: tuple[int, ...]
    unlabelled: int
    group_counts: tuple[tuple[int, ...], ...] | None


@dataclass(frozen=True)
class DatasetReport:
    """The contents of a dataset; `checksums` are the files that agree with their published MD5."""

    spec: DatasetSpec
    splits: tuple[SplitReport, ...]
    checksums: tuple[str, ...]


def inspect_dataset(name: str, root: Path | None = None, *, every_image: bool = False) -> DatasetReport:
    """Read both splits of a dataset and return their contents.

    Of encoded images, the first of each split is decoded, or all with ``every_image``.

    Raises:
        ValueError: an unknown dataset or option.
        DatasetMissing: files are absent or of the wrong size.
        DatasetDamaged: a file differs from its published checksum, images cannot be decoded (with
            ``every_image`` the message counts all), or a split holds something else than the facts state.
        WrongReturn: the same of the dataset of a plug-in.
    """
    family, options = parse_image_dataset(name)
    place = data_root(root)
    family.check(place, options)
    spec = family.describe(place, options)
    checksums = _verified(family, place)
    splits: dict[Split, LabelledImages] = {
        split: family.read(place, split, options) for split in get_args(Split)
    }
    return DatasetReport(spec, _reports(splits, spec, every_image=every_image), checksums)


def _verified(family: DatasetFamily, root: Path) -> tuple[str, ...]:
    verified = []
    for file, published in family.checksums().items():
        # A file that this member of the family does not use may be absent.
        if not (root / file).is_file():
            continue
        with (root / file).open("rb") as opened:
            found = hashlib.file_digest(opened, "md5").hexdigest()
        if found != published:
            raise DatasetDamaged(
                f"dataset {family.name!r} is damaged: {root / file} has the MD5 {found}, "
                f"published is {published}"
            )
        verified.append(file)
    return tuple(verified)


def _reports(
    splits: Mapping[Split, LabelledImages], spec: DatasetSpec, *, every_image: bool
) -> tuple[SplitReport, ...]:
    try:
        return tuple(
            _report(split, images, spec, every_image=every_image) for split, images in splits.items()
        )
    except DatasetDamaged:
        # Only a damaged set is decoded again, to find the others.
        corrupt = [name for images in splits.values() for name in _corrupt(images)] if every_image else []
        if len(corrupt) < 2:
            raise
        total = sum(map(len, splits.values()))
        raise DatasetDamaged(
            f"{len(corrupt):,} corrupt images of {total:,}: {few(corrupt, MOST_NAMED)} cannot be decoded. "
            "Replace them, or leave such images out with the option corrupt=skip."
        ) from None


def _corrupt(images: LabelledImages) -> Sequence[str]:
    """Return the names of the images that cannot be decoded."""
    streamed = images.images
    if not isinstance(streamed, StreamedImages) or not isinstance(streamed.source, DecodedImages):
        return []
    source = streamed.source
    return [source.name(row) for row in source.corrupt_rows(streamed.rows.tolist())]


def _report(split: Split, images: LabelledImages, spec: DatasetSpec, *, every_image: bool) -> SplitReport:
    whole = every_image or isinstance(images.images, Tensor)
    looked_at = images if whole else images.subset([0])
    total = sum(int(chunk.sum(dtype=torch.int64)) for chunk in image_chunks(looked_at.images, _CHUNK))
    channels, height, width = images.images.shape[1:]
    labels = images.labels
    if labels.dim() == 2:
        counts, unlabelled = labels.sum(dim=0), 0
    else:
        counts = torch.bincount(labels[labels != UNLABELLED], minlength=spec.classes)[: spec.classes or None]
        unlabelled = int((labels == UNLABELLED).sum())
    return SplitReport(
        split=split,
        images=len(images),
        shape=(channels, height, width),
        decoded=len(looked_at),
        mean_level=total / (len(looked_at) * channels * height * width),
        class_counts=tuple(counts.tolist()),
        unlabelled=unlabelled,
        group_counts=_group_counts(images, spec),
    )


def _group_counts(images: LabelledImages, spec: DatasetSpec) -> tuple[tuple[int, ...], ...] | None:
    if images.bias is None or spec.bias_classes is None or images.labels.dim() != 1:
        return None
    labelled = images.labels != UNLABELLED
    groups = images.labels[labelled] * spec.bias_classes + images.bias[labelled]
    counts = torch.bincount(groups, minlength=spec.classes * spec.bias_classes)
    return tuple(map(tuple, counts.view(spec.classes, spec.bias_classes).tolist()))
