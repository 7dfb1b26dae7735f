"""Every objective of the platform: pure functions of tensors behind small modules.

Shapes everywhere: `views` (V views, B images, D features), normalised inside; labels, biases, clusters (B,).
A module's `terms(...)` returns `LossTerms`; its `forward(...)` takes the same arguments and returns a scalar.
Hyperparameters out of range, unknown names and wrong shapes raise ValueError before any work.
"""

from losses.align_uniform import AlignUniform
from losses.cacr import CACR, repulsion_entropy
from losses.cclk import FairCCLK, HardNegCCLK, WeaklySupCCLK
from losses.clinfonce import ClInfoNCE, sample_partners
from losses.debiasing import BiasBal, BiasCon, EnD, log_class_prior
from losses.epsilon import EpsInfoNCE, EpsSupCon, EpsSupInfoNCE
from losses.fairkl import FairKL
from losses.gather import RanksLost, gather
from losses.hardneg import HardNegInfoNCE
from losses.herocon import HeroConOneView, HeroConSupervised, HeroConUnsupervised
from losses.infonce import InfoNCE, QueueInfoNCE
from losses.pcl import PrototypeNCE, cluster_concentrations, cluster_prototypes
from losses.supcon import SupCon
from losses.swav import SwAV, balanced_assignments
from losses.terms import LossTerms

__all__ = [
    "CACR",
    "AlignUniform",
    "BiasBal",
    "BiasCon",
    "ClInfoNCE",
    "EnD",
    "EpsInfoNCE",
    "EpsSupCon",
    "EpsSupInfoNCE",
    "FairCCLK",
    "FairKL",
    "HardNegCCLK",
    "HardNegInfoNCE",
    "HeroConOneView",
    "HeroConSupervised",
    "HeroConUnsupervised",
    "InfoNCE",
    "LossTerms",
    "PrototypeNCE",
    "QueueInfoNCE",
    "RanksLost",
    "SupCon",
    "SwAV",
    "WeaklySupCCLK",
    "balanced_assignments",
    "cluster_concentrations",
    "cluster_prototypes",
    "gather",
    "log_class_prior",
    "repulsion_entropy",
    "sample_partners",
]
