"""Plain transcriptions of the five papers' losses as released, which `losses.py` measures.

They keep only the arithmetic and the cost of the published code: its broadcasts, loops, masks and solves.
Shapes: `views` (V, B, D), labels and biases (B,), label matrices (n, c).
"""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def _cosines_by_broadcast(a: Tensor, b: Tensor) -> Tensor:
    return F.cosine_similarity(a[:, None, :], b[None, :, :], dim=2)


def _kernel_weights(z: Tensor, sigma2: float, lam: float) -> Tensor:
    squared_norms = (z**2).sum(1)
    squared = squared_norms[:, None] + squared_norms[None, :] - 2 * torch.matmul(z, z.T)
    K = torch.exp(-squared / sigma2)
    W = torch.matmul(torch.linalg.inv(K + lam * torch.eye(len(z), dtype=z.dtype, device=z.device)), K)
    W.fill_diagonal_(0)
    W[W < 1e-6] = 0
    return W


def _cclk_masses(views: Tensor, z: Tensor, sigma2: float, lam: float, temperature: float) -> list[Tensor]:
    """Positives, M and sums over the others for each direction; diagonals come from whole products K W."""
    x, y = views
    cross = torch.exp(_cosines_by_broadcast(x, y) / temperature)
    found = []
    for a, kernel in ((x, cross), (y, cross.T)):
        W = _kernel_weights(z, sigma2, lam)
        own = torch.exp(_cosines_by_broadcast(a, a) / temperature)
        own = own * (1 - torch.eye(len(a), dtype=a.dtype, device=a.device))
        mass = torch.matmul(kernel, W).diagonal() + torch.matmul(own, W).diagonal()
        found += [kernel.diagonal(), mass, kernel.sum(1) + own.sum(1)]
    return found


def fair_cclk(views: Tensor, z: Tensor, sigma2: float, lam: float, temperature: float) -> Tensor:
    """CCL-K Eq. 8 as released, rbf kernel: cosines through B x B x D broadcasts, no log space."""
    masses = _cclk_masses(views, z, sigma2, lam, temperature)
    total = views.new_zeros(())
    for positive, mass, _ in (masses[:3], masses[3:]):
        denominator = torch.clamp(positive + (len(positive) - 1) * mass, 1e-7, 1e20)
        total = total - (torch.log(positive) - torch.log(denominator)).mean()
    return total / 2


def weakly_sup_cclk(views: Tensor, z: Tensor, sigma2: float, lam: float, temperature: float) -> Tensor:
    """CCL-K Eq. 7 as released, rbf kernel."""
    masses = _cclk_masses(views, z, sigma2, lam, temperature)
    total = views.new_zeros(())
    for _, mass, others in (masses[:3], masses[3:]):
        mass = torch.clamp(mass, 1e-7, 1e20)
        total = total - (torch.log(mass) - torch.log(torch.clamp(mass + others, 1e-7, 1e20))).mean()
    return total / 2


