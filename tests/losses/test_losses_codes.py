"""The losses of MIB and C2AE where codes and scores are no directions: far, equal, or wrongly shaped."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from contrasweep import losses

x = torch.zeros(2, 4, 3)


def test_the_divergence_of_samples_is_the_exact_one_on_average() -> None:
    generator = torch.Generator().manual_seed(0)
    means, deviations = (
        torch.randn(2, 1, 3, generator=generator),
        torch.rand(2, 1, 3, generator=generator) + 0.5,
    )
    many = 200_000
    noise = torch.randn(2, many, 3, generator=generator)
    given = means.expand(2, many, 3), deviations.expand(2, many, 3)
    sampled = losses.SymmetricKL("sampled").terms(*given, noise).values
    exact = losses.SymmetricKL("exact")(means, deviations, noise[:, :1])
    assert abs(sampled.mean() - exact) < 4 * sampled.std() / many**0.5


@pytest.mark.parametrize("form", ["sampled", "exact"])
def test_equal_distributions_do_not_diverge(form: str) -> None:
    noise = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).expand(2, 4, 3)
    assert losses.SymmetricKL(form)(x + 2, x + 0.5, noise).item() == pytest.approx(0, abs=1e-6)


def test_an_object_with_every_label_or_none_drops_out() -> None:
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 1]])
    terms = losses.LabelRanking().terms(scores, labels)
    assert terms.valid.tolist() == [False, False, True]
    terms.sum().backward()
    assert scores.grad.isfinite().all()
    assert (scores.grad[:2] == 0).all()


def test_a_ranking_that_is_right_by_far_costs_nothing_and_a_wrong_one_stays_finite() -> None:
    labels = torch.tensor([[1, 0]])
    far = torch.tensor([[80.0, -80.0]])
    assert losses.LabelRanking()(far, labels) == 0
    assert losses.LabelRanking()(-far / 2, labels).isfinite()


def test_codes_that_are_equal_and_orthonormal_cost_nothing() -> None:
    codes = torch.linalg.qr(torch.randn(6, 3, generator=torch.Generator().manual_seed(0)))[0]
    assert losses.CanonicalCorrelation()(codes, codes).item() == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.JensenShannon(5)(x), r"views must have width 5, got shape \(2, 4, 3\)"),
        (lambda: losses.SymmetricKL()(x, x[:, :2], x), r"one shape, got .* \(2, 2, 3\)"),
        (lambda: losses.SymmetricKL("near"), "unknown value of form: 'near'"),
        (
            lambda: losses.CanonicalCorrelation()(x[0], x[0, :2]),
            r"must be \(n, K\), got \(4, 3\) and \(2, 3\)",
        ),
        (lambda: losses.LabelRanking()(x[0], x[0, :, :2]), r"must be \(n, c\), got \(4, 3\) and \(4, 2\)"),
        (lambda: losses.LabelRanking()(x[0], torch.full((4, 3), 2)), r"labels must be 0 or 1, got 2\.\.2"),
    ],
)
def test_wrong_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
