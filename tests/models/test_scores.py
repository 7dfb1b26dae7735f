"""Scores against scikit-learn and against loops."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score, top_k_accuracy_score
from torch import Tensor

from contrasweep.models import (
    group_balanced_accuracy,
    macro_auc,
    multi_label_f1,
    top_accuracy,
    unbiased_accuracy,
    worst_group_accuracy,
)
from contrasweep.models.scores import Average

SHAPES = {"rows": st.integers(1, 30), "labels": st.integers(1, 5), "seed": st.integers(0, 2**20)}


def _drawn(rows: int, labels: int, seed: int, levels: int) -> tuple[Tensor, Tensor]:
    """Return scores with few levels, so that many tie, and targets in which some labels are constant."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(levels, (rows, labels), generator=generator) / levels
    chance = torch.rand(labels, generator=generator).round(decimals=1)
    return scores, (torch.rand(rows, labels, generator=generator) < chance).long()


@settings(deadline=None, max_examples=60)
@given(**SHAPES, average=st.sampled_from(["weighted", "macro", "micro"]))
def test_f1_is_scikit_learns(rows: int, labels: int, seed: int, average: Average) -> None:
    scores, targets = _drawn(rows, labels, seed, levels=10)
    # At least two columns: scikit-learn would read a single label as classes 0 and 1.
    scores, targets = (torch.cat([x, x[:, :1]], dim=1) for x in (scores, targets))
    expected = f1_score(targets.numpy(), (scores > 0.4).numpy(), average=average, zero_division=0)
    assert multi_label_f1(scores, targets, 0.4, average) == pytest.approx(expected, abs=1e-12)


def test_a_score_at_the_threshold_is_no_prediction() -> None:
    scores, targets = torch.tensor([[0.5], [0.75]]), torch.tensor([[1], [1]])
    assert multi_label_f1(scores, targets, 0.5, "macro") == pytest.approx(2 / 3)


@settings(deadline=None, max_examples=60)
@given(**SHAPES, levels=st.sampled_from([1, 3, 10**6]))
def test_auc_is_scikit_learns_over_the_labels_that_have_both_classes(
    rows: int, labels: int, seed: int, levels: int
) -> None:
    scores, targets = _drawn(rows, labels, seed, levels)
    usable = [i for i in range(labels) if 0 < int(targets[:, i].sum()) < rows]
    found = macro_auc(scores, targets)
    assert found.left_out == labels - len(usable)
    if not usable:
        assert math.isnan(found.value)
        return
    expected = np.mean([roc_auc_score(targets[:, i].numpy(), scores[:, i].numpy()) for i in usable])
    assert found.value == pytest.approx(expected, abs=1e-12)


def test_auc_by_hand() -> None:
    # Positives are at 2 and 1, negatives at 1 and 0: three of four pairs are right, and one ties.
    scores = torch.tensor([[2.0], [1.0], [1.0], [0.0]])
    targets = torch.tensor([[1], [1], [0], [0]])
    assert macro_auc(scores, targets) == (7 / 8, 0)
    assert macro_auc(-scores, targets) == (1 / 8, 0)
    assert macro_auc(torch.tensor([[math.inf], [0.0], [0.0], [-math.inf]]), targets) == (7 / 8, 0)


def test_auc_of_one_hot_classes_is_scikit_learns_one_against_the_rest() -> None:
    labels = torch.arange(40) % 4
    scores = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = roc_auc_score(labels.numpy(), scores.double().numpy(), multi_class="ovr")
    one_hot = torch.nn.functional.one_hot(labels, 4)
    assert macro_auc(scores, one_hot).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("score", [macro_auc, lambda s, t: multi_label_f1(s, t, 0, "macro")])
def test_what_cannot_be_scored_is_refused(score: object) -> None:
    assert callable(score)
    fine = torch.zeros(3, 2)
    with pytest.raises(ValueError, match=r"must be \(N, L\), N >= 1; got \(3, 2\), \(3, 1\)"):
        score(fine, fine[:, :1])
    with pytest.raises(ValueError, match="N >= 1"):
        score(fine[:0], fine[:0])
    with pytest.raises(ValueError, match="scores hold NaN"):
        score(torch.full((3, 2), math.nan), fine)
    with pytest.raises(ValueError, match="0 or 1"):
        score(fine, fine + 2)


