"""Probes: simple predictors fitted on frozen features, to score what an encoder has learned.

Shapes: N samples, D features, C classes, L labels, T regression targets. A fitted probe maps features
`(N, D)` to scores `(N, C)` or `(N, L)` or to predictions `(N, T)`, on the device the features were on.

Logistic and ridge regression are full-batch and deterministic. Their solvers work on standardised features
either way; `standardise` says which weights the penalty is on. On those of the standardised features (the
default) a score does not depend on the scale at which an encoder happens to put its features; on those of the
raw features, as published protocols have it, a penalty that is nothing to a trained encoder can cripple the
untrained one beside it. The minibatch probes are the papers' protocols; what is random in them comes from a
generator that is passed in.
"""

from contrasweep.models.probes.knn import KNNProbe, choose_knn, fit_knn
from contrasweep.models.probes.linear import LinearProbe, NonFiniteFeatures
from contrasweep.models.probes.logistic import fit_logistic
from contrasweep.models.probes.minibatch import PROBE_RECIPES, ProbeRecipe, fit_minibatch, probe_recipe
from contrasweep.models.probes.ridge import fit_ridge, one_hot

__all__ = [
    "PROBE_RECIPES",
    "KNNProbe",
    "LinearProbe",
    "NonFiniteFeatures",
    "ProbeRecipe",
    "choose_knn",
    "fit_knn",
    "fit_logistic",
    "fit_minibatch",
    "fit_ridge",
    "one_hot",
    "probe_recipe",
]
