"""The losses as their papers write them: double loops over scalars, equation by equation, in float64.

This file shares nothing with the package. Each function returns the scalar loss, differentiable by autograd;
it leaves out of the mean any anchor for which the formula is undefined. Shapes are those of the package.
"""

from itertools import combinations, permutations

import torch
from torch import Tensor


def unit(x: Tensor) -> Tensor:
    return x / x.norm()


def cos(a: Tensor, b: Tensor) -> Tensor:
    return unit(a) @ unit(b)


def squared_distance(a: Tensor, b: Tensor) -> Tensor:
    return (unit(a) - unit(b)).square().sum()


def mean(values: list[Tensor]) -> Tensor:
    return torch.stack(values).mean() if values else torch.zeros((), dtype=torch.float64)


def anchors_of(views: Tensor, *per_image: Tensor) -> tuple[list[Tensor], ...]:
    """Return all views of all images, with the labels of each."""
    flat = [image for view in views for image in view]
    return flat, *[list(values) * len(views) for values in per_image]


def info_nce(views: Tensor, temperature: float, negatives: str) -> Tensor:
    """van den Oord et al. 2018, Eq. 4; NT-Xent, Chen et al. 2020, Eq. 1."""
    V, B, _ = views.shape
    values = []
    for a, b in permutations(range(V), 2):
        for i in range(B):
            positive = (cos(views[a, i], views[b, i]) / temperature).exp()
            total = positive
            for j in range(B):
                if j != i:
                    total = total + (cos(views[a, i], views[b, j]) / temperature).exp()
                    if negatives == "all":
                        total = total + (cos(views[a, i], views[a, j]) / temperature).exp()
            values.append(-(positive / total).log())
    return mean(values)


