import hashlib
import os
from pathlib import Path

import pytest
import torch
from encoded_files import encoded, pixels
from torch import Tensor

from contrasweep.data import (
    UNLABELLED,
    DatasetMissing,
    DatasetSpec,
    LabelledImages,
    TrainingData,
    check_available,
    data_root,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.data.root import check_files
from contrasweep.data.sources import FAMILIES
from contrasweep.data.sources.digits import MNIST_FILES, read_all_digits
from contrasweep.data.splits import stratified_split


def _available_root(name: str) -> Path | None:
    try:
        spec = dataset_spec(name)
    except DatasetMissing as missing:
        pytest.skip(str(missing))
    if spec.embedded:
        return None
    given = os.environ.get("CONTRASWEEP_DATA")
    if not given:
        pytest.skip(f"CONTRASWEEP_DATA is not set: a folder with {spec.folder} is needed")
    try:
        check_available(name, Path(given))
    except DatasetMissing as missing:
        pytest.skip(str(missing))
    return Path(given)


_loaded: dict[str, tuple[TrainingData, LabelledImages]] = {}


def _load(name: str) -> tuple[TrainingData, LabelledImages]:
    root = _available_root(name)
    if name not in _loaded:
        _loaded[name] = load_training(name, root, validation_fraction=0.1), load_test(name, root)
    return _loaded[name]


def _fingerprints(images: LabelledImages) -> set[bytes]:
    return {image.numpy().tobytes() for image in images.pixels}


def _digest(*tensors: Tensor) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()[:16]


WHOLE = [family.name for family in FAMILIES if not family.needs_options]


@pytest.mark.parametrize("name", [*WHOLE, "hub-parquet:path=cifar10-jpeg"])
def test_every_dataset_agrees_with_its_spec(name: str) -> None:
    loaded = _load(name)  # skips where there are no files
    _agrees(dataset_spec(name), *loaded)


def test_a_dataset_that_its_library_saved_agrees_with_its_spec(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(num_classes=3)})
    cells = [{"bytes": encoded(pixels(seed)), "path": None} for seed in range(60)]
    content = {"image": cells, "label": [seed % 3 for seed in range(60)]}
    datasets.Dataset.from_dict(content, features=features).save_to_disk(str(tmp_path / "saved"))
    name = "hf:path=saved"
    loaded = load_training(name, tmp_path, validation_fraction=0.1), load_test(name, tmp_path)
    _agrees(dataset_spec(name, tmp_path), *loaded)


def _agrees(spec: DatasetSpec, training: TrainingData, test: LabelledImages) -> None:
    assert training.validation is not None
    assert len(training.train) + len(training.validation) == spec.train_size
    assert len(test) == spec.test_size
    for split in (training.train, training.validation, test):
        assert split.images.shape[1:] == (spec.channels, spec.image_size, spec.image_size)
        labelled = split.labels[split.labels != UNLABELLED]
        assert labelled.unique().tolist() == list(range(spec.classes))
        assert int(split.pixels.max()) == 255
        width = None if split.condition is None else split.condition.shape[1]
        assert width == spec.condition_dim
    assert (spec.condition_dim is None) == (spec.condition_name is None)
    assert spec.embedded == (spec.folder is None)


@pytest.mark.parametrize("name", ["colour-digits", "colormnist"])
def test_no_image_is_in_two_splits(name: str) -> None:
    # Every background is a fresh draw, so equal pixels would mean the same image twice.
    training, test = _load(name)
    assert training.validation is not None
    prints = [_fingerprints(split) for split in (training.train, training.validation, test)]
    assert len(set.union(*prints)) == sum(len(split) for split in (training.train, training.validation, test))


def test_the_fixed_split_and_colours_never_change() -> None:
    # Results of different installations compare only while these stay: a new value is a new dataset.
    training, test = _load("colour-digits")
    assert training.validation is not None
    assert _digest(test.images, test.labels) == "f9f3d4b6fe1ddc33"
    assert _digest(training.validation.images, training.validation.labels) == "560b9f57daef0992"


def test_digits_span_eight_bits_and_hold_the_library_s_images() -> None:
    from sklearn.datasets import load_digits

    stored = torch.from_numpy(load_digits().images)
    whole = load_training("digits").train
    levels = whole.images.double().mul(16 / 255).round()
    known = {image.numpy().tobytes() for image in stored}
    assert all(image.numpy().tobytes() in known for image in levels.squeeze(1))


def test_digits_are_the_same_where_scikit_learn_keeps_its_table_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = read_all_digits()
    monkeypatch.setattr("contrasweep.data.sources.digits.DIGITS_TABLE", "elsewhere.csv.gz")
    other = read_all_digits()
    assert torch.equal(usual.pixels, other.pixels)
    assert torch.equal(usual.labels, other.labels)


