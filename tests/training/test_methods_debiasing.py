"""The debiasing methods: the parts of their losses, and which part trains which module."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.losses import BiasBal, BiasCon, EnD, EpsSupInfoNCE, FairKL, SoftCon
from contrasweep.losses.debiasing import log_class_prior
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.batches import ImageFeed
from contrasweep.tuning.objectives.classifiers import ClassifierBeside, repeated_cross_entropy
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective, pretrain

DATA = "biased-digits"
METRICS_OF_BIAS = {
    f"val.{probe}{name}" for probe in ("", "ridge_") for name in ("balanced_accuracy", "worst_group_accuracy")
}
Make = Callable[..., Experiment]


@pytest.fixture
def biased(small_data: Callable[[str], PreparedData]) -> PreparedData:
    return small_data(DATA)


def _first_batch(e: Experiment, data: PreparedData) -> Batch:
    return next(METHODS[e.method].feed(e, data).epoch(1))


def _step(e: Experiment, data: PreparedData) -> tuple[Objective, Batch, Tensor, dict[str, Tensor]]:
    objective, batch = build_objective(e, data).train(), _first_batch(e, data)
    loss, metrics = objective.step(batch)
    return objective, batch, loss, metrics


def _features(objective: Objective, batch: Batch) -> Tensor:
    views, images = batch.views.shape[:2]
    return objective.encoder(batch.views.flatten(0, 1)).view(views, images, -1)


def _as_read(features: Tensor, read: str) -> Tensor:
    return functional.normalize(features, dim=2) if read == "normalised" else features


def _experiment(method: str, **values: Any) -> Experiment:
    return resolve(method, DATA, {"epochs": 1, "batch_size": 48, **values})


def test_fairkl_is_alpha_times_the_contrast_plus_lam_times_the_regulariser(biased: PreparedData) -> None:
    e = _experiment("fairkl", alpha=0.3, lam=0.7, epsilon=0.2, temperature=0.2, form="moments")
    objective, batch, loss, metrics = _step(e, biased)
    features = _features(objective, batch)
    regulariser = FairKL("moments")(features, batch.labels, batch.bias)
    contrast = EpsSupInfoNCE(0.2, 0.2)(features, batch.labels)
    torch.testing.assert_close(loss, 0.3 * contrast + 0.7 * regulariser, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["regulariser"], regulariser.detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("read", ["normalised", "raw"])
def test_fairkl_on_cross_entropy_trains_the_classifier_with_the_encoder(
    biased: PreparedData, read: str
) -> None:
    e = _experiment("fairkl", base="cross-entropy", alpha=0.3, lam=0.5, form="kl", classifier_input=read)
    objective, batch, loss, _ = _step(e, biased)
    features = _features(objective, batch)
    cross_entropy = repeated_cross_entropy(objective.classifier(_as_read(features, read)), batch.labels)
    regulariser = FairKL("kl")(features, batch.labels, batch.bias)
    torch.testing.assert_close(loss, 0.3 * cross_entropy + 0.5 * regulariser, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("base", ["eps-supinfonce", "cross-entropy"])
def test_fairkl_tells_which_share_of_its_terms_had_no_pairs(biased: PreparedData, base: str) -> None:
    e = _experiment("fairkl", base=base, form="moments")
    objective, batch, _, metrics = _step(e, biased)
    assert metrics["regulariser_dropped"] == 0
    aligned = replace(batch, bias=batch.labels)  # no positive pair conflicts, no negative one is aligned
    assert objective.step(aligned)[1]["regulariser_dropped"] == 1
    one_class = replace(batch, labels=torch.zeros_like(batch.labels))  # no negatives
    assert objective.step(one_class)[1]["regulariser_dropped"] == 0.5


def test_the_classifier_beside_the_loss_pulls_on_itself_alone(biased: PreparedData) -> None:
    objective, batch, _, metrics = _step(_experiment("fairkl", alpha=0.0, lam=0.0), biased)
    assert isinstance(objective, ClassifierBeside)
    objective.step(batch)[0].backward()
    assert all(p.grad is None or not p.grad.any() for p in objective.encoder.parameters())
    weight = objective.classifier.weight
    expected = functional.cross_entropy(
        objective.classifier(functional.normalize(_features(objective, batch)[0].detach(), dim=1)),
        batch.labels,
    )
    torch.testing.assert_close(metrics["classifier_loss"], expected.detach(), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(weight.grad, torch.autograd.grad(expected, weight)[0], atol=1e-5, rtol=1e-4)


def test_the_classifier_beside_it_is_no_part_of_the_reported_loss(biased: PreparedData) -> None:
    _, _, loss, metrics = _step(_experiment("fairkl", alpha=0.0, lam=0.0), biased)
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    assert metrics["classifier_loss"].item() > 1


@pytest.mark.parametrize("read", ["normalised", "raw"])
def test_end_adds_its_regulariser_to_cross_entropy(biased: PreparedData, read: str) -> None:
    e = _experiment("end", alpha=0.3, beta=2.0, classifier_input=read)
    objective, batch, loss, metrics = _step(e, biased)
    features = _features(objective, batch)
    regulariser = EnD(0.3, 2.0)(features, batch.labels, batch.bias)
    cross_entropy = repeated_cross_entropy(objective.classifier(_as_read(features, read)), batch.labels)
    torch.testing.assert_close(loss, cross_entropy + regulariser, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics["regulariser"], regulariser.detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("method", "base"), [("end", {}), ("fairkl", {"base": "cross-entropy"})])
def test_the_classifier_reads_normalised_features_by_default(
    biased: PreparedData, method: str, base: dict[str, str]
) -> None:
    """EnD's pattern norm and FairKL's `normalize = lambd != 0`: predictions know directions alone."""
    e = _experiment(method, **base)
    assert e.hyperparameters["classifier_input"] == "normalised"
    objective, batch = build_objective(e, biased).eval(), _first_batch(e, biased)
    features = objective.encoder(batch.views[0])
    expected = objective.classifier(functional.normalize(features, dim=1))
    torch.testing.assert_close(objective.predict(batch.views[0]), expected, atol=1e-5, rtol=1e-5)


def test_biascon_with_biasbal_corrects_the_logits_of_its_classifier(biased: PreparedData) -> None:
    """The released `--bb 1`: log p(class | bias) is added to the classifier's logits, not to the contrast."""
    e = _experiment("biascon", temperature=0.2, alpha=0.5, base="biasbal")
    objective, batch, loss, _ = _step(e, biased)
    features, train = _features(objective, batch), biased.train
    assert train.bias is not None
    counts = torch.zeros(10, 10).index_put_(
        (train.bias, train.labels), torch.ones(len(train.labels)), accumulate=True
    )
    prior = (counts / counts.sum(1, keepdim=True) + 1e-9).log()[batch.bias]
    logits = (objective.classifier(features) + prior).flatten(0, 1)
    classified = functional.cross_entropy(logits, batch.labels.repeat(2))
    contrast = BiasCon(0.2)(features, batch.labels, batch.bias)
    torch.testing.assert_close(loss, contrast + 0.5 * classified, atol=1e-4, rtol=1e-4)