def queue_info_nce(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """He et al. 2020, Eq. 1; `keys` (B, K, D), each alone against the queue."""
    values = []
    for q, own in zip(queries, keys, strict=True):
        for k in own:
            positive = (cos(q, k) / temperature).exp()
            total = positive + sum((cos(q, stored) / temperature).exp() for stored in queue)
            values.append(-(positive / total).log())
    return mean(values)


def queue_align_uniform(
    queries: Tensor, keys: Tensor, queue: Tensor, t: float, align: float, uniform: float, intra_batch: bool
) -> Tensor:
    """Wang and Isola 2020, Eq. 17 and, with `intra_batch`, Eq. 18."""
    alignment = mean([squared_distance(q, k[0]) for q, k in zip(queries, keys, strict=True)])
    pairs = [(q, stored) for q in queries for stored in queue]
    if intra_batch:
        pairs += combinations(queries, 2)
    potentials = [(-t * squared_distance(a, b)).exp() for a, b in pairs]
    return align * alignment + uniform * mean(potentials).log()


def queue_hard_neg(
    queries: Tensor, keys: Tensor, queue: Tensor, temperature: float, beta: float, tau_plus: float
) -> Tensor:
    """Robinson et al. 2021, Eq. 4, with the stored keys as negatives."""
    values = []
    for q, k in zip(queries, keys, strict=True):
        positive = (cos(q, k[0]) / temperature).exp()
        negatives = [(cos(q, stored) / temperature).exp() for stored in queue]
        Ng = hard_negatives(positive, negatives, temperature, beta, tau_plus)
        values.append(-(positive / (positive + Ng)).log())
    return mean(values)


def sup_con(views: Tensor, labels: Tensor, temperature: float, form: str = "out") -> Tensor:
    """Khosla et al. 2020, Eq. 2 ("out") and, without its constant, Eq. 3 ("in")."""
    z, y = anchors_of(views, labels)
    values = []
    for a in range(len(z)):
        others = [k for k in range(len(z)) if k != a]
        chosen = [p for p in others if y[p] == y[a]]
        if not chosen:
            continue
        total = sum((cos(z[a], z[k]) / temperature).exp() for k in others)
        shares = [(cos(z[a], z[p]) / temperature).exp() / total for p in chosen]
        values.append(-mean([share.log() for share in shares]) if form == "out" else -sum(shares).log())
    return mean(values)


def margin_sets(views: Tensor, labels: Tensor, temperature: float) -> list[tuple[list[Tensor], list[Tensor]]]:
    """Return the scores s+ and s- of each anchor that has a positive."""
    z, y = anchors_of(views, labels)
    sets = []
    for a in range(len(z)):
        scores = {k: cos(z[a], z[k]) / temperature for k in range(len(z)) if k != a}
        positive = [s for k, s in scores.items() if y[k] == y[a]]
        negative = [s for k, s in scores.items() if y[k] != y[a]]
        if positive:
            sets.append((positive, negative))
    return sets


def eps_sup_info_nce(
    views: Tensor, labels: Tensor, temperature: float, epsilon: float, variant: str = "c", added: float = 0.0
) -> Tensor:
    """Barbano et al. 2023, Eq. 4 ("c") and the other forms of Eq. 17, with a mean for each sum over terms.

    `added` is the 1e-6 that the released code adds inside the log, after subtracting the largest score.
    """
    eps = torch.tensor(epsilon, dtype=torch.float64)
    values = []
    for positive, negative in margin_sets(views, labels, temperature):
        if variant == "c":
            offset = added * torch.tensor(1 / temperature, dtype=torch.float64).exp()
            away = sum(s.exp() for s in negative) + offset
            terms = [-(s.exp() / ((s - eps).exp() + away)).log() for s in positive]
        elif not negative:
            terms = [-eps]
        elif variant == "a":
            product = sum(positive).exp()
            rest = sum((sum(positive) - s).exp() for s in positive)
            terms = [-(product / ((sum(positive) - eps).exp() + sum(s.exp() for s in negative) * rest)).log()]
        elif variant == "b":
            product = sum(positive).exp()
            rest = sum((sum(positive) - s).exp() for s in positive)
            terms = [-(product / ((sum(positive) - eps).exp() + s.exp() * rest)).log() for s in negative]
        else:
            terms = [-(s.exp() / ((s - eps).exp() + t.exp())).log() for s in positive for t in negative]
        values.append(mean(terms))
    return mean(values)


def eps_sup_con(
    views: Tensor, labels: Tensor, temperature: float, epsilon: float, added: float = 0.0
) -> Tensor:
    """Barbano et al. 2023, Eq. 5 without its additive eps; `added` as above."""
    values = []
    for positive, negative in margin_sets(views, labels, temperature):
        offset = added * torch.tensor(1 / temperature, dtype=torch.float64).exp()
        total = sum((s - epsilon).exp() for s in positive) + sum(s.exp() for s in negative) + offset
        values.append(mean([-(s.exp() / total).log() for s in positive]))
    return mean(values)


def hard_negatives(
    positive: Tensor, negatives: list[Tensor], temperature: float, beta: float, tau_plus: float
) -> Tensor:
    """Return Ng, Robinson et al. 2021, Eq. 4, with the floor of its code; the arguments are exponentials."""
    n = len(negatives)
    R = sum(x**beta * x for x in negatives) / (sum(x**beta for x in negatives) / n)
    floor = n * torch.tensor(-1 / temperature, dtype=torch.float64).exp()
    return torch.maximum((R - tau_plus * n * positive) / (1 - tau_plus), floor)


def hard_neg_info_nce(views: Tensor, temperature: float, beta: float, tau_plus: float) -> Tensor:
    """Robinson et al. 2021, Eq. 4 with the importance weights of its section 3 and the floor of its code."""
    B = views.shape[1]
    values = []
    for a, b in permutations(range(2), 2):
        for i in range(B):
            positive = (cos(views[a, i], views[b, i]) / temperature).exp()
            e = [
                (cos(views[a, i], views[v, j]) / temperature).exp()
                for v in range(2)
                for j in range(B)
                if j != i
            ]
            if not e:
                values.append(0 * positive)
                continue
            Ng = hard_negatives(positive, e, temperature, beta, tau_plus)
            values.append(-(positive / (positive + Ng)).log())
    return mean(values)


def align_uniform(views: Tensor, t: float, align_weight: float, uniform_weight: float) -> Tensor:
    """Wang and Isola 2020, Eq. 4 and 5, over pairs of views and over views."""
    V, B, _ = views.shape
    align = mean(
        [squared_distance(views[a, i], views[b, i]) for a, b in combinations(range(V), 2) for i in range(B)]
    )
    uniform = [
        mean([(-t * squared_distance(view[i], view[j])).exp() for i, j in permutations(range(B), 2)]).log()
        for view in views
        if B > 1
    ]
    return align_weight * align + uniform_weight * mean(uniform)


def kernel_value(a: Tensor, b: Tensor, kernel: str, sigma2: float) -> Tensor:
    if kernel == "rbf":
        return (-(a - b).square().sum() / sigma2).exp()
    if kernel == "laplacian":
        return (-(a - b).square().sum().sqrt() / sigma2).exp()
    if kernel == "linear":
        return a @ b / sigma2
    if kernel == "polynomial":
        return (a @ b) ** 3 / sigma2
    return cos(a, b)


def conditional_weights(z: Tensor, kernel: str, sigma2: float, lam: float) -> Tensor:
    """`W = (K + lam I)^-1 K` by a general solve."""
    B = len(z)
    K = torch.tensor(
        [[kernel_value(z[i], z[j], kernel, sigma2) for j in range(B)] for i in range(B)], dtype=z.dtype
    )
    return torch.linalg.solve(K + lam * torch.eye(B, dtype=z.dtype), K)


def cclk(views: Tensor, W: Tensor, temperature: float, weights: str, kind: str) -> Tensor:
    """Tsai et al. 2022, Eq. 7 ("weakly-sup") and Eq. 8, 9 ("fair"); W (2, B, B), one per direction."""
    B = views.shape[1]
    values = []
    for a, b in permutations(range(2), 2):

        def score(i: int, v: int, j: int, a: int = a) -> Tensor:
            return (cos(views[a, i], views[v, j]) / temperature).exp()

        for i in range(B):
            if weights == "paper":
                M = sum(score(i, b, j) * W[a, j, i] for j in range(B))
                others = sum(score(i, b, j) for j in range(B) if j != i)
                if M <= 0:
                    continue
            else:
                kept = [(j, W[a, j, i]) for j in range(B) if j != i and W[a, j, i] >= 1e-6]
                M = sum((score(i, b, j) + score(i, a, j)) * w for j, w in kept) + torch.zeros_like(W[0, 0, 0])
                others = score(i, b, i) + sum(score(i, b, j) + score(i, a, j) for j in range(B) if j != i)
                M = M.clamp_min(1e-7) if kind == "weakly-sup" else M
            if kind == "weakly-sup":
                values.append(-(M / (M + others)).log())
            else:
                values.append(-(score(i, b, i) / (score(i, b, i) + (B - 1) * M)).log())
    return mean(values)


def herocon_weight(a: Tensor, b: Tensor, Ha: Tensor, Hb: Tensor) -> Tensor:
    """g of Eq. 4."""
    return 0.5 * ((1 - cos(a, Hb)).exp() + (1 - cos(b, Ha)).exp())


def herocon_unsupervised(views: Tensor, H: Tensor, negatives: str) -> Tensor:
    """Zheng et al. 2022, Eq. 5, both views as anchors."""
    B = views.shape[1]
    values = []
    for a, b in permutations(range(2), 2):
        for i in range(B):
            positive = cos(views[a, i], views[b, i]).exp()
            total = positive
            for k in range(B):
                for v in (a, b) if negatives == "both" else (b,):
                    if k != i:
                        g = herocon_weight(views[a, i], views[v, k], H[a, i], H[v, k])
                        total = total + g * cos(views[a, i], views[v, k]).exp()
            values.append(-(positive / total).log())
    return mean(values)


def herocon_supervised(features: Tensor, Y: Tensor) -> Tensor:
    """Zheng et al. 2022, Eq. 7, hamming distances."""
    n, c = Y.shape

    def apart(i: int, j: int) -> int:
        return int((Y[i] != Y[j]).sum())

    values = []
    for a in range(c):
        positive = [i for i in range(n) if Y[i, a] == 1]
        negative = [i for i in range(n) if Y[i, a] == 0]
        if len(positive) < 2 or not negative:
            continue
        terms = []
        for i, j in permutations(positive, 2):
            near = (1 - apart(i, j) / c) * cos(features[i], features[j]).exp()
            far = sum(apart(i, k) * cos(features[i], features[k]).exp() for k in negative)
            terms.append(-(near / (near + far)).log())
        values.append(mean(terms))
    return mean(values)


def herocon_multiclass(features: Tensor, classes: Tensor) -> Tensor:
    """Zheng et al. 2022, Eq. 6: mean over each class's pairs, then over classes with pairs and negatives."""
    values = []
    for label in classes.unique():
        positive = (classes == label).nonzero()[:, 0].tolist()
        negative = (classes != label).nonzero()[:, 0].tolist()
        if len(positive) < 2 or not negative:
            continue
        terms = []
        for i, j in permutations(positive, 2):
            near = cos(features[i], features[j]).exp()
            terms.append(-(near / (near + sum(cos(features[i], features[k]).exp() for k in negative))).log())
        values.append(mean(terms))
    return mean(values)


def cacr(
    views: Tensor,
    t_pos: float,
    t_neg: float,
    negatives: str = "cross",
    attraction: bool = True,
    repulsion: bool = True,
    cost: str = "euclidean",
    precision: float = 2.0,
    queue: Tensor | None = None,
    keys: Tensor | None = None,
    intra_batch: bool = True,
) -> Tensor:
    """Zheng et al. 2021, Eq. 5-8, Eq. 14 and Algorithm 3."""
    V, B, _ = views.shape
    targets = views if keys is None else keys
    attracted = []
    for a in range(V):
        for i in range(B):
            d = torch.stack([squared_distance(views[a, i], targets[b, i]) for b in range(V) if b != a])
            w = (t_pos * d).softmax(0) if attraction else torch.full_like(d, 1 / len(d))
            attracted.append((w * d).sum())
    repelled = []
    pairs = list(combinations(range(V), 2)) if negatives == "cross" else [(a, a) for a in range(V)]
    for a, b in pairs:
        costs = []
        for i in range(B):
            others = [views[b, j] for j in range(B) if j != i] if intra_batch else []
            others += [] if queue is None else list(queue)
            if others:
                d = torch.stack([squared_distance(views[a, i], other) for other in others])
                w = (-t_neg * d).softmax(0) if repulsion else torch.full_like(d, 1 / len(d))
                costs.append((w * d).sum() if cost == "euclidean" else (w * (-precision * d).exp()).sum())
        if costs:
            repelled.append(-mean(costs) if cost == "euclidean" else mean(costs).log())
    return mean(attracted) + mean(repelled)


def repulsion_entropy(views: Tensor, t_neg: float, negatives: str) -> Tensor:
    """Zheng et al. 2021, H(X-|X) of Fig. 3."""
    V, B, _ = views.shape
    pairs = list(combinations(range(V), 2)) if negatives == "cross" else [(a, a) for a in range(V)]
    entropies = []
    for a, b in pairs:
        for i in range(B):
            d = torch.stack([squared_distance(views[a, i], views[b, j]) for j in range(B) if j != i])
            w = (-t_neg * d).softmax(0)
            entropies.append(-(w * w.log()).sum())
    return mean(entropies)


def max_margin(views: Tensor, sigma: float, bound: float, reg: float) -> Tensor:
    """Shah et al. 2022, the inverse form: a support vector machine for each image of the first view."""
    x, y = views / views.norm(dim=2, keepdim=True)

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return (-(a - b).square().sum() / sigma).exp()

    values = []
    for t in range(len(x)):
        others = [j for j in range(len(x)) if j != t]
        system = [
            [
                1 + kernel(x[i], x[j]) - kernel(x[t], x[i]) - kernel(x[t], x[j]) + reg * (i == j)
                for j in others
            ]
            for i in others
        ]
        matrix = torch.stack([torch.stack(row) for row in system]).detach()
        multipliers = torch.linalg.solve(matrix, torch.full((len(others),), 2.0, dtype=views.dtype))
        chosen = zip(multipliers.clamp(0, bound), others, strict=True)
        values.append(sum(m * (kernel(x[j], y[t]) - kernel(x[t], y[t])) for m, j in chosen))
    return mean(values)
