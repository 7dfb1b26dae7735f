from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from torch.nn.functional import normalize

from contrasweep.data import LabelledImages, RandomViews, load_transductive, torch_generator, whole_image
from contrasweep.models import (
    PROBE_RECIPES,
    NonFiniteFeatures,
    accuracy,
    choose_knn,
    choose_ridge,
    fit_knn,
    fit_logistic,
    fit_minibatch,
    mean_squared_error,
    one_hot,
)
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import CLUSTERING, REPORT, goals, report_form, search_metrics
from contrasweep.tuning.objectives.prepared import (
    Prepared,
    PreparedData,
    PreparedTransductive,
    fold_and_part,
    preparation_key,
    prepare_data,
    spec_for,
)
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.spaces import preset_settings
from contrasweep.tuning.training.clustered import matched_clusters
from contrasweep.tuning.training.evaluation import (
    Known,
    extract_features,
    probe_scores,
    probe_views,
    read_probe,
    validation_scores,
)
from contrasweep.tuning.training.pretrain import build_objective, pretrain

Make = Callable[..., Experiment]


def test_features_do_not_depend_on_how_images_are_chunked(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective = build_objective(experiment("infonce"), data)
    whole = extract_features(objective, data.train.images, 8)
    assert whole.shape == (96, 64)
    monkeypatch.setattr("contrasweep.tuning.objectives.prepared.CHUNK", 7)
    torch.testing.assert_close(extract_features(objective, data.train.images, 8), whole, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("classifier", ["ridge", "logistic"])
@pytest.mark.parametrize("standardise", [True, False])
def test_scores_are_those_of_probes_fitted_on_train_and_read_on_held_out(
    classifier: str, standardise: bool, experiment: Make, data: PreparedData
) -> None:
    e = experiment("infonce", {"probes.penalty": 0.01, "probes.standardise": standardise})
    objective = build_objective(e, data)
    train, held_out = data.train, data.validation
    assert held_out is not None
    assert train.condition is not None
    assert held_out.condition is not None
    seen = objective.features(train.images.float() / 255)
    unseen = objective.features(held_out.images.float() / 255)
    least = {"least": 0.01, "standardise": standardise}
    if classifier == "ridge":
        probe = choose_ridge(seen, one_hot(train.labels, 10), **least)  # type: ignore[arg-type]
    else:
        probe = fit_logistic(seen, train.labels, 10, max_steps=20, penalty=0.01, standardise=standardise)
    colour = choose_ridge(seen, train.condition, **least)  # type: ignore[arg-type]
    scores = probe_scores(objective, train, held_out, data.spec, e.probes, classifier)  # type: ignore[arg-type]
    assert scores["accuracy"] == accuracy(probe, unseen, held_out.labels)
    expected = mean_squared_error(colour, unseen, held_out.condition)
    assert scores["colour_mse"] == pytest.approx(expected, rel=1e-6)
    assert set(scores) == {"accuracy", "colour_mse"}


def test_the_experiment_names_the_classifier_that_is_reported(experiment: Make, data: PreparedData) -> None:
    held_out = data.validation
    assert held_out is not None
    seen = build_objective(experiment("infonce"), data).features(data.train.images.float() / 255)
    unseen = build_objective(experiment("infonce"), data).features(held_out.images.float() / 255)
    labels, generator = data.train.labels, lambda name: torch_generator("probe", name)
    probes = {
        "moco": fit_minibatch(seen, labels, 10, PROBE_RECIPES["moco"], generator("moco")),
        "cacr": fit_minibatch(seen, labels, 10, PROBE_RECIPES["cacr"], generator("cacr")),
        "cl-infonce": fit_minibatch(seen, labels, 10, PROBE_RECIPES["cl-infonce"], generator("cl-infonce")),
        "knn": choose_knn(seen, labels, 10, generator("knn")),
        "logistic": fit_logistic(seen, labels, 10, penalty=1e-6, max_steps=20),
    }
    scores = {}
    for name, probe in probes.items():
        e = experiment("infonce", {"probes.classifier": name})
        found = validation_scores(build_objective(e, data), data, e, full=True)
        assert found["val.accuracy"] == accuracy(probe, unseen, held_out.labels), name
        scores[name] = found["val.accuracy"]
    assert len(set(scores.values())) > 1
    one = experiment(
        "infonce",
        {"probes.classifier": "knn", "probes.neighbours": 3, "probes.temperature": 0.5},
    )
    found = validation_scores(build_objective(one, data), data, one, full=True)
    voters = fit_knn(seen, labels, 10, neighbours=3, temperature=0.5)
    assert found["val.accuracy"] == accuracy(voters, unseen, held_out.labels)


def test_a_probe_sees_other_views_in_every_epoch_and_is_read_on_the_centre(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.objectives.prepared.CHUNK", 40)
    values = {
        "probes.classifier": "cacr",
        "probes.views": "crops",
        "probes.centre": 0.8,
        "views.min_crop": 0.3,
    }
    e = experiment("infonce", values)
    objective, held_out = build_objective(e, data), data.validation
    assert held_out is not None

    def of_epoch(epoch: int) -> torch.Tensor:
        # As torchvision's RandomResizedCrop(8, scale=(0.3, 1)) and RandomHorizontalFlip: no colour changes.
        crops, draws = RandomViews(8, min_crop=0.3, flip=0.5), torch_generator("probe views", epoch)
        parts = data.train.images.split(40)
        return torch.cat(
            [objective.features(crops.apply(part, crops.draw(len(part), 8, draws))) for part in parts]
        )

    assert not torch.equal(of_epoch(0), of_epoch(1))
    probe = fit_minibatch(
        of_epoch, data.train.labels, 10, PROBE_RECIPES["cacr"], torch_generator("probe", "cacr")
    )
    unseen = objective.features(whole_image(held_out.images, 8, centre=0.8))
    found = validation_scores(objective, data, e, full=True)
    assert found["val.accuracy"] == accuracy(probe, unseen, held_out.labels)
    # The fast probe of every epoch stays on whole images; only what the encoder sees of them changes.
    assert found["val.ridge_accuracy"] == pytest.approx(
        probe_scores(objective, data.probe_rows, held_out, data.spec, e.probes, "ridge")["accuracy"]
    )


@pytest.mark.parametrize(
    ("preset", "views", "smallest", "jitters", "centre"),
    [
        ("cacr@cifar10", "crops", 0.2, False, 32 / 32),
        ("cmc@cifar100", "crops", 0.2, False, 32 / 32),
        ("align-uniform@stl10", "crops", 0.08, False, 64 / 70),
        ("cacr@stl10", "crops", 0.08, False, 64 / 70),
        ("cacr-moco@imagenet100", "crops", 0.08, False, 224 / 256),
        ("cl-infonce@ut-zappos50k", "training", 0.4, True, 32 / 32),
        ("cl-infonce@imagenet100", "training", 0.4, True, 224 / 256),
        ("cl-infonce@cub", "training", 0.4, True, 224 / 256),
    ],
)
def test_the_probes_of_presets_see_the_views_of_the_released_code(
    preset: str, views: str, smallest: float, jitters: bool, centre: float
) -> None:
    method, _, dataset = preset.partition("@")
    settings = preset_settings(method, dataset)
    e = Experiment(method=method, dataset=dataset).with_values(settings)
    size = int(settings.get("views.size", round(224 * 1.0)))
    made = probe_views(e, size)
    assert (e.probes.views, e.probes.centre) == (views, pytest.approx(centre, abs=1e-3))
    assert made is not None
    assert (made.min_crop, made.max_crop, made.flip, made.blur) == (smallest, 1.0, 0.5, 0.0)
    assert (made.brightness, made.hue, made.grayscale) == ((0.4, 0.1, 0.2) if jitters else (0.0, 0.0, 0.0))
    assert round(size / e.probes.centre) == round(size / centre)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"probes.classifier": "knnn"}, "'knn'"),
        ({"probes.neighbours": 5, "probes.temperature": 0.1}, "go with probes.classifier knn"),
        ({"probes.classifier": "knn", "probes.neighbours": 5}, "both given, or both chosen"),
        ({"probes.views": "crops"}, "probes.views crops goes with the classifiers moco, cl-infonce and cacr"),
        ({"probes.classifier": "knn", "probes.views": "training"}, "probes.views training goes with"),
        ({"probes.centre": 0.0}, "greater than 0"),
        (
            {"probes.classifier": "knn", "probes.neighbours": 0, "probes.temperature": 1.0},
            "greater than or equal to 1",
        ),
    ],
)
def test_settings_of_the_classifier_that_do_not_fit_are_refused(
    values: dict[str, object], message: str, experiment: Make
) -> None:
    with pytest.raises(InputError, match=message):
        experiment("infonce", values)


