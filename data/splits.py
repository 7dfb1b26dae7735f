"""Cut a labelled set in two, with the same share of every label on both sides."""

import torch
from torch import Tensor


def stratified_split(labels: Tensor, fraction: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Cut ``round(fraction * N)`` rows out of N, each label in proportion to its count.

    Shares are rounded by largest remainder, so that the part has exactly the requested size.

    Args:
        labels: int64 ``(N,)``.
        fraction: the share to cut out, above 0 and below 1.
        generator: a CPU generator that draws the rows of each label.

    Returns:
        The kept rows and the cut rows, both int64 and ascending.

    Raises:
        ValueError: the fraction is not between 0 and 1, or one side would be empty.
    """
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"the fraction must be above 0 and below 1, got {fraction}")
    size = round(fraction * len(labels))
    if size in (0, len(labels)):
        raise ValueError(f"a fraction of {fraction} of {len(labels)} images leaves one side empty")
    cut = []
    order = torch.randperm(len(labels), generator=generator)
    shuffled = labels.cpu()[order]
    for label, share in _shares(shuffled, fraction, size).items():
        cut.append(order[shuffled == label][:share])
    is_cut = torch.zeros(len(labels), dtype=torch.bool)
    is_cut[torch.cat(cut)] = True
    return (~is_cut).nonzero().flatten(), is_cut.nonzero().flatten()


def _shares(labels: Tensor, fraction: float, size: int) -> dict[int, int]:
    """Return the number of rows to cut from each label, ``size`` in all, by largest remainder."""
    names, counts = torch.unique(labels, return_counts=True)
    exact = fraction * counts.double()
    shares = exact.floor().long()
    short = size - int(shares.sum())
    remainder = exact - shares
    shares[remainder.argsort(descending=True, stable=True)[:short]] += 1
    return dict(zip(names.tolist(), shares.tolist(), strict=True))
