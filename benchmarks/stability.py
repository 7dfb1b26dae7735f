"""Judge the hypotheses of docs/studies/stability.md on the pools of its first group.

    python -m benchmarks.stability [POOLS.parquet]

Each hypothesis is looked at in the pool and in 1,000 pools drawn from it with replacement. It is confirmed if
it holds in the pool and in 95 % of the drawn ones, contradicted if it holds in neither (5 % at most), else
undecided.
Hypothesis 8 is about final runs, which the page itself tells.
"""

import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from contrasweep.tuning.stability.analysis import aligned, drawn_pools
from contrasweep.tuning.stability.chances import Outcome, chosen_weights, paired_outcome, ranks_of
from contrasweep.tuning.stability.pool_file import read_pool_file
from contrasweep.tuning.stability.tried import Tried
from contrasweep.tuning.stability.variance import variance_parts
from contrasweep.tuning.statistics import LEVEL, Floats

POOLS = Path(__file__).parents[1] / "docs" / "studies" / "stability-colour-digits.parquet"
BUDGETS = (1, 2, 4, 8, 16, 24, 48)


class Group:
    """The paired pools of a group, and who wins by pool and budget; the first pool is the given one."""

    def __init__(self, studies: Sequence[Tried]) -> None:
        studies, common = aligned(studies)
        assert common, "the pools of this study are paired"
        self.methods = [one.method for one in studies]
        self.studies = dict(zip(self.methods, studies, strict=True))
        self.budgets = np.array(BUDGETS)
        self.half = len(studies[0]) // 2
        drawn = drawn_pools(len(studies[0]), 0, 0)
        ranks = {one.method: ranks_of(one.select) for one in studies}
        self.weights = {one: chosen_weights(ranks[one], self.budgets, drawn) for one in self.methods}
        sides = {one.method: (ranks[one.method], one.report) for one in studies}
        self.outcomes = {
            (first, second): paired_outcome(sides[first], sides[second], self.budgets, drawn)
            for first, second in combinations(self.methods, 2)
        }

    def at(self, budget: int) -> int:
        """Return the place of a budget."""
        return BUDGETS.index(budget)

    def outcome(self, first: str, second: str) -> Outcome:
        """Return who wins, whatever the order of the pair."""
        if (first, second) in self.outcomes:
            return self.outcomes[first, second]
        other = self.outcomes[second, first]
        return Outcome(other.below, other.tied)

    def stable(self, first: str, second: str) -> Floats:
        """Return in which pools the claim is stable from half of the pool or fewer trials."""
        held = self.outcome(first, second).above[:, self.at(self.half) :] >= LEVEL - 1e-9
        return np.asarray(held.all(axis=1))

    def search_share(self, method: str) -> Floats:
        """Return the part of the search in the variance of the found score, (pools, budgets)."""
        one = self.studies[method]
        parts = variance_parts(self.weights[method], np.vstack([one.report, one.again]))
        return np.asarray(parts[..., 0] / parts.sum(axis=-1))

    def tau(self) -> Floats:
        """Return the mean of Kendall's tau to the whole pool, (pools, budgets)."""
        signs = [
            np.sign(one.above[:, -1:] - one.below[:, -1:]) * (one.above - one.below)
            for one in self.outcomes.values()
        ]
        return np.asarray(np.mean(signs, axis=0))


def hypotheses(group: Group) -> dict[str, Floats]:
    """Return for each hypothesis in which pools it holds."""
    four, sixteen, one = group.at(4), group.at(16), group.at(1)
    chances = np.stack([outcome.above[:, one] for outcome in group.outcomes.values()], axis=1)
    tau = group.tau()
    infonce = group.studies["infonce"]
    beats = group.weights["infonce"][:, four] @ (infonce.report > infonce.untrained).astype(float)
    flattered = [
        group.weights[name][:, sixteen] @ (study.select - study.report) > 0
        for name, study in group.studies.items()
    ]
    found = {
        "2. at 1 trial every claim lies between 5 and 95 %": ((chances >= 0.05) & (chances <= 0.95)).all(
            axis=1
        ),
        "3. fair-cclk > infonce is stable from 24 or fewer": group.stable("fair-cclk", "infonce"),
        "4. fair-cclk > fair-infonce is not stable from 24 or fewer": ~group.stable(
            "fair-cclk", "fair-infonce"
        ),
        "5. tau rises from 4 to 16, and is below 0.8 at 4": (tau[:, sixteen] > tau[:, four])
        & (tau[:, four] < 0.8),
        "6. InfoNCE does not beat its untrained encoder with 95 % at 4": beats < LEVEL,
        "7. at 16, select is above report for every method": np.all(flattered, axis=0),
    }
    if all(len(study.again) for study in group.studies.values()):
        shares = np.stack([group.search_share(name)[:, four] for name in group.methods], axis=1)
        found = {
            "1. at 4 trials, search has most of the variance, for every method": (shares > 0.5).all(axis=1)
        } | found
    return found


def verdict(holds: Floats) -> str:
    """Return the verdict from the pools in which a hypothesis holds."""
    share = holds[1:].mean()
    if holds[0] and share >= LEVEL:
        return "confirmed"
    return "contradicted" if not holds[0] and share <= 1 - LEVEL else "undecided"


def main() -> None:
    """Print a line for each hypothesis."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else POOLS
    for name, holds in hypotheses(Group(read_pool_file(path))).items():
        here = "holds" if holds[0] else "does not hold"
        print(
            f"{name}: {here} here, holds in {100 * holds[1:].mean():.1f} % of drawn pools: {verdict(holds)}"
        )


if __name__ == "__main__":
    main()