def test_without_a_condition_there_is_no_colour_error(
    experiment: Make, small_data: Callable[[str], PreparedData]
) -> None:
    grey = small_data("digits")
    e = experiment("infonce", dataset="digits")
    assert grey.validation is not None
    objective = build_objective(e, grey)
    assert set(probe_scores(objective, grey.train, grey.validation, grey.spec, e.probes, "ridge")) == {
        "accuracy"
    }


def test_the_probe_never_learns_from_held_out_labels(experiment: Make, data: PreparedData) -> None:
    e = experiment("infonce")
    objective = build_objective(e, data)
    assert data.validation is not None
    wrong = replace(data.validation, labels=(data.validation.labels + 1) % 10)
    right = probe_scores(objective, data.train, data.validation, data.spec, e.probes, "logistic")
    swapped = probe_scores(objective, data.train, wrong, data.spec, e.probes, "logistic")
    assert right["accuracy"] + swapped["accuracy"] <= 1
    assert right["colour_mse"] == swapped["colour_mse"]


@pytest.mark.parametrize("classifier", ["ridge", "logistic", "knn"])
def test_held_out_features_that_are_not_finite_are_no_score(
    classifier: str, experiment: Make, data: PreparedData
) -> None:
    e, rows = experiment("infonce"), data.train
    features = torch.randn(len(rows.labels), 4, generator=torch.Generator().manual_seed(0))
    broken = features.clone()
    broken[3, 1] = torch.nan
    with pytest.raises(NonFiniteFeatures, match="NaN"):
        read_probe(Known(rows, features), Known(rows, broken), data.spec, e.probes, classifier)