def _class_logits(views: Tensor, labels: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Scores minus their row maximum, a mask of the positives, and a mask of all anchors but the own one."""
    z = F.normalize(views, dim=-1).flatten(0, 1)
    logits = torch.div(torch.matmul(z, z.T), temperature)
    largest, _ = torch.max(logits, dim=1, keepdim=True)
    same = torch.eq(labels[:, None], labels[None, :]).to(z.dtype).repeat(len(views), len(views))
    not_self = torch.ones_like(same).scatter(1, torch.arange(len(z), device=z.device)[:, None], 0)
    return logits - largest.detach(), same * not_self, not_self


def eps_sup_info_nce(views: Tensor, labels: Tensor, temperature: float, epsilon: float) -> Tensor:
    """eps-SupInfoNCE as released, with 1e-6 inside its log."""
    logits, positive, not_self = _class_logits(views, labels, temperature)
    exponentials = torch.exp(logits) * not_self
    away = (exponentials * (~positive.bool()) * not_self).sum(1, keepdim=True)
    kept = math.exp(-epsilon) * exponentials * positive + away
    log_probability = logits - torch.log(kept + 1e-6)
    return -((positive * log_probability).sum(1) / positive.sum(1).clamp_min(1)).mean()


def sup_con(views: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """SupCon's L_out as Khosla et al. released it."""
    logits, positive, not_self = _class_logits(views, labels, temperature)
    exponentials = torch.exp(logits) * not_self
    log_probability = logits - torch.log(exponentials.sum(1, keepdim=True))
    return -((positive * log_probability).sum(1) / positive.sum(1)).mean()


def fair_kl(views: Tensor, labels: Tensor, bias: Tensor) -> Tensor:
    """FairKL as released: masks over the first view's cosines, standard deviations of whole matrices."""
    z = F.normalize(views[0], dim=-1)
    s = torch.matmul(z, z.T)
    same_class = torch.eq(labels[:, None], labels[None, :]).to(z.dtype)
    same_bias = torch.eq(bias[:, None], bias[None, :]).to(z.dtype)
    masks = [c * b for c in (same_class, 1 - same_class) for b in (same_bias, 1 - same_bias)]
    inside = [s * mask for mask in masks]
    pa, pc, na, nc = (x.sum() / mask.sum().clamp_min(1) for x, mask in zip(inside, masks, strict=True))
    sa, sc, ta, tc = (x.std() for x in inside)
    return (pc - pa) ** 2 + (na - nc) ** 2 + (sa - sc) ** 2 + (ta - tc) ** 2 - pc + na


def fair_kl_gaussian(views: Tensor, labels: Tensor, bias: Tensor) -> Tensor:
    """FairKL's Eq. 10 with boolean masks and one selection for each population, all anchors."""
    z = F.normalize(views, dim=-1).flatten(0, 1)
    d = 2 - 2 * torch.matmul(z, z.T)
    c, b = labels.repeat(len(views)), bias.repeat(len(views))
    same_class, same_bias = torch.eq(c[:, None], c), torch.eq(b[:, None], b)
    not_self = ~torch.eye(len(z), dtype=torch.bool, device=z.device)
    total = d.new_zeros(())
    for mask in (same_class & not_self, ~same_class):
        aligned, conflicting = d[mask & same_bias], d[mask & ~same_bias]
        a, v = aligned.var(unbiased=False), conflicting.var(unbiased=False)
        gap = (aligned.mean() - conflicting.mean()) ** 2
        total = total + 0.5 * ((a + gap) / v - torch.log(a / v) - 1)
    return total


def _exponential_cosines(a: Tensor, b: Tensor) -> Tensor:
    norms = a.norm(p=2, dim=1, keepdim=True) * b.norm(p=2, dim=1, keepdim=True).T
    return torch.exp(torch.matmul(a, b.T) / norms.clamp_min(1e-15))


def herocon_supervised(features: Tensor, labels: Tensor) -> Tensor:
    """HeroCon's L_s with its loop over the labels; each label starts from the features.

    It leaves out pairs i = j and averages over labels, as in Eq. 7, so that the values can be compared.
    """
    values = []
    Y = labels.to(features.dtype)
    for a in range(Y.shape[1]):
        positive, negative = torch.where(Y[:, a] == 1)[0], torch.where(Y[:, a] != 1)[0]
        if len(positive) < 2 or len(negative) == 0:
            continue
        apart = torch.matmul(Y, (1 - Y).T) + torch.matmul(1 - Y, Y.T)
        sigma, gamma = 1 - apart[positive][:, positive] / Y.shape[1], apart[positive][:, negative]
        attraction = _exponential_cosines(features[positive], features[positive]) * sigma
        repulsion = _exponential_cosines(features[positive], features[negative]) * gamma
        terms = torch.log((repulsion.sum(1, keepdim=True) + attraction) / attraction)
        values.append((terms.sum() - terms.diagonal().sum()) / (len(terms) * (len(terms) - 1)))
    return torch.stack(values).mean()


def herocon_unsupervised(views: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
    """HeroCon's L_u, both views' negatives, term by term."""
    B = views.shape[1]
    x = views.flatten(0, 1)
    z, mapped = F.normalize(x, dim=1), F.normalize(torch.sigmoid(F.linear(x, weight, offset)), dim=1)
    f = torch.exp(torch.matmul(z, z.T))
    g = 0.5 * (torch.exp(1 - torch.matmul(z, mapped.T)) + torch.exp(1 - torch.matmul(mapped, z.T)))
    image = torch.arange(B, device=x.device).repeat(2)
    repulsion = (g * f * (image[:, None] != image)).sum(1)
    attraction = torch.cat([f.diagonal(B), f.diagonal(-B)])
    return -torch.log(attraction / (attraction + repulsion)).mean()


def cacr(views: Tensor, t_pos: float, t_neg: float) -> Tensor:
    """CACR's Algorithm 3 without queue: positives from the other views, negatives from the query's own."""
    z = F.normalize(views, dim=-1)
    V, B, _ = z.shape
    attraction, repulsion = z.new_zeros(()), z.new_zeros(())
    for v in range(V):
        q, others = z[v], z[[w for w in range(V) if w != v]]
        cost = (q - others).norm(p=2, dim=-1).pow(2).transpose(1, 0)
        attraction = attraction + (cost * torch.softmax(cost * t_pos, 1)).sum(1).mean()
        squared = torch.norm(q[:, None] - q, dim=-1).pow(2)
        squared = squared.masked_select(~torch.eye(B, dtype=torch.bool, device=z.device)).view(B, B - 1)
        repulsion = repulsion - (squared * torch.softmax(-squared * t_neg, 1)).sum(1).mean()
    return (attraction + repulsion) / V


def nt_xent(views: Tensor, temperature: float) -> Tensor:
    """SimCLR's NT-Xent as cross-entropy over scores with the diagonal masked."""
    B = views.shape[1]
    z = F.normalize(views, dim=-1).flatten(0, 1)
    scores = torch.matmul(z, z.T) / temperature
    scores = scores.masked_fill(torch.eye(2 * B, dtype=torch.bool, device=z.device), float("-inf"))
    partner = torch.arange(2 * B, device=z.device).roll(B)
    return F.cross_entropy(scores, partner)
