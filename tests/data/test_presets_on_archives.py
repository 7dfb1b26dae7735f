"""The papers' presets on datasets that tests cannot have: two epochs on tiny copies of the archives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from listed_archives import (
    write_celeba,
    write_cub,
    write_imagenet,
    write_wider,
    write_zappos,
    write_zappos_split,
)

from contrasweep.data import load_training
from contrasweep.data.sources import celeba, cub, imagenet, wider, zappos
from contrasweep.tuning.methods.clustering import static_clusters
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import pretrain

RANDOM = np.random.default_rng(0)
SCENES = (0, 3, 17)


def _cub(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"IMAGES": 12, "TRAIN_IMAGES": 8, "CLASSES": 2, "ATTRIBUTES": 9}.items():
        monkeypatch.setattr(cub, name, value)
    write_cub(root, RANDOM.integers(0, 2, (12, 9)), [1] * 8 + [0] * 4)


def _zappos(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CLASSES": 2, "ATTRIBUTES": 12, "SIZES": {"train": 8, "test": 4}}.items():
        monkeypatch.setattr(zappos, name, value)
    monkeypatch.setattr(zappos, "ZAPPOS_FILES", {})
    kinds = ("Shoes/Clogs and Mules", "Boots/Ankle")
    paths = [f"{kinds[number % 2]}/Brand/{number}.{number}.jpg" for number in range(12)]
    write_zappos(root, paths, RANDOM.integers(0, 2, (12, 12)))
    write_zappos_split(root, paths[:8], paths[8:])


def _wider(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wider, "SCENES", 3)
    monkeypatch.setattr(wider, "SIZES", {"train": 9, "test": 3})
    for split, folder, images in (("trainval", "train", 9), ("test", "test", 3)):
        people = RANDOM.choice([-1, 0, 1], (images, 2, 14)).tolist()
        rows = [(f"{folder}/{n}.jpg", SCENES[n % 3], people[n]) for n in range(images)]
        write_wider(root, split, rows)


def _imagenet100(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = ("n00000011", "n00000012")
    monkeypatch.setattr(imagenet, "LISTS", {"cl-infonce": classes})
    monkeypatch.setattr(imagenet, "TRAIN_SIZES", {"cl-infonce": 8})
    monkeypatch.setattr(imagenet, "TEST_OF_A_CLASS", 2)
    write_imagenet(root, dict.fromkeys(classes, 4), dict.fromkeys(classes, 2))
    np.save(root / "clip.npy", RANDOM.normal(size=(8, 6)))


def _imagenet1k(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = ("n00000011", "n00000012")
    for name, value in {"ALL_CLASSES": 2, "ALL_TRAIN": 8, "ALL_TEST": 4}.items():
        monkeypatch.setattr(imagenet, name, value)
    write_imagenet(root, dict.fromkeys(classes, 4), dict.fromkeys(classes, 2))
    (root / "tree.txt").write_text("n0 n1\nn0 n2\nn2 n1\nn1 n00000011\nn2 n00000012\n")


def _celeba(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "cache"))
    monkeypatch.setattr(celeba, "IMAGES", 16)
    monkeypatch.setattr(celeba, "LABELLED", 8)
    write_celeba(root, np.where(RANDOM.random((16, 40)) < 0.4, 1, -1))


Write = Callable[[Path, pytest.MonkeyPatch], None]
SMALL = {"encoder.name": "small-conv", "batch_size": 4}
OTHERS: list[tuple[str, str, Write, dict[str, Any]]] = [
    ("cl-infonce", "ut-zappos50k:size=16", _zappos, {**SMALL, "views.size": 16}),
    ("cl-infonce", "cub:size=16,attributes=9", _cub, SMALL),
    ("cl-infonce", "wider-attribute:size=16", _wider, SMALL),
    ("cl-infonce", "imagenet100:size=16", _imagenet100, {**SMALL, "clusters": 3}),
    ("weaklysup-cclk", "ut-zappos50k:size=16", _zappos, {**SMALL, "views.size": 16}),
    ("weaklysup-cclk", "cub:size=16,attributes=9", _cub, SMALL),
    ("weaklysup-cclk", "imagenet100:size=16,condition=clip.npy", _imagenet100, SMALL),
    ("weaklysup-infonce", "imagenet100:size=16,condition=clip.npy", _imagenet100, {**SMALL, "clusters": 2}),
    ("hardneg-cclk", "imagenet100:size=16", _imagenet100, SMALL),
    ("eps-supinfonce", "imagenet100:size=16", _imagenet100, SMALL),
    ("supcon", "imagenet100:size=16", _imagenet100, SMALL),
    ("cacr-moco", "imagenet100:size=24", _imagenet100, {**SMALL, "queue": 8}),
    ("cacr-moco", "imagenet1k:size=24", _imagenet1k, {**SMALL, "queue": 8}),
    ("cl-infonce", "imagenet1k:size=16,hierarchy=tree.txt,level=2,parents=first", _imagenet1k, SMALL),
    ("herocon", "celeba:size=32", _celeba, {"batch_size": 8}),
]


@pytest.mark.parametrize(
    ("method", "dataset", "write", "values"), OTHERS, ids=[f"{row[0]}@{row[1]}" for row in OTHERS]
)
def test_a_preset_trains_on_its_dataset(
    method: str,
    dataset: str,
    write: Write,
    values: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(tmp_path, monkeypatch)
    shorter = {"epochs": 2, "schedule.warmup_epochs": 1, "validation.fraction": 0.34, "probes.max_steps": 5}
    e = resolve(method, dataset, {**shorter, **values}, use_preset=True, data_root=tmp_path)
    records = list(pretrain(e, data_root=tmp_path))
    assert [record.epoch for record in records] == [0, 1, 2]
    assert np.isfinite(records[-1].metrics["train.loss"])


def test_the_clusters_are_those_of_a_level_of_wordnet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _imagenet100(tmp_path, monkeypatch)
    (tmp_path / "tree.txt").write_text("n0 n1\nn0 n2\nn1 n00000011\nn2 n00000012\n")
    dataset = "imagenet100:size=16,hierarchy=tree.txt,level=2"
    values = {**SMALL, "clusters_from": "attributes", "top_k": 2, "validation.fraction": 0.34}
    e = resolve("cl-infonce", dataset, values, data_root=tmp_path)
    train = load_training(dataset, tmp_path).train
    clusters = static_clusters(e, train)
    assert clusters is not None
    assert len(set(clusters.tolist())) == 2
    assert len(set(zip(clusters.tolist(), train.labels.tolist(), strict=True))) == 2