def _prepared(**values: object) -> PreparedData:
    settings = {name.replace("__", "."): value for name, value in values.items()}
    return prepare_data(resolve("infonce", "colour-digits", settings), None, torch.device("cpu"))


def _same(one: LabelledImages, other: LabelledImages) -> bool:
    return torch.equal(one.images, other.images)


def test_the_fast_probe_reads_the_same_few_rows_of_train_every_time() -> None:
    first, again = _prepared(probes__epoch_rows=50), _prepared(probes__epoch_rows=50)
    assert len(first.probe_rows) == 50
    assert _same(first.probe_rows, again.probe_rows)
    rows = {image.numpy().tobytes() for image in first.train.images}
    assert all(image.numpy().tobytes() in rows for image in first.probe_rows.images)
    assert len(first.probe_rows.labels.unique()) > 5
    everything = _prepared()
    assert len(everything.probe_rows) == len(everything.train)


def test_data_is_shared_exactly_where_preparing_it_gives_the_same() -> None:
    base = resolve("infonce", "colour-digits")
    same = ("temperature", 0.5), ("seed", 3), ("epochs", 2), ("probes.penalty", 0.1), ("views.flip", 0.0)
    other = ("validation.fraction", 0.2), ("validation.seed", 1), ("probes.epoch_rows", 50)
    for name, value in same:
        assert preparation_key(base.with_values({name: value})) == preparation_key(base)
    for name, value in other:
        assert preparation_key(base.with_values({name: value})) != preparation_key(base)
    assert preparation_key(resolve("infonce", "digits")) != preparation_key(base)


def test_the_validation_split_follows_its_settings() -> None:
    default, larger = _prepared(), _prepared(validation__fraction=0.5)
    other, none = _prepared(validation__seed=1), _prepared(validation__fraction=0.0)
    assert default.validation is not None
    assert larger.validation is not None
    assert other.validation is not None
    assert none.validation is None
    assert (len(default.train), len(default.validation)) == (1438 - 144, 144)
    assert len(larger.validation) == len(larger.train) == 719
    assert not _same(default.validation, other.validation)
    assert len(none.train) == 1438


def test_the_seeds_of_a_trial_hold_every_labelled_object_out_once() -> None:
    base = resolve("herocon", "two-view-digits", {"validation.split": "folds", "validation.fraction": 0.25})

    def held_out(seed: int) -> list[bytes]:
        prepared = prepare_data(base.with_values({"seed": seed}), None, torch.device("cpu"))
        return [view.numpy().tobytes() for view in prepared.validation.views[0]]

    labelled = load_transductive("two-view-digits").labelled.views[0]
    once, again = ([part for seed in seeds for part in held_out(seed)] for seeds in (range(4), range(4, 8)))
    assert sorted(once) == sorted(again) == sorted(view.numpy().tobytes() for view in labelled)
    assert held_out(0) != held_out(4)
    assert preparation_key(base) != preparation_key(base.with_values({"seed": 1}))
    final = base.on_all_training_data().with_values({"seed": 13})
    assert fold_and_part(final, spec_for(final))[0] == 3


