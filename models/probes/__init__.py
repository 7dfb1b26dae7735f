"""Probes: simple predictors fitted on frozen features, to score what an encoder has learned.

Shapes: N samples, D features, C classes, L labels, T regression targets. A fitted probe maps features
`(N, D)` to scores `(N, C)` or `(N, L)` or to predictions `(N, T)`, on the device the features were on.

Logistic and ridge regression are full-batch and deterministic. Their solvers always work on standardised
features; `standardise` says on which weights the penalty is. By default it is on the weights of the
standardised features, so that a score does not depend on the scale of an encoder's features. Published
protocols put it on the weights of the raw features; a penalty that hardly affects a trained encoder can then
cripple the untrained one. The minibatch probes are the papers' protocols; their random numbers come from a
generator that the caller passes.
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
