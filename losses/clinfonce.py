"""Cl-InfoNCE: images of one cluster are positives of each other.

Tsai et al. 2022, "Learning weakly-supervised contrastive representations", https://arxiv.org/abs/2202.06670.
Shapes: V views, B images, D width.
"""

import math
from typing import Annotated

import torch
from torch import Tensor

from contrasweep.losses.groups import group_index, sizes_by_group
from contrasweep.losses.infonce import info_nce_terms
from contrasweep.losses.supcon import supcon_terms
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive, require_per_image, require_views, takes_tensors
from contrasweep.rules import OneOf

PAIRINGS = ("in-batch", "sampled")


class ClInfoNCE(Loss):
    """Definition 3.1 of the paper.

    `pairing="in-batch"` follows the released code: SupCon's L_out with the clusters as labels. It has V * B
    terms; a term is invalid where a cluster has one anchor. Labels as clusters give SupCon, instance ids
    give NT-Xent.

    `pairing="sampled"` follows the definition: view 1 of image i shows an image drawn from i's cluster (see
    `sample_partners`), and the loss is InfoNCE with a mean instead of the sum in its denominator, which
    subtracts log B from each of its V(V - 1)B terms. The caller has drawn the pairs already, so the clusters
    are only checked.
    """

    temperature: Positive
    pairing: Annotated[str, OneOf(PAIRINGS)] = "in-batch"

    def terms(self, views: Tensor, clusters: Tensor) -> LossTerms:
        """Terms for `views` (V, B, D) and `clusters` (B,)."""
        require_views(views, clusters=clusters)
        if self.pairing == "in-batch":
            return supcon_terms(views, clusters, self.temperature)
        values, valid = info_nce_terms(views, self.temperature)
        return LossTerms(values - math.log(views.shape[1]), valid)


@takes_tensors
def sample_partners(clusters: Tensor, generator: torch.Generator) -> Tensor:
    """Return for each image the index (B,) of an image drawn uniformly from its cluster, itself included."""
    require_per_image("clusters", clusters, len(clusters))
    group = group_index(clusters)
    sizes = sizes_by_group(group)
    members = torch.argsort(group, stable=True)
    first = sizes.cumsum(0) - sizes
    share = torch.rand(len(group), generator=generator, device=clusters.device, dtype=torch.float64)
    return members[first[group] + (share * sizes[group]).long()]
