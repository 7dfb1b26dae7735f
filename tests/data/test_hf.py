"""Datasets by the library `datasets`: of the hub, whose cache stands in for it, and in folders."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
from encoded_files import encoded, images_of, pixels
from hub_sets import CLASSES, COMMIT, cache_of_hub, library_home, save, table
from typer.testing import CliRunner

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    DatasetSpec,
    LabelledImages,
    StreamedImages,
    check_available,
    dataset_spec,
    load_test,
    load_training,
    parse_dataset,
)
from contrasweep.data.arrow import ArrowImages
from contrasweep.data.sources.hf import HF
from contrasweep.libraries import LibraryMissing
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resolve import check_experiment, resolve

__all__ = ["library_home"]

pytestmark = pytest.mark.usefixtures("library_home")

SAVED = "hf:path=saved"
LABELS = [row % 3 for row in range(12)]


def spec_of(name: str, root: Path) -> DatasetSpec:
    spec = dataset_spec(name, root)
    assert isinstance(spec, DatasetSpec)
    return spec


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Twelve training and three test images of three classes, saved to the folder `saved`."""
    save(
        tmp_path / "saved",
        {"train": table(range(12), LABELS), "test": table(range(12, 15), [2, 1, 0])},
    )
    return tmp_path


def test_a_saved_dataset_has_the_images_and_labels_that_were_saved(saved: Path) -> None:
    check_available(SAVED, saved)
    spec = spec_of(SAVED, saved)
    assert (spec.train_size, spec.test_size, spec.class_names) == (12, 3, tuple(CLASSES))
    assert (spec.channels, spec.image_size, spec.unlabelled_size) == (3, 8, 0)
    train, test = load_training(SAVED, saved).train, load_test(SAVED, saved)
    assert isinstance(test, LabelledImages)
    assert torch.equal(train.pixels, images_of(*range(12)))
    assert torch.equal(test.pixels, images_of(12, 13, 14))
    assert (train.labels.tolist(), test.labels.tolist()) == (LABELS, [2, 1, 0])
    streamed = load_training(SAVED, saved, placement="stream").train.images
    assert isinstance(streamed, StreamedImages)
    assert torch.equal(streamed[torch.tensor([7, 0, 3])], images_of(7, 0, 3))


@pytest.mark.parametrize(
    ("labels", "kind", "option"),
    [
        ([0, 2] * 10, None, ""),
        ([0, -1, 2, 1] * 5, None, ""),
        ([0, None, 2, 1] * 5, "int64", ""),
        (["dog", "ant"] * 10, "string", ""),
        ([None] * 20, "int64", ""),
        ([0, 2] * 10, None, ",label=none"),
        (None, None, ",size=6,colour=grey"),
    ],
)
def test_parquet_and_arrow_are_one_dataset(
    tmp_path: Path, labels: list[Any] | None, kind: str | None, option: str
) -> None:
    whole = table(range(20), labels, kind and datasets.Value(kind), columns=("image", "label"))
    save(tmp_path / "saved", {"train": whole})
    (tmp_path / "files").mkdir()
    whole.to_parquet(str(tmp_path / "files/train-0.parquet"))
    names = f"hf:path=saved{option}", f"hub-parquet:path=files{option}"
    ours, other = (spec_of(name, tmp_path) for name in names)
    told = {
        one: getattr(other, one) for one in ("name", "summary", "licence", "source", "folder", "fingerprint")
    }
    assert replace(ours, **told) == other
    for split in ("train", "test"):
        pair = []
        for name in names:
            family, options = parse_dataset(name)
            pair.append(family.read(tmp_path, split, options))  # type: ignore[arg-type, call-arg]
        assert torch.equal(pair[0].labels, pair[1].labels)
        assert torch.equal(pair[0].pixels, pair[1].pixels)


def test_images_in_folders_are_read_from_their_files_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for seed in range(6):
        file = tmp_path / f"tree/train/{CLASSES[seed % 2]}/{seed}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(pixels(seed)))
    before = datasets.logging.get_verbosity(), datasets.utils.are_progress_bars_disabled()
    spec = spec_of("hf:path=tree,corrupt=skip", tmp_path)
    assert (spec.class_names, spec.train_size + spec.test_size) == (("ant", "bee"), 6)
    family, options = parse_dataset("hf:path=tree")
    train, test = (family.read(tmp_path, split, options) for split in ("train", "test"))  # type: ignore[arg-type, call-arg]
    both = torch.cat([train.pixels, test.pixels])
    assert {image.numpy().tobytes() for image in both} == {
        one.numpy().tobytes() for one in images_of(*range(6))
    }
    assert capfd.readouterr() == ("", "")
    assert (datasets.logging.get_verbosity(), datasets.utils.are_progress_bars_disabled()) == before
    file.unlink()
    with pytest.raises(DatasetDamaged, match=rf"{file.name}"):
        train.pixels, test.pixels  # noqa: B018


