"""Debiasing with bias labels (EnD, BiasCon, BiasBal), and with features of a biased network (SoftCon).

EnD: Tartaglione et al. 2021, https://arxiv.org/abs/2103.02023. BiasCon, BiasBal and SoftCon: Hong and Yang
2021, "Unbiased classification through bias-contrastive and bias-balanced learning" (NeurIPS 2021).
Shapes: V views, B images, D width, N = V * B anchors, C classes, A biases, Z bias features.
"""

import torch
from torch import Tensor, nn

from contrasweep.losses.groups import (
    anchor_values,
    group_index,
    group_sizes,
    group_sums,
    sizes_by_group,
    sums_by_group,
)
from contrasweep.losses.scores import flat_views, full_precision, logsumexp, normalised, self_scores
from contrasweep.losses.supcon import mean_positive_score
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NonNegative, Positive, require_classes, require_views, takes_tensors


class EnD(Loss):
    """`alpha R_perp + beta R_par`, a regulariser to add to a cross-entropy.

    `R_perp` takes the pairs that share a bias, of any class: it sums cos over the pairs of each bias value,
    adds the absolute values of these sums, and divides by the number of pairs. `R_par` is
    1 - mean (1 + cos) / 2 over the pairs of one class with different biases.
    """

    alpha: NonNegative
    beta: NonNegative
    sums_terms = True

    @full_precision
    def terms(self, views: Tensor, labels: Tensor, bias: Tensor) -> LossTerms:
        """Two terms for `views` (V, B, D), `labels` and `bias` (B,); a term without pairs is invalid."""
        require_views(views, labels=labels, bias=bias)
        z, (by_class, by_bias, by_cell) = flat_views(views), _groups(views, labels, bias)
        same_bias, bias_pairs = _cosines_by_group(z, by_bias)
        same_class, class_pairs = _cosines_by_group(z, by_class)
        same_cell, cell_pairs = _cosines_by_group(z, by_cell)
        perpendicular = same_bias.abs().sum() / bias_pairs.clamp_min(1)
        conflicting = class_pairs - cell_pairs
        parallel = 0.5 - 0.5 * (same_class.sum() - same_cell.sum()) / conflicting.clamp_min(1)
        values = torch.stack([self.alpha * perpendicular, self.beta * parallel])
        return LossTerms(values, torch.stack([bias_pairs, conflicting]) > 0)


class BiasCon(Loss):
    """SupCon's L_out with the bias-conflicting anchors of the class as positives; all anchors count.

    The denominator sums over all other anchors. An anchor without a positive has the value 0 and stays in
    the mean.
    """

    temperature: Positive = 0.07

    @full_precision
    def terms(self, views: Tensor, labels: Tensor, bias: Tensor) -> LossTerms:
        """N valid terms for `views` (V, B, D), `labels` and `bias` (B,). Errors: ValueError on shapes."""
        require_views(views, labels=labels, bias=bias)
        z, (by_class, _, by_cell) = flat_views(views), _groups(views, labels, bias)
        count = group_sizes(by_class) - group_sizes(by_cell)
        sums = group_sums(z, by_class) - group_sums(z, by_cell)
        positive = mean_positive_score(z, sums, count, self.temperature)
        values = logsumexp(self_scores(z, self.temperature)) - positive
        return LossTerms.all_valid(values.masked_fill(count == 0, 0))


