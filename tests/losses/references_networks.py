"""The losses of two networks, as their papers write them; see `references`."""

import torch
from references import mean
from torch import Tensor


def cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    return -logits[label] + sum(one.exp() for one in logits).log()


def generalized_cross_entropy(logits: Tensor, labels: Tensor, q: float) -> Tensor:
    """Zhang and Sabuncu 2018, Eq. 6: (1 - p^q) / q."""
    return mean([(1 - (-q * cross_entropy(x, y)).exp()) / q for x, y in zip(logits, labels, strict=True)])


def hsic(x: Tensor, y: Tensor, sigma: float, biased_sigma: float) -> Tensor:
    """HSIC_1 of Song et al. 2012, Eq. 5, with sums over different images."""
    m = len(x)

    def kernel(z: Tensor, i: int, j: int, radius: float) -> Tensor:
        return torch.exp(-((z[i] - z[j]) ** 2).sum() / (2 * radius**2)) if i != j else z.new_zeros(())

    K = [[kernel(x, i, j, sigma) for j in range(m)] for i in range(m)]
    L = [[kernel(y, i, j, biased_sigma) for j in range(m)] for i in range(m)]
    all_of = range(m)
    trace = sum(K[i][j] * L[j][i] for i in all_of for j in all_of)
    both = sum(map(sum, K)) * sum(map(sum, L)) / ((m - 1) * (m - 2))
    chained = sum(K[i][j] * L[j][k] for i in all_of for j in all_of for k in all_of) * 2 / (m - 2)
    return (trace + both - chained) / (m * (m - 3))


def rubi(logits: Tensor, mask: Tensor, answer: Tensor, labels: Tensor, weight: float) -> Tensor:
    """Cadene et al. 2019: the masked prediction's loss and the branch's own."""
    rows = zip(logits, mask, answer, labels, strict=True)
    return mean(
        [
            cross_entropy(x * (1 / (1 + (-m).exp())), y) + weight * cross_entropy(own, y)
            for x, m, own, y in rows
        ]
    )


def learned_mixin(
    logits: Tensor, biased_logits: Tensor, factor: Tensor, labels: Tensor, weight: float
) -> Tensor:
    """Clark et al. 2019: softmax(log p + g log b), and w times the entropy of softmax(g log b)."""
    values = []
    for x, b, g, y in zip(logits, biased_logits, factor, labels, strict=True):
        log_b = b - sum(one.exp() for one in b).log()
        shares = (g * log_b).exp() / sum(one.exp() for one in g * log_b)
        values.append(cross_entropy(x + g * log_b, y) - weight * sum(p * p.log() for p in shares))
    return mean(values)
