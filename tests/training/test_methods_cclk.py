"""The methods of CCL-K: the condition that each takes, and its effect on the loss and the batches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from first_batch import started
from torch import Tensor, nn

from contrasweep.data import OneClusterBatches, kmeans_clusters, named_seed
from contrasweep.losses import ClInfoNCE, FairCCLK, HardNegCCLK, WeaklySupCCLK
from contrasweep.losses.kernels import KERNELS
from contrasweep.search_spaces import available_presets
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.cclk import FeatureConditioned
from contrasweep.tuning.objectives.objective import Batch, ContrastiveObjective, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.spaces import preset_settings

DATA = "colour-digits"
SETTINGS = {"kernel": "laplacian", "sigma2": 70.0, "lam": 0.3, "temperature": 0.2}
OTHER_ROWS_OF_CCL_K = {
    ("infonce", "colormnist"),
    ("fair-infonce", "colormnist"),
    ("weaklysup-infonce", "imagenet100"),
}
BY_THEMSELVES = {
    *("cacr", "cacr-moco", "cmc", "align-uniform", "hardneg-infonce"),
    *("wcl", "mmcl", "barlow-twins", "vicreg", "simsiam", "byol"),
}
"""Methods all of whose presets do; the first row are those of CACR."""

CONDITIONED = ["fair-cclk", "weaklysup-cclk", "weaklysup-infonce", "fair-infonce"]


def _experiment(method: str, **values: Any) -> Experiment:
    return resolve(method, DATA, {"epochs": 1, "batch_size": 24, **values})


def _features(objective: Objective, batch: Batch) -> Tensor:
    return objective.encoder(batch.views.flatten(0, 1)).view(*batch.views.shape[:2], -1)


@pytest.mark.parametrize(
    ("method", "loss"),
    [
        ("weaklysup-cclk", WeaklySupCCLK(**SETTINGS)),
        ("fair-cclk", FairCCLK(**SETTINGS)),
    ],
)
def test_the_condition_is_that_of_the_data(
    method: str, loss: WeaklySupCCLK | FairCCLK, data: PreparedData
) -> None:
    objective, batch = started(_experiment(method, **SETTINGS), data)
    assert isinstance(objective, ContrastiveObjective)
    found, metrics = objective.step(batch)
    colours = data.train.condition[batch.index]
    torch.testing.assert_close(found, loss(objective.embed(batch.views), colours), atol=1e-5, rtol=1e-5)
    assert metrics["dropped_fraction"].item() == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_has_a_scale_or_none(kernel: str, data: PreparedData) -> None:
    for method in ("weaklysup-cclk", "hardneg-cclk"):
        e = _experiment(method, kernel=kernel)
        assert ("sigma2" in e.hyperparameters) is (kernel in ("rbf", "laplacian"))
        objective, batch = started(e, data)
        assert objective.step(batch)[0].isfinite()


def test_fair_infonce_draws_each_batch_from_one_cluster_of_the_condition(data: PreparedData) -> None:
    sampler = METHODS["fair-infonce"].feed(_experiment("fair-infonce", clusters=5, seed=3), data).sampler
    assert isinstance(sampler, OneClusterBatches)
    assert sampler.seed == named_seed(3, "batches")
    clusters = kmeans_clusters(data.train.condition, 5, named_seed(3, "clusters"))
    batches = sampler.epoch(1)
    assert all(1 < len(rows) <= 24 and len(clusters[rows].unique()) == 1 for rows in batches)
    assert len({int(clusters[rows[0]]) for rows in batches}) > 1


def test_weakly_supervised_clusters_are_those_of_the_condition(data: PreparedData) -> None:
    e = _experiment("weaklysup-infonce", clusters=5, temperature=0.2, seed=3)
    objective, batch = started(e, data)
    assert isinstance(objective, ContrastiveObjective)
    clusters = kmeans_clusters(data.train.condition, 5, named_seed(3, "clusters"))[batch.index]
    assert torch.equal(batch.clusters, clusters)
    loss, _ = objective.step(batch)
    expected = ClInfoNCE(0.2)(objective.embed(batch.views), clusters)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)


def test_hard_negatives_are_found_among_the_features_before_the_head(data: PreparedData) -> None:
    values = {"kernel": "rbf", "sigma2": 2.0, "lam": 0.5, "temperature": 0.2}
    objective, batch = started(_experiment("hardneg-cclk", **values), data)
    assert isinstance(objective, FeatureConditioned)
    features = _features(objective, batch)
    embeddings = objective.head(features.flatten(0, 1)).view(*features.shape[:2], -1)
    loss, metrics = objective.step(batch)
    expected = HardNegCCLK(**values)(embeddings, features.detach())
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    assert metrics["dropped_fraction"].item() == 0
    # Not the embeddings, not unit features: each would give other weights.
    for other in (None, torch.nn.functional.normalize(features.detach(), dim=2), embeddings.detach()):
        assert abs(HardNegCCLK(**values)(embeddings, other).item() - loss.item()) > 1e-3


@pytest.mark.parametrize(
    ("method", "passes"),
    [
        ("fair-cclk", 2),
        ("hardneg-cclk", 2),
        ("weaklysup-infonce", 2),
        ("infonce", 2),
        ("cacr", 5),
        ("cacr-moco", 2),
        ("pcl", 1),
        ("fairkl", 1),
    ],
)
@pytest.mark.parametrize("views", ["apart", "together"])
def test_the_views_of_a_batch_are_normalised_apart_where_asked(
    method: str, passes: int, views: str, data: PreparedData, small_data: Callable[[str], PreparedData]
) -> None:
    images = small_data("biased-digits") if method == "fairkl" else data
    settings = {"epochs": 1, "batch_size": 24, "encoder.views": views}
    settings |= {"clusters": 5} if method in ("pcl", "weaklysup-infonce") else {}
    settings |= {"positives": 4} if method == "cacr" else {}
    settings |= {"positives": 1} if method == "cacr-moco" else {}
    dataset = "biased-digits" if method == "fairkl" else DATA
    e = resolve(method, dataset, settings)
    objective, batch = started(e, images)
    objective.on_epoch_start(1, lambda: objective.embed_images(images.train.images.float() / 255))
    objective.train().step(batch)
    norm = next(module for module in objective.encoder.modules() if isinstance(module, nn.BatchNorm2d))
    assert int(norm.num_batches_tracked) == (passes if views == "apart" else 1)


def test_a_network_without_batch_norm_does_not_see_whether_views_pass_apart(data: PreparedData) -> None:
    values = {**SETTINGS, "head.name": "linear", "encoder.name": "lenet5", "views.size": 32}
    larger, losses = replace(data, spec=data.spec.at_view_size(32)), []
    for views in ("together", "apart"):
        objective, batch = started(_experiment("fair-cclk", **values, **{"encoder.views": views}), larger)
        losses.append(objective.step(batch)[0].item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize(("method", "dataset"), available_presets())
def test_presets_pass_views_apart_where_the_released_codes_do(method: str, dataset: str) -> None:
    settings = preset_settings(method, dataset)
    apart = "cclk" in method or (method, dataset) in OTHER_ROWS_OF_CCL_K or method in BY_THEMSELVES
    assert settings.get("encoder.views", "together") == ("apart" if apart else "together")


def test_hard_negatives_on_cifar_are_normalised_as_released() -> None:
    settings = preset_settings("hardneg-cclk", "cifar10")
    assert settings["encoder.mean"] == [0.4914, 0.4822, 0.4465]
    assert settings["encoder.std"] == [0.2023, 0.1994, 0.2010]


def test_no_gradient_flows_through_the_features_as_a_condition(data: PreparedData) -> None:
    objective, batch = started(_experiment("hardneg-cclk"), data)
    conditions = []
    original = objective.loss.terms

    def spy(views: Tensor, condition: Tensor) -> Any:
        conditions.append(condition)
        return original(views, condition)

    objective.loss.terms = spy
    objective.step(batch)[0].backward()
    assert [condition.requires_grad for condition in conditions] == [False]
    assert all(p.grad is not None and bool(p.grad.any()) for p in objective.encoder.parameters())


def test_embeddings_and_features_are_gathered_by_image(data: PreparedData) -> None:
    objective, batch = started(_experiment("hardneg-cclk"), data)
    calls: list[tuple[tuple[int, ...], int]] = []

    def two_ranks(tensor: Tensor, dim: int) -> Tensor:
        calls.append((tuple(tensor.shape), dim))
        return torch.cat([tensor, tensor + 0.1], dim)

    loss, _ = objective.step(batch, two_ranks)
    width = objective.encoder.width
    assert calls == [((2, 24, 128), 1), ((2, 24, width), 1)]
    assert abs(loss.item() - objective.step(batch)[0].item()) > 1e-3


def test_hard_negatives_need_nothing_but_images() -> None:
    assert resolve("hardneg-cclk", "digits").method == "hardneg-cclk"


@pytest.mark.parametrize("method", CONDITIONED)
def test_without_a_condition_there_is_nothing_to_learn_from(method: str) -> None:
    with pytest.raises(
        InputError, match=rf"{method} needs a conditioning variable.*datasets that do: .*{DATA}"
    ):
        resolve(method, "digits")


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        ("weaklysup-cclk", {"sigma2": 0.0}, "sigma2 must be above 0"),
        ("weaklysup-cclk", {"lam": 0.0}, "lam must be above 0"),
        ("hardneg-cclk", {"kernel": "cosine", "sigma2": 2.0}, "sigma2 has no effect with kernel=cosine"),
        ("hardneg-cclk", {"weights": "papr"}, "Did you mean 'paper'"),
        ("weaklysup-infonce", {"clusters": 0}, "clusters must be at least 1"),
    ],
)
def test_what_has_no_meaning_is_refused(method: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve(method, DATA, values)


def test_more_clusters_than_conditions_are_refused_by_the_method_s_name(data: PreparedData) -> None:
    e = _experiment("weaklysup-infonce", clusters=97)
    with pytest.raises(InputError, match=rf"^weaklysup-infonce on {DATA}: clusters must be at most"):
        METHODS["weaklysup-infonce"].feed(e, data)
