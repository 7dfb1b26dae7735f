"""Scores of predictions against the true values.

N samples, C classes, L labels, T regression targets.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from contrasweep.names import unknown

Average = Literal["weighted", "macro", "micro"]
UNBIASED_FEWEST = 10
"""The fewest images of a (class, cluster) group that counts, as in ReBias's released code."""


class MacroAUC(NamedTuple):
    """The mean area under the ROC curve, and the number of labels that have none and are left out."""

    value: float
    left_out: int


def accuracy(probe: Callable[[Tensor], Tensor], features: Tensor, labels: Tensor) -> float:
    """Return the share of `features` `(N, D)` whose largest output is at `labels` `(N,)`."""
    return float((probe(features).argmax(dim=1) == labels).double().mean())


def mean_squared_error(probe: Callable[[Tensor], Tensor], features: Tensor, targets: Tensor) -> float:
    """Return the mean squared error over samples and targets, in squared units of `targets` `(N, T)`."""
    return float((probe(features) - targets).double().square().mean())


def group_balanced_accuracy(predictions: Tensor, labels: Tensor, bias: Tensor) -> float:
    """Return the accuracy within each (class, bias) group that occurs, averaged over these groups.

    Predictions, labels and bias are int64 `(N,)`.

    Raises:
        ValueError: no sample, or shapes that differ.
    """
    return float(_within_groups(predictions, labels, bias)[1].mean())


def worst_group_accuracy(predictions: Tensor, labels: Tensor, bias: Tensor) -> float:
    """Return the lowest accuracy within a (class, bias) group that occurs.

    The arguments and errors are those of `group_balanced_accuracy`.
    """
    return float(_within_groups(predictions, labels, bias)[1].min())


def top_accuracy(outputs: Tensor, labels: Tensor, k: int) -> float:
    """Return the share of rows of `outputs` `(N, C)` whose `k` largest have the class of `labels` `(N,)`.

    Where further classes have the same output as the k-th, all of these miss: no output tells them apart, and
    most classes have no vote among few neighbours.

    Raises:
        ValueError: no sample, shapes that differ, or k is not 1..C.
    """
    if outputs.ndim != 2 or len(outputs) == 0 or labels.shape != outputs.shape[:1]:
        shapes = f"{tuple(outputs.shape)}, {tuple(labels.shape)}"
        raise ValueError(f"outputs must be (N, C) and labels (N,), N >= 1; got {shapes}")
    if not 1 <= k <= outputs.shape[1]:
        raise ValueError(f"k must be 1..{outputs.shape[1]}, given {k}")
    of_label = outputs.gather(1, labels[:, None])
    # NaN has no rank.
    rank = (outputs >= of_label).sum(dim=1)
    return float(((rank >= 1) & (rank <= k)).double().mean())


def unbiased_accuracy(predictions: Tensor, labels: Tensor, groupings: Tensor) -> float:
    """Return the accuracy within each (class, cluster) group, averaged over groups, then over groupings.

    It follows the accuracy over texture clusters in ReBias's released code (Bahng et al., ICML 2020), which
    averages over three clusterings and leaves out groups of fewer than `UNBIASED_FEWEST` images. If a
    grouping has no group that is large enough, the result is NaN. Predictions and labels are int64 `(N,)`,
    `groupings` int64 `(N, G)`: the cluster of each sample in each of G groupings.

    Raises:
        ValueError: no sample, or shapes that differ.
    """
    if groupings.ndim != 2 or not groupings.shape[1]:
        raise ValueError(f"groupings must be (N, G), G >= 1; got {tuple(groupings.shape)}")
    means = []
    for clusters in groupings.T:
        count, share = _within_groups(predictions, labels, clusters)
        means.append(share[count >= UNBIASED_FEWEST].mean())
    return float(torch.stack(means).mean())


