"""The similarity of tasks, from the objects that are hard for both, and groups of similar tasks.

Lu et al. 2017, "Fully-adaptive feature sharing in multi-task networks", section 3.3, as DeepMTMV's released
code uses it (Zheng et al. 2019, model.py). Shapes: n objects, T tasks.
"""

import torch
from torch import Tensor, nn

from contrasweep.data import kmeans_clusters

DECAY = 0.99
"""How much of their weight earlier batches keep in a step (released code)."""


class TaskAffinity(nn.Module):
    """The share of objects that are hard for two tasks or easy for both, over all batches so far.

    An object is hard for a task if its error is at least the task's mean error before the batch. The older a
    batch, the less it weighs. All state is in buffers.
    """

    weight: Tensor
    mean_error: Tensor
    both_hard: Tensor
    both_easy: Tensor

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(()))
        self.register_buffer("mean_error", torch.zeros(tasks))
        self.register_buffer("both_hard", torch.zeros(tasks, tasks))
        self.register_buffer("both_easy", torch.zeros(tasks, tasks))

    @torch.no_grad()
    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Take in a batch: `scores` and `labels` (0 or 1), both (n, T)."""
        errors = torch.where(labels > 0, 1 - scores, scores)
        hard = (errors >= self.mean_error).to(errors.dtype)
        easy = 1 - hard
        kept = DECAY * self.weight
        for average, now in (
            (self.mean_error, errors.mean(0)),
            (self.both_hard, hard.T @ hard / len(hard)),
            (self.both_easy, easy.T @ easy / len(easy)),
        ):
            average.mul_(kept).add_(now).div_(kept + 1)
        self.weight.copy_(kept + 1)

    def matrix(self) -> Tensor:
        """Return the affinities (T, T), in 0..1."""
        return self.both_hard + self.both_easy


def branch_affinity(tasks: Tensor, branches: Tensor) -> Tensor:
    """Return the affinities (K, K) of branches, given those of `tasks` (T, T) and each task's branch (T,).

    It is the mean over the tasks of one branch of their lowest affinity with a task of the other, made
    symmetric.
    """
    members = [(branches == one).nonzero().flatten() for one in range(int(branches.max()) + 1)]
    rows = [torch.stack([tasks[one][:, other].amin(1).mean() for other in members]) for one in members]
    found = torch.stack(rows)
    return (found + found.T) / 2


def partition_cost(affinity: Tensor, groups: Tensor, layer: int, *, separation: float) -> float:
    """Return what a grouping (K,) of branches costs: new columns at a layer, and unlike branches in a group.

    `(k - 1) / 2^{layer + 1} + separation mean over groups (1 - mean_i min_j A_ij)`.
    """
    count = int(groups.max()) + 1
    apart = []
    for one in range(count):
        members = (groups == one).nonzero().flatten()
        apart.append(1 - affinity[members][:, members].amin(1).mean())
    return float((count - 1) * 0.5 / 2.0**layer + separation * torch.stack(apart).mean())


def best_partition(affinity: Tensor, layer: int, seed: int, *, separation: float) -> Tensor:
    """Return the cheapest grouping (K,) of K branches into 1 to K - 1 groups, numbered from 0.

    The groups of each number are those of k-means in the eigenvectors of the normalised affinities.
    """
    branches = len(affinity)
    candidates = [torch.zeros(branches, dtype=torch.int64)]
    spectrum = _spectrum(affinity)
    for count in range(2, branches):
        groups = kmeans_clusters(spectrum[:, -count:], count, seed) if _distinct(spectrum, count) else None
        if groups is not None:
            candidates.append(torch.unique(groups, return_inverse=True)[1])
    return min(candidates, key=lambda groups: partition_cost(affinity, groups, layer, separation=separation))


def _spectrum(affinity: Tensor) -> Tensor:
    """Return the eigenvectors (K, K) of `D^-1/2 A D^-1/2`, by rising eigenvalue, in rows for branches."""
    scale = affinity.sum(1).clamp_min(torch.finfo(affinity.dtype).tiny).rsqrt()
    vectors: Tensor = torch.linalg.eigh(scale[:, None] * affinity * scale)[1]
    return vectors


def _distinct(spectrum: Tensor, count: int) -> bool:
    return len(torch.unique(spectrum[:, -count:], dim=0)) >= count
