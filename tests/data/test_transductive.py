import hashlib
import math
from functools import cache
from pathlib import Path

import pytest
import torch
from real_data import real_root

from contrasweep.data import (
    DATASETS,
    DatasetMissing,
    MultiView,
    TransductiveData,
    check_available,
    dataset_spec,
    load_test,
    load_training,
    load_transductive,
    parse_dataset,
)
from contrasweep.data.sources import TRANSDUCTIVE_FAMILIES
from contrasweep.data.sources.digits import read_all_digits, read_mnist_pixels
from contrasweep.data.sources.noisy import DIGITS_MEAN, DIGITS_STD, add_noise, labelled_rows

TRANSDUCTIVE = [family.name for family in TRANSDUCTIVE_FAMILIES]


def _prints(objects: MultiView) -> list[bytes]:
    """Return the bytes of each object; noise makes all objects different."""
    both = zip(*objects.views, strict=True)
    return [b"".join(view.numpy().tobytes() for view in views) for views in both]


@cache
def _loaded(name: str) -> TransductiveData:
    return load_transductive(name, None if dataset_spec(name).embedded else real_root(name))


@pytest.mark.parametrize("name", [*TRANSDUCTIVE, "two-view-digits:form=features", "two-view-digits:views=1"])
def test_every_transductive_set_agrees_with_its_spec(name: str) -> None:
    data, spec = _loaded(name), dataset_spec(name)
    root = None if spec.embedded else real_root(name)
    assert spec.name == name
    assert (len(data.labelled), len(data.unlabelled)) == (spec.labelled[0], spec.unlabelled[0])
    assert len(spec.labelled) == len(spec.unlabelled) == spec.folds
    for part in (data.labelled, data.unlabelled):
        assert tuple(tuple(view.shape[1:]) for view in part.views) == spec.views
        assert {view.dtype for view in part.views} == {torch.uint8 if spec.has_images else torch.float32}
    assert data.unlabelled.labels is None
    assert data.validation is None
    labels, test = data.labelled.labels, load_test(name, root)
    assert labels is not None
    assert len(test) == len(data.unlabelled)
    assert test.shape[1:] == labels.shape[1:] == ((spec.classes,) if spec.multi_label else ())
    if not spec.multi_label:
        share = spec.labelled[0] / spec.classes
        assert {*labels.bincount().tolist()} <= {math.floor(share), math.ceil(share)}
        assert test.unique().tolist() == list(range(spec.classes))


def test_real_views_are_the_images_of_noisy_mnist_under_two_noises() -> None:
    clean = read_mnist_pixels(real_root("noisy-mnist-2v"), "train")[:300]
    first, second = (view[:300] for view in _loaded("noisy-mnist-2v").unlabelled.views)
    assert torch.equal(first, add_noise(clean, {"noise": "gaussian", "level": 1.0}, "mnist", "train", 1))
    assert torch.equal(second, add_noise(clean, {"noise": "gaussian", "level": 1.0}, "mnist", "train", 2))
    assert not torch.equal(first, second)
    alone = _loaded("noisy-mnist-1v").unlabelled.views[0][:300]
    assert torch.equal(alone, add_noise(clean, {"noise": "uniform", "level": 1.0}, "mnist", "train", 1))


def test_fewer_unlabelled_images_are_a_part_of_all_with_their_own_labels() -> None:
    root = real_root("noisy-mnist-1v")
    name, whole = "noisy-mnist-1v:unlabelled=500", _loaded("noisy-mnist-1v").unlabelled
    cut = load_transductive(name, root).unlabelled
    assert len(cut) == dataset_spec(name).unlabelled[0] == 500
    place = {image: row for row, image in enumerate(_prints(whole))}
    rows = torch.tensor([place[image] for image in _prints(cut)])
    assert len(rows.unique()) == 500
    labels = load_test("noisy-mnist-1v", root)[rows]
    assert torch.equal(load_test(name, root), labels)
    assert len(labels.unique()) == 10
    smaller = set(_prints(load_transductive("noisy-mnist-1v:unlabelled=100", root).unlabelled))
    assert len(smaller) == 100
    assert smaller <= set(_prints(cut))


def test_test_labels_belong_to_the_unlabelled_objects() -> None:
    digits = read_all_digits()
    level = "two-view-digits:level=0"
    label_of = dict(
        zip((image.numpy().tobytes() for image in digits.pixels), digits.labels.tolist(), strict=True)
    )
    data, test = load_transductive(level, fold=2), load_test(level, fold=2)
    for part, labels in ((data.unlabelled, test), (data.labelled, data.labelled.labels)):
        assert labels is not None
        assert [label_of[image.numpy().tobytes()] for image in part.views[0]] == labels.tolist()


def test_no_object_is_on_both_sides_and_folds_label_others() -> None:
    whole = []
    for fold in range(dataset_spec("two-view-digits").folds):
        data = load_transductive("two-view-digits", fold=fold)
        labelled, unlabelled = _prints(data.labelled), _prints(data.unlabelled)
        assert len({*labelled, *unlabelled}) == len(labelled) + len(unlabelled) == 1797
        whole += labelled
    assert len(set(whole)) == len(whole) == 1000


def test_two_views_differ_in_their_noise_alone() -> None:
    clean = read_all_digits().pixels.double() / 255
    assert float(clean.mean()) == pytest.approx(DIGITS_MEAN, abs=1e-9)
    assert float(clean.std(correction=0)) == pytest.approx(DIGITS_STD, abs=1e-9)
    first, second = load_transductive("two-view-digits:level=0").unlabelled.views
    assert torch.equal(first, second)
    first, second = load_transductive("two-view-digits").unlabelled.views
    assert not torch.equal(first, second)
    (alone,) = load_transductive("two-view-digits:views=1").unlabelled.views
    assert torch.equal(alone, first)
    features = load_transductive("two-view-digits:form=features").unlabelled.views
    assert torch.equal((features[1] * 255).round().to(torch.uint8).view(-1, 1, 8, 8), second)


