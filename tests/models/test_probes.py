"""Probes against scikit-learn and against closed forms, on real digits (64 pixels, some of them constant)."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from contrasweep.models import LinearProbe, accuracy, fit_logistic, fit_ridge, mean_squared_error, one_hot

ROWS, CLASSES = 300, 10


@pytest.fixture(scope="module")
def digits() -> tuple[Tensor, Tensor]:
    """Return pixels 0..16 `(300, 64)` in float64, and labels."""
    stored = load_digits()
    return torch.from_numpy(stored.data[:ROWS]), torch.from_numpy(stored.target[:ROWS]).long()


def _inputs(features: Tensor, standardise: bool) -> np.ndarray[Any, Any]:
    """Return the features that the penalised weights multiply: standardised or raw."""
    return StandardScaler().fit_transform(features.numpy()) if standardise else features.numpy()


def _logistic_objective(probe: LinearProbe, features: Tensor, labels: Tensor, penalty: float) -> float:
    """Mean cross-entropy plus the penalty on the weights of the standardised features."""
    scale = features.std(dim=0, correction=0)
    weights = probe.weight * torch.where(scale > 0, scale, 1.0)[:, None]
    return float(F.cross_entropy(probe(features), labels) + penalty * weights.square().sum())


@pytest.mark.parametrize("standardise", [True, False])
def test_logistic_finds_the_optimum_of_scikit_learn(digits: tuple[Tensor, Tensor], standardise: bool) -> None:
    features, labels = digits
    penalty = 1e-3
    # scikit-learn minimises C * (sum of cross-entropies) + 1/2 sum w^2; divided by C N, its penalty is
    # 1 / (2 C N).
    rival = LogisticRegression(C=1 / (2 * ROWS * penalty), tol=1e-9, max_iter=10_000)
    inputs = _inputs(features, standardise)
    expected = rival.fit(inputs, labels.numpy()).predict_proba(inputs)
    probe = fit_logistic(features, labels, CLASSES, penalty=penalty, standardise=standardise)
    found = probe(features).softmax(dim=1).numpy()
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_logistic_in_single_precision_and_at_the_default_penalty_is_as_low(
    digits: tuple[Tensor, Tensor],
) -> None:
    features, labels = digits
    penalty = 1e-6
    rival = LogisticRegression(C=1 / (2 * ROWS * penalty), tol=1e-9, max_iter=10_000)
    inputs = _inputs(features, standardise=True)
    rival.fit(inputs, labels.numpy())
    lowest = -np.log(rival.predict_proba(inputs)[np.arange(ROWS), labels]).mean()
    lowest += penalty * (rival.coef_**2).sum()
    fitted = fit_logistic(features.float(), labels, CLASSES, penalty=penalty)
    assert fitted.weight.dtype == torch.float32
    probe = LinearProbe(fitted.weight.double(), fitted.bias.double())
    assert _logistic_objective(probe, features, labels, penalty) < 1.1 * lowest + 1e-5


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("penalty", [1e-6, 0.3])
def test_ridge_is_the_closed_form_and_scikit_learn_s(
    digits: tuple[Tensor, Tensor], penalty: float, standardise: bool
) -> None:
    features, labels = digits
    targets = one_hot(labels, CLASSES).double()
    inputs = _inputs(features, standardise)
    centred = inputs - inputs.mean(axis=0)
    wanted = targets.numpy() - targets.numpy().mean(axis=0)
    normal = centred.T @ centred / ROWS + penalty * np.eye(inputs.shape[1])
    weights = np.linalg.lstsq(normal, centred.T @ wanted / ROWS, rcond=None)[0]
    closed = centred @ weights + targets.numpy().mean(axis=0)
    # scikit-learn minimises sum of squares + alpha sum w^2: alpha is N times the penalty on the mean.
    rival = Ridge(alpha=ROWS * penalty).fit(inputs, targets.numpy()).predict(inputs)
    found = fit_ridge(features, targets, penalty=penalty, standardise=standardise)(features).numpy()
    np.testing.assert_allclose(found, closed, atol=1e-5)
    np.testing.assert_allclose(found, rival, atol=1e-5)


def test_ridge_by_hand() -> None:
    # x = -1, 1 is standardised already; y = 1, 5: slope 4/2 = 2 shrunk to 2 / (1 + penalty), mean 3.
    features, targets = torch.tensor([[-1.0], [1.0]]), torch.tensor([[1.0], [5.0]])
    probe = fit_ridge(features, targets, penalty=1.0)
    torch.testing.assert_close(probe(features), torch.tensor([[2.0], [4.0]]))
    # The feature is ten times as large: its standardised weight is the same, its raw weight a tenth.
    torch.testing.assert_close(fit_ridge(10 * features, targets, penalty=1.0)(10 * features), probe(features))
    raw = fit_ridge(10 * features, targets, penalty=1.0, standardise=False)
    torch.testing.assert_close(raw.weight, torch.tensor([[20 / 101]]))


def _fit(kind: str, features: Tensor, labels: Tensor, **options: Any) -> LinearProbe:
    if kind == "ridge":
        return fit_ridge(features, one_hot(labels, CLASSES).double(), **options)
    return fit_logistic(features, labels, CLASSES, **options)


def _predictions(kind: str, probe: LinearProbe, features: Tensor) -> Tensor:
    """Return the probabilities: L-BFGS stops when these no longer change, though the logits still may."""
    return probe(features) if kind == "ridge" else probe(features).softmax(dim=1)


KINDS = pytest.mark.parametrize("kind", ["ridge", "logistic"])


@KINDS
def test_a_standardised_probe_does_not_see_the_scale_of_features(
    kind: str, digits: tuple[Tensor, Tensor]
) -> None:
    features, labels = digits
    generator = torch.Generator().manual_seed(0)
    scale = 10 ** (4 * torch.rand(64, generator=generator, dtype=torch.float64) - 2)
    shift = 100 * torch.rand(64, generator=generator, dtype=torch.float64)
    expected = _predictions(kind, _fit(kind, features, labels, penalty=1e-3), features)
    for factor in (1e-6, 1e6):
        moved = factor * (scale * features + shift)
        found = _predictions(kind, _fit(kind, moved, labels, penalty=1e-3), moved)
        torch.testing.assert_close(found, expected, atol=2e-3, rtol=0)


@KINDS
def test_a_raw_probe_does_see_it(kind: str, digits: tuple[Tensor, Tensor]) -> None:
    features, labels = digits
    large, small = (
        _fit(kind, factor * features, labels, penalty=1e-3, standardise=False)(factor * features)
        for factor in (1.0, 1e-3)
    )
    assert float(large.std(dim=1).mean()) > 5 * float(small.std(dim=1).mean())


@KINDS
@pytest.mark.parametrize("standardise", [True, False])
def test_every_feature_twice_is_every_feature_at_half_the_penalty(
    kind: str, standardise: bool, digits: tuple[Tensor, Tensor]
) -> None:
    # The two copies share the weight, w/2 each, and 2 (w/2)^2 = w^2 / 2.
    features, labels = digits
    twice = torch.cat([features, features], dim=1)
    doubled = _fit(kind, twice, labels, penalty=1e-2, standardise=standardise)
    single = _fit(kind, features, labels, penalty=5e-3, standardise=standardise)
    found, expected = _predictions(kind, doubled, twice), _predictions(kind, single, features)
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=0)


@KINDS
@pytest.mark.parametrize("standardise", [True, False])
def test_constant_features_change_nothing(
    kind: str, standardise: bool, digits: tuple[Tensor, Tensor]
) -> None:
    features, labels = digits
    constants = torch.tensor([[0.0, 1e6, -3.0]], dtype=torch.float64).expand(ROWS, 3)
    padded = torch.cat([constants, features], dim=1)
    more = _fit(kind, padded, labels, penalty=1e-3, standardise=standardise)
    plain = _fit(kind, features, labels, penalty=1e-3, standardise=standardise)
    found, expected = _predictions(kind, more, padded), _predictions(kind, plain, features)
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=0)


@KINDS
@pytest.mark.parametrize("penalty", [0.0, 1e-6])
@pytest.mark.parametrize("standardise", [True, False])
def test_features_without_any_information_give_the_majority(
    kind: str, standardise: bool, penalty: float
) -> None:
    dead = torch.zeros(30, 4)
    labels = torch.tensor([7] * 20 + [2] * 10)
    probe = _fit(kind, dead, labels, penalty=penalty, standardise=standardise)
    assert accuracy(probe, dead, labels) == pytest.approx(2 / 3)


@KINDS
@pytest.mark.parametrize("rows", [1, 25])
def test_one_class_only_is_predicted(kind: str, rows: int, digits: tuple[Tensor, Tensor]) -> None:
    features = digits[0][:rows]
    labels = torch.full((rows,), 3)
    probe = _fit(kind, features, labels)
    assert bool(torch.isfinite(probe.weight).all())
    assert accuracy(probe, features, labels) == 1.0


@KINDS
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_features_that_are_not_finite_are_refused(kind: str, bad: float) -> None:
    features = torch.zeros(4, 2)
    features[2, 1] = bad
    with pytest.raises(ValueError, match="NaN or Inf"):
        _fit(kind, features, torch.zeros(4, dtype=torch.int64))


@KINDS
def test_shapes_that_do_not_fit_are_refused(kind: str) -> None:
    labels = torch.zeros(4, dtype=torch.int64)
    for features in (torch.zeros(3, 2), torch.zeros(4), torch.zeros(4, 2, 2)):
        with pytest.raises(ValueError, match=r"features \(N, D\)"):
            _fit(kind, features, labels)
    with pytest.raises(ValueError, match="N >= 1"):
        _fit(kind, torch.zeros(0, 2), labels[:0])


def test_a_fit_is_repeatable_and_leaves_gradients_alone(digits: tuple[Tensor, Tensor]) -> None:
    features, labels = digits[0].float(), digits[1]
    with torch.no_grad():
        first = fit_logistic(features, labels, CLASSES, max_steps=30)
    again = fit_logistic(features, labels, CLASSES, max_steps=30)
    assert torch.equal(first.weight, again.weight)
    assert torch.equal(first.bias, again.bias)
    assert not first.weight.requires_grad


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_fitted_in_single(half: torch.dtype, digits: tuple[Tensor, Tensor]) -> None:
    features, labels = digits[0].to(half), digits[1]
    probe, whole = (fit_logistic(one, labels, CLASSES) for one in (features, features.float()))
    assert probe.weight.dtype == torch.float32
    assert torch.equal(probe.weight, whole.weight)
    assert accuracy(probe, features, labels) > 0.9


def test_fits_take_features_that_need_gradients_and_tensors_of_inference_mode(
    digits: tuple[Tensor, Tensor],
) -> None:
    features, labels = digits
    encoder = torch.nn.Linear(64, 5, dtype=torch.float64)
    fitted = [fit_logistic(encoder(features), labels.int(), CLASSES)]
    fitted.append(fit_ridge(encoder(features), one_hot(labels, CLASSES)))
    assert encoder.weight.grad is None
    assert not any(probe.weight.requires_grad for probe in fitted)
    with torch.inference_mode():
        again = fit_logistic(encoder(features), labels.clone(), CLASSES)
    torch.testing.assert_close(again.weight, fitted[0].weight)


def test_more_steps_fit_better(digits: tuple[Tensor, Tensor]) -> None:
    features, labels = digits
    losses = [
        _logistic_objective(fit_logistic(features, labels, CLASSES, max_steps=steps), features, labels, 1e-6)
        for steps in (1, 5, 100)
    ]
    assert losses[0] > losses[1] > losses[2]


def test_accuracy_and_error_by_hand() -> None:
    probe = LinearProbe(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0.0, 0.5]))
    features = torch.tensor([[2.0, 1.0], [1.0, 2.0], [1.0, 0.6], [3.0, 0.0]])  # outputs: b is 0.5 larger
    assert accuracy(probe, features, torch.tensor([0, 1, 0, 1])) == 0.5
    targets = torch.tensor([[2.0, 1.5], [1.0, 2.5], [1.0, 1.1], [0.0, 0.5]])  # one output is 3 off
    assert mean_squared_error(probe, features, targets) == pytest.approx(9 / 8)


def test_one_hot_rows() -> None:
    rows = one_hot(torch.tensor([2, 0]), 3)
    assert rows.dtype == torch.float32
    assert rows.tolist() == [[0, 0, 1], [1, 0, 0]]
