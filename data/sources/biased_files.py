"""Biased sets of image files named `ID_CLASS_BIAS.png`: bFFHQ and Corrupted CIFAR-10.

Biased FFHQ: faces with an age that correlates with gender in training, but not in the test. Corrupted
CIFAR-10: in training each class has its own corruption, in the test any of ten; corruption c is the usual
one of class c.

Folders and names are those that the released code of Lee et al.
(github.com/kakaoenterprise/Learning-Debiased-Disentangled) and of FairKL reads: `0.5pct/align/CLASS/`,
`0.5pct/conflict/CLASS/` and `test/`, for bFFHQ also `valid/`. As in that code, only test images of bFFHQ with
two different numbers count; `0.5pct/valid` of Corrupted CIFAR-10 is not read. The archives were not
available: `docs/dataset-notes.md` lists the facts that could not be confirmed.

`layout=npy` is that of Nam et al.: `CorruptedCIFAR10-Type0-Skewed0.005-Severity4/`, with CIFAR-10's splits in
`train` and `valid`, as `images.npy` (N, 32, 32, 3) and `attrs.npy` (N, 2): class and corruption. Folders,
counts, types and severities come from the code that makes them. `layout=derived` makes the same from
CIFAR-10, see `corrupted.py`.

Sources: Kim et al., "BiaSwap" (ICCV 2021), for bFFHQ; Nam et al., "Learning from Failure" (NeurIPS 2020),
whose code makes Corrupted CIFAR-10; Lee et al., "Learning Debiased Representation via Disentangled Feature
Augmentation" (NeurIPS 2021), whose files FairKL (Barbano et al. 2023, B.2.2 and B.2.3) trains on.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contrasweep.data.cache import while_unchanged
from contrasweep.data.encoded import check_labels, header_of
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.image_files import image_bytes
from contrasweep.data.images import LabelledImages
from contrasweep.data.listing import names_below
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import Archive, DatasetDamaged, DatasetMissing, check_files
from contrasweep.data.sources import corrupted
from contrasweep.data.sources.cifar import CIFAR10_LAYOUT
from contrasweep.data.sources.listed_images import ListedImages
from contrasweep.data.spec import Split, family_of

SOURCE = "https://github.com/kakaoenterprise/Learning-Debiased-Disentangled ({}, by its link: unpack it)"

ENOUGH, OF_EACH = 0.95, 0.9
"""A folder with smaller shares of the reported images (of all, of a class) is only part of the archive."""

BFFHQ_TRAIN = (19_104, 96)
"""Aligned and conflicting training images of bFFHQ."""
BFFHQ_TEST = {"conflict": 500, "all": 1_000, "valid": 1_000}

CIFAR_TRAIN = {"0.5": (44_832, 228), "1": (44_527, 442), "2": (44_145, 887), "5": (42_820, 2_242)}
"""Aligned and conflicting training images of Corrupted CIFAR-10, by percent."""
CIFAR_TEST = 10_000
CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

DERIVABLE = " or have it made from CIFAR-10, as corrupted-cifar10:layout=derived"

NPY_SOURCE = "https://github.com/alinlab/LfF (make_dataset.py makes it from CIFAR-10)"
NPY_ROWS = {"train": 50_000, "valid": 10_000}
NPY_SHARES = {"0.5": "0.005", "1": "0.01", "2": "0.02", "5": "0.05"}
"""The shares of conflicting images in the names of the npy folders, by percent."""
_NPY_SHAPES = {"images.npy": (32, 32, 3), "attrs.npy": (2,)}


@dataclass(frozen=True)
class _Files:
    """The files of one dataset.

    Attributes:
        archive: what messages say about them.
        values: classes and biases are numbered 0..values-1.
        percent: the share of conflicting training images, which names a folder.
        test: the folder of the test images.
        kind: what messages call the test images; only conflicting ones count if it says so.
        reported: the numbers of aligned and conflicting training images and of test images in papers.
        balanced: whether the classes have equally many aligned training and test images.
    """

    archive: Archive
    values: int
    percent: str
    test: str
    kind: str
    reported: tuple[int, int, int]
    balanced: bool

    def listed(self, root: Path, split: Split) -> ListedImages:
        """List a split: folder by folder, at any depth, sorted by path.

        Raises:
            DatasetMissing: a folder is not there, or holds no image.
            DatasetDamaged: a file's name does not end in `_CLASS_BIAS`, or a number in it is out of range.
        """
        train = (f"{self.percent}pct/align", f"{self.percent}pct/conflict")
        files: list[Path] = []
        numbers: list[tuple[int, int]] = []
        for name in train if split == "train" else (self.test,):
            folder = root / self.archive.folder / name
            if not folder.is_dir():
                raise self.archive.not_found(f"{folder} does not exist")
            found = _parsed(self.values, folder, *sorted(one for one in folder.iterdir() if one.is_dir()))
            if not found:
                raise self.archive.incomplete(f"{folder} holds no image")
            files += found
            numbers += found.values()
        labels, bias = torch.tensor(numbers).unbind(dim=1)
        images = ListedImages(files, labels, bias=bias)
        if split == "train" or "conflicting" not in self.kind:
            return images
        return images.subset((labels != bias).nonzero().flatten().tolist())

    def check(self, root: Path) -> None:
        """Raise DatasetMissing where a class lacks one kind of training image, or a kind is too rare."""
        train, aligned, conflicting, test = self.listed(root, "train"), *self.reported
        is_aligned = train.labels == train.bias
        kinds = {"aligned": (is_aligned, aligned), "conflicting": (~is_aligned, conflicting)}
        for kind, (chosen, reported) in kinds.items():
            labels, name = train.labels[chosen], f"bias-{kind} training"
            without = (torch.bincount(labels, minlength=self.values) == 0).nonzero().flatten().tolist()
            if without:
                raise self.archive.incomplete(f"no {name} image of class {', '.join(map(str, without))}")
            self._check_count(name, labels, reported, balanced=self.balanced and kind == "aligned")
        self._check_count(self.kind, self.listed(root, "test").labels, test, balanced=self.balanced)

    def _check_count(self, kind: str, labels: torch.Tensor, reported: int, *, balanced: bool) -> None:
        """Check that the shares `ENOUGH` of all reported images and `OF_EACH` of each class are there.

        The counts come from papers, not from an archive. So an archive with a few images less is accepted,
        while an incomplete copy is refused.
        """
        if len(labels) < ENOUGH * reported:
            raise self.archive.incomplete(
                f"it holds {len(labels):,} {kind} images, reported are {reported:,}"
            )
        counts, usual = torch.bincount(labels, minlength=self.values), reported / self.values
        if balanced and int(counts.min()) < OF_EACH * usual:
            rarest = int(counts.argmin())
            raise self.archive.incomplete(
                f"it holds {int(counts[rarest]):,} {kind} images of class {rarest}, of {round(usual):,}"
            )

    def sizes(self, root: Path) -> Mapping[str, int]:
        """Return the facts about the numbers of images; those of papers if the files are not there."""
        # Loading the images reports what is missing; a list of all datasets must not fail here.
        with suppress(DatasetMissing):
            return {
                "train_size": len(self.listed(root, "train")),
                "test_size": len(self.listed(root, "test")),
            }
        return {"train_size": sum(self.reported[:2]), "test_size": self.reported[2]}


@while_unchanged(16)
def _parsed(values: int, folder: Path, *folders_below: Path) -> dict[Path, tuple[int, int]]:
    """Return the class and the bias in the names of the images below a folder."""
    files = [folder / name for name in names_below(folder, (".png", ".jpg", ".jpeg"))]
    return {file: _class_and_bias(file, values) for file in files}


def _class_and_bias(file: Path, values: int) -> tuple[int, int]:
    words = file.stem.split("_")[-2:]
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        raise DatasetDamaged(f"{file}: a name must end in _CLASS_BIAS, two whole numbers")
    label, bias = map(int, words)
    if max(label, bias) >= values:
        raise DatasetDamaged(
            f"{file}: class and bias must be 0..{values - 1}, its name says {label} and {bias}"
        )
    return label, bias


def _bffhq(options: Options) -> _Files:
    holds, chosen = "0.5pct/align, 0.5pct/conflict, valid and test", str(options["test"])
    kind = {"conflict": "bias-conflicting test", "all": "test", "valid": "validation"}[chosen]
    folder = "valid" if chosen == "valid" else "test"
    archive = Archive("bffhq", SOURCE.format("BFFHQ"), "bffhq", holds)
    return _Files(archive, 2, "0.5", folder, kind, (*BFFHQ_TRAIN, BFFHQ_TEST[chosen]), balanced=False)


def _size(root: Path, options: Options) -> int:
    """Return the height of bFFHQ's first training image."""
    first = _bffhq(options).listed(root, "train").files[0]
    return header_of(image_bytes(first), str(first)).height


