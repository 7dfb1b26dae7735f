"""A tree of ImageNet's 42 animal classes and of ImageNet-A, with a few small images."""

from pathlib import Path

from encoded_files import encoded, pixels

from contrasweep.data.sources.imagenet9 import GROUPS, IN_IMAGENET_A, LABEL_OF


def write_imagenet9(root: Path, side: int = 8) -> None:
    """Write 2 training images and 1 validation image of each class, a class without a group, and ImageNet-A.

    ImageNet-A gets its classes among the 42 and one without a group, with one image each.

    The first pixel of an image holds its label, its number and 255.
    """
    for number, (wnid, label) in enumerate(sorted(LABEL_OF.items())):
        for place, image in (("train", "_0.JPEG"), ("train", "_1.JPEG"), ("val", "_2.JPEG")):
            _write(root / f"imagenet/{place}/{wnid}/{wnid}{image}", label, number, side)
    _write(root / "imagenet/train/n01440764/n01440764_0.JPEG", 0, 0, side)
    for wnid in (*IN_IMAGENET_A, "n01498041"):
        _write(root / f"imagenet-a/{wnid}/0.jpg", LABEL_OF.get(wnid, 0), 0, side)
    (root / "imagenet-a/README.txt").write_text("no image")


def write_textures(root: Path) -> None:
    """Write ReBias's table of clusters: an image of class number n has clusters n mod 2, n mod 3 and 8."""
    kind = {wnid: group for group, own in GROUPS.items() for wnid in own}
    lines = ["path,category,cluster1,cluster2,cluster3"]
    for number, wnid in enumerate(sorted(LABEL_OF)):
        lines.append(f"{wnid}/{wnid}_2.JPEG,{kind[wnid]},{number % 2},{number % 3},8")
    (root / "9class_imagenet_val.csv").write_text("\n".join(lines) + "\n")


def _write(file: Path, label: int, number: int, side: int) -> None:
    levels = pixels(number, side, side)
    levels[0, 0] = (label, number, 255)
    file.parent.mkdir(parents=True, exist_ok=True)
    # PNG in a file of any name is read as what it is, and keeps the levels.
    file.write_bytes(encoded(levels))
