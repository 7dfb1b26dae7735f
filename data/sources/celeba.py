"""CelebA: photographs of faces with 40 labels, seen in two views (HeroCon).

Layout: torchvision's, `celeba/img_align_celeba/000001.jpg` (178 x 218 pixels) and
`celeba/list_attr_celeba.txt`, which has the number of images, the 40 names, and a line for each image: its
file and 40 times 1 or -1. `list_eval_partition.txt`, the published split, is not needed: HeroCon labels 500
of the first 50,000 images, and the other 49,500 are its test set. The archive was not available.

View 1 is rows 20 to 179 of the picture. View 2 adds whole numbers from 0 to 49 to the green of each pixel in
the lower half, up to 255. Both are then resized to squares, as the paper says; the released code pads them to
224 x 224 instead. If both views of all images take up to `RESIDENT_LIMIT` bytes, they are made once and kept
in the user's cache. The 500 labelled images and the noise are our own draws, because the authors' have no
seed.

Sources: Liu et al., "Deep Learning Face Attributes in the Wild" (ICCV 2015); Zheng et al., "Contrastive
Learning with Complex Heterogeneity" (KDD 2022), Sections 4.1 and 4.3 and its released code.
"""

import hashlib
import logging
import math
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.cache import kept_folder, state_of
from contrasweep.data.decoding import LARGEST_SIDE, CorruptImage, decode_image
from contrasweep.data.decoding_pool import decoding_threads
from contrasweep.data.facts import TransductiveSpec
from contrasweep.data.image_files import image_bytes
from contrasweep.data.machine_share import RESIDENT_LIMIT
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import Archive, DatasetDamaged, check_files
from contrasweep.data.seeds import numpy_generator, torch_generator
from contrasweep.data.transductive import MultiView, TransductiveFamily

log = logging.getLogger(__name__)

NAME = FOLDER = "celeba"
SOURCE = "http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html (Align&Cropped: img_align_celeba.zip, unpacked)"
TABLE = "list_attr_celeba.txt"

IMAGES, LABELLED, FOLDS = 50_000, 500, 5
LABELS = 40
SHAPE = (3, 218, 178)
"""Channels, height and width of every picture."""

VIEWS, VIEWS_VERSION = "views.npy", 1
"""The file in the cache, with a number that changes whenever the way of making views changes."""

CROPPED_ROWS = (20, 180)
LARGEST_NOISE = 50
"""The upper bound of the noise, exclusive."""


def _check(root: Path, options: Options) -> None:
    check_files(NAME, root, FOLDER, {TABLE: None}, SOURCE)
    archive = Archive(NAME, SOURCE, FOLDER, f"img_align_celeba/ and {TABLE}")
    archive.check_listed(_files(root, _table(root)[0]))


def _describe(root: Path, options: Options) -> TransductiveSpec:
    size = int(options["size"])
    return TransductiveSpec(
        name=CELEBA.full_name(options),
        summary=CELEBA.summary,
        classes=LABELS,
        multi_label=True,
        views=((3, size, size),) * 2,
        labelled=(LABELLED,) * FOLDS,
        unlabelled=(IMAGES - LABELLED,) * FOLDS,
        licence="non-commercial research; the images are not the authors' property",
        source=SOURCE,
        folder=FOLDER,
    )


def _read(root: Path, fold: int, options: Options) -> tuple[MultiView, MultiView]:
    names, labels = _table(root)
    files, size = _files(root, names), int(options["size"])
    labelled, unlabelled = _fold_rows(fold)
    known = MultiView(_two_views(files, labelled, size), labels[labelled])
    return known, MultiView(_two_views(files, unlabelled, size))


def _read_test(root: Path, fold: int, options: Options) -> Tensor:
    return _table(root)[1][_fold_rows(fold)[1]]


def _fold_rows(fold: int) -> tuple[Tensor, Tensor]:
    """Return the labelled and the unlabelled rows of a fold, each ascending."""
    order = torch.randperm(IMAGES, generator=torch_generator("fold", NAME, fold))
    return order[:LABELLED].sort().values, order[LABELLED:].sort().values


def _files(root: Path, names: Sequence[str]) -> list[Path]:
    return [root / FOLDER / "img_align_celeba" / name for name in names]


