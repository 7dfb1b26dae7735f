"""The losses that take a bias label, as their papers write them; see `references`."""

from itertools import combinations, permutations

import torch
from references import anchors_of, cos, mean
from torch import Tensor


def fair_kl(views: Tensor, labels: Tensor, bias: Tensor, form: str) -> Tensor:
    """Barbano et al. 2023, Eq. 9-10 and Table 11."""
    z, y, b = anchors_of(views, labels, bias)
    total = torch.zeros((), dtype=torch.float64)
    for same_class in (True, False):
        populations = []
        for same_bias in (True, False):
            pairs = [
                2 - 2 * cos(z[i], z[j])
                for i, j in combinations(range(len(z)), 2)
                if (y[i] == y[j]) == same_class and (b[i] == b[j]) == same_bias
            ]
            populations.append(pairs)
        if min(map(len, populations)) >= 2:
            total = total + compare_gaussians(*map(moments, populations), form)
    return total


def moments(values: list[Tensor]) -> tuple[Tensor, Tensor]:
    mu = mean(values)
    return mu, mean([(v - mu) ** 2 for v in values])


def compare_gaussians(
    aligned: tuple[Tensor, Tensor], conflicting: tuple[Tensor, Tensor], form: str
) -> Tensor:
    (mu_a, a), (mu_c, c) = aligned, conflicting

    def kl(a: Tensor, c: Tensor) -> Tensor:
        return 0.5 * ((a + (mu_a - mu_c) ** 2) / c - (a / c).log() - 1)

    if form == "kl":
        return kl(a, c)
    if form == "jeffreys":
        return kl(a, c) + kl(c, a)
    return (mu_a - mu_c) ** 2 + ((a.sqrt() - c.sqrt()) ** 2 if form == "moments" else 0)


def fair_kl_released(views: Tensor, labels: Tensor, bias: Tensor) -> Tensor:
    """The released code of Barbano et al. 2023, with its whole matrices."""
    z, B = views[0], views.shape[1]
    mu, deviation = {}, {}
    for same_class in (True, False):
        for same_bias in (True, False):
            entries, inside = [], 0
            for i in range(B):
                for j in range(B):
                    member = (labels[i] == labels[j]) == same_class and (bias[i] == bias[j]) == same_bias
                    entries.append(cos(z[i], z[j]) if member else torch.zeros((), dtype=torch.float64))
                    inside += bool(member)
            mu[same_class, same_bias] = sum(entries) / max(inside, 1)
            deviation[same_class, same_bias] = torch.stack(entries).std() if inside else 0
    linear = -mu[True, False] + mu[False, True]
    means = (mu[True, False] - mu[True, True]) ** 2 + (mu[False, True] - mu[False, False]) ** 2
    return (
        means
        + (deviation[True, True] - deviation[True, False]) ** 2
        + (deviation[False, True] - deviation[False, False]) ** 2
        + linear
    )


def fair_kl_continuous(views: Tensor, labels: Tensor, similarity: Tensor, form: str) -> Tensor:
    """Barbano et al. 2023, B.2.4; the paper leaves the deviations open, we take them over the pairs."""
    z, y = anchors_of(views, labels)
    B, N = views.shape[1], len(z)
    total = torch.zeros((), dtype=torch.float64)
    for same_class in (True, False):
        pairs = [(i, j) for i, j in permutations(range(N), 2) if (y[i] == y[j]) == same_class]
        if len(pairs) < 4:
            continue
        d = [2 - 2 * cos(z[i], z[j]) for i, j in pairs]
        b = [similarity[i % B, j % B] for i, j in pairs]
        if form in ("kl", "jeffreys") and min(sum(b), len(b) - sum(b)) < 4:
            continue
        aligned = [x * w for x, w in zip(d, b, strict=True)]
        conflicting = [x * (1 - w) for x, w in zip(d, b, strict=True)]
        total = total + compare_gaussians(
            (sum(aligned) / N, moments(aligned)[1]), (sum(conflicting) / N, moments(conflicting)[1]), form
        )
    return total


def end(views: Tensor, labels: Tensor, bias: Tensor, alpha: float, beta: float) -> Tensor:
    """Tartaglione et al. 2021, R_perp and R_par over unordered pairs."""
    z, y, b = anchors_of(views, labels, bias)
    pairs = list(combinations(range(len(z)), 2))
    sums: dict[int, Tensor] = {}
    shared = 0
    for i, j in pairs:
        if b[i] == b[j]:
            sums[int(b[i])] = sums.get(int(b[i]), 0) + cos(z[i], z[j])
            shared += 1
    conflicting = [(1 + cos(z[i], z[j])) / 2 for i, j in pairs if y[i] == y[j] and b[i] != b[j]]
    perpendicular = sum(x.abs() for x in sums.values()) / max(shared, 1)
    parallel = 1 - mean(conflicting) if conflicting else 0
    return alpha * perpendicular + beta * parallel + torch.zeros((), dtype=torch.float64)


def bias_con(views: Tensor, labels: Tensor, bias: Tensor, temperature: float) -> Tensor:
    """Hong and Yang 2021: SupCon with bias-conflicting positives, 0 where there are none."""
    z, y, b = anchors_of(views, labels, bias)
    values = []
    for a in range(len(z)):
        others = [k for k in range(len(z)) if k != a]
        chosen = [p for p in others if y[p] == y[a] and b[p] != b[a]]
        total = sum((cos(z[a], z[k]) / temperature).exp() for k in others)
        shares = [-((cos(z[a], z[p]) / temperature).exp() / total).log() for p in chosen]
        values.append(mean(shares))
    return mean(values)


def soft_con(views: Tensor, labels: Tensor, features: Tensor, temperature: float) -> Tensor:
    """Hong and Yang 2021: positives of the class weigh 1 - cos of the bias features; 0 where all weigh 0."""
    z, y, image = anchors_of(views, labels, torch.arange(views.shape[1]))
    values = []
    for a in range(len(z)):
        others = [k for k in range(len(z)) if k != a]
        total = sum((cos(z[a], z[k]) / temperature).exp() for k in others)
        pairs = [
            (
                1 - cos(features[image[a]], features[image[p]]),
                -((cos(z[a], z[p]) / temperature).exp() / total).log(),
            )
            for p in others
            if y[p] == y[a] and image[p] != image[a]
        ]
        weight = sum(w for w, _ in pairs)
        values.append(sum(w * term for w, term in pairs) / weight if pairs else mean([]))
    return mean(values)
