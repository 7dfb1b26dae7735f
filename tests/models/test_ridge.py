"""The ridge probe whose penalty is chosen: leave-one-out is that of naive fits, and few rows show no peak."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from contrasweep.models import accuracy, choose_ridge, fit_ridge, one_hot
from contrasweep.models.probes.ridge import _NEVER_SINGULAR, ENOUGH_ROWS, _left_out_errors

WIDTH, CLASSES = 32, 4


def features_of_classes(rows: int, seed: int, kept: int = WIDTH) -> tuple[Tensor, Tensor]:
    """Return noisy features `(rows, WIDTH)` in the span of the first `kept` axes, and their classes."""
    means = torch.randn(CLASSES, WIDTH, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    features = 0.6 * means[labels] + torch.randn(rows, WIDTH, generator=generator)
    return features * (torch.arange(WIDTH) < kept), labels


def score(fit, rows: int, kept: int = WIDTH) -> float:  # type: ignore[no-untyped-def]
    """Return the accuracy on 2,000 other rows, mean over five draws of the rows that are fitted."""
    found = []
    for seed in range(1, 6):
        features, labels = features_of_classes(rows, seed, kept)
        unseen = features_of_classes(2000, 100, kept)
        found.append(accuracy(fit(features, one_hot(labels, CLASSES)), *unseen))
    return float(np.mean(found))


@pytest.mark.parametrize("rows", [20, 33, 60])
@pytest.mark.parametrize("penalty", [1e-6, 0.01, 1.0])
def test_the_errors_of_left_out_rows_are_those_of_fits_without_them(rows: int, penalty: float) -> None:
    features, labels = features_of_classes(rows, 1)
    inputs = features.double() - features.double().mean(dim=0)
    targets = one_hot(labels, CLASSES).double()
    naive, alpha = [], rows * (penalty + _NEVER_SINGULAR)
    for row in range(rows):
        others = np.arange(rows) != row
        fitted = Ridge(alpha=alpha, solver="svd").fit(inputs[others].numpy(), targets[others].numpy())
        naive.append((fitted.predict(inputs[row : row + 1].numpy()) - targets[row].numpy()) ** 2)
    (found,) = _left_out_errors(inputs, targets, inputs.new_tensor([penalty]))
    assert float(found) == pytest.approx(np.mean(naive), rel=1e-6)


def test_as_many_rows_as_features_give_no_worse_a_score_than_fewer() -> None:
    least, chosen = ([score(fit, rows) for rows in (16, 33, 64)] for fit in (fit_ridge, choose_ridge))
    assert least[1] < least[0] < least[2], "the peak of the error that this is about"
    assert chosen == sorted(chosen)
    assert all(better >= one for better, one in zip(chosen, least, strict=True))


def test_an_encoder_that_keeps_less_does_not_seem_better() -> None:
    assert score(fit_ridge, 33, kept=6) > score(fit_ridge, 33), "what a fixed small penalty says"
    assert score(choose_ridge, 33) > score(choose_ridge, 33, kept=6)


def test_with_enough_rows_the_least_penalty_is_taken() -> None:
    features, labels = features_of_classes(ENOUGH_ROWS * WIDTH, 1)
    targets = one_hot(labels, CLASSES)
    for standardise in (True, False):
        chosen = choose_ridge(features, targets, least=0.01, standardise=standardise)
        fitted = fit_ridge(features, targets, penalty=0.01, standardise=standardise)
        assert torch.equal(chosen.weight, fitted.weight)


@pytest.mark.parametrize("standardise", [True, False])
def test_the_scale_of_the_features_changes_nothing_and_the_least_penalty_is_kept(standardise: bool) -> None:
    features, labels = features_of_classes(40, 1)
    targets = one_hot(labels, CLASSES)
    outputs = choose_ridge(features, targets, least=0.0, standardise=standardise)(features)
    scaled = choose_ridge(100 * features, targets, least=0.0, standardise=standardise)(100 * features)
    torch.testing.assert_close(scaled, outputs, rtol=1e-4, atol=1e-4)
    large = choose_ridge(features, targets, least=1e6, standardise=standardise)(features)
    torch.testing.assert_close(large, targets.mean(dim=0).expand_as(large), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_constant_features_and_few_rows_predict_the_mean(rows: int) -> None:
    targets = torch.arange(rows, dtype=torch.float32)[:, None]
    probe = choose_ridge(torch.full((rows, WIDTH), 3.0), targets)
    torch.testing.assert_close(probe(torch.randn(4, WIDTH)), targets.mean().expand(4, 1))


def test_features_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN or Inf"):
        choose_ridge(torch.full((4, WIDTH), torch.nan), torch.zeros(4, 1))