def _table(root: Path) -> tuple[list[str], Tensor]:
    """Return the names of the first images and their labels, int64 ``(N, 40)`` of 0 and 1.

    Raises:
        DatasetDamaged: the table does not have the published form.
    """
    file = root / FOLDER / TABLE
    with file.open(encoding="utf-8") as lines:
        next(lines, None)
        columns = next(lines, "").split()
        rows = [line.split() for line in islice(lines, IMAGES)]
    if len(columns) != LABELS or len(rows) != IMAGES:
        found = f"{len(columns)} names and {len(rows):,} images"
        raise DatasetDamaged(f"{file} has {found}, expected {LABELS} and at least {IMAGES:,}")
    wrong = next((row for row in rows if len(row) != LABELS + 1 or not {"1", "-1"} >= set(row[1:])), None)
    if wrong is not None:
        raise DatasetDamaged(f"{file}: the line of {wrong[0]!r} should hold {LABELS} times 1 or -1")
    values = torch.tensor([[text == "1" for text in row[1:]] for row in rows])
    return [row[0] for row in rows], values.long()


def _two_views(files: Sequence[Path], rows: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return both views of the images of ``rows``, uint8 ``(N, 3, size, size)`` each."""
    shape = (2, len(files), 3, size, size)
    if math.prod(shape) > RESIDENT_LIMIT:
        views = torch.empty((2, len(rows), *shape[2:]), dtype=torch.uint8)
        _make_views(files, rows.tolist(), size, views)
        return views[0], views[1]
    folder = kept_folder("decoded", _identity(files, size), partial(_write_views, files=files, size=size))
    kept = np.load(folder / VIEWS, mmap_mode="r")
    first, second = (torch.from_numpy(view[rows.numpy()]) for view in kept)
    return first, second


def _identity(files: Sequence[Path], size: int) -> str:
    """Return a name for the views of these files; it changes when a file changes."""
    content = f"{VIEWS_VERSION} {size}\n{state_of(files)}"
    return f"{NAME}-{size}-{hashlib.sha256(content.encode()).hexdigest()[:24]}"


def _write_views(folder: Path, files: Sequence[Path], size: int) -> None:
    log.info("decoding %d images into the cache, once", len(files))
    shape = (2, len(files), 3, size, size)
    kept = np.lib.format.open_memmap(folder / VIEWS, mode="w+", dtype=np.uint8, shape=shape)
    # A full disk raises an error here; a write through the memory map would kill the process.
    with (folder / VIEWS).open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, (folder / VIEWS).stat().st_size)
    _make_views(files, range(len(files)), size, torch.from_numpy(kept))
    kept.flush()


def _make_views(files: Sequence[Path], rows: Sequence[int], size: int, out: Tensor) -> None:
    """Write both views of the images of ``rows`` into ``out``, uint8 ``(2, len(rows), 3, size, size)``."""
    with decoding_threads(max(1, torch.get_num_threads())) as pool:
        made: Iterator[tuple[Tensor, Tensor]] = pool.map(lambda row: _views_of(files[row], row, size), rows)
        for position, pair in enumerate(made):
            out[0, position], out[1, position] = pair


def _views_of(file: Path, row: int, size: int) -> tuple[Tensor, Tensor]:
    try:
        picture = decode_image(image_bytes(file), 3)
    except CorruptImage as error:
        raise DatasetDamaged(f"corrupt image: {file} cannot be decoded ({error})") from error
    if picture.shape != SHAPE:
        _, height, width = picture.shape
        raise DatasetDamaged(f"{file} is {height} x {width} pixels, expected {SHAPE[1]} x {SHAPE[2]}")
    first, end = CROPPED_ROWS
    return _resized(picture[:, first:end], size), _resized(noisy_lower_half(picture, row), size)


def noisy_lower_half(picture: Tensor, row: int) -> Tensor:
    """Return uint8 ``(3, H, W)`` with noise in the green of its lower half, drawn for image ``row``."""
    _, height, width = picture.shape
    top = height // 2
    noise = numpy_generator("noise", NAME, row).integers(
        0, LARGEST_NOISE, (height - top, width), dtype=np.int16
    )
    noisy = picture.clone()
    noisy[1, top:] = (
        (picture[1, top:].to(torch.int16) + torch.from_numpy(noise)).clamp_(max=255).to(torch.uint8)
    )
    return noisy


def _resized(picture: Tensor, size: int) -> Tensor:
    from torchvision.transforms.v2 import functional

    resized: Tensor = functional.resize(picture, [size, size], antialias=True)
    return resized


CELEBA = TransductiveFamily(
    name=NAME,
    summary="50,000 photographs of faces with 40 labels, a crop and a colour noise as views, 500 labelled",
    describe=_describe,
    check=_check,
    read=_read,
    read_test=_read_test,
    options={
        "size": DatasetOption(
            "height and width of both views in pixels; 224 as released", int, 64, low=1, high=LARGEST_SIDE
        )
    },
)