def test_biascon_contrasts_two_views_beside_a_little_cross_entropy(biased: PreparedData) -> None:
    objective, batch, loss, _ = _step(_experiment("biascon", temperature=0.2, alpha=0.5), biased)
    assert len(batch.views) == 2
    features = _features(objective, batch)
    contrast = BiasCon(0.2)(features, batch.labels, batch.bias)
    cross_entropy = repeated_cross_entropy(objective.classifier(features), batch.labels)
    torch.testing.assert_close(loss, contrast + 0.5 * cross_entropy, atol=1e-5, rtol=1e-5)


def test_softcon_weighs_pairs_by_the_condition_beside_a_little_cross_entropy(data: PreparedData) -> None:
    e = resolve("softcon", "colour-digits", {"batch_size": 48, "temperature": 0.2, "alpha": 0.5})
    objective, batch, loss, _ = _step(e, data)
    features = _features(objective, batch)
    contrast = SoftCon(0.2)(features, batch.labels, batch.condition)
    cross_entropy = repeated_cross_entropy(objective.classifier(features), batch.labels)
    torch.testing.assert_close(loss, contrast + 0.5 * cross_entropy, atol=1e-5, rtol=1e-5)


def test_biasbal_counts_its_prior_on_the_training_images(biased: PreparedData) -> None:
    objective, batch, loss, _ = _step(_experiment("biasbal"), biased)
    train, spec = biased.train, biased.spec
    assert train.bias is not None
    assert spec.bias_classes is not None
    prior = log_class_prior(train.labels, train.bias, spec.classes, spec.bias_classes)
    logits = objective.classifier(_features(objective, batch)[0])
    torch.testing.assert_close(loss, BiasBal(prior)(logits, batch.labels, batch.bias), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("method", ["fairkl", "end", "biasbal", "cross-entropy"])
def test_one_view_is_the_image_itself(method: str, biased: PreparedData) -> None:
    feed = METHODS[method].feed(_experiment(method), biased)
    assert isinstance(feed, ImageFeed)
    batch = next(feed.epoch(1))
    assert len(batch.views) == 1
    whole = biased.train.images[batch.index].float() / 255
    torch.testing.assert_close(batch.views[0], whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", ["fairkl", "end", "biascon", "biasbal"])
def test_without_a_bias_label_there_is_nothing_to_debias(method: str) -> None:
    with pytest.raises(InputError, match=rf"{method} needs .*a bias label.*datasets that do: .*{DATA}"):
        resolve(method, "digits")


@pytest.mark.parametrize("method", ["fairkl", "cross-entropy", "biascon"])
def test_their_own_classifier_is_scored(method: str, biased: PreparedData) -> None:
    e = _experiment(method, **{"probes.max_steps": 5})
    last = list(pretrain(e, data=biased))[-1]
    assert biased.validation is not None
    predicted = last.objective.predict(biased.validation.images.float() / 255).argmax(dim=1)
    right = (predicted == biased.validation.labels).double()
    assert last.metrics["val.classifier_accuracy"] == pytest.approx(float(right.mean()))
    pairs = biased.validation.labels * 100 + biased.validation.bias
    groups = [float(right[pairs == pair].mean()) for pair in pairs.unique()]
    assert last.metrics["val.classifier_balanced_accuracy"] == pytest.approx(sum(groups) / len(groups))
    assert last.metrics["val.classifier_worst_group_accuracy"] == pytest.approx(min(groups))
    assert last.metrics.keys() >= METRICS_OF_BIAS


def test_an_objective_without_a_classifier_says_so(data: PreparedData) -> None:
    objective = build_objective(resolve("infonce", "colour-digits"), data)
    with pytest.raises(NotImplementedError, match="no classifier of its own"):
        objective.predict(torch.zeros(1, 3, 8, 8))


def _with_head(**values: Any) -> Experiment:
    return _experiment(
        "fairkl", representation="embedding", **{"head.name": "mlp", "head.width": 16, **values}
    )


def test_with_a_head_the_contrast_is_on_its_embeddings_and_the_rest_before_it(biased: PreparedData) -> None:
    e = _with_head(alpha=0.3, lam=0.7, epsilon=0.2, temperature=0.2, form="moments", classifier_input="raw")
    objective, batch, loss, metrics = _step(e, biased)
    features = _features(objective, batch)
    embeddings = objective.head(features.flatten(0, 1)).view(*features.shape[:2], -1)
    assert embeddings.shape[2] == 16
    regulariser = FairKL("moments")(features, batch.labels, batch.bias)
    contrast = EpsSupInfoNCE(0.2, 0.2)(embeddings, batch.labels)
    torch.testing.assert_close(loss, 0.3 * contrast + 0.7 * regulariser, atol=1e-5, rtol=1e-5)
    expected = repeated_cross_entropy(objective.classifier(features), batch.labels)
    torch.testing.assert_close(metrics["classifier_loss"], expected.detach(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("alpha", "lam", "reached"), [(1.0, 0.0, (True, True)), (0.0, 1.0, (True, False))])
def test_the_contrast_alone_trains_the_head(
    biased: PreparedData, alpha: float, lam: float, reached: tuple[bool, bool]
) -> None:
    """The contrast reaches encoder and head, the regulariser the encoder, and neither the classifier."""
    objective, batch, loss, _ = _step(_with_head(alpha=alpha, lam=lam), biased)
    loss.backward()
    moved = tuple(
        any(p.grad is not None and bool((p.grad != 0).any()) for p in part.parameters())
        for part in (objective.encoder, objective.head)
    )
    assert moved == reached
    own = repeated_cross_entropy(
        objective.classifier(functional.normalize(_features(objective, batch).detach(), dim=2)), batch.labels
    )
    (gradient,) = torch.autograd.grad(own, objective.classifier.weight)
    torch.testing.assert_close(objective.classifier.weight.grad, gradient, atol=1e-5, rtol=1e-4)


def test_the_head_is_no_part_of_what_is_predicted(biased: PreparedData) -> None:
    objective = build_objective(_with_head(), biased).eval()
    images = biased.train.pixels[:8].float() / 255
    before = objective.predict(images)
    with torch.no_grad():
        for parameter in objective.head.parameters():
            parameter.zero_()
    assert torch.equal(objective.predict(images), before)