def _check_bffhq(root: Path, options: Options) -> None:
    _bffhq(options).check(root)
    _size(root, options)


def _vary_bffhq(root: Path, options: Options) -> Mapping[str, Any]:
    sizes = _bffhq(options).sizes(root)
    with suppress(DatasetMissing):
        return {**sizes, "image_size": _size(root, options)}
    return sizes


BFFHQ = family_of(
    DatasetSpec(
        name="bffhq",
        summary="faces, young or old, "
        "whose gender gives the age away in all but 0.5 % of the training images",
        classes=2,
        channels=3,
        image_size=128,
        # As released: the images are enlarged.
        view_size=224,
        train_size=sum(BFFHQ_TRAIN),
        test_size=BFFHQ_TEST["conflict"],
        licence="images from FFHQ: each its author's licence, the set CC BY-NC-SA 4.0 (Karras et al. 2019)",
        source=SOURCE.format("BFFHQ"),
        folder="bffhq",
        bias_classes=2,
        class_names=("age 0", "age 1"),
    ),
    check=_check_bffhq,
    read=lambda root, split, options: _bffhq(options).listed(root, split).opened(_size(root, options)),
    vary=_vary_bffhq,
    options={
        "test": DatasetOption(
            "the test images: those in test/ with a gender unusual for their age (as released), or all; or "
            "valid/, to choose settings by",
            str,
            "conflict",
            choices=("conflict", "all", "valid"),
        )
    },
)


