"""Every objective of the platform, each a small module: a `Loss`.

Shapes everywhere: `views` (V views, B images, D features), normalised inside; labels, biases, clusters (B,).
A module's `terms(...)` returns `LossTerms`; a call takes the same arguments and returns a scalar.
Hyperparameters out of range, unknown names and wrong shapes raise ValueError before any work.
"""

from contrasweep.losses.align_uniform import AlignUniform, QueueAlignUniform
from contrasweep.losses.barlow_twins import BarlowTwins
from contrasweep.losses.biased_branches import LearnedMixin, RUBi
from contrasweep.losses.c2ae import CanonicalCorrelation, LabelRanking
from contrasweep.losses.cacr import CACR, repulsion_entropy
from contrasweep.losses.cclk import FairCCLK, HardNegCCLK, WeaklySupCCLK
from contrasweep.losses.clinfonce import ClInfoNCE, sample_partners
from contrasweep.losses.debiasing import BiasBal, BiasCon, EnD, SoftCon, log_class_prior
from contrasweep.losses.dino import DINO, moved_centre
from contrasweep.losses.epsilon import EpsInfoNCE, EpsSupCon, EpsSupInfoNCE
from contrasweep.losses.fairkl import FairKL
from contrasweep.losses.gather import RanksLost, gather
from contrasweep.losses.hardneg import HardNegInfoNCE, QueueHardNegInfoNCE
from contrasweep.losses.herocon import HeroConSupervised, HeroConUnsupervised
from contrasweep.losses.hsic import HSIC, median_distance
from contrasweep.losses.idfd import FeatureDecorrelation, InstanceDiscrimination
from contrasweep.losses.infonce import InfoNCE, QueueInfoNCE
from contrasweep.losses.lff import GeneralizedCrossEntropy, relative_difficulty
from contrasweep.losses.margin import LargeMarginSoftmax
from contrasweep.losses.mib import JensenShannon, SymmetricKL
from contrasweep.losses.mmcl import MMCL
from contrasweep.losses.pcl import PrototypeNCE, cluster_concentrations, cluster_prototypes
from contrasweep.losses.predicted_views import BYOL, SimSiam
from contrasweep.losses.supcon import SupCon
from contrasweep.losses.swav import SwAV, balanced_assignments
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.vicreg import VICReg
from contrasweep.losses.wcl import WCL, neighbour_components

__all__ = [
    "BYOL",
    "CACR",
    "DINO",
    "HSIC",
    "MMCL",
    "WCL",
    "AlignUniform",
    "BarlowTwins",
    "BiasBal",
    "BiasCon",
    "CanonicalCorrelation",
    "ClInfoNCE",
    "EnD",
    "EpsInfoNCE",
    "EpsSupCon",
    "EpsSupInfoNCE",
    "FairCCLK",
    "FairKL",
    "FeatureDecorrelation",
    "GeneralizedCrossEntropy",
    "HardNegCCLK",
    "HardNegInfoNCE",
    "HeroConSupervised",
    "HeroConUnsupervised",
    "InfoNCE",
    "InstanceDiscrimination",
    "JensenShannon",
    "LabelRanking",
    "LargeMarginSoftmax",
    "LearnedMixin",
    "Loss",
    "LossTerms",
    "PrototypeNCE",
    "QueueAlignUniform",
    "QueueHardNegInfoNCE",
    "QueueInfoNCE",
    "RUBi",
    "RanksLost",
    "SimSiam",
    "SoftCon",
    "SupCon",
    "SwAV",
    "SymmetricKL",
    "VICReg",
    "WeaklySupCCLK",
    "balanced_assignments",
    "cluster_concentrations",
    "cluster_prototypes",
    "gather",
    "log_class_prior",
    "median_distance",
    "moved_centre",
    "neighbour_components",
    "relative_difficulty",
    "repulsion_entropy",
    "sample_partners",
]
