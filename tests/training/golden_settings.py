"""The settings of the run that every method makes once: see `trained` in conftest.py."""

from collections.abc import Mapping
from typing import Any

from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning.resolve import resolve

# Every part of a run is written out, so that a new default does not look like a change of the computation.
SETTINGS = {
    "optimizer.name": "sgd",
    "optimizer.lr": 0.001,
    "optimizer.momentum": 0.9,
    "optimizer.weight_decay": 1e-4,
    "schedule.name": "cosine",
    "schedule.warmup_epochs": 1.0,
    "schedule.final_fraction": 0.0,
    "views.min_crop": 0.3,
    "views.max_crop": 1.0,
    "views.flip": 0.5,
    "head.hidden": None,
    "head.width": 128,
    "temperature": 0.5,
    "validation.split": "class",
    "batch_size": 32,
    "seed": 0,
}
OWN: dict[str, dict[str, Any]] = {
    "infonce": {"negatives": "all"},
    "fair-cclk": {"kernel": "rbf", "sigma2": 1e4, "lam": 0.01, "weights": "released"},
    "fair-infonce": {"negatives": "all", "clusters": 3},
    "cl-infonce": {
        "clusters_from": "kmeans",
        "clusters": 7,
        "kmeans_starts": 1,
        "representation": "features",
    },
    "cluster-ce": {"clusters_from": "kmeans", "clusters": 7, "kmeans_starts": 1},
    "cmc-attributes": {},
    "cacr": {
        "positives": 2,
        "attraction": "on",
        "t_pos": 1.0,
        "repulsion": "on",
        "t_neg": 2.0,
        "negatives": "cross",
        "cost": "euclidean",
        "detach_positive_weights": "off",
    },
    "cacr-moco": {
        "positives": 2,
        "attraction": "on",
        "t_pos": 1.0,
        "repulsion": "on",
        "t_neg": 2.0,
        "negatives": "same",
        "cost": "euclidean",
        "detach_positive_weights": "on",
        "momentum_m": 0.9,
        "queue": 64,
    },
    "weaklysup-cclk": {"kernel": "rbf", "sigma2": 1e4, "lam": 0.01, "weights": "released"},
    "weaklysup-infonce": {"clusters": 3},
    "hardneg-cclk": {"kernel": "rbf", "sigma2": 10.0, "lam": 1.0, "weights": "released"},
    "hardneg-infonce": {"beta": 1.0, "tau_plus": 0.1},
    "supcon": {"form": "out"},
    "align-uniform": {"t": 2.0, "align_weight": 1.0, "uniform_weight": 1.0},
    "cmc": {"positives": 3},
    "eps-infonce": {"epsilon": 0.25},
    "eps-supcon": {"epsilon": 0.25},
    "eps-supinfonce": {"epsilon": 0.25, "variant": "c"},
    "fairkl": {"base": "eps-supinfonce", "epsilon": 0.25, "alpha": 0.5, "lam": 1.0, "form": "moments"},
    "cross-entropy": {},
    "end": {"alpha": 0.1, "beta": 0.1, "classifier_input": "raw"},
    # With seed 0 an input of a ReLU is 0 but for rounding: the gradient depends on the order of a sum.
    "biascon": {"alpha": 0.01, "base": "cross-entropy", "seed": 1},
    "biasbal": {},
    "softcon": {"alpha": 0.01},
    # With a weight of 1, both terms nearly cancel, and rounding is a large share of their sum.
    "lnl": {"entropy_weight": 0.1, "reversal": 0.1, "reads": "middle"},
    "hex": {"levels": 16, "texture_width": 32, "scale": "batch"},
    "l-softmax": {"margin": 3, "lambda_start": 2.0, "lambda_min": 0.0},
    "mmcl": {"sigma": 10.0, "bound": 100.0, "reg": 0.1, "solver": "inv"},
    "herocon": {
        "between_views": "herocon",
        "between_labels": "herocon",
        "alpha": 0.7,
        "beta": 0.1,
        "negatives": "both",
    },
    "align-uniform-moco": {
        "t": 2.0,
        "align_weight": 3.0,
        "uniform_weight": 1.0,
        "intra_batch": "on",
        "momentum_m": 0.9,
        "queue": 64,
    },
    "hardneg-moco": {"beta": 1.0, "tau_plus": 0.1, "momentum_m": 0.9, "queue": 64},
    "cmc-moco": {"positives": 2, "momentum_m": 0.9, "queue": 64},
    "mib": {
        "alpha": 0.3,
        "dim": 8,
        "estimator": "jsd",
        "hidden": 16,
        "divergence": "sampled",
        "beta_start": 1e-3,
        "beta": 1.0,
        "hold": 0.05,
        "rise": 0.1,
    },
    "deepmtmv": {"dropout": 0.5, "every": 1, "separation": 8.0},
    "c2ae": {"alpha": 0.5, "lam": 0.5, "scale": 5.0, "latent": 0.8, "hidden": 16},
    "lff": {
        "q": 0.7,
        "form": "released",
        "compared": "averages",
        "loss_momentum": 0.7,
        "biased_encoder": "same",
    },
    "dfa": {
        "q": 0.7,
        "form": "released",
        "loss_momentum": 0.7,
        "biased_encoder": "same",
        "lambda_dis": 2.0,
        "lambda_swap": 0.5,
        "lambda_swap_b": 3.0,
        "swap_from": 0.3,
    },
    # A network of single pixels sees all pixels of one of the 17 grey levels at a ReLU's 0 together: whether
    # rounding puts them above or below moves its gradient by 1e-4. So the biased network is the usual one.
    "rebias": {
        "lambda_f": 1.0,
        "lambda_g": 1.0,
        "radius": "median",
        "sigma": 1.0,
        "biased_encoder": "same",
    },
    "rubi": {"weight": 1.0, "branch": "mlp", "biased_encoder": "same"},
    "learned-mixin": {
        "entropy_weight": 0.36,
        "factor": "learned",
        "bias_first": 0.3,
        "biased_encoder": "same",
    },
    "moco-v2": {"symmetric": "off", "momentum_m": 0.9, "queue": 64},
    "barlow-twins": {"lam": 0.005, "head.name": "mlp3", "head.hidden": 64},
    "vicreg": {
        "invariance_weight": 25.0,
        "variance_weight": 25.0,
        "covariance_weight": 1.0,
        "form": "released",
        "head.name": "mlp3",
        "head.hidden": 64,
    },
    "simsiam": {"predictor_hidden": 32, "head.name": "cclk", "head.hidden": 64},
    "byol": {"predictor_hidden": 64, "momentum_m": 0.9, "head.name": "mlp-bn", "head.hidden": 64},
    "dino": {
        "teacher_temperature": 0.1,
        "prototypes": 12,
        "centre_m": 0.9,
        "momentum_m": 0.9,
        "freeze_epochs": 1,
        "head.name": "mlp3",
        "head.hidden": 64,
        "views.local_crops": 2,
        "views.local_size": 6,
        # As for biascon: with seeds 0 and 1, the order of images changes the gradient by 1e-4 and 2e-5.
        "seed": 3,
    },
    "pcl": {
        "clusters": 6,
        "kmeans_starts": 1,
        "clusterings": 2,
        "instance_epochs": 1,
        "momentum_m": 0.9,
        "queue": 64,
    },
    "idfd": {"feature_temperature": 2.0, "weight": 1.0, "memory_m": 0.5},
    "wcl": {"form": "paper", "weight": 1.0},
    "cl-infonce-instances": {
        "clusters_from": "kmeans",
        "clusters": 7,
        "kmeans_starts": 1,
        "representation": "embedding",
        "weight": 0.5,
    },
    "swav": {
        "epsilon": 0.05,
        "prototypes": 12,
        "iterations": 3,
        "freeze_epochs": 1,
        "queue": 32,
        "queue_epochs": 0,
        "views.local_crops": 2,
        "views.local_size": 6,
        # As for biascon: with seeds 0 to 3, the order of images changes the gradient by 1e-4 (in float32).
        "seed": 4,
    },
}


def resolved(method: str, where: str, values: Mapping[str, Any]) -> Experiment:
    """Resolve a run of settings for all methods; one that only classifies gets no `temperature`."""
    others = {name: value for name, value in values.items() if name != "temperature"}
    without = resolve(method, where, others)
    return resolve(method, where, values) if "temperature" in without.hyperparameters else without
