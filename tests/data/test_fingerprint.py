"""The fingerprints of a user's own files: what changes them, what does not, and what they cost."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from encoded_files import encoded, pixels, write_parquet

from contrasweep.data import check_available, dataset_spec, fingerprint
from contrasweep.data.fingerprint import Listing, fingerprint_below
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import identities
from contrasweep.tuning.objectives.prepared import refuse_other_data
from contrasweep.tuning.planning.resolve import check_experiment, resolve

FILES = ("train/ant/a.png", "train/ant/b.png", "train/cat/c.png", "train/cat/d.png", "test/ant/e.png")


def _write_tree(folder: Path) -> None:
    for seed, name in enumerate(FILES):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(pixels(seed)))


def _write_parquet(folder: Path) -> None:
    for split, seeds in (("train", range(6)), ("test", range(6, 8))):
        write_parquet(
            folder / f"{split}-0.parquet", [encoded(pixels(s)) for s in seeds], [0, 1] * (len(seeds) // 2)
        )


def _write_tar(folder: Path) -> None:
    import tarfile

    _write_tree(folder.with_name("source"))
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        with tarfile.open(folder / f"{split}-0.tar", "w") as tar:
            for name in FILES:
                if name.startswith(split):
                    tar.add(folder.with_name("source") / name, name)


OWN: dict[str, Callable[[Path], None]] = {
    "image-folder:path=PATH,size=8": _write_tree,
    "image-folder:path=PATH,size=8,labels=none": _write_tree,
    "hub-parquet:path=PATH": _write_parquet,
    "tar-shards:path=PATH,size=8": _write_tar,
}


def _fingerprint(name: str, root: Path, folder: str = "own") -> str:
    return dataset_spec(name.replace("PATH", folder), root).fingerprint


def _change_a_byte(file: Path, place: int = -20) -> None:
    """Change a byte of a file, and neither its size nor its time of change: as another image of its name."""
    content, state = bytearray(file.read_bytes()), file.stat()
    content[place] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.fixture
def anew() -> Callable[[], None]:
    """Return a function that forgets what a process remembers, as a new process does."""
    from contrasweep.data.sources import hub_parquet

    def forget() -> None:
        fingerprint._remembered.cache_clear()
        hub_parquet._fingerprint.cache_clear()

    return forget


@pytest.mark.parametrize("name", OWN)
def test_it_follows_contents_and_no_place_or_time(
    name: str, tmp_path: Path, anew: Callable[[], None]
) -> None:
    OWN[name](tmp_path / "own")
    first = _fingerprint(name, tmp_path)
    assert first
    shutil.copytree(tmp_path / "own", tmp_path / "moved")
    for file in (tmp_path / "moved").rglob("*"):
        os.utime(file, (1, 1))
    assert _fingerprint(name, tmp_path, "moved") == first
    for split in ("train", "test"):
        file = next(one for one in sorted((tmp_path / "moved").rglob("*.*")) if split in str(one))
        _change_a_byte(file)
        anew()
        assert _fingerprint(name, tmp_path, "moved") != first
        _change_a_byte(file)
        anew()
        assert _fingerprint(name, tmp_path, "moved") == first


def test_a_process_that_lives_on_sees_other_images(tmp_path: Path) -> None:
    name = "image-folder:path=PATH,size=8"
    _write_tree(tmp_path / "own")
    found = [_fingerprint(name, tmp_path)]
    (tmp_path / "own" / FILES[1]).write_bytes(encoded(pixels(9)))
    found.append(_fingerprint(name, tmp_path))
    (tmp_path / "own" / FILES[1]).unlink()
    found.append(_fingerprint(name, tmp_path))
    (tmp_path / "own" / FILES[0]).rename(tmp_path / "own" / "train/cat/a.png")
    (tmp_path / "own" / FILES[2]).rename(tmp_path / "own" / "train/ant/c.png")
    found.append(_fingerprint(name, tmp_path))
    assert len(set(found)) == 4, "replaced, removed, of another class"
    (tmp_path / "own/train/cat/readme.txt").write_text("no image")
    assert _fingerprint(name, tmp_path) == found[-1]


def test_of_many_files_some_are_read_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"{number:04}.png" for number in range(640))
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    read: list[str] = []
    original = fingerprint._read
    monkeypatch.setattr(
        fingerprint, "_read", lambda place, *part: read.append(place) or original(place, *part)
    )
    first = fingerprint_below(Listing(tmp_path, names), None)
    assert [Path(place).name for place in read] == list(names[::10])
    assert fingerprint_below(Listing(tmp_path, names), None) == first
    assert len(read) == 64, "it is remembered"
    (tmp_path / names[5]).write_bytes(b"larger than before")
    fingerprint._remembered.cache_clear()
    assert fingerprint_below(Listing(tmp_path, names), None) != first, "the size of each counts"


def test_an_image_that_moves_to_another_class_is_noticed(tmp_path: Path) -> None:
    """Neither the order of the images nor their contents change."""
    _write_tree(tmp_path)
    first = fingerprint_below(Listing(tmp_path / "train", ("ant/a.png", "ant/b.png", "cat/c.png")), None)
    (tmp_path / "train/ant/b.png").rename(tmp_path / "train/cat/b.png")
    moved = fingerprint_below(Listing(tmp_path / "train", ("ant/a.png", "cat/b.png", "cat/c.png")), None)
    assert moved != first


def test_a_few_large_files_are_read_at_even_distances(tmp_path: Path, anew: Callable[[], None]) -> None:
    (tmp_path / "train-0.tar").write_bytes(bytes(40 * fingerprint.BLOCK_BYTES))
    listing = Listing(tmp_path, ("train-0.tar",))
    first = fingerprint_below(listing, None)
    _change_a_byte(tmp_path / "train-0.tar", 20 * fingerprint.BLOCK_BYTES)
    anew()
    assert fingerprint_below(listing, None) != first


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")  # opening it would wait for a writer
    (tmp_path / "gone.png").symlink_to(tmp_path / "nowhere")
    assert fingerprint_below(Listing(tmp_path, ("pipe.png", "gone.png")), None)


def test_an_experiment_does_not_go_on_with_other_images(tmp_path: Path) -> None:
    name = "image-folder:path=own,size=8"
    _write_tree(tmp_path / "own")
    values = {"batch_size": 2, "validation.fraction": 0.5}
    made = resolve("infonce", name, values, data_root=tmp_path)
    check_experiment(made, tmp_path)
    (tmp_path / "own" / FILES[0]).write_bytes(encoded(pixels(9)))
    with pytest.raises(InputError, match=r"data_fingerprint of image-folder:path=own,size=8: given "):
        check_experiment(made, tmp_path)
    check_available(name, tmp_path)


@pytest.mark.parametrize("name", [name for name in OWN if "none" not in name])
def test_an_experiment_does_not_go_on_with_other_conditions(name: str, tmp_path: Path) -> None:
    OWN[name](tmp_path / "own")
    images = dataset_spec(name.replace("PATH", "own"), tmp_path)
    conditioned = name.replace("PATH", "own") + ",condition=attributes.npy"
    rows = np.eye(images.train_size, dtype=np.float32)
    np.save(tmp_path / "attributes.npy", rows)
    values = {"batch_size": 2, "validation.fraction": 0.5}
    made = resolve("weaklysup-cclk", conditioned, values, data_root=tmp_path)
    assert made.data_fingerprint.startswith(images.fingerprint)
    check_experiment(made, tmp_path)
    np.save(tmp_path / "attributes.npy", rows[::-1])
    with pytest.raises(InputError, match="a file of its options have changed"):
        check_experiment(made, tmp_path)


def test_an_experiment_from_before_the_fingerprints_goes_on(tmp_path: Path) -> None:
    name = "image-folder:path=own,size=8"
    _write_tree(tmp_path / "own")
    made = resolve("infonce", name, {"batch_size": 2, "validation.fraction": 0.5}, data_root=tmp_path)
    before = made.with_values({"data_fingerprint": ""})
    refuse_other_data(before, dataset_spec(name, tmp_path))
    assert "data_fingerprint" not in before.content()
    assert identities(made) == (made.identity(), before.identity())
    assert identities(before) == (before.identity(),)