class SoftCon(Loss):
    """BiasCon without bias labels: a positive weighs `1 - cos(b_i, b_j)` of the images' bias features.

    The positives of an anchor are the other images of its class, in all views. The value of an anchor is the
    weighted mean of their `-log` shares; an anchor whose weights are all 0 has the value 0 and stays in the
    mean. Equal bias features weigh exactly 0, and so do the image's own views; in the released code they
    weigh what rounding leaves of 1 - cos(b_i, b_j), which decides the value where an anchor has no other
    positive.
    """

    temperature: Positive = 0.07

    @full_precision
    def terms(self, views: Tensor, labels: Tensor, condition: Tensor) -> LossTerms:
        """N valid terms for `views` (V, B, D) and `labels` (B,).

        `condition` (B, Z) has the bias features, of any scale, as rows; no gradient flows into them.

        Errors: ValueError on shapes.
        """
        require_views(views, labels=labels)
        if condition.dim() != 2 or len(condition) != views.shape[1]:
            given = tuple(condition.shape)
            raise ValueError(f"condition must be ({views.shape[1]}, Z), one row per image, got {given}")
        z, weights = flat_views(views), self._weights(labels, condition).to(views.dtype)
        pulls = weights @ z.view(views.shape).sum(0)
        total = (views.shape[0] * weights.sum(1)).repeat(views.shape[0])
        score = (z * pulls.repeat(views.shape[0], 1)).sum(1) / self.temperature
        weighty = total != 0  # a NaN counts, so that it comes out
        positive = score / torch.where(weighty, total, 1)
        values = logsumexp(self_scores(z, self.temperature)) - positive
        return LossTerms.all_valid(values.masked_fill(~weighty, 0))

    @staticmethod
    @torch.no_grad()
    def _weights(labels: Tensor, condition: Tensor) -> Tensor:
        """Weights (B, B) of pairs of images, 0..2; 0 across classes and on the diagonal."""
        direction = normalised(condition.double() if condition.dtype == torch.float64 else condition.float())
        weights = (1 - direction @ direction.T) * (labels[:, None] == labels)
        # Equal bias features leave a rounding error, which would weigh as much as 1 beside weights of 0.
        rounding = 16 * torch.finfo(weights.dtype).eps
        return weights.masked_fill(weights <= rounding, 0).fill_diagonal_(0)


class BiasBal(Loss):
    """Cross-entropy of `logits + log p(class | bias)`, for training only.

    The buffer `log_prior` (biases, classes) comes from `log_class_prior`.
    """

    log_prior: Tensor

    def __init__(self, log_prior: Tensor) -> None:
        super().__init__()
        if log_prior.dim() != 2 or not log_prior.is_floating_point():
            raise ValueError(
                "log_prior must be floating point of shape (biases, classes), "
                f"got {log_prior.dtype} of shape {tuple(log_prior.shape)}"
            )
        self.register_buffer("log_prior", log_prior.detach().clone())

    @full_precision
    def terms(self, logits: Tensor, labels: Tensor, bias: Tensor) -> LossTerms:
        """B valid terms for `logits` (B, classes), integer `labels` and `bias` (B,)."""
        if logits.dim() != 2 or logits.shape[1] != self.log_prior.shape[1]:
            shapes = f"{tuple(logits.shape)} and {tuple(self.log_prior.shape)}"
            raise ValueError(f"logits must be (B, C) and log_prior (biases, C), got {shapes}")
        biases, classes = self.log_prior.shape
        labels = require_classes("labels", labels, len(logits), classes)
        bias = require_classes("bias", bias, len(logits), biases)
        adjusted = logits + self.log_prior.to(logits.dtype)[bias]
        return LossTerms.all_valid(nn.functional.cross_entropy(adjusted, labels, reduction="none"))


@takes_tensors
def log_class_prior(labels: Tensor, bias: Tensor, classes: int, biases: int) -> Tensor:
    """`log p(class | bias)` (biases, classes) counted on the training set; -inf where a pair never occurs.

    `labels` and `bias` are integers (n,). A bias that never occurs has a uniform row. Errors: ValueError, for
    labels outside 0..classes-1 or biases outside 0..biases-1.
    """
    require_classes("labels", labels.cpu(), len(labels), classes)
    require_classes("bias", bias.cpu(), len(labels), biases)
    # As int64: in the type of small integers, the products would wrap around.
    cells = bias.long() * classes + labels.long()
    counts = torch.bincount(cells, minlength=biases * classes).view(biases, classes)
    totals = counts.sum(1, keepdim=True)
    return torch.where(totals > 0, counts / totals.clamp_min(1), 1 / classes).log()


def _groups(views: Tensor, labels: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Group numbers (N,) of the anchors by class, by bias, and by both."""
    by_class, by_bias, by_cell = (
        anchor_values(of_image, views)
        for of_image in (group_index(labels), group_index(bias), group_index(labels, bias))
    )
    return by_class, by_bias, by_cell


def _cosines_by_group(z: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of cos (G,) over each group's unordered pairs, from `|sum z|^2`, and their total number."""
    sizes, sums = sizes_by_group(group), sums_by_group(z, group)
    own = sums_by_group(z.square().sum(1), group)
    return (sums.square().sum(1) - own) / 2, (sizes * (sizes - 1)).sum() / 2
