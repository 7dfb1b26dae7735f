"""Nearest neighbours by cosine, with weighted votes: a probe without training.

N training rows, D features, C classes, M queries, k neighbours, t temperature.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from contrasweep.models.probes.linear import constant, require_labels, require_samples

# The largest number of similarities in memory at once: 64 MiB in float32.
_BLOCK_CELLS = 2**24


@dataclass(frozen=True)
class KNNProbe:
    """Training rows that vote: each of the k nearest rows votes for its class with weight `exp(cos / t)`.

    Attributes:
        features: `(N, D)`, rows of length 1.
        labels: int64 `(N,)`.
        classes: C.
        neighbours: k; if there are fewer rows, all vote.
        temperature: t.
    """

    features: Tensor
    labels: Tensor
    classes: int
    neighbours: int
    temperature: float

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise ValueError(f"neighbours must be at least 1, got {self.neighbours}")
        if not self.temperature > 0:
            raise ValueError(f"temperature must be > 0, got {self.temperature!r}")

    def __call__(self, queries: Tensor) -> Tensor:
        """Return each class's share of the votes for `queries` `(M, D)`: `(M, C)`, each row sums to 1."""
        queries = _unit_rows(queries)
        rows = max(1, _BLOCK_CELLS // len(self.features))
        return torch.cat([self._votes(*self._nearest(block)) for block in torch.split(queries, rows)])

    def _nearest(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cosines of the k nearest rows, largest first, and their labels, both `(M, k)`."""
        nearest = (queries @ self.features.T).topk(min(self.neighbours, len(self.features)), dim=1)
        return nearest.values, self.labels[nearest.indices]

    def _votes(self, cosines: Tensor, labels: Tensor) -> Tensor:
        # The softmax divides the weights by their sum and does not overflow at a low temperature.
        weights = (cosines / self.temperature).softmax(dim=1)
        return weights.new_zeros(len(weights), self.classes).scatter_add_(1, labels, weights)


def fit_knn(
    features: Tensor, labels: Tensor, classes: int, *, neighbours: int = 200, temperature: float = 0.07
) -> KNNProbe:
    """Return the probe with the given k >= 1 and t > 0; if k exceeds N, all rows vote.

    `features` are `(N, D)`, `labels` `(N,)` integers in `[0, classes)`.

    Source: Instance Discrimination (Wu et al. 2018), Section 3.4: k = 200, t = 0.07.

    Raises:
        ValueError: no sample, shapes that do not match, labels or a setting out of range, or features that
            are not finite.
    """
    require_samples(features, labels.shape[0])
    require_labels(labels, classes)
    return KNNProbe(_unit_rows(features), labels.long(), classes, neighbours, temperature)


def choose_knn(
    features: Tensor,
    labels: Tensor,
    classes: int,
    generator: torch.Generator,
    *,
    neighbours: Sequence[int] = (5, 10, 20, 50, 100, 200),
    temperatures: Sequence[float] = (0.02, 0.07, 0.2),
    validation_share: float = 0.2,
) -> KNNProbe:
    """Return the probe on all rows, with the k and t that predict a held-out part of these rows best.

    Only training rows are used: the generator draws a share of them, in (0, 1), which is held out and
    predicted from the rest; at least one row is held out, and one kept. Among equally good settings the first
    one wins; the order is by k in `neighbours` as given, and for each k by t in `temperatures` as given.

    Raises:
        ValueError: as for `fit_knn`; fewer than two rows; no candidates.
    """
    if not neighbours or not temperatures:
        raise ValueError(f"nothing to choose from: neighbours {neighbours}, temperatures {temperatures}")
    if not 0 < validation_share < 1:
        raise ValueError(f"validation_share must lie in (0, 1), got {validation_share!r}")
    base = fit_knn(features, labels, classes)
    candidates = [replace(base, neighbours=k, temperature=t) for k in neighbours for t in temperatures]
    rows = len(features)
    if rows < 2:
        raise ValueError("choosing k and t needs at least two rows: one to hold out, one to vote")
    order = torch.randperm(rows, generator=generator, device=generator.device).to(features.device)
    held = min(max(1, round(validation_share * rows)), rows - 1)
    correct = _correct_by_candidate(candidates, order[held:], order[:held])
    return candidates[int(correct.argmax())]


def _correct_by_candidate(candidates: list[KNNProbe], voters: Tensor, held_out: Tensor) -> Tensor:
    """Count for each candidate the `held_out` rows that it predicts from the `voters`: `(candidates,)`."""
    most = max(probe.neighbours for probe in candidates)
    every = candidates[0]
    voting = replace(every, features=every.features[voters], labels=every.labels[voters], neighbours=most)
    correct = torch.zeros(len(candidates), dtype=torch.int64, device=held_out.device)
    for rows in torch.split(held_out, max(1, _BLOCK_CELLS // len(voters))):
        cosines, labels = voting._nearest(every.features[rows])
        for index, probe in enumerate(candidates):
            votes = probe._votes(cosines[:, : probe.neighbours], labels[:, : probe.neighbours])
            correct[index] += (votes.argmax(dim=1) == every.labels[rows]).sum()
    return correct


def _unit_rows(features: Tensor) -> Tensor:
    return F.normalize(constant(features), dim=1)
