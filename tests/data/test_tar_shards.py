"""Tar files in the layout of webdataset: images, labels beside them, splits, and what is damaged."""

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from encoded_files import encoded, images_of, pixels

from contrasweep.data import (
    UNLABELLED,
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_training,
)

NAME = "tar-shards:path=shards,size=8"
Write = Callable[[str, Mapping[str, bytes]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a tar file with the given members into the folder `shards`."""

    def write(name: str, members: Mapping[str, bytes]) -> Path:
        file = tmp_path / "shards" / name
        file.parent.mkdir(exist_ok=True)
        with tarfile.open(file, "w:gz" if name.endswith("gz") else "w") as tar:
            for member, content in members.items():
                entry = tarfile.TarInfo(member)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        return file

    return write


def image(seed: int) -> bytes:
    return encoded(pixels(seed))


def labelled(*seeds_and_labels: tuple[int, object]) -> dict[str, bytes]:
    return {
        name: content
        for seed, label in seeds_and_labels
        for name, content in ((f"s/{seed:03d}.png", image(seed)), (f"s/{seed:03d}.cls", str(label).encode()))
    }


def test_samples_of_all_shards_stand_in_order(write: Write, tmp_path: Path) -> None:
    write("train-001.tar", labelled((2, 10), (3, 2)))
    write(
        "train-000.tar",
        {"s": b"no sample", **labelled((0, 2)), "s/000.txt": b"a caption", **labelled((1, 2))},
    )
    write("val-000.tar", labelled((4, 10)))
    check_available(NAME, tmp_path)
    spec = dataset_spec(NAME, tmp_path)
    assert (spec.classes, spec.class_names) == (2, ("2", "10")), "numbers by their size"
    assert (spec.train_size, spec.test_size, spec.channels, spec.unlabelled_size) == (4, 1, 3, 0)
    train, test = load_training(NAME, tmp_path).train, load_test(NAME, tmp_path)
    assert train.labels.tolist() == [0, 0, 1, 0]
    assert torch.equal(train.pixels, images_of(0, 1, 2, 3))
    assert test.labels.tolist() == [1]
    assert torch.equal(test.pixels, images_of(4))


def test_hidden_members_are_no_samples(write: Write, tmp_path: Path) -> None:
    hidden = {f"s/._{number:03d}.{ending}": b"a Mac's" for number in (0, 1) for ending in ("png", "cls")}
    write("train-0.tar", {**hidden, ".png": b"", **labelled((0, 2), (1, 3))})
    write("test-0.tar", labelled((2, 2)))
    train = load_training(NAME, tmp_path).train
    assert torch.equal(train.pixels, images_of(0, 1))
    assert dataset_spec(NAME, tmp_path).class_names == ("2", "3")


def test_a_stream_reads_several_shards_at_once(write: Write, tmp_path: Path) -> None:
    write("train-000.tar", labelled((0, 0), (1, 1)))
    write("train-001.tar", labelled((2, 0), (3, 1)))
    write("test.tar", labelled((4, 0)))
    streamed = load_training(NAME, tmp_path, placement="stream").train.images
    assert torch.equal(streamed[torch.tensor([3, 0, 2])], images_of(3, 0, 2))


def test_labels_in_json_and_in_words(write: Write, tmp_path: Path) -> None:
    members = {}
    for seed, label in enumerate(["dog", "ant", None, -1]):
        members |= {f"{seed}.png": image(seed), f"{seed}.json": json.dumps({"label": label}).encode()}
    write("train.tar", {**members, "4.png": image(4)})
    write("test.tar", labelled((5, "dog")))
    spec = dataset_spec(NAME, tmp_path)
    assert (spec.class_names, spec.unlabelled_size) == (("ant", "dog"), 3)
    assert load_training(NAME, tmp_path).train.labels.tolist() == [1, 0, UNLABELLED, UNLABELLED, UNLABELLED]
    assert load_test(NAME, tmp_path).labels.tolist() == [1]


def test_without_labels_a_tenth_is_cut_off(write: Write, tmp_path: Path) -> None:
    write("train-000.tar", {f"{seed}.png": image(seed) for seed in range(20)})
    spec = dataset_spec(NAME, tmp_path)
    assert (spec.classes, spec.train_size, spec.test_size, spec.unlabelled_size) == (0, 18, 2, 18)
    train, test = load_training(NAME, tmp_path).train, load_test(NAME, tmp_path)
    both = torch.cat([train.pixels, test.pixels]).flatten(1)
    assert len(torch.unique(both, dim=0)) == 20, "no image is in both"


def test_labels_can_be_left_aside(write: Write, tmp_path: Path) -> None:
    write("train.tar", labelled(*((seed, seed % 2) for seed in range(20))))
    assert dataset_spec(f"{NAME},labels=none", tmp_path).classes == 0
    assert dataset_spec(NAME, tmp_path).classes == 2


def test_what_is_missing_is_named(tmp_path: Path, write: Write) -> None:
    with pytest.raises(DatasetMissing, match="path=shards is looked for under the data root"):
        check_available(NAME, tmp_path)
    write("a.tar", {"0.png": image(0)})
    with pytest.raises(DatasetMissing, match=r"no image in train-\*\.tar; it holds a\.tar"):
        check_available(NAME, tmp_path)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"0.png": b"x", "0.jpg": b"x"}, "sample 0 has several images"),
        ({"0.png": b"x", "0.cls": b"1.5e\xff"}, "the label of 0 in .* cannot be read"),
        ({"0.png": b"x", "0.json": b"[" * 100_000}, "the label of 0 in .* cannot be read"),
        ({"0.png": b"x", "0.json": b'{"label": [1]}'}, r"is \[1\]: give a whole number or a word"),
    ],
)
def test_a_damaged_sample_is_named(
    members: Mapping[str, bytes], says: str, write: Write, tmp_path: Path
) -> None:
    write("train.tar", members)
    write("test.tar", labelled((0, 1)))
    with pytest.raises(DatasetDamaged, match=says):
        check_available(NAME, tmp_path)


def test_a_file_that_is_cut_short_or_compressed_is_refused(write: Write, tmp_path: Path) -> None:
    file = write("train.tar", labelled((0, 1), (1, 0)))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 4])
    with pytest.raises(DatasetDamaged, match=r"ends within|is not whole"):
        check_available(NAME, tmp_path)
    write("train.gz", labelled((0, 1))).rename(file)
    with pytest.raises(DatasetDamaged, match="is no tar file, or is compressed"):
        check_available(NAME, tmp_path)


@pytest.mark.parametrize("kept", [1024, 1024 + 300, 2048])
def test_a_file_that_is_cut_between_two_members_is_refused(kept: int, write: Write, tmp_path: Path) -> None:
    """Python reads what is left as if it were all: here one image, with or without its label."""
    file = write("train.tar", labelled((0, 1), (1, 0)))
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(DatasetDamaged, match=r"train\.tar is not whole: at byte (1,024|2,048) there is nei"):
        check_available(NAME, tmp_path)


def test_a_header_that_is_damaged_does_not_end_a_file(write: Write, tmp_path: Path) -> None:
    file = write("train.tar", labelled((0, 1), (1, 0)))
    damaged = bytearray(file.read_bytes())
    damaged[2048 + 150] ^= 1  # in the checksum of the third header
    file.write_bytes(damaged)
    with pytest.raises(DatasetDamaged, match="is not whole: at byte 2,048"):
        check_available(NAME, tmp_path)


def test_tar_files_one_after_the_other_in_a_file_are_refused(write: Write, tmp_path: Path) -> None:
    file, other = write("train.tar", labelled((0, 1))), write("other.tar", labelled((1, 0)))
    file.write_bytes(file.read_bytes() + other.read_bytes())
    with pytest.raises(DatasetDamaged, match=r"holds more after its end at byte 2,048: .*tar --concatenate"):
        check_available(NAME, tmp_path)


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE])
@pytest.mark.parametrize("name", ["s/001.png", "s/001.cls"])
def test_an_image_or_label_that_is_a_link_is_refused(
    kind: bytes, name: str, write: Write, tmp_path: Path
) -> None:
    file = write("train.tar", labelled((0, 1), (2, 0)))
    link = tarfile.TarInfo(name)
    link.type, link.linkname = kind, f"s/000{name[-4:]}"
    with tarfile.open(file, "a") as tar:
        tar.addfile(link)
    with pytest.raises(DatasetDamaged, match=rf"{name} is a link to s/000.*; allowed: files"):
        check_available(NAME, tmp_path)


def test_a_label_may_begin_with_a_byte_order_mark(write: Write, tmp_path: Path) -> None:
    write("train.tar", {**labelled((0, 1), (1, 0), (2, 0)), "s/000.cls": b"\xef\xbb\xbf1\r\n"})
    write("test.tar", labelled((3, 1)))
    assert dataset_spec(NAME, tmp_path).class_names == ("0", "1")


def test_a_test_split_that_does_not_go_with_the_training_is_refused(write: Write, tmp_path: Path) -> None:
    write("train.tar", labelled((0, "ant"), (1, "dog")))
    write("test.tar", labelled((2, "dok")))
    with pytest.raises(DatasetDamaged, match="Did you mean 'dog'"):
        check_available(NAME, tmp_path)
    write("test.tar", {"7.png": image(7)})
    with pytest.raises(DatasetDamaged, match=r"7 in .* has no label, but training images have some"):
        check_available(NAME, tmp_path)


BIASED = f"{NAME},bias=hospital"


def with_facts(*seeds_and_facts: tuple[int, object]) -> dict[str, bytes]:
    return {
        name: content
        for seed, facts in seeds_and_facts
        for name, content in (
            (f"{seed:03d}.png", image(seed)),
            (f"{seed:03d}.json", json.dumps(facts).encode()),
        )
    }


def test_bias_labels_stand_beside_the_labels(write: Write, tmp_path: Path) -> None:
    places = ("south", "north", "south", "north")
    both = with_facts(*((seed, {"label": seed % 2, "hospital": at}) for seed, at in enumerate(places)))
    write("train-0.tar", {**both, "000.cls": b"1"})
    write("test.tar", with_facts((4, {"label": 0, "hospital": "east"})))
    spec = dataset_spec(BIASED, tmp_path)
    assert (spec.bias_classes, spec.bias_names) == (3, ("east", "north", "south"))
    train, test = load_training(BIASED, tmp_path).train, load_test(BIASED, tmp_path)
    assert train.labels.tolist() == [1, 1, 0, 1], "a label that stands alone comes first"
    assert (train.bias.tolist(), test.bias.tolist()) == ([2, 1, 2, 1], [0])
    assert dataset_spec(NAME, tmp_path).bias_classes is None


def test_bias_labels_go_with_the_images_that_are_cut_off_for_testing(write: Write, tmp_path: Path) -> None:
    write("train.tar", with_facts(*((s, {"label": s % 2, "hospital": s % 5 == 0}) for s in range(40))))
    spec = dataset_spec(BIASED, tmp_path)
    assert (spec.bias_names, spec.train_size, spec.test_size) == (("false", "true"), 36, 4)
    seeds = {image: seed for seed, image in enumerate(images_of(*range(40)).flatten(1).sum(1).tolist())}
    assert len(seeds) == 40
    for split in (load_training(BIASED, tmp_path).train, load_test(BIASED, tmp_path)):
        own = [seeds[total] for total in split.pixels.flatten(1).sum(1).tolist()]
        assert split.bias.tolist() == [int(seed % 5 == 0) for seed in own]


def test_other_bias_labels_have_another_fingerprint(write: Write, tmp_path: Path) -> None:
    prints = []
    for last in ("north", "south"):
        facts = [
            (seed, {"label": seed % 2, "hospital": at}) for seed, at in enumerate(("north", "south", last))
        ]
        write("train.tar", with_facts(*facts))
        write("test.tar", with_facts((4, {"label": 0, "hospital": "north"})))
        prints.append({name: dataset_spec(name, tmp_path).fingerprint for name in (NAME, BIASED)})
    assert prints[0][BIASED] != prints[0][NAME]
    assert prints[0][BIASED] != prints[1][BIASED]


@pytest.mark.parametrize(
    ("members", "name", "says"),
    [
        (labelled((0, 0), (1, 1)), BIASED, "000 in .* has no .json member beside the image"),
        (
            with_facts((0, {"label": 0, "hospitals": 1}), (1, {"label": 1})),
            BIASED,
            "Did you mean 'hospitals'",
        ),
        (with_facts((0, 3), (1, 4)), BIASED, "unknown key of 000"),
        (with_facts((0, {"label": 0, "hospital": 1.5}), (1, {"label": 1})), BIASED, "hospital, is 1.5: give"),
        (
            with_facts((0, {"label": 0, "hospital": None}), (1, {"label": 1})),
            BIASED,
            "hospital, is None: give",
        ),
        (
            with_facts((0, {"label": 0, "hospital": 1}), (1, {"label": 1, "hospital": 1})),
            BIASED,
            "gives training images 1 different bias label",
        ),
        (
            with_facts((0, {"hospital": 1}), (1, {"hospital": 2})),
            f"{BIASED},labels=none",
            "a bias, but no labels",
        ),
    ],
)
def test_bias_labels_that_cannot_be_used_are_refused(
    members: Mapping[str, bytes], name: str, says: str, write: Write, tmp_path: Path
) -> None:
    write("train.tar", members)
    with pytest.raises((DatasetDamaged, DatasetMissing), match=says):
        check_available(name, tmp_path)
