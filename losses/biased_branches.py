"""RUBi and LearnedMixin: cross-entropy of logits combined with those of a branch that knows the bias alone.

RUBi: Cadene et al. 2019, https://arxiv.org/abs/1906.10169. LearnedMixin and its penalty H: Clark et al. 2019,
"Don't take the easy way out", https://arxiv.org/abs/1909.03683. Only the network's own logits predict.
Shapes: B images, C classes.
"""

from torch import Tensor, nn

from contrasweep.losses.lff import require_logits
from contrasweep.losses.scores import full_precision
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NonNegative, require_per_image, require_positive


class RUBi(Loss):
    """Cross-entropy of `logits * sigmoid(mask)`, plus `weight` times that of the biased branch's own answer.

    Where the branch is right by the bias alone, the mask raises the right logit, so the image teaches little.

    Source: RUBi, L_QM + L_QO; rubi/models/criterions/rubi_criterion.py of its released code, whose
    question_loss_weight is `weight`.
    """

    weight: NonNegative = 1.0

    @full_precision
    def terms(self, logits: Tensor, mask: Tensor, answer: Tensor, labels: Tensor) -> LossTerms:
        """B valid terms for `logits`, `mask` and `answer` (B, C) and integer `labels` (B,).

        Errors: ValueError on shapes.
        """
        require_logits(logits, labels, mask=mask, answer=answer)
        masked = nn.functional.cross_entropy(logits * mask.sigmoid(), labels.long(), reduction="none")
        own = nn.functional.cross_entropy(answer, labels.long(), reduction="none")
        return LossTerms.all_valid(masked + self.weight * own)


class LearnedMixin(Loss):
    """Cross-entropy of `logits + factor * biased_logits`, plus `entropy_weight` times an entropy.

    The entropy is that of the softmax of `factor * biased_logits`: the penalty keeps the factor away from 0,
    at which the bias would be ignored. Weight 0 is LearnedMixin, above 0 LearnedMixin+H. The paper adds
    log-probabilities in place of logits; softmax makes them the same.

    Source: Clark et al. 2019, section 3; debias/modules/clf_debias_loss_functions.py of its released code,
    whose w is `entropy_weight`.
    """

    entropy_weight: NonNegative = 0.36

    @full_precision
    def terms(self, logits: Tensor, biased_logits: Tensor, factor: Tensor, labels: Tensor) -> LossTerms:
        """B valid terms for `logits` and `biased_logits` (B, C), `factor` (B,) >= 0, integer `labels` (B,).

        Errors: ValueError on shapes, and on a negative factor (on a CPU).
        """
        require_logits(logits, labels, biased_logits=biased_logits)
        require_per_image("factor", factor, len(logits))
        require_positive("factor", factor, or_zero=True)
        bias = factor[:, None] * biased_logits
        mixed = nn.functional.cross_entropy(logits + bias, labels.long(), reduction="none")
        log_shares = bias.log_softmax(1)
        entropy = -(log_shares.exp() * log_shares).sum(1)
        return LossTerms.all_valid(mixed + self.entropy_weight * entropy)