def _cifar(options: Options) -> _Files:
    percent = str(options["percent"])
    holds = f"{percent}pct/align, {percent}pct/conflict and test"
    archive = Archive("corrupted-cifar10", SOURCE.format("CIFAR10C") + DERIVABLE, "cifar10c", holds)
    reported = (*CIFAR_TRAIN[percent], CIFAR_TEST)
    return _Files(archive, 10, percent, "test", "test", reported, balanced=True)


def _npy_folder(options: Options) -> str:
    skewed = NPY_SHARES[str(options["percent"])]
    return f"CorruptedCIFAR10-Type{options['type']}-Skewed{skewed}-Severity{options['severity']}"


def _check_cifar(root: Path, options: Options) -> None:
    if options["layout"] == "derived":
        corrupted.check(root, options)
        return
    if options["layout"] == "png":
        _cifar(options).check(root)
        return
    files = {f"{part}/{file}": None for part in NPY_ROWS for file in _NPY_SHAPES}
    check_files("corrupted-cifar10", root, _npy_folder(options), files, NPY_SOURCE)
    for file in files:
        _mapped(root / _npy_folder(options) / file)


def _vary_cifar(root: Path, options: Options) -> Mapping[str, Any]:
    if options["layout"] == "derived":
        return corrupted.facts(options)
    if options["layout"] == "png":
        return _cifar(options).sizes(root)
    sizes = {"train_size": NPY_ROWS["train"], "test_size": NPY_ROWS["valid"]}
    return {**sizes, "source": NPY_SOURCE, "folder": _npy_folder(options)}


