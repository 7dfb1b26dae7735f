"""The papers' presets and every debiasing method train on datasets in their published layouts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from biased_trees import report_counts, write_bffhq, write_cifar10c
from imagenet_tree import write_imagenet9, write_textures
from xrmb_files import write_xrmb

from contrasweep.data import dataset_spec
from contrasweep.data.sources import imagenet9, xrmb
from contrasweep.losses import FairKL
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import ALWAYS, final_metrics, search_metrics
from contrasweep.tuning.objectives.objective import Batch
from contrasweep.tuning.objectives.prepared import PreparedData, prepare_data
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.final_scores import scores_of_final_run
from contrasweep.tuning.training.pretrain import build_objective, pretrain

QUICK = {"epochs": 1, "batch_size": 64, "probes.max_steps": 2, "validation.fraction": 0.25}
IMAGES = {**QUICK, "views.size": 32}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_bffhq(root)
    write_cifar10c(root)
    write_imagenet9(root)
    write_textures(root)
    write_xrmb(root)
    features = np.random.default_rng(0).uniform(size=(84, 512)).astype(np.float32)
    np.save(root / "bagnet18.npy", features)
    return root


@pytest.fixture
def root(written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    report_counts(monkeypatch)
    monkeypatch.setattr(imagenet9, "TRAIN_IMAGES_OF_A_CLASS", (2, 4))
    monkeypatch.setattr(imagenet9, "VAL_IMAGES_OF_A_CLASS", 1)
    monkeypatch.setattr(xrmb, "OF_EACH", 10)
    monkeypatch.setattr(xrmb, "FOLDS", 4)
    return written


@pytest.mark.parametrize(
    ("method", "dataset", "values"),
    [
        ("fairkl", "bffhq", IMAGES),
        ("fairkl", "corrupted-cifar10:percent=5", QUICK),
        ("fairkl", "imagenet9:size=32,condition=bagnet18.npy", {**IMAGES, "batch_size": 30}),
        ("herocon", "xrmb", QUICK),
    ],
)
def test_a_preset_trains_two_steps(root: Path, method: str, dataset: str, values: Mapping[str, Any]) -> None:
    e = resolve(method, dataset, values, use_preset=True, data_root=root)
    data = prepare_data(e, root, torch.device("cpu"))
    assert METHODS[method].feed(e, data).sampler.steps_per_epoch >= 2
    before = dict(build_objective(e, data).encoder.named_parameters())
    last = list(pretrain(e, data=data))[-1]
    assert np.isfinite(list(last.metrics.values())).all()
    after = dict(last.objective.encoder.named_parameters())
    assert before.keys() == after.keys()
    assert any(not torch.equal(value, before[name]) for name, value in after.items())


@pytest.mark.parametrize("method", ["eps-supinfonce", "end", "biascon", "biasbal"])
def test_debiasing_methods_train_on_files_of_class_and_bias(root: Path, method: str) -> None:
    values = {**QUICK, "encoder.name": "small-conv"}
    e = resolve(method, "corrupted-cifar10:percent=5", values, data_root=root)
    data = prepare_data(e, root, torch.device("cpu"))
    last = list(pretrain(e, data=data))[-1]
    assert np.isfinite(list(last.metrics.values())).all()
    assert "val.balanced_accuracy" in last.metrics


def test_without_a_bias_label_fairkl_weighs_pairs_by_the_cosines_of_the_condition(root: Path) -> None:
    values = {**IMAGES, "encoder.name": "small-conv", "form": "kl", "alpha": 0.0, "lam": 1.0}
    e = resolve("fairkl", "imagenet9:size=32,condition=bagnet18.npy", values, data_root=root)
    data = prepare_data(e, root, torch.device("cpu"))
    assert isinstance(data, PreparedData)
    objective = build_objective(e, data).train()
    condition = torch.tensor([[1.0, 0.0], [3.0, 4.0], [-1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    images = torch.rand(1, 6, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    batch = Batch(images, labels, torch.arange(6), condition=condition)
    loss, _ = objective.step(batch)
    units = condition / condition.norm(dim=1, keepdim=True)
    expected = FairKL("kl")(
        objective.encoder(images[0])[None],
        labels,
        bias_similarity=(units @ units.T).clamp_min(0).clamp_max(1),
    )
    torch.testing.assert_close(loss, expected, atol=1e-4, rtol=1e-4)


def test_a_final_run_scores_the_clusters_of_textures(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.models.scores.UNBIASED_FEWEST", 2)
    dataset = "imagenet9:size=32,textures=9class_imagenet_val.csv"
    values = {**QUICK, "views.size": 32, "encoder.name": "small-conv", "batch_size": 30}
    e = resolve("cross-entropy", dataset, values, data_root=root)
    data = prepare_data(e, root, torch.device("cpu"))
    scores = scores_of_final_run(list(pretrain(e, data=data))[-1], root)
    assert {*ALWAYS, *scores} == {*final_metrics(METHODS["cross-entropy"], dataset_spec(dataset, root))}
    for name in ("unbiased_accuracy", "classifier_unbiased_accuracy", "untrained_unbiased_accuracy"):
        assert 0 <= scores[f"test.{name}"] <= 1
    assert not any("unbiased" in name for name in search_metrics(METHODS["cross-entropy"], data.spec))


def test_the_released_form_asks_for_a_bias_label(root: Path) -> None:
    dataset = "imagenet9:size=32,condition=bagnet18.npy"
    e = resolve("fairkl", dataset, {**IMAGES, "form": "released"}, data_root=root)
    with pytest.raises(InputError, match=r"form released compares bias labels.*give kl, jeffreys"):
        build_objective(e, prepare_data(e, root, torch.device("cpu")))
    with pytest.raises(InputError, match="needs a bias label or a conditioning variable"):
        resolve("fairkl", "imagenet9", data_root=root)