def test_draws_never_change() -> None:
    # Results of different installations compare only while this stays: a new value is a new dataset.
    data = load_transductive("two-view-digits:noise=uniform", fold=3, validation=0.2, split_seed=1)
    assert data.validation is not None
    digest = hashlib.sha256()
    for part in (data.labelled, data.unlabelled, data.validation):
        digest.update(b"".join(_prints(part)))
    assert digest.hexdigest()[:16] == "62129b574729aa1f"


def test_validation_parts_hold_every_labelled_object_out_once() -> None:
    whole = load_transductive("two-view-digits")
    held_out: list[bytes] = []
    for split_seed in range(5):
        data = load_transductive("two-view-digits", validation=0.2, split_seed=split_seed)
        assert data.validation is not None
        assert data.validation.labels is not None
        assert data.validation.labels.bincount().tolist() == [2] * 10
        assert sorted(_prints(data.labelled) + _prints(data.validation)) == sorted(_prints(whole.labelled))
        # What is held out is seen without its label, as the test objects are, behind them.
        assert _prints(data.unlabelled) == _prints(whole.unlabelled) + _prints(data.validation)
        held_out += _prints(data.validation)
    assert sorted(held_out) == sorted(_prints(whole.labelled))
    other = load_transductive("two-view-digits", validation=0.2, split_seed=5).validation
    assert other is not None
    assert set(_prints(other)) != set(held_out[:20])


def test_the_deal_does_not_depend_on_the_options() -> None:
    first = load_transductive("two-view-digits:level=0.25", validation=0.5).validation
    second = load_transductive("two-view-digits:level=0", validation=0.5).validation
    assert first is not None
    assert second is not None
    assert torch.equal(first.labels, second.labels)


def test_draws_of_labelled_objects_do_not_overlap() -> None:
    labels = torch.arange(120) % 3
    draws = [labelled_rows(labels, 10, fold, "x") for fold in range(4)]
    assert sorted(torch.cat(draws).tolist()) == list(range(120))
    assert all(labels[rows].bincount().tolist() == [10] * 3 for rows in draws)
    with pytest.raises(ValueError, match="draw 4 of 10 objects of class 0 needs 50, there are 40"):
        labelled_rows(labels, 10, 4, "x")


@pytest.mark.parametrize("fold", [-1, 10])
def test_a_fold_that_is_not_there_is_refused(fold: int) -> None:
    for use in (load_transductive, load_test):
        with pytest.raises(ValueError, match=rf"fold of two-view-digits must be 0\.\.9, got {fold}"):
            use("two-view-digits", fold=fold)


@pytest.mark.parametrize(
    ("validation", "split_seed", "message"),
    [
        (-0.1, 0, r"must be in 0\.\.0\.5 for two-view-digits, got -0.1"),
        (0.6, 0, r"must be in 0\.\.0\.5 for two-view-digits, got 0.6"),
        (float("nan"), 0, "must be in"),
        (0.001, 0, "0.001 of the 100 labelled objects of two-view-digits holds out no object"),
        (0.2, -1, "split_seed must be 0 or more, got -1"),
    ],
)
def test_a_share_that_cannot_be_held_out_is_refused(validation: float, split_seed: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_transductive("two-view-digits", validation=validation, split_seed=split_seed)


def test_names_are_parsed_as_those_of_images_are() -> None:
    family, options = parse_dataset("two-view-digits:level=0.25")
    assert family is DATASETS["two-view-digits"]
    assert options == {"noise": "gaussian", "level": 0.25, "form": "images", "views": 2}
    with pytest.raises(ValueError, match=r"unknown dataset 'scenes'\. Did you mean 'scene'"):
        dataset_spec("scenes")
    with pytest.raises(ValueError, match=r"option of dataset noisy-mnist-2v 'levl'.* Did you mean 'level'"):
        check_available("noisy-mnist-2v:levl=0.5")
    with pytest.raises(ValueError, match="level of dataset noisy-mnist-2v must be 0 to 1, given 2"):
        load_transductive("noisy-mnist-2v:level=2")


def test_images_and_transductive_data_are_loaded_by_functions_of_their_own() -> None:
    with pytest.raises(ValueError, match="dataset two-view-digits is transductive"):
        load_training("two-view-digits")
    with pytest.raises(ValueError, match="dataset digits holds labelled images and is not transductive"):
        load_transductive("digits")


def test_missing_files_are_named(tmp_path: Path) -> None:
    for use in (check_available, load_transductive, load_test):
        with pytest.raises(DatasetMissing, match="dataset 'noisy-mnist-1v' not found"):
            use("noisy-mnist-1v", tmp_path)
    check_available("two-view-digits", tmp_path)


def test_training_opens_no_file_of_test_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    root = real_root("noisy-mnist-1v")
    opened: list[str] = []
    from torchvision.datasets import mnist

    for reader in ("read_image_file", "read_label_file"):
        original = getattr(mnist, reader)

        def spy(path: str, original: object = original) -> torch.Tensor:
            opened.append(Path(path).name)
            assert callable(original)
            tensor: torch.Tensor = original(path)
            return tensor

        monkeypatch.setattr(mnist, reader, spy)
    load_transductive("noisy-mnist-1v", root, validation=0.1)
    # MNIST's training images are what is to be classified here.
    expected = ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", "train-images-idx3-ubyte"]
    assert sorted(opened) == expected
    opened.clear()
    load_test("noisy-mnist-1v", root)
    assert opened == ["train-labels-idx1-ubyte"]