def _read_cifar(root: Path, split: Split, options: Options) -> LabelledImages:
    if options["layout"] == "derived":
        return corrupted.read(root, split, options)
    if options["layout"] == "png":
        return _cifar(options).listed(root, split).opened(32, resize=False)
    place = root / _npy_folder(options) / ("train" if split == "train" else "valid")
    attributes = torch.from_numpy(np.array(_mapped(place / "attrs.npy"))).long()
    for column in attributes.T:
        check_labels(column, len(CIFAR_CLASSES), str(place / "attrs.npy"))
    pixels = torch.from_numpy(np.array(_mapped(place / "images.npy"))).permute(0, 3, 1, 2).contiguous()
    return LabelledImages(pixels, attributes[:, 0].contiguous(), bias=attributes[:, 1].contiguous())


def _recorrupted(root: Path, options: Options, rows: torch.Tensor, seed: int) -> LabelledImages:
    """Return training images with other corruptions.

    Raises:
        ValueError: the layout is not `derived`: its files hold each image with one corruption alone.
    """
    if options["layout"] != "derived":
        raise ValueError(
            f"the images of corrupted-cifar10:layout={options['layout']} cannot be corrupted again; "
            "those of layout=derived can"
        )
    return corrupted.recorrupted(root, options, rows, seed)


def _mapped(file: Path) -> np.ndarray:
    """Return an array that stays on disk, after checking that the file is complete.

    Raises:
        DatasetDamaged: the file is not an array, is truncated, or has another shape.
    """
    shape = (NPY_ROWS[file.parent.name], *_NPY_SHAPES[file.name])
    try:
        stored = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DatasetDamaged(
            f"{file} is not an array of numbers, or only a part of one: {error}. Get it from {NPY_SOURCE}"
        ) from None
    if stored.dtype != np.uint8 or stored.shape != shape:
        raise DatasetDamaged(
            f"{file} must hold uint8 {shape}, has {stored.dtype} {stored.shape}. Get it from {NPY_SOURCE}"
        )
    return np.asarray(stored)


CORRUPTED_CIFAR10 = replace(
    family_of(
        DatasetSpec(
            name="corrupted-cifar10",
            summary="CIFAR-10 with a corruption that gives the class away in all but a few training images",
            classes=10,
            channels=3,
            image_size=32,
            view_size=32,
            train_size=sum(CIFAR_TRAIN["0.5"]),
            test_size=CIFAR_TEST,
            licence="none stated by the authors of CIFAR-10 (Krizhevsky 2009); research use is customary",
            source=SOURCE.format("CIFAR10C"),
            folder="cifar10c",
            bias_classes=10,
            class_names=CIFAR_CLASSES,
        ),
        check=_check_cifar,
        read=_read_cifar,
        vary=_vary_cifar,
        options={
            "percent": DatasetOption(
                "bias-conflicting training images in percent", str, "0.5", choices=tuple(CIFAR_TRAIN)
            ),
            "layout": DatasetOption(
                "the files of Lee et al. (png) or of Nam et al. (npy), or made here from CIFAR-10 (derived)",
                str,
                "png",
                choices=("png", "npy", "derived"),
            ),
            "type": DatasetOption(
                "npy, derived: weather and digital corruptions (0), or noises and blurs (1)",
                str,
                "0",
                choices=tuple(corrupted.KINDS),
            ),
            "severity": DatasetOption(
                "npy, derived: how strong they are", str, "4", choices=("1", "2", "3", "4")
            ),
            "path": DatasetOption(
                "derived: CIFAR-10's folder (batches or Parquet): absolute, or under the data root",
                str,
                CIFAR10_LAYOUT.folder,
            ),
        },
    ),
    recoloured=_recorrupted,
)
