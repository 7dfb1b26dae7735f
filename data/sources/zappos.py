"""UT-Zappos50K: catalogue photographs of 21 kinds of shoes with 126 binary attributes.

Layout of the published archives: `ut-zap50k-images-square/CATEGORY/SUBCATEGORY/BRAND/PRODUCT.COLOUR.jpg`
(136 x 136 pixels, white around the shoe), and `ut-zap50k-data/` with `image-path.mat` (a cell array
`imagepath`, the paths) and `meta-data-bin.csv` (`CID`, which is `PRODUCT-COLOUR`, and 151 columns of 0 and 1
called `COLUMN.Value`). Row i of one file belongs to row i of the other. A folder with a name that ends in a
full stop is stored with `%2E` instead, while `image-path.mat` may have either spelling.

A class is a category and subcategory, as in the lists of the Cl-InfoNCE authors. The 126 attributes are all
columns except the 4 of the category and the 21 of the subcategory, which are the classes: the papers' seven
discrete attributes (the columns are named after six). The authors' clusters by all attributes do not
determine the label, so the subcategory cannot be among the attributes. The archives were not available;
layout and counts come from programs that read them and from the authors' lists.

The published split (35,017 training and 15,008 test images) is in two files of the authors, in
`attributes/UT-zappos50K/`; `split=random` draws a split of the same sizes without them.

Sources: Yu and Grauman, "Fine-Grained Visual Comparisons with Local Learning" (CVPR 2014); Tsai et al. (ICLR
2022), Appendix E.1.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.cache import while_unchanged
from contrasweep.data.clusterings import ZAPPOS_FILES, ZAPPOS_FOLDER, ZAPPOS_SOURCE
from contrasweep.data.matlab import matlab_variable
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import Archive, DatasetDamaged, check_files
from contrasweep.data.seeds import torch_generator
from contrasweep.data.sources.listed_images import ListedImages, listed_family
from contrasweep.data.spec import Split
from contrasweep.data.text_table import column_of, read_text_table
from contrasweep.names import few_quoted

ARCHIVE = Archive(
    "ut-zappos50k",
    "https://vision.cs.utexas.edu/projects/finegrained/utzap50k (ut-zap50k-images-square.zip and -data.zip)",
    folder="ut-zap50k-images-square",
    holds="Boots/, Sandals/, Shoes/ and Slippers/",
)
DATA_FOLDER = "ut-zap50k-data"
PATHS, ATTRIBUTE_TABLE = "image-path.mat", "meta-data-bin.csv"
SPLIT_FILES = {"train": "meta_data_train.csv", "test": "meta_data_val.csv"}

CLASSES, ATTRIBUTES = 21, 126
SIZES = {"train": 35_017, "test": 15_008}
CLASS_COLUMNS = ("Category.", "SubCategory.")

_WRONG_IDENTIFIERS = 0.01
"""The largest share of rows with a `CID` that differs from the file's name; one published row does."""


def _check(root: Path, options: Options) -> None:
    name = ARCHIVE.dataset
    ARCHIVE.check_folder(root)
    check_files(name, root, DATA_FOLDER, {PATHS: None, ATTRIBUTE_TABLE: None}, ARCHIVE.source)
    if options["split"] == "published":
        files = dict.fromkeys(SPLIT_FILES.values()) | ZAPPOS_FILES
        check_files(name, root, ZAPPOS_FOLDER, files, ZAPPOS_SOURCE)
    ARCHIVE.check_listed([_stored(root, path) for path in _image_paths(root / DATA_FOLDER / PATHS)])


def read_zappos(root: Path, split: Split, *, published: bool = True) -> ListedImages:
    """Return the images of a split in the order of `image-path.mat`, with their classes and attributes.

    Raises:
        DatasetDamaged: a file does not have the form of the layout, or the files do not belong together.
    """
    paths = _image_paths(root / DATA_FOLDER / PATHS)
    kinds = ["/".join(path.split("/")[:2]) for path in paths]
    classes = {kind: label for label, kind in enumerate(sorted(set(kinds)))}
    if len(classes) != CLASSES:
        raise DatasetDamaged(f"{PATHS} lists images of {len(classes)} kinds of shoes, expected {CLASSES}")
    files = tuple(_stored(root, path) for path in paths)
    table = root / DATA_FOLDER / ATTRIBUTE_TABLE
    whole = ListedImages(files, torch.tensor([classes[kind] for kind in kinds]), _attributes(table, paths))
    return whole.subset(_published_rows(root, split, paths) if published else _random_rows(split, len(paths)))