def test_held_out_images_are_clustered_where_it_is_asked_for(experiment: Make, data: PreparedData) -> None:
    e = experiment("infonce", {"probes.kmeans_starts": 4})
    objective = build_objective(e, data)
    held_out = data.validation
    assert held_out is not None
    scores = validation_scores(objective, data, e, full=False)
    assert CLUSTERING[0] not in validation_scores(objective, data, experiment("infonce"), full=True)
    seen = normalize(objective.embed_images(whole_image(held_out.images, 8)), dim=1)
    found = KMeans(10, n_init=20, random_state=0).fit(seen.double().numpy()).labels_
    # Other starts, so that a few images may lie elsewhere.
    assert scores["val.cluster_nmi"] == pytest.approx(
        normalized_mutual_info_score(held_out.labels, found), abs=0.1
    )
    assert 0.1 < scores["val.cluster_accuracy"] <= 1
    collapsed = replace(held_out, images=torch.zeros_like(held_out.pixels))
    alike = validation_scores(objective, replace(data, validation=collapsed), e, full=False)
    share = held_out.labels.bincount().max() / len(held_out)
    assert alike["val.cluster_accuracy"] == pytest.approx(float(share))


def test_directions_are_clustered_whatever_their_lengths() -> None:
    labels, lengths = torch.arange(40) % 2, torch.logspace(-2, 2, 40)
    angles = 1.5 * labels + torch.linspace(-0.2, 0.2, 40)
    embeddings = lengths[:, None] * torch.stack([angles.cos(), angles.sin()], dim=1)
    assert set(matched_clusters(embeddings, labels, 2, starts=3).values()) == {1.0}


def test_a_clustering_s_control_depends_on_the_method_too(experiment: Make, data: PreparedData) -> None:
    """What is clustered is the method's own embedding: runs that share an encoder have other controls."""
    runs = [experiment(method, {"probes.kmeans_starts": 2}) for method in ("infonce", "moco-v2")]
    first, second = (next(pretrain(e, data=data)).metrics for e in runs)
    assert first["val.accuracy"] == second["val.accuracy"]
    assert first["val.cluster_nmi"] != second["val.cluster_nmi"]


def test_probes_can_learn_from_images_that_the_training_leaves_out() -> None:
    values = {"validation.fraction": 0.2, "probes.epoch_rows": 1200}
    e = resolve("infonce", "digits:imbalance=linear", values)
    usual, uncut = (
        prepare_data(e.with_values({"probes.images": images}), None, torch.device("cpu"))
        for images in ("training", "uncut")
    )
    assert len(usual.train) == len(uncut.train) == len(usual.probed) == len(usual.probe_rows)
    assert len(uncut.probed) == 1438 - len(uncut.validation)
    assert len(uncut.probe_rows) == 1200
    keys = [preparation_key(e.with_values({"probes.images": images})) for images in ("training", "uncut")]
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("method", "dataset"),
    [
        ("infonce", "digits"),
        ("infonce", "digits:imbalance=linear,images=200"),
        ("herocon", "two-view-digits"),
    ],
)
def test_uncut_images_are_only_where_classes_are_cut(method: str, dataset: str) -> None:
    with pytest.raises(InputError, match=r"probes.images of .*: given uncut; allowed: training, because no"):
        resolve(method, dataset, {"probes.images": "uncut"})


def test_only_images_are_clustered() -> None:
    with pytest.raises(InputError, match=r"probes.kmeans_starts is for images; two-view-digits"):
        resolve("herocon", "two-view-digits", {"probes.kmeans_starts": 5})


@pytest.mark.parametrize(
    ("method", "dataset"), [("infonce", "colour-digits"), ("herocon", "two-view-digits")]
)
def test_halves_of_the_split_select_and_report(method: str, dataset: str) -> None:
    values = {"validation.halves": True, "validation.fraction": 0.2, "probes.max_steps": 5}
    e = resolve(method, dataset, values)
    data = prepare_data(e, None, torch.device("cpu"))
    whole = prepare_data(e.with_values({"validation.halves": False}), None, torch.device("cpu"))
    assert whole.report is None
    assert len(data.validation) + len(data.report) == len(whole.validation)
    assert 0 <= len(data.validation) - len(data.report) <= 1
    objective = build_objective(e, data)
    found = validation_scores(objective, data, e, full=True)
    # Each half is scored as a split of its own would be.
    other = validation_scores(objective, replace(data, **_held_out(data, data.report)), e, full=True)
    reported = {name: score for name, score in found.items() if name.startswith(REPORT)}
    assert reported == {report_form(name): other[name] for name in goals(METHODS[method], data.spec)}
    assert not any(name.startswith(REPORT) for name in validation_scores(objective, data, e, full=False))
    metrics = search_metrics(METHODS[method], data.spec, e.probes, halves=True)
    assert set(metrics) == {*search_metrics(METHODS[method], data.spec, e.probes), *reported}


def _held_out(data: Prepared, held_out: object) -> dict[str, Any]:
    """Return the fields of the same data with one half as the whole validation split."""
    if isinstance(data, PreparedData):
        return {"validation": held_out, "report": None}
    assert isinstance(data, PreparedTransductive)
    return {"data": replace(data.data, validation=held_out), "report": None}
