"""Wider Attribute: photographs of 30 kinds of events, with 14 binary attributes of the people in them.

Layout of the published archives: `Image/{train,val,test}/EVENT/*.jpg`, and two files of annotations,
`wider_attribute_trainval.json` and `wider_attribute_test.json`. A file holds `images`, each with `file_name`
(from the split on), `scene_id` and `targets`, the people, each with 14 numbers `attribute`: 1 present, -1
absent, 0 not known. `scene_id_map` and `attribute_id_map` name the numbers. The 30 scenes have numbers up to
58, with gaps; labels number them in this order. The folder of the annotations differs between copies; they
are searched in `PLACES`.

An image has an attribute if one of its people has it. Training images are those of train and val, as in
Cl-InfoNCE; their paths and counts agree with the authors' lists. The archive was not available.

Sources: Li et al., "Human Attribute Recognition by Deep Hierarchical Contexts" (ECCV 2016); Tsai et al. (ICLR
2022), Appendix E.2.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contrasweep.data.cache import while_unchanged
from contrasweep.data.options import Options
from contrasweep.data.root import Archive, DatasetDamaged
from contrasweep.data.sources.listed_images import ListedImages, listed_family
from contrasweep.data.spec import Split

ARCHIVE = Archive(
    "wider-attribute",
    "http://mmlab.ie.cuhk.edu.hk/projects/WIDERAttribute.html (both archives: unpack them)",
    folder="WIDER_Attribute",
    holds="Image/ and the two wider_attribute_*.json",
)
PLACES = (".", "wider_attribute_annotation", "Anno", "Annotations")
"""Folders in the dataset's own that may hold the annotations."""

SCENES, ATTRIBUTES = 30, 14
SIZES = {"train": 6_871, "test": 6_918}
_FILES = {"train": "wider_attribute_trainval.json", "test": "wider_attribute_test.json"}


@dataclass(frozen=True, eq=False)
class _Annotations:
    """One file: paths, scenes by its own numbers, attributes uint8 ``(N, 14)``, names of scenes."""

    paths: tuple[str, ...]
    scenes: tuple[int, ...]
    attributes: Tensor
    names: dict[int, str]


def _check(root: Path, options: Options) -> None:
    ARCHIVE.check_folder(root)
    paths = [path for file in _FILES.values() for path in _annotations(root, file).paths]
    ARCHIVE.check_listed([root / ARCHIVE.folder / "Image" / path for path in paths])


def read_wider(root: Path, split: Split) -> ListedImages:
    """Return the images of a split in the order of its annotations, with their scenes and attributes.

    Raises:
        DatasetMissing: the annotations are missing.
        DatasetDamaged: they do not have the form of the layout.
    """
    found = _annotations(root, _FILES[split])
    if len(found.paths) != SIZES[split]:
        raise DatasetDamaged(f"{_FILES[split]} lists {len(found.paths):,} images, expected {SIZES[split]:,}")
    number = {scene: label for label, scene in enumerate(sorted(found.names))}
    unknown = [scene for scene in found.scenes if scene not in number]
    if unknown or len(number) != SCENES:
        other = f", and has images of scene {unknown[0]}" if unknown else ""
        raise DatasetDamaged(f"{_FILES[split]} names {len(number)} scenes, expected {SCENES}{other}")
    files = [root / ARCHIVE.folder / "Image" / path for path in found.paths]
    return ListedImages(
        files, torch.tensor([number[scene] for scene in found.scenes]), found.attributes.float()
    )


def _annotations(root: Path, name: str) -> _Annotations:
    folder = root / ARCHIVE.folder
    for place in PLACES:
        if (folder / place / name).is_file():
            return _parsed(folder / place / name)
    raise ARCHIVE.incomplete(f"{folder} lacks {name} (looked in {', '.join(PLACES)})")


@while_unchanged(4)
def _parsed(file: Path) -> _Annotations:
    try:
        content = json.loads(file.read_bytes())
        images = content["images"]
        names = {int(scene): str(name) for scene, name in content["scene_id_map"].items()}
        paths = tuple(str(image["file_name"]) for image in images)
        scenes = tuple(int(image["scene_id"]) for image in images)
        attributes = torch.tensor([_of_any(image["targets"]) for image in images], dtype=torch.uint8)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DatasetDamaged(f"{file} is not an annotation file of Wider Attribute ({reason})") from error
    return _Annotations(paths, scenes, attributes, names)


def _of_any(people: list[dict[str, Any]]) -> list[bool]:
    rows = [person["attribute"] for person in people]
    if any(len(row) != ATTRIBUTES for row in rows):
        raise ValueError(f"a person has {ATTRIBUTES} attributes")
    return [any(row[attribute] == 1 for row in rows) for attribute in range(ATTRIBUTES)]


WIDER_ATTRIBUTE = listed_family(
    ARCHIVE,
    "13,789 photographs of 30 kinds of events, 14 binary attributes of the people in them",
    size=224,
    facts=lambda root, options: {
        "classes": SCENES,
        "train_size": SIZES["train"],
        "test_size": SIZES["test"],
        "condition_dim": ATTRIBUTES,
        "condition_name": "binary attributes, of any person in the image",
        "licence": "non-commercial research",
    },
    check=_check,
    read=lambda root, split, options: read_wider(root, split),
)
