"""Scene: photographs with any of six labels, as 294 features, seen in two noisy views or in one (HeroCon).

Sources: Boutell et al., "Learning Multi-label Scene Classification" (Pattern Recognition 2004); Zheng et al.,
"Contrastive Learning with Complex Heterogeneity" (KDD 2022), Section 4.2 and its released code.
"""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import DatasetDamaged, check_files
from contrasweep.data.seeds import numpy_generator
from contrasweep.data.sources.folds import fold_rows, table_family
from contrasweep.data.transductive import MultiView

SCENE_FOLDER = "scene"

SCENE_FILES = {"scene-train.arff": 3_127_968, "scene-test.arff": 3_090_742, "scene.xml": 293}
"""The three files and their sizes in bytes."""

SOURCE = "http://mulan.sourceforge.net/datasets-mlc.html (Scene: unpack it)"

CLASS_NAMES = ("Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban")

FEATURES = 294
ROWS = {"scene-train.arff": 1211, "scene-test.arff": 1196}

FOLD_SIZES = (121,) * 7 + (120,) * 13
"""Labelled objects of each fold."""


def read_label_names(path: Path) -> tuple[str, ...]:
    """Read the names of the label attributes from the XML file of a multi-label ARFF file.

    Raises:
        DatasetDamaged: the file is not XML, or names no label.
    """
    try:
        tree = ElementTree.parse(path)
    except ElementTree.ParseError as error:
        raise DatasetDamaged(f"{path} is not XML: {error}") from None
    names = tuple(node.get("name", "") for node in tree.getroot() if node.tag.endswith("label"))
    if not names or not all(names):
        raise DatasetDamaged(f"{path} must hold <label name=...> elements, found {len(names)}")
    return names


def read_multilabel_arff(path: Path, label_names: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    """Read a dense ARFF file; label attributes are 0 or 1, all others are numbers.

    Returns:
        The features, float32 ``(N, d)``, and the labels, int64 ``(N, c)``, in the order of the file.

    Raises:
        DatasetDamaged: the file has another form, lacks a label, or has a value that is missing or not
            finite, or a label other than 0 and 1. The message names the file.
    """
    attributes, lines = _split_arff(path)
    absent = [name for name in label_names if name not in attributes]
    if absent:
        raise DatasetDamaged(f"{path} has no attribute {', '.join(absent)}; it has {len(attributes)} others")
    try:
        values = np.loadtxt(lines, delimiter=",", comments="%", ndmin=2)
    except ValueError as error:
        raise DatasetDamaged(f"{path} is not a table of numbers: {error}") from None
    if values.shape[1] != len(attributes):
        raise DatasetDamaged(f"{path} has rows of {values.shape[1]} values for {len(attributes)} attributes")
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise DatasetDamaged(f"{path}: row {int(bad.argmax()) + 1} holds a value that is not finite")
    columns = [attributes.index(name) for name in label_names]
    labels = values[:, columns]
    wrong = ((labels != 0) & (labels != 1)).any(axis=1)
    if wrong.any():
        raise DatasetDamaged(f"{path}: row {int(wrong.argmax()) + 1} holds a label that is neither 0 nor 1")
    features = np.delete(values, columns, axis=1).astype(np.float32)
    return torch.from_numpy(features), torch.from_numpy(labels.astype(np.int64))


def _split_arff(path: Path) -> tuple[list[str], list[str]]:
    """Return the names of the attributes and the lines after `@data`."""
    attributes = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines):
        words = line.split()
        keyword = words[0].lower() if words else ""
        if keyword == "@attribute" and len(words) > 1:
            attributes.append(words[1].strip("'\""))
        elif keyword == "@data":
            rows = [row for row in lines[number + 1 :] if row.strip()]
            if not attributes or not rows:
                break
            return attributes, rows
    raise DatasetDamaged(f"{path} is not an ARFF file: it needs @attribute lines, @data and rows")


def noisy_views(features: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """Return two views: the first with noise on the even rows, the second with noise on the odd rows.

    The noise is ``level * N(mean, std)``, with the mean and the standard deviation of all values in these
    rows. It is drawn once, for all folds.

    Args:
        features: float32 ``(N, d)``.
        level: the scale of the noise; 0.01 as released.

    Returns:
        Two tensors, float32 ``(N, d)``.
    """
    views = []
    for start in (0, 1):
        values = features.double().numpy().copy()
        rows = values[start::2]
        generator = numpy_generator("noise", "scene", start + 1)
        rows += level * generator.normal(rows.mean(), rows.std(), rows.shape)
        views.append(torch.from_numpy(values.astype(np.float32)))
    return views[0], views[1]


def read_scene(root: Path) -> MultiView:
    """Read all 2,407 photographs, those of the training file first.

    Raises:
        DatasetDamaged: a file has other contents.
    """
    folder = root / SCENE_FOLDER
    names = read_label_names(folder / "scene.xml")
    if names != CLASS_NAMES:
        found = ", ".join(names)
        raise DatasetDamaged(f"{folder / 'scene.xml'} names the labels {found}, not those of Scene")
    tables = []
    for file, rows in ROWS.items():
        features, labels = read_multilabel_arff(folder / file, names)
        if features.shape != (rows, FEATURES):
            found = " x ".join(map(str, features.shape))
            raise DatasetDamaged(f"{folder / file} holds {found} features, Scene has {rows} x {FEATURES}")
        tables.append((features, labels))
    features, labels = map(torch.cat, zip(*tables, strict=True))
    return MultiView((features,), labels)


def _read(root: Path, options: Options) -> MultiView:
    whole = read_scene(root)
    one = int(options["views"]) == 1
    return whole if one else replace(whole, views=noisy_views(whole.views[0], float(options["level"])))


def _labelled(labels: Tensor, fold: int) -> Tensor:
    """Return the rows of a fold in which every set of labels has its share."""
    label_set = (labels * 2 ** torch.arange(labels.shape[1])).sum(dim=1)
    return fold_rows(label_set, len(FOLD_SIZES), fold)


SCENE = table_family(
    name="scene",
    summary="2,407 photographs with six labels as 294 features, two noisy views, 5 % labelled",
    facts=lambda options: {
        "classes": len(CLASS_NAMES),
        "multi_label": True,
        "views": ((FEATURES,),) * int(options["views"]),
        "labelled": FOLD_SIZES,
        "unlabelled": tuple(sum(ROWS.values()) - size for size in FOLD_SIZES),
        "licence": "none stated by the authors (Boutell et al. 2004); research use is customary",
        "source": SOURCE,
        "folder": SCENE_FOLDER,
        "class_names": CLASS_NAMES,
    },
    check=lambda root, options: check_files("scene", root, SCENE_FOLDER, SCENE_FILES, SOURCE),
    read=_read,
    labelled=_labelled,
    options={
        "level": DatasetOption(
            "scale of the noise that tells two views apart", float, 0.01, low=0.0, high=1.0
        ),
        "views": DatasetOption("two noisy views, or the features as they are", int, 2, low=1, high=2),
    },
)
