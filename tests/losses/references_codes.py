"""Losses of codes as their papers write them: loops over scalars, in float64. See `references.py`."""

import torch
from references import mean
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence


def jensen_shannon(views: Tensor, net: nn.Module) -> Tensor:
    """Federici et al. 2020, the Jensen-Shannon bound with one unpaired object each."""
    values = []
    for i in range(views.shape[1]):
        together = net(torch.cat([views[0, i], views[1, i]]))
        apart = net(torch.cat([views[0, i - 1], views[1, i]]))
        values.append((1 + (-together).exp()).log() + (1 + apart.exp()).log())
    return mean(values)


def symmetric_kl(means: Tensor, deviations: Tensor, noise: Tensor, form: str) -> Tensor:
    """Federici et al. 2020, D_SKL, in closed form or of one sample a view."""
    one, other = (Normal(mu, s) for mu, s in zip(means, deviations, strict=True))
    if form == "exact":
        both = kl_divergence(one, other) + kl_divergence(other, one)
    else:
        first, second = means + deviations * noise
        both = one.log_prob(first) - other.log_prob(first) + other.log_prob(second) - one.log_prob(second)
    return both.sum(1).mean() / 2


def canonical_correlation(features: Tensor, codes: Tensor, lam: float) -> Tensor:
    """Yeh et al. 2017, Phi with its constraints as penalties."""
    total = sum((x - e).square().sum() for x, e in zip(features, codes, strict=True))
    for z in (features, codes):
        for a in range(z.shape[1]):
            for b in range(z.shape[1]):
                total = total + lam * ((z[:, a] * z[:, b]).sum() - float(a == b)) ** 2
    return total


def label_ranking(scores: Tensor, labels: Tensor, scale: float) -> Tensor:
    """Yeh et al. 2017, Gamma; an object with all labels or none adds nothing."""
    total = torch.zeros((), dtype=torch.float64)
    for s, y in zip(scores, labels, strict=True):
        pairs = [(p, q) for p in range(len(y)) for q in range(len(y)) if y[p] == 1 and y[q] == 0]
        for p, q in pairs:
            total = total + (-scale * (s[p] - s[q])).exp() / (scale * len(pairs))
    return total
