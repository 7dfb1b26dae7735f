"""Cl-InfoNCE: images of one cluster are positives of each other.

Tsai et al. 2022, "Learning weakly-supervised contrastive representations", https://arxiv.org/abs/2202.06670.
Shapes: V views, B images, D width.
"""

import math
from typing import Annotated

import torch
from torch import Tensor, nn

from contrasweep.losses.groups import group_index
from contrasweep.losses.infonce import info_nce_terms
from contrasweep.losses.supcon import supcon_terms
from contrasweep.losses.terms import LossTerms
from contrasweep.losses.validation import OneOf, Positive, checked, require_per_image, require_views

PAIRINGS = ("in-batch", "sampled")


def cl_info_nce_terms(
    views: Tensor, clusters: Tensor, temperature: float, pairing: str = "in-batch"
) -> LossTerms:
    """Definition 3.1 for `views` (V, B, D) and `clusters` (B,).

    `pairing="in-batch"` follows the released code: SupCon's L_out with the clusters as labels. It has V * B
    terms; a term is invalid where a cluster has one anchor. Labels as clusters give SupCon, instance ids
    give NT-Xent.

    `pairing="sampled"` follows the definition: view 1 of image i shows an image drawn from i's cluster (see
    `sample_partners`), and the loss is InfoNCE with a mean instead of the sum in its denominator, which
    subtracts log B from each of its V(V - 1)B terms. The caller has drawn the pairs already, so `clusters`
    is only checked.
    """
    require_views(views)
    require_per_image("clusters", clusters, views.shape[1])
    if pairing == "in-batch":
        return supcon_terms(views, clusters, temperature)
    values, valid = info_nce_terms(views, temperature)
    return LossTerms(values - math.log(views.shape[1]), valid)


def sample_partners(clusters: Tensor, generator: torch.Generator) -> Tensor:
    """Return for each image the index (B,) of an image drawn uniformly from its cluster, itself included."""
    group = group_index(clusters)
    sizes = torch.bincount(group)
    members = torch.argsort(group, stable=True)
    first = sizes.cumsum(0) - sizes
    share = torch.rand(len(group), generator=generator, device=clusters.device, dtype=torch.float64)
    return members[first[group] + (share * sizes[group]).long()]


class ClInfoNCE(nn.Module):
    """Mean of `cl_info_nce_terms` over the valid anchors."""

    @checked
    def __init__(self, temperature: Positive, pairing: Annotated[str, OneOf(PAIRINGS)] = "in-batch") -> None:
        super().__init__()
        self.temperature = temperature
        self.pairing = pairing

    def terms(self, views: Tensor, clusters: Tensor) -> LossTerms:
        """Terms for `views` (V, B, D) and `clusters` (B,)."""
        return cl_info_nce_terms(views, clusters, self.temperature, self.pairing)

    def forward(self, views: Tensor, clusters: Tensor) -> Tensor:
        """Scalar loss for `views` (V, B, D) and `clusters` (B,)."""
        return self.terms(views, clusters).mean()
