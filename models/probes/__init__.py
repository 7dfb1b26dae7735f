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