def multi_label_f1(scores: Tensor, targets: Tensor, threshold: float, average: Average) -> float:
    """Return the F1 score of predicting every label whose score exceeds `threshold`.

    `scores` and `targets`, 0 or 1 (any type), are `(N, L)`. A label that is neither predicted nor true has F1
    0, as in scikit-learn. `weighted` weights each label by how often it is true (the result is 0 if no label
    is ever true), `macro` weights all labels equally, `micro` pools the counts first. HeroCon's released code
    has the threshold 0.4 of a probability.

    Raises:
        ValueError: no sample, shapes that differ, scores that are NaN, or an unknown average.
    """
    if average not in get_args(Average):
        raise ValueError(unknown("average", average, get_args(Average)))
    true = _binary(scores, targets)
    predicted = scores > threshold
    hits = (predicted & true).sum(dim=0).double()
    support, claims = true.sum(dim=0).double(), predicted.sum(dim=0).double()
    if average == "micro":
        hits, support, claims = (count.sum(dim=0, keepdim=True) for count in (hits, support, claims))
    # F1 = 2 TP / (2 TP + FP + FN); the denominator is at least 1 wherever TP is.
    f1 = 2 * hits / (support + claims).clamp_min(1)
    if average == "weighted":
        return float((f1 * support).sum() / support.sum().clamp_min(1))
    return float(f1.mean())


def macro_auc(scores: Tensor, targets: Tensor) -> MacroAUC:
    """Return the mean over labels of the area under the ROC curve.

    The area is the share of (positive, negative) pairs in the right order; a tie counts half. It is exact:
    all numbers are whole up to the last division. A label that is true everywhere or nowhere has no such
    pair; it is left out, and the result says how many were. If no label is left, the value is NaN. For
    single-label data pass one-hot targets. `scores`, of which only the order within a label matters, and
    `targets`, 0 or 1 (any type), are `(N, L)`.

    Raises:
        ValueError: no sample, shapes that differ, or scores that are NaN.
    """
    true = _binary(scores, targets).T
    columns = scores.detach().T.contiguous()
    ordered = columns.sort(dim=1).values
    below = torch.searchsorted(ordered, columns)
    up_to = torch.searchsorted(ordered, columns, right=True)
    # The mean rank from 1 of equal scores is (below + up_to + 1) / 2; twice that is whole.
    twice_rank_sum = ((below + up_to + 1) * true).sum(dim=1)
    positives = true.sum(dim=1)
    pairs = positives * (true.shape[1] - positives)
    twice_wins = twice_rank_sum - positives * (positives + 1)
    usable = pairs > 0
    areas = twice_wins[usable].double() / (2 * pairs[usable])
    return MacroAUC(float(areas.mean()), int((~usable).sum()))


def _within_groups(predictions: Tensor, labels: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return the size and the accuracy of each group of (class, bias) that occurs."""
    if labels.ndim != 1 or len(labels) == 0 or not predictions.shape == labels.shape == bias.shape:
        shapes = ", ".join(str(tuple(values.shape)) for values in (predictions, labels, bias))
        raise ValueError(f"predictions, labels and bias must all be (N,), N >= 1; got {shapes}")
    _, group = torch.unique(torch.stack([labels, bias]), dim=1, return_inverse=True)
    count = torch.bincount(group)
    # bincount with weights is not deterministic on a GPU, so we count without weights.
    right = torch.bincount(group[predictions == labels], minlength=len(count))
    return count, right.double() / count


def _binary(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the targets as booleans, after checking that they fit the scores."""
    if scores.ndim != 2 or scores.shape[0] == 0 or scores.shape != targets.shape:
        shapes = f"{tuple(scores.shape)}, {tuple(targets.shape)}"
        raise ValueError(f"scores and targets must be (N, L), N >= 1; got {shapes}")
    if bool(scores.isnan().any()):
        raise ValueError("scores hold NaN")
    if not bool(((targets == 0) | (targets == 1)).all()):
        raise ValueError("targets must be 0 or 1")
    return targets.bool()