@while_unchanged(2)
def _image_paths(file: Path) -> tuple[str, ...]:
    """Read the paths, with full stops."""
    cells = matlab_variable(file, "imagepath")
    try:
        paths = tuple(_with_stops(str(np.asarray(cell).item())) for cell in cells.flatten())
    except ValueError as error:
        raise DatasetDamaged(f"{file} holds no cell array `imagepath` ({error})") from error
    if len(paths) != sum(SIZES.values()):
        raise DatasetDamaged(f"{file} lists {len(paths):,} images, expected {sum(SIZES.values()):,}")
    return paths


def _with_stops(path: str) -> str:
    return path.replace("%2E", ".")


def _stored(root: Path, path: str) -> Path:
    """Return the file of an image; folders may end in `%2E` instead of a full stop."""
    *folders, name = path.split("/")
    ending = [folder[:-1] + "%2E" if folder.endswith(".") else folder for folder in folders]
    place = root / ARCHIVE.folder
    escaped = place.joinpath(*ending, name)
    return escaped if ending == folders or escaped.is_file() else place.joinpath(*folders, name)


def _attributes(file: Path, paths: tuple[str, ...]) -> Tensor:
    """Return the attributes of the images at ``paths``, float32 ``(N, 126)``."""
    table = read_text_table(file)
    identifiers = column_of(table, "CID", file).texts()
    if len(identifiers) != len(paths):
        raise DatasetDamaged(f"{file} has {len(identifiers):,} rows, {PATHS} {len(paths):,}")
    named = [Path(path).stem.replace(".", "-") for path in paths]
    wrong = [row for row, (a, b) in enumerate(zip(identifiers, named, strict=True)) if a != b]
    if len(wrong) > _WRONG_IDENTIFIERS * len(paths):
        pair = f"{identifiers[wrong[0]]!r} beside {paths[wrong[0]]!r}"
        raise DatasetDamaged(f"{file} and {PATHS} do not belong together: {len(wrong):,} rows differ, {pair}")
    kept = {
        name: column for name, column in table.items() if name != "CID" and not name.startswith(CLASS_COLUMNS)
    }
    if len(kept) != ATTRIBUTES:
        raise DatasetDamaged(f"{file} has {len(kept)} columns of attributes, expected {ATTRIBUTES}")
    for name, column in kept.items():
        if not {"0", "1"} >= set(column.values):
            raise DatasetDamaged(
                f"{file}: column {name!r} holds {few_quoted(column.values)}, allowed are 0 and 1"
            )
    values = [np.array([text == "1" for text in column.values])[column.codes] for column in kept.values()]
    return torch.from_numpy(np.stack(values, axis=1)).float()


def _published_rows(root: Path, split: Split, paths: tuple[str, ...]) -> list[int]:
    file = root / ZAPPOS_FOLDER / SPLIT_FILES[split]
    table = read_text_table(file)
    listed, numbers = (column_of(table, name, file).texts() for name in ("path", ""))
    # The last line is not an image: it counts the values of each column.
    wanted = {_with_stops(path) for path, number in zip(listed, numbers, strict=True) if number != "-1"}
    rows = [row for row, path in enumerate(paths) if path in wanted]
    if len(rows) != len(wanted) or len(rows) != SIZES[split]:
        absent = few_quoted(sorted(wanted - set(paths))) or "none"
        raise DatasetDamaged(
            f"{file} lists {len(wanted):,} images, expected {SIZES[split]:,}; of them {PATHS} lacks {absent}"
        )
    return rows


def _random_rows(split: Split, images: int) -> list[int]:
    order = torch.randperm(images, generator=torch_generator("split", ARCHIVE.dataset))
    train, test = order[: SIZES["train"]], order[SIZES["train"] :]
    rows: list[int] = (train if split == "train" else test).sort().values.tolist()
    return rows


UT_ZAPPOS50K = listed_family(
    ARCHIVE,
    "50,025 catalogue photographs of 21 kinds of shoes, 126 binary attributes each",
    size=136,
    facts=lambda root, options: {
        "classes": CLASSES,
        "train_size": SIZES["train"],
        "test_size": SIZES["test"],
        "condition_dim": ATTRIBUTES,
        "condition_name": "binary attributes",
        "licence": "academic and non-commercial use; the images are those of Zappos.com",
        "folder": f"{ARCHIVE.folder}, {DATA_FOLDER}",
    },
    check=_check,
    read=lambda root, split, options: read_zappos(root, split, published=options["split"] == "published"),
    options={
        "split": DatasetOption(
            "the split of the Cl-InfoNCE authors, or a random one of its sizes",
            str,
            "published",
            choices=("published", "random"),
        ),
    },
)
