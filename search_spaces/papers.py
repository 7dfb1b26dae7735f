"""The papers that contrasweep reproduces."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper; `short` is its name in a sentence, `code` the address of its released code."""

    title: str
    short: str
    venue: str
    code: str


PAPERS: Mapping[str, Paper] = {
    "cclk": Paper(
        title="Conditional Contrastive Learning with Kernel",
        short="CCL-K",
        venue="ICLR 2022",
        code="https://github.com/Crazy-Jack/CCLK-release",
    ),
    "herocon": Paper(
        title="Contrastive Learning with Complex Heterogeneity",
        short="HeroCon",
        venue="KDD 2022",
        code="https://github.com/Leo02016/HeroCon",
    ),
    "fairkl": Paper(
        title="Unbiased Supervised Contrastive Learning",
        short="eps-SupInfoNCE + FairKL",
        venue="ICLR 2023",
        code="https://github.com/EIDOSLAB/unbiased-contrastive-learning",
    ),
    "cl-infonce": Paper(
        title="Learning Weakly-Supervised Contrastive Representations",
        short="Cl-InfoNCE",
        venue="ICLR 2022",
        code="https://github.com/Crazy-Jack/Cl-InfoNCE",
    ),
    "cacr": Paper(
        title="Contrastive Attraction and Contrastive Repulsion for Representation Learning",
        short="CACR",
        venue="TMLR 2023 (read here: a preprint of it)",
        code="https://github.com/JegZheng/CACR-SSL",
    ),
}
"""The papers whose tables ship, by the first part of a table's id."""