def test_an_unknown_average_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown average 'weigthed'\. Did you mean 'weighted'"):
        multi_label_f1(torch.zeros(1, 1), torch.zeros(1, 1), 0.5, "weigthed")  # type: ignore[arg-type]


@settings(deadline=None, max_examples=40)
@given(rows=st.integers(1, 40), seed=st.integers(0, 2**20))
def test_the_accuracies_of_groups_are_those_of_a_loop_over_them(rows: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    predictions, labels, bias = torch.randint(4, (3, rows), generator=generator)
    accuracies = []
    for label in range(4):
        for value in range(4):
            group = (labels == label) & (bias == value)
            if group.any():
                accuracies.append(float((predictions[group] == label).double().mean()))
    expected = sum(accuracies) / len(accuracies)
    assert group_balanced_accuracy(predictions, labels, bias) == pytest.approx(expected)
    assert worst_group_accuracy(predictions, labels, bias) == pytest.approx(min(accuracies))


def test_the_majority_hides_nothing() -> None:
    # 98 aligned samples are right, the one of each conflicting group is wrong.
    labels = torch.tensor([0] * 50 + [1] * 50)
    bias = torch.tensor([0] * 49 + [1] + [1] * 49 + [0])
    assert group_balanced_accuracy(bias, labels, bias) == 0.5
    assert worst_group_accuracy(bias, labels, bias) == 0.0


def test_groups_of_other_lengths_are_refused() -> None:
    labels = torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"must all be \(N,\), N >= 1; got \(3,\), \(3,\), \(2,\)"):
        group_balanced_accuracy(labels, labels, labels[:2])
    with pytest.raises(ValueError, match="N >= 1"):
        group_balanced_accuracy(labels[:0], labels[:0], labels[:0])


@given(rows=st.integers(2, 30), k=st.integers(1, 5), seed=st.integers(0, 2**20))
@settings(max_examples=20)
def test_top_accuracy_is_scikit_learns(rows: int, k: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    outputs = torch.rand(rows, 6, generator=generator)
    labels = torch.randint(6, (rows,), generator=generator)
    expected = top_k_accuracy_score(labels, outputs, k=k, labels=range(6))
    assert top_accuracy(outputs, labels, k) == pytest.approx(expected)


def test_classes_that_nothing_tells_apart_are_no_hits() -> None:
    """One neighbour votes for class 2: no other class is among the best, whatever its number."""
    votes = torch.eye(10)[[2] * 10]
    assert top_accuracy(votes, torch.arange(10), 5) == 0.1
    assert top_accuracy(torch.full((3, 6), torch.nan), torch.arange(3), 5) == 0
    assert top_accuracy(torch.zeros(3, 5), torch.arange(3), 5) == 1


def test_top_accuracy_of_more_guesses_than_classes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"k must be 1\.\.3, given 4"):
        top_accuracy(torch.rand(2, 3), torch.tensor([0, 1]), 4)
    with pytest.raises(ValueError, match=r"outputs must be \(N, C\) and labels \(N,\)"):
        top_accuracy(torch.rand(2, 3), torch.tensor([0, 1, 2]), 1)


def test_unbiased_accuracy_is_the_mean_over_clusterings_of_groups_of_ten_and_more() -> None:
    # Class 0: 10 images in cluster 0, 7 of them right; 9 in cluster 1, none right. Class 1: 20, half right.
    labels = torch.tensor([0] * 19 + [1] * 20)
    predictions = torch.tensor([0] * 7 + [1] * 3 + [1] * 9 + [1] * 10 + [0] * 10)
    by_texture = torch.tensor([0] * 10 + [1] * 9 + [0] * 20)
    all_alike = torch.zeros(39, dtype=torch.int64)
    one = unbiased_accuracy(predictions, labels, by_texture[:, None])
    assert one == pytest.approx((0.7 + 0.5) / 2)
    other = unbiased_accuracy(predictions, labels, all_alike[:, None])
    assert other == pytest.approx((7 / 19 + 0.5) / 2)
    both = unbiased_accuracy(predictions, labels, torch.stack([by_texture, all_alike], dim=1))
    assert both == pytest.approx((one + other) / 2)


def test_unbiased_accuracy_without_a_large_group_is_unknown() -> None:
    labels = torch.zeros(9, dtype=torch.int64)
    assert math.isnan(unbiased_accuracy(labels, labels, labels[:, None]))
    with pytest.raises(ValueError, match=r"groupings must be \(N, G\), G >= 1"):
        unbiased_accuracy(labels, labels, labels)
