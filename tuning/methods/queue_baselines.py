"""CACR's baselines with a momentum encoder and a queue, in the frame of MoCo-v2 (CACR, Table 4).

Align+Uniform and hard negatives compare the first view's queries with the second's keys, as MoCo-v2 does. CMC
compares every view with every other.
"""

import torch
from torch import Tensor

from contrasweep.losses import QueueAlignUniform, QueueHardNegInfoNCE, QueueInfoNCE
from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.cacr import POSITIVES, SWITCH, feed
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.methods.moco_v2 import MOMENTUM, one_way
from contrasweep.tuning.objectives.momentum import Contrast, MomentumObjective
from contrasweep.tuning.objectives.objective import Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def align_uniform(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return alignment of queries with keys, and their uniformity with the queue."""
    settings = experiment.hyperparameters
    loss = QueueAlignUniform(
        float(settings["t"]),
        float(settings["align_weight"]),
        float(settings["uniform_weight"]),
        intra_batch=settings["intra_batch"] == "on",
    )
    return one_way(experiment, encoder, loss.terms)


def hard_negatives(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return InfoNCE whose negatives, the queue's keys, weigh more the closer they are."""
    settings = experiment.hyperparameters
    loss = QueueHardNegInfoNCE(*(float(settings[name]) for name in ("temperature", "beta", "tau_plus")))
    return one_way(experiment, encoder, loss.terms)


def cmc(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return InfoNCE of every view's queries with every other view's keys; the last view is stored."""
    loss = QueueInfoNCE(float(experiment.hyperparameters["temperature"]))

    def terms(contrast: Contrast) -> tuple[LossTerms, Metrics]:
        return loss.terms(contrast.queries.flatten(0, 1), other_views(contrast.keys), contrast.queue), {}

    return MomentumObjective(experiment, encoder, terms, enqueued=slice(-1, None))


def other_views(keys: Tensor) -> Tensor:
    """Return the other views (VB, V - 1, D) of the image of each of `keys` (V, B, D)."""
    others = [torch.cat([keys[:view], keys[view + 1 :]]) for view in range(len(keys))]
    return torch.stack(others).transpose(1, 2).flatten(0, 1)


ALIGN_UNIFORM_MOCO = Method(
    name="align-uniform-moco",
    summary="queries align with momentum-encoded keys, and spread away from a queue of older ones",
    paper="Wang and Isola 2020; a baseline of CACR (AU-CL)",
    equation="Eq. 17 and 18 (appendix)",
    hyperparameters={
        **hyperparameters_of(
            QueueAlignUniform,
            {
                "t": "how near images must be to repel",
                "align_weight": "the weight of alignment",
                "uniform_weight": "the weight of uniformity",
            },
        ),
        "intra_batch": Hyperparameter("whether queries repel each other, beside the queue", SWITCH),
        **MOMENTUM,
    },
    build=align_uniform,
)
HARDNEG_MOCO = Method(
    name="hardneg-moco",
    summary="negatives come from a queue of older keys; those closest to the query weigh most",
    paper="Robinson et al. 2021; a baseline of CACR (HN-CL)",
    equation="Eq. 4, over a queue",
    hyperparameters={
        **hyperparameters_of(
            QueueHardNegInfoNCE,
            {
                "temperature": TEMPERATURE,
                "beta": "how much more close negatives weigh",
                "tau_plus": "the share of negatives taken to be of the query's class",
            },
        ),
        **MOMENTUM,
    },
    build=hard_negatives,
)
CMC_MOCO = Method(
    name="cmc-moco",
    summary="all pairs of several views attract, a queue of older keys repels",
    paper="Tian et al. 2020; a baseline of CACR",
    equation="Eq. 8, the full graph, against a queue",
    hyperparameters={
        "positives": POSITIVES,
        **hyperparameters_of(QueueInfoNCE, {"temperature": TEMPERATURE}),
        **MOMENTUM,
    },
    build=cmc,
    feed=feed,
)
