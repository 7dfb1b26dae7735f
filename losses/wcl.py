"""WCL: images that nearest neighbours connect are positives of each other.

Zheng et al. 2021, "Weakly supervised contrastive learning", https://arxiv.org/abs/2110.04770, Section 3.
Shapes: B images, D width.
"""

from typing import Annotated

import torch
from torch import Tensor

from contrasweep.losses.groups import group_sizes, group_sums
from contrasweep.losses.scores import cosines, full_precision, logsumexp, normalised, without_self
from contrasweep.losses.supcon import mean_positive_score, supcon_terms
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive, require_views, takes_tensors
from contrasweep.rules import OneOf

FORMS = ("paper", "released")


@takes_tensors
@torch.no_grad()
@full_precision
def neighbour_components(embeddings: Tensor) -> Tensor:
    """Return the component (B,) of each row in the graph that joins every row to its nearest neighbour.

    Nearest is by cosine among the other rows; of equally near ones the first counts. A component has the
    number of one of its rows. `embeddings` (B, D) are normalised here; one row alone is a component.

    Following the neighbours from any row ends in the only circle of its component. log2(B) doublings of the
    step find it for all rows at once, on the device of the embeddings.
    """
    following = without_self(cosines(normalised(embeddings))).argmax(dim=1)
    lowest = torch.arange(len(following), device=following.device)
    for _ in range(len(following).bit_length()):
        # `following` is 2^k steps ahead, `lowest` the smallest row among the first 2^k of the way.
        lowest = torch.minimum(lowest, lowest[following])
        following = following[following]
    # After B steps or more the way is within the circle, and B more steps pass all of it.
    return lowest[following]


class WCL(Loss):
    """SupCon's L_out within each view, where an image's positives are those of its component.

    The components of one view are the labels of the other (L_swap of the paper). WCL adds NT-Xent of another
    head's embeddings (`InfoNCE` with `negatives="all"`).

    `form="paper"` is the gradient of this formula. In `form="released"` only the anchors have a gradient: the
    released code gathers the images that an anchor is compared with under `no_grad`. The values are equal.
    """

    temperature: Positive = 0.1
    form: Annotated[str, OneOf(FORMS)] = "paper"

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """2B terms for `views` (2, B, D), all valid for B >= 2. Errors: ValueError on shapes."""
        require_views(views, exactly=2)
        both = [self._of_view(own, other) for own, other in zip(views, views.flip(0), strict=True)]
        return LossTerms(*(torch.cat(parts) for parts in zip(*both, strict=True)))

    def _of_view(self, own: Tensor, other: Tensor) -> LossTerms:
        labels = neighbour_components(other)
        if self.form == "paper":
            return supcon_terms(own[None], labels, self.temperature)
        z = normalised(own)
        compared, count = z.detach(), group_sizes(labels) - 1
        scores = without_self((z / self.temperature) @ compared.T)
        sums = group_sums(compared, labels) - compared
        attraction = mean_positive_score(z, sums, count, self.temperature)
        return LossTerms(logsumexp(scores) - attraction, count > 0)
