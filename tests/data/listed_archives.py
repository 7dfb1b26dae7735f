"""Tiny copies of published archives, in exactly their layouts."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from encoded_files import encoded, pixels

CUB_SPECIES = ("001.Black_footed_Albatross", "002.Laysan_Albatross")


def write_image(file: Path, seed: int, height: int = 12, width: int = 9) -> None:
    """Write one image of random levels; always a PNG, for any name, so that its pixels are known."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encoded(pixels(seed, height, width)))


def write_cub(root: Path, present: np.ndarray, training: Sequence[int]) -> None:
    """Write CUB-200-2011 with a row of `present` (N, A) for each image; two species alternate."""
    place = root / "CUB_200_2011"
    images, attributes = present.shape
    paths = [f"{CUB_SPECIES[i % 2]}/{CUB_SPECIES[i % 2][4:]}_{i:04d}_{i}.jpg" for i in range(images)]
    for number, path in enumerate(paths):
        write_image(place / "images" / path, number)
    _numbered(place / "images.txt", paths)
    _numbered(place / "image_class_labels.txt", [1 + i % 2 for i in range(images)])
    _numbered(place / "train_test_split.txt", training)
    _numbered(place / "classes.txt", CUB_SPECIES)
    (place / "attributes").mkdir()
    lines = [
        # As in the archive, some lines have a column too many.
        f"{i + 1} {a + 1} {present[i, a]} {3 if a else '1 0'} 12.075"
        for i in range(images)
        for a in range(attributes)
    ]
    (place / "attributes/image_attribute_labels.txt").write_text("\n".join(lines) + "\n")


def _numbered(file: Path, values: Sequence[object]) -> None:
    file.write_text("".join(f"{number} {value}\n" for number, value in enumerate(values, start=1)))


def write_wider(root: Path, split: str, images: Sequence[tuple[str, int, Sequence[Sequence[int]]]]) -> None:
    """Write annotations of Wider Attribute, "trainval" or "test"; an image is (path, scene, people)."""
    place = root / "WIDER_Attribute"
    for number, (path, _, _) in enumerate(images):
        write_image(place / "Image" / path, number)
    content = {
        "images": [
            {
                "file_name": path,
                "scene_id": scene,
                "targets": [{"attribute": list(one), "bbox": [1.0, 2.0, 3.5, 4.0]} for one in people],
            }
            for path, scene, people in images
        ],
        "attribute_id_map": {str(number): f"attribute {number}" for number in range(14)},
        "scene_id_map": {"0": "Parade", "17": "Ceremony", "3": "Riot"},
    }
    place.mkdir(exist_ok=True)
    (place / f"wider_attribute_{split}.json").write_text(json.dumps(content))


def write_zappos(root: Path, paths: Sequence[str], attributes: np.ndarray) -> None:
    """Write UT-Zappos50K with a row of `attributes` (N, A) for each path; folders may end in a full stop."""
    from scipy.io import savemat

    for number, path in enumerate(paths):
        write_image(root / "ut-zap50k-images-square" / path.replace("./", "%2E/"), number)
    place = root / "ut-zap50k-data"
    place.mkdir()
    cells = np.empty((len(paths), 1), dtype=object)
    cells[:, 0] = paths
    savemat(place / "image-path.mat", {"imagepath": cells})
    kinds = ["Category.Shoes", "Category.Boots", "SubCategory.Ankle", "SubCategory.Clogs.and.Mules"]
    header = ["CID", *kinds, *(f"Material.{number}" for number in range(attributes.shape[1]))]
    lines = [",".join(header)]
    for path, row in zip(paths, attributes.tolist(), strict=True):
        shoes = int(path.startswith("Shoes"))
        known = [shoes, 1 - shoes, 1 - shoes, shoes]
        lines.append(",".join([Path(path).stem.replace(".", "-"), *map(str, [*known, *row])]))
    (place / "meta-data-bin.csv").write_text("\n".join(lines) + "\n")


def write_zappos_split(root: Path, train: Sequence[str], test: Sequence[str]) -> None:
    """Write the two lists of the Cl-InfoNCE authors, with their last lines, which are not images."""
    place = root / "attributes/UT-zappos50K"
    place.mkdir(parents=True)
    for name, paths, ready in (("train", train, ",label_gran_3"), ("val", test, "")):
        lines = [f",path,class{ready}"]
        cell = ",0" if ready else ""
        lines += [f"{i},{path.replace('./', '%2E/')},{i % 2}{cell}" for i, path in enumerate(paths)]
        lines.append(f"-1,num_per_latent_class,2{',1' if ready else ''}")
        (place / f"meta_data_{name}.csv").write_text("\n".join(lines) + "\n")


def write_celeba(root: Path, labels: np.ndarray) -> None:
    """Write CelebA in torchvision's layout, with a row of `labels` (N, 40), -1 or 1, for each image."""
    names = [f"{number:06d}.jpg" for number in range(1, len(labels) + 1)]
    for number, name in enumerate(names):
        write_image(root / "celeba/img_align_celeba" / name, number, 218, 178)
    lines = [str(len(labels)), " ".join(f"Label_{number}" for number in range(labels.shape[1])) + " "]
    lines += [
        # As published, a positive number has a blank more before it.
        f"{name} {' '.join(f'{value:2d}' for value in row)}"
        for name, row in zip(names, labels.tolist(), strict=True)
    ]
    (root / "celeba/list_attr_celeba.txt").write_text("\n".join(lines) + "\n")


def write_imagenet(root: Path, train: dict[str, int], test: dict[str, int]) -> None:
    """Write ImageNet with given numbers of images of each class, both splits by class."""
    seed = 0
    for split, counts in (("train", train), ("val", test)):
        for name, count in counts.items():
            (root / "imagenet" / split / name).mkdir(parents=True)
            for number in range(count):
                seed += 1
                stem = f"{name}_{number}" if split == "train" else f"ILSVRC2012_val_{seed:08d}"
                write_image(root / "imagenet" / split / name / f"{stem}.JPEG", seed)