def test_a_process_that_lives_on_sees_other_images(tmp_path: Path) -> None:
    for seed in range(20):
        file = tmp_path / f"tree/train/{CLASSES[seed % 2]}/{seed}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(pixels(seed)))
        os.utime(file.parent, (1, 1))
    found = [spec_of("hf:path=tree", tmp_path)]
    file.with_name("more.png").write_bytes(encoded(pixels(20)))
    found.append(spec_of("hf:path=tree", tmp_path))
    file.write_bytes(encoded(pixels(21)) + b"longer")
    found.append(spec_of("hf:path=tree", tmp_path))
    assert [one.train_size + one.test_size for one in found] == [20, 21, 21]
    assert len({one.fingerprint for one in found}) == 3


def test_a_fingerprint_follows_images_and_labels_and_no_place(saved: Path) -> None:
    first = spec_of(SAVED, saved).fingerprint
    assert first
    shutil.copytree(saved / "saved", saved / "moved")
    assert spec_of("hf:path=moved", saved).fingerprint == first
    other = {"train": table([*range(11), 99], LABELS), "test": table(range(12, 15), [2, 1, 0])}
    save(saved / "images", other)
    save(saved / "labels", {**other, "train": table(range(12), [*LABELS[:11], 0])})
    save(saved / "test", {"train": table(range(12), LABELS), "test": table(range(12, 14), [2, 1])})
    found = {spec_of(f"hf:path={name}", saved).fingerprint for name in ("images", "labels", "test")}
    assert len(found | {first}) == 4


def test_of_many_images_some_are_hashed(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    monkeypatch.setattr("contrasweep.data.sources.hf.HASHED_BYTES", 5 * len(encoded(pixels(0))))
    original = ArrowImages.read

    def spy(self: ArrowImages, rows: Sequence[int]) -> list[bytes]:
        read.extend(rows if len(rows) == 1 else [])  # more at once are headers
        return original(self, rows)

    monkeypatch.setattr(ArrowImages, "read", spy)
    spec_of(SAVED, saved)
    assert read == [0, 3, 6, 9, 0, 1, 2], "every third of twelve images, and all of three"


def test_a_study_of_other_images_is_refused(saved: Path) -> None:
    values = {"batch_size": 4, "validation.fraction": 0.25}
    experiment = resolve("infonce", SAVED, values, data_root=saved)
    assert experiment.data_fingerprint == spec_of(SAVED, saved).fingerprint
    check_experiment(experiment, saved)
    save(saved / "new", {"train": table(range(1, 13), LABELS), "test": table(range(12, 15), [2, 1, 0])})
    shutil.rmtree(saved / "saved")
    (saved / "new").rename(saved / "saved")
    with pytest.raises(InputError, match=r"data_fingerprint of hf:path=saved: given .* have changed"):
        check_experiment(experiment, saved)


def test_splits_have_their_usual_names_or_are_named(tmp_path: Path) -> None:
    labelled, hidden = table(range(6), LABELS[:6]), table(range(6, 9), [-1, -1, -1])
    save(tmp_path / "saved", {"train": labelled, "validation": table([9], [1]), "dev": table([8], [2])})
    assert load_test(SAVED, tmp_path).labels.tolist() == [1]
    assert load_test(f"{SAVED},test=dev", tmp_path).labels.tolist() == [2]
    assert load_training(f"{SAVED},train=dev,test=train", tmp_path).train.labels.tolist() == [2]
    with pytest.raises(DatasetMissing, match=r"'trian'\. Did you mean 'train'.* Give train="):
        check_available(f"{SAVED},train=trian", tmp_path)
    with pytest.raises(DatasetMissing, match="trains and tests on the same split, dev"):
        check_available(f"{SAVED},train=dev,test=dev", tmp_path)
    save(tmp_path / "hidden", {"train": labelled, "test": hidden, "validation": labelled})
    # A search would end before the test images are asked for.
    with pytest.raises(DatasetDamaged, match=r"row 0 has no label, but .* name another with test="):
        check_available("hf:path=hidden", tmp_path)
    check_available("hf:path=hidden,test=validation", tmp_path)


def test_the_hub_is_asked_once(tmp_path: Path, library_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = {"train": table(range(12), LABELS), "test": table([12], [1])}
    name = f"hf:{cache_of_hub(library_home, tmp_path / 'sources', splits)}"
    spec = spec_of(name, tmp_path)
    assert (spec.name, spec.train_size, spec.test_size) == (name, 12, 1)
    assert spec.source == f"huggingface.co/datasets/someone/letters at {COMMIT}"
    assert torch.equal(load_test(name, tmp_path).pixels, images_of(12))
    save(tmp_path / "saved", splits)
    assert spec.fingerprint == spec_of(SAVED, tmp_path).fingerprint
    with pytest.raises(
        DatasetMissing, match=f"revision=v1 cannot be looked up.* cache has revision={COMMIT}"
    ):
        check_available(f"{name},revision=v1", tmp_path)
    asked: list[str] = []

    def gone(path: str, *_: object, **__: object) -> None:
        asked.append(path)
        raise ConnectionError

    monkeypatch.setattr(datasets, "load_dataset_builder", gone)
    check_available(name, tmp_path)
    assert asked == []
    shutil.rmtree(library_home)
    with pytest.raises(DatasetMissing, match="not in the cache, and HF_HUB_OFFLINE is set"):
        check_available(name, tmp_path)
    assert asked == ["someone/letters"]


NOT_FOUND = datasets.exceptions.DatasetNotFoundError


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("a/b", NOT_FOUND("Dataset 'a/b' is a gated dataset"), "is gated: ask for access .* HF_TOKEN"),
        (
            "a/b",
            NOT_FOUND("Dataset 'a/b' doesn't exist"),
            "not there, or private: check its name.*auth login",
        ),
        ("a/b,revision=v", NOT_FOUND("Revision 'v' doesn't exist"), "no such revision: give revision="),
        ("a/b", ConnectionError("Couldn't reach"), "copy or share the cache .*HF_HOME"),
        (
            "a/b",
            ValueError("Config name is missing. Available configs: ['x', 'y']"),
            "give config=, one of x, y",
        ),
        ("a/b,config=z", ValueError("'z' not found. Available: ['zz', 'y']"), "Did you mean 'zz'"),
        (
            "a/b",
            RuntimeError("scripts are no\nlonger supported"),
            "be loaded: scripts are no longer supported",
        ),
        ("a:b", None, "'a:b' is no name on the hub, which is OWNER/NAME"),
        ("path=none", None, "path=none is looked for under the data root"),
        ("path=.,revision=v", None, "revision=v is for datasets of the hub"),
        ("path=.", None, "the folder .* cannot be loaded: .*doesn't contain any data files"),
    ],
)
def test_what_cannot_be_loaded_is_told_in_one_line(
    name: str, error: Exception | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        assert error is not None
        raise error

    if error is not None:
        monkeypatch.setattr(datasets, "load_dataset_builder", refuse)
    (tmp_path / "root").mkdir()
    with pytest.raises(DatasetMissing, match=says) as told:
        check_available(f"hf:{name}", tmp_path / "root")
    assert "\n" not in str(told.value)
    # A refusal is not kept as the dataset.
    assert not list((tmp_path / "cache").glob("contrasweep/hub/*/"))


def test_a_folder_of_the_same_name_is_not_taken_for_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mnist").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetMissing, match="working directory has a folder mnist"):
        check_available("hf:mnist", tmp_path)


def test_a_version_of_the_library_that_runs_code_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "__version__", "3.6.0")
    with pytest.raises(DatasetMissing, match=r"needs datasets 4 or later, .* 3\.6\.0 is installed"):
        check_available("hf:a/b", tmp_path)