def test_a_copy_of_a_missing_dataset_is_named(tmp_path: Path) -> None:
    for name in ("cifar100-jpeg/train-0.parquet", "cifar10-png/0.png", "cifar10-jpeg/data/train-0.parquet"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    said = r"Get it .* Or use the images in .*/cifar10-jpeg, which are the dataset hub-parquet:path=cifar10-"
    with pytest.raises(DatasetMissing, match=said):
        check_available("cifar10", tmp_path)
    with pytest.raises(DatasetMissing) as other:
        check_available("stl10", tmp_path)
    assert "Or use" not in str(other.value)


def test_fraction_zero_keeps_the_whole_training_split() -> None:
    whole = load_training("digits", validation_fraction=0.0)
    assert whole.validation is None
    assert len(whole.train) == dataset_spec("digits").train_size


def test_the_validation_split_is_stratified_and_keyed_by_its_seed() -> None:
    first = load_training("digits", validation_fraction=0.25, split_seed=1)
    again = load_training("digits", validation_fraction=0.25, split_seed=1)
    other = load_training("digits", validation_fraction=0.25, split_seed=2)
    assert first.validation is not None
    assert again.validation is not None
    assert other.validation is not None
    assert torch.equal(first.validation.images, again.validation.images)
    assert not torch.equal(first.validation.images, other.validation.images)
    counts = load_training("digits").train.labels.bincount()
    assert len(first.validation) == round(0.25 * 1438)
    assert float((first.validation.labels.bincount() - 0.25 * counts).abs().max()) < 1.0


def test_an_image_keeps_its_colour_on_either_side_of_the_split() -> None:
    whole = load_training("colour-digits").train
    cut = load_training("colour-digits", validation_fraction=0.5)
    assert cut.validation is not None
    assert _fingerprints(cut.train) | _fingerprints(cut.validation) == _fingerprints(whole)


def test_training_opens_no_test_file(monkeypatch: pytest.MonkeyPatch) -> None:
    root = _available_root("mnist")
    opened: list[str] = []
    from torchvision.datasets import mnist

    for reader in ("read_image_file", "read_label_file"):
        original = getattr(mnist, reader)

        def spy(path: str, original: object = original) -> Tensor:
            opened.append(Path(path).name)
            assert callable(original)
            tensor: Tensor = original(path)
            return tensor

        monkeypatch.setattr(mnist, reader, spy)
    load_training("mnist", root, validation_fraction=0.1)
    assert sorted(opened) == ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"]


@pytest.mark.parametrize("fraction", [-0.1, 1.0, 1.5, float("nan"), 1e-6])
def test_a_fraction_that_cannot_be_cut_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        load_training("digits", validation_fraction=fraction)


def test_shares_by_largest_remainder_add_up() -> None:
    labels = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    kept, cut = stratified_split(labels, 0.3, torch.Generator().manual_seed(0))
    # 1.5, 0.9 and 0.6 images: the floors are 1, 0, 0 and the largest remainders belong to labels 1 and 2.
    assert labels[cut].tolist() == [0, 1, 2]
    assert sorted(kept.tolist() + cut.tolist()) == list(range(10))


def test_an_unknown_dataset_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"unknown dataset 'colourmnist'\. Did you mean 'colormnist'\?"):
        dataset_spec("colourmnist")
    for use in (check_available, load_training, load_test):
        with pytest.raises(ValueError, match=r"'qqq'\. There are \d+: `contrasweep datasets`"):
            use("qqq")


def test_a_missing_folder_is_refused_with_what_to_get_and_set(tmp_path: Path) -> None:
    for use in (check_available, load_training, load_test):
        with pytest.raises(DatasetMissing) as missing:
            use("colormnist", tmp_path)
        for word in (
            str(tmp_path / "MNIST/raw"),
            "--data-root",
            "CONTRASWEEP_DATA",
            *MNIST_FILES,
            "https://",
        ):
            assert word in str(missing.value)
    check_available("digits", tmp_path)


def test_a_missing_short_or_blocked_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "a").write_bytes(b"1234")
    with pytest.raises(DatasetMissing, match="lacks b, c"):
        check_files("x", tmp_path, "set", {"a": 4, "b": 4, "c": 4}, "somewhere")
    with pytest.raises(DatasetMissing, match="has 4 bytes, expected 5"):
        check_files("x", tmp_path, "set", {"a": 5}, "somewhere")
    with pytest.raises(DatasetMissing, match="is not a folder"):
        check_files("x", tmp_path, "set/a", {"b": 4}, "somewhere")
    check_files("x", tmp_path, "set", {"a": 4}, "somewhere")


def test_the_data_root_is_found_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CONTRASWEEP_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_root(None) == tmp_path / ".cache/contrasweep/data"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert data_root(None) == Path("/caches/contrasweep/data")
    monkeypatch.setenv("CONTRASWEEP_DATA", "")
    assert data_root(None) == Path("/caches/contrasweep/data")
    monkeypatch.setenv("CONTRASWEEP_DATA", "~/sets")
    assert data_root(None) == tmp_path / "sets"
    assert data_root(Path("/given")) == Path("/given")
