"""Images without labels, and layouts without a test split: folders and Parquet files as they often are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from encoded_files import encoded, pixels
from typer.testing import CliRunner

from contrasweep.data import (
    UNLABELLED,
    DatasetDamaged,
    DatasetSpec,
    check_available,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods.clustering import METRICS
from contrasweep.tuning.methods.metrics import LABEL_FREE
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import pretrain

FLAT = "image-folder:path=flat,size=8,labels=none"
IMAGES = [encoded(pixels(seed)) for seed in range(20)]


def spec_of(name: str, root: Path) -> DatasetSpec:
    spec = dataset_spec(name, root)
    assert isinstance(spec, DatasetSpec)
    return spec


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """Twenty images in one folder."""
    for seed, image in enumerate(IMAGES):
        place = tmp_path / f"flat/{seed:02d}.png"
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(image)
    return tmp_path


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """Ten images of each of two classes, without train and test."""
    for seed, image in enumerate(IMAGES):
        place = tmp_path / f"tree/{'cat' if seed % 2 else 'ant'}/{seed:02d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(image)
    return tmp_path


def write(file: Path, columns: dict[str, Any], count: int = 20) -> None:
    struct = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    cells = [{"bytes": image, "path": None} for image in IMAGES[:count]]
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"image": pa.array(cells, struct), **columns}), file)


def test_a_flat_folder_without_labels_gets_a_test_split(flat: Path) -> None:
    check_available(FLAT, flat)
    spec = spec_of(FLAT, flat)
    assert (spec.classes, spec.train_size, spec.test_size, spec.unlabelled_size) == (0, 18, 2, 18)
    assert not spec.has_labels
    assert spec.headline == "rankme"
    assert "10 % of them" in spec.summary
    train, test = load_training(FLAT, flat, 0.25).train, load_test(FLAT, flat)
    validation = load_training(FLAT, flat, 0.25).validation
    assert validation is not None
    assert not isinstance(test, torch.Tensor)
    parts = [train, validation, test]
    assert [len(part) for part in parts] == [14, 4, 2]
    assert all((part.labels == UNLABELLED).all() for part in parts)
    seen = {image.numpy().tobytes() for part in parts for image in part.pixels}
    assert len(seen) == 20
    assert torch.equal(load_test(FLAT, flat).pixels, test.pixels)


def test_of_fewer_than_six_images_none_can_test(flat: Path) -> None:
    files = sorted((flat / "flat").glob("*.png"))
    for file in files[6:]:
        file.unlink()
    assert spec_of(FLAT, flat).test_size == 1
    files[5].unlink()
    with pytest.raises(DatasetDamaged, match="becomes the test split, given 5 images; allowed: 6 or more"):
        spec_of(FLAT, flat)


def test_a_part_of_unlabelled_images_can_be_kept(flat: Path) -> None:
    spec = spec_of(f"{FLAT},images=10", flat)
    assert (spec.train_size, spec.unlabelled_size) == (10, 10)
    assert len(load_training(f"{FLAT},images=10", flat).train) == 10


def test_class_folders_alone_are_split_by_class(classes: Path) -> None:
    name = "image-folder:path=tree,size=8"
    spec = spec_of(name, classes)
    assert (spec.class_names, spec.train_size, spec.test_size) == (("ant", "cat"), 18, 2)
    test, train = load_test(name, classes), load_training(name, classes).train
    assert sorted(test.labels.tolist()) == [0, 1]
    assert train.labels.bincount().tolist() == [9, 9]
    assert spec_of(f"{name},labels=none", classes).train_size == 18


def test_a_train_folder_alone_is_split_too(classes: Path) -> None:
    (classes / "whole").mkdir()
    (classes / "tree").rename(classes / "whole/train")
    assert spec_of("image-folder:path=whole,size=8", classes).test_size == 2


def test_a_flat_folder_with_labels_is_told_how_to_go_without(flat: Path) -> None:
    with pytest.raises(ValueError, match=r"has no folders of images.*have no labels, add labels=none"):
        check_available("image-folder:path=flat,size=8", flat)


def test_conditions_are_for_all_images_that_are_listed(flat: Path) -> None:
    import numpy as np

    np.save(flat / "z.npy", np.arange(20, dtype=np.float32)[:, None])
    train = load_training(f"{FLAT},condition=z.npy", flat).train
    assert train.condition is not None
    for image, row in zip(train.pixels, train.condition, strict=True):
        assert torch.equal(image, torch.from_numpy(pixels(int(row))).permute(2, 0, 1))


@pytest.mark.parametrize(
    ("columns", "option"),
    [
        ({}, ""),
        ({"label": pa.array([-1] * 20)}, ""),
        ({"label": pa.array([None] * 20, pa.int64())}, ""),
        ({"label": pa.array(range(20))}, ",label=none"),
        ({"caption": pa.array(["x"] * 20)}, ",label=none"),
    ],
)
def test_parquet_without_labels(tmp_path: Path, columns: dict[str, Any], option: str) -> None:
    write(tmp_path / "set/train-0.parquet", columns)
    name = f"hub-parquet:path=set{option}"
    check_available(name, tmp_path)
    spec = spec_of(name, tmp_path)
    assert (spec.classes, spec.train_size, spec.test_size, spec.has_labels) == (0, 18, 2, False)
    assert (load_training(name, tmp_path).train.labels == UNLABELLED).all()
    assert len(load_test(name, tmp_path)) == 2


def test_a_column_that_may_be_labels_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "set/train-0.parquet", {"species": pa.array(range(20))})
    with pytest.raises(DatasetDamaged, match="name one with label=COLUMN, or give label=none; it has"):
        check_available("hub-parquet:path=set", tmp_path)


def test_a_clone_of_a_repository_with_words_for_labels(tmp_path: Path) -> None:
    write(tmp_path / "set/data/train-0.parquet", {"label": pa.array(["dog", "cat"] * 10)})
    write(tmp_path / "set/data/test-0.parquet", {"label": pa.array(["cat", "dog", "dog"])}, 3)
    (tmp_path / "set/README.md").write_text("a card")
    spec = spec_of("hub-parquet:path=set", tmp_path)
    assert (spec.class_names, spec.train_size, spec.test_size) == (("cat", "dog"), 20, 3)
    assert load_test("hub-parquet:path=set", tmp_path).labels.tolist() == [0, 1, 1]
    write(tmp_path / "set/data/test-0.parquet", {"label": pa.array(["cat", "dgo", "dog"])}, 3)
    with pytest.raises(DatasetDamaged, match=r"'dgo'\. Did you mean 'dog'"):
        load_test("hub-parquet:path=set", tmp_path)


def labels_of(count: int) -> Sequence[int | None]:
    return [None if row % 4 == 0 else row % 2 for row in range(count)]


def test_where_some_images_have_labels_probes_learn_from_these(tmp_path: Path) -> None:
    write(tmp_path / "set/train-0.parquet", {"label": pa.array(labels_of(20), pa.int64())})
    spec = spec_of("hub-parquet:path=set", tmp_path)
    # Five of twenty have no label; the two test images are among the others.
    assert (spec.classes, spec.train_size, spec.unlabelled_size, spec.test_size) == (2, 18, 5, 2)
    train = load_training("hub-parquet:path=set", tmp_path).train
    assert (len(train), len(train.labelled())) == (18, 13)
    assert (load_test("hub-parquet:path=set", tmp_path).labels != UNLABELLED).all()


def test_the_default_metric_needs_no_label_and_others_are_refused(flat: Path) -> None:
    few = {"batch_size": 8, "validation.fraction": 0.25}
    plan = plan_sweep("infonce", FLAT, data_root=flat, values=few)
    assert plan.search.metrics == ("val.rankme",)
    reported = [name for name in plan.record().columns.metrics if name.startswith("val.")]
    assert reported == [f"val.{name}" for name in LABEL_FREE]
    with pytest.raises(InputError, match=r"needs labels, and .* has none; allowed: val.rankme"):
        plan_sweep("infonce", FLAT, data_root=flat, values=few, metric="accuracy")
    with pytest.raises(InputError, match=r"kmeans_starts is for images; .* has no labels"):
        resolve("infonce", FLAT, {**few, "probes.kmeans_starts": 3}, data_root=flat)


def test_a_method_that_needs_labels_is_refused_with_those_that_do_not(flat: Path) -> None:
    with pytest.raises(InputError, match=r"needs class labels, which .*Methods that need none: .*infonce"):
        resolve("supcon", FLAT, data_root=flat)


@pytest.mark.parametrize("method", ["cl-infonce", "cl-infonce-instances", "cluster-ce", "pcl"])
def test_clusters_of_images_without_labels_tell_nothing_of_them(flat: Path, method: str) -> None:
    own = {"clusterings": 1, "instance_epochs": 0} if method == "pcl" else {}
    few = {"batch_size": 8, "epochs": 1, "validation.fraction": 0.25, "encoder.name": "small-conv"}
    experiment = resolve(method, FLAT, {**few, **own, "clusters": 2}, data_root=flat)
    *_, last = pretrain(experiment, data_root=flat)
    assert "val.rankme" in last.metrics
    assert not [name for name in last.metrics if name.endswith(METRICS)]


def test_a_run_on_images_without_labels(flat: Path, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(
        f"method: infonce\ndataset: '{FLAT}'\nepochs: 1\nbatch_size: 8\n"
        "encoder: {name: lenet5}\nviews: {size: 32}\nvalidation: {fraction: 0.25}\n"
    )
    done = CliRunner().invoke(app, ["train", str(file), "--data-root", str(flat)])
    assert done.exit_code == 0, done.output
    assert "val.rankme" in done.output
    assert "accuracy" not in done.output


def test_the_message_says_how_many_labels_are_missing(tmp_path: Path) -> None:
    write(tmp_path / "set/train-0.parquet", {"label": pa.array(labels_of(20), pa.int64())})
    with pytest.raises(InputError, match=r"which .* has not \(5 of 18 training images have no label\)"):
        resolve("supcon", "hub-parquet:path=set", data_root=tmp_path)