def test_without_the_library_it_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.libraries.find_spec", lambda library: None)
    with pytest.raises(LibraryMissing, match=r"dataset hf needs datasets: pip install 'contrasweep\[hf\]'"):
        HF.parse("a/b")
    done = CliRunner().invoke(app, ["sweep", "infonce", "--data", "hf:a/b"])
    assert done.exit_code == 2
    assert "pip install 'contrasweep[hf]'" in done.output


def test_a_name_of_the_hub_stands_bare_or_a_folder_in_its_place() -> None:
    options = HF.parse("uoft-cs/cifar10,label=none")
    assert (options["name"], options["path"]) == ("uoft-cs/cifar10", "")
    assert HF.full_name(options) == "hf:uoft-cs/cifar10,label=none"
    assert HF.full_name(HF.parse("path=x")) == "hf:path=x"
    assert HF.form == "hf:NAME"
    for given, says in (
        ("", r"needs name: hf:NAME \(name: OWNER/NAME on the hub\); or hf:path=\.\.\."),
        ("a/b,path=c", "either a name or path=, given both"),
        ("pth=c", "'pth'. Did you mean 'path'"),
        ("label=none,a/b", "unknown option of dataset hf 'a/b'"),
    ):
        with pytest.raises(ValueError, match=says):
            HF.parse(given)


def test_training_opens_no_test_file(saved: Path) -> None:
    options = HF.parse(SAVED.removeprefix("hf:"))
    (file,) = (saved / "saved/test").glob("*.arrow")
    train = HF.read(saved, "train", options)
    state = file.stat()
    file.write_bytes(bytes(state.st_size))
    # With another time, the library would look into all files of the folder again.
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert len(HF.read(saved, "train", options)) == len(train)
    with pytest.raises(DatasetDamaged, match=r"test/data-00000-of-00001\.arrow cannot be read as Arrow"):
        check_available(SAVED, saved)
