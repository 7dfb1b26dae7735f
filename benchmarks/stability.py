"""Judge the hypotheses of docs/studies/stability.md on the pools and the final runs of a group.

    python -m benchmarks.stability [GROUP] [--keep RESULTS] [--intervals]

Hypothesis 8 compares final runs seed by seed. The others are looked at in the pools and in 1,000 pools drawn
from them with replacement. Each is confirmed if it holds in the pool and in 95 % of the drawn ones,
contradicted if it holds in neither (5 % at most), else undecided. `--keep` first writes the final runs in
a results folder into the file that is read. `--intervals` also prints every pair with its registered
intervals over drawn pools, which the pages of `contrasweep stability` no longer show.

The registered split of the variance counts the seed that selects as a seed like the other one, so the luck
of the selection enters it (docs/studies/stability.md, "Corrections"). Hypothesis 1 is judged by it, as
registered, and once more by the corrected split.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from contrasweep.tuning.methods.metrics import VALIDATION
from contrasweep.tuning.stability.analysis import aligned, drawn_pools
from contrasweep.tuning.stability.choices import chosen_place
from contrasweep.tuning.stability.pool_file import read_pool_file
from contrasweep.tuning.stability.scored_pool import ScoredPool
from contrasweep.tuning.stability.table import percent
from contrasweep.tuning.stability.variance import found_parts, variance_parts
from contrasweep.tuning.stability.win_probabilities import Outcome, chosen_weights, paired_outcome, ranks_of
from contrasweep.tuning.statistics import (
    LEVEL,
    Floats,
    Summary,
    mean_interval,
    percentile_interval,
    seed_by_seed,
    summarise,
)
from contrasweep.tuning.store import FINAL_SUFFIX, ResultsStore

STUDIES = Path(__file__).parents[1] / "docs" / "studies"
BUDGETS = (1, 2, 4, 8, 16, 24, 48)
RUN_AT = (4, 16, 48)
"""The budgets whose choices were run on fresh seeds."""


class Group:
    """The paired pools of a group, and who wins by pool and budget; the first pool is the given one."""

    def __init__(self, studies: Sequence[ScoredPool]) -> None:
        studies, common = aligned(studies)
        assert common, "the pools of this study are paired"
        self.methods = [one.method for one in studies]
        self.studies = dict(zip(self.methods, studies, strict=True))
        self.budgets = np.array(BUDGETS)
        self.half = len(studies[0]) // 2
        drawn = drawn_pools(len(studies[0]), 0, 0)
        ranks = {one.method: ranks_of(one.select) for one in studies}
        self.weights = {one: chosen_weights(ranks[one], self.budgets, drawn) for one in self.methods}
        reports = {one.method: (ranks[one.method], one.report) for one in studies}
        again = {one.method: (ranks[one.method], one.again.mean(axis=0)) for one in studies if len(one.again)}
        self.pairs = list(combinations(self.methods, 2))
        self.outcomes, self.elsewhere = (
            {
                (first, second): paired_outcome(sides[first], sides[second], self.budgets, drawn)
                for first, second in self.pairs
                if first in sides and second in sides
            }
            for sides in (reports, again)
        )

    def at(self, budget: int) -> int:
        """Return the place of a budget."""
        return BUDGETS.index(budget)

    def stable(self, first: str, second: str) -> NDArray[np.bool_]:
        """Return in which pools the claim is stable from half of the pool or fewer trials."""
        held = _directed(self.outcomes, first, second).above[:, self.at(self.half) :] >= LEVEL - 1e-9
        return np.asarray(held.all(axis=1))

    def stable_either_way(self, first: str, second: str) -> NDArray[np.bool_]:
        """Return in which pools the claim or its contrary is stable from half of the pool or fewer trials."""
        return self.stable(first, second) | self.stable(second, first)

    def broken_elsewhere(self) -> NDArray[np.bool_]:
        """Return in which pools some stable claim does not hold on the other seed, at half of the pool."""
        directed = [*self.pairs, *(pair[::-1] for pair in self.pairs)]
        broken = [self.stable(*pair) & ~self.holds_elsewhere(*pair) for pair in directed]
        return np.asarray(np.any(broken, axis=0))

    def all_beat_untrained(self, methods: Sequence[str]) -> NDArray[np.bool_]:
        """Return in which pools each of the methods beats its untrained encoder with 95 % at 4 trials."""
        return np.asarray(np.all([self.beats_untrained(method, 4) for method in methods], axis=0))

    def holds_elsewhere(self, first: str, second: str) -> NDArray[np.bool_]:
        """Return in which pools the claim holds with 95 % on the other seed, at half of the pool."""
        found = _directed(self.elsewhere, first, second)
        return np.asarray(found.above[:, self.at(self.half)] >= LEVEL - 1e-9)

    def beats_untrained(self, method: str, budget: int) -> NDArray[np.bool_]:
        """Return in which pools the found score is above the untrained encoder's with 95 %."""
        study = self.studies[method]
        beats = self.weights[method][:, self.at(budget)] @ (study.report > study.untrained).astype(float)
        return np.asarray(beats >= LEVEL)

    def search_share(self, method: str) -> Floats:
        """Return the part of the search in the variance, (pools, budgets), as registered."""
        one = self.studies[method]
        parts = variance_parts(self.weights[method], np.vstack([one.report, one.again]))
        return np.asarray(parts[..., 0] / parts.sum(axis=-1))

    def corrected_share(self, method: str) -> Floats:
        """Return the same without the luck of the selection, (pools, budgets)."""
        one = self.studies[method]
        weights = self.weights[method]
        alike = weights[:, [self.at(1)]]
        parts = found_parts(weights, alike, one.report, one.again)
        return np.asarray(parts[..., 0] / parts.sum(axis=-1))

    def tau(self) -> Floats:
        """Return the mean of Kendall's tau to the whole pool, (pools, budgets)."""
        signs = [
            np.sign(one.above[:, -1:] - one.below[:, -1:]) * (one.above - one.below)
            for one in self.outcomes.values()
        ]
        return np.asarray(np.mean(signs, axis=0))


def hypotheses(group: Group, group_name: str) -> dict[str, NDArray[np.bool_]]:
    """Return for each hypothesis of a group, but the last one, in which pools it holds."""
    four, sixteen, one = group.at(4), group.at(16), group.at(1)
    chances = np.stack([outcome.above[:, one] for outcome in group.outcomes.values()], axis=1)
    tau = group.tau()
    flattered = [
        group.weights[name][:, sixteen] @ (study.select - study.report) > 0
        for name, study in group.studies.items()
    ]
    found = {
        "2. at 1 trial every claim lies between 5 and 95 %": ((chances >= 0.05) & (chances <= 0.95)).all(
            axis=1
        ),
        "5. tau rises from 4 to 16, and is below 0.8 at 4": (tau[:, sixteen] > tau[:, four])
        & (tau[:, four] < 0.8),
        "7. at 16, select is above report for every method": np.all(flattered, axis=0),
    }
    if all(len(study.again) for study in group.studies.values()):
        said = "at 4 trials, search has most of the variance, for every method"
        splits = {f"1. {said}": group.search_share, f"1, corrected: {said}": group.corrected_share}
        for name, share in splits.items():
            shares = np.stack([share(method)[:, four] for method in group.methods], axis=1)
            found[name] = (shares > 0.5).all(axis=1)
    return dict(sorted((found | GROUPS[group_name](group)).items()))


def of_conditions(group: Group) -> dict[str, NDArray[np.bool_]]:
    """Return the hypotheses about the methods of CCL-K's comparison."""
    return {
        "3. fair-cclk > infonce is stable from 24 or fewer": group.stable("fair-cclk", "infonce"),
        "4. fair-cclk > fair-infonce is not stable from 24 or fewer": ~group.stable(
            "fair-cclk", "fair-infonce"
        ),
        "6. InfoNCE does not beat its untrained encoder with 95 % at 4": ~group.beats_untrained("infonce", 4),
    }


BROKEN_ELSEWHERE = "9d. some stable pair is below 95 % at 24 on the other seed"


def of_label_free(group: Group) -> dict[str, NDArray[np.bool_]]:
    """Return the hypotheses about methods that need no labels."""
    others = [method for method in group.methods if method != "infonce"]
    claims = np.sum([group.stable(method, "infonce") for method in others], axis=0)
    beats = [group.beats_untrained(method, 4) for method in group.methods]
    return {
        "3d. fewer than half of the claims X > infonce are stable from 24 or fewer": claims < len(others) / 2,
        "4d. fewer than half of the pairs are stable from 24 or fewer": np.sum(
            [group.stable_either_way(*pair) for pair in group.pairs], axis=0
        )
        < len(group.pairs) / 2,
        "6d. no method beats its untrained encoder with 95 % at 4": ~np.any(beats, axis=0),
        BROKEN_ELSEWHERE: group.broken_elsewhere(),
    }


def of_views(group: Group) -> dict[str, NDArray[np.bool_]]:
    """Return the hypotheses about HeroCon's comparison; its rivals are those that the paper calls alike."""
    rivals = [method for method in group.methods if method != "herocon"]
    claims = np.sum([group.stable("herocon", method) for method in rivals], axis=0)
    alike = [group.stable_either_way(*pair) for pair in combinations(rivals, 2)]
    return {
        "3s. fewer than half of the claims herocon > X are stable from 24 or fewer": claims < len(rivals) / 2,
        "4s. some pair of the other methods is stable from 24 or fewer": np.any(alike, axis=0),
        "6s. every method beats its untrained encoder with 95 % at 4": group.all_beat_untrained(
            group.methods
        ),
        BROKEN_ELSEWHERE: group.broken_elsewhere(),
    }


KNOW_THE_BIAS = ("fairkl", "biascon", "biasbal", "end", "lnl")


def of_biases(group: Group) -> dict[str, NDArray[np.bool_]]:
    """Return the hypotheses about methods that know what biases the data."""
    claims = np.sum([group.stable(method, "cross-entropy") for method in KNOW_THE_BIAS], axis=0)
    return {
        "3b. at least four of the claims X > cross-entropy are stable from 24 or fewer": claims >= 4,
        "4b. fairkl > eps-supinfonce is not stable from 24 or fewer": ~group.stable(
            "fairkl", "eps-supinfonce"
        ),
        "6b. every method that knows the bias beats its untrained encoder with 95 % at 4": (
            group.all_beat_untrained(KNOW_THE_BIAS)
        ),
        BROKEN_ELSEWHERE: group.broken_elsewhere(),
    }


GROUPS = {
    "colour-digits": of_conditions,
    "colormnist": of_conditions,
    "digits": of_label_free,
    "scene": of_views,
    "biased-digits": of_biases,
}
"""The groups, each with the hypotheses that name its methods."""


def verdict(holds: NDArray[np.bool_]) -> str:
    """Return the verdict from the pools in which a hypothesis holds."""
    share = holds[1:].mean()
    if holds[0] and share >= LEVEL:
        return "confirmed"
    return "contradicted" if not holds[0] and share <= 1 - LEVEL else "undecided"


def _directed(outcomes: Mapping[tuple[str, str], Outcome], first: str, second: str) -> Outcome:
    """Return who wins, whatever the order of the pair."""
    if (first, second) in outcomes:
        return outcomes[first, second]
    other = outcomes[second, first]
    return Outcome(other.below, other.tied)


def finals_of(group: str) -> Path:
    """Return the file with the final runs of a group."""
    return STUDIES / f"stability-{group}-finals.parquet"


def keep_finals(group: Group, store: ResultsStore, file: Path) -> None:
    """Write the test scores of the group's final runs, and of their untrained encoders, into a file."""
    rows = [
        {
            "method": method,
            "trial": row["trial"],
            "seed": row["seed"],
            "score": row[f"metric.test.{measure_of(study)}"],
            "untrained": row[f"metric.test.untrained_{measure_of(study)}"],
        }
        for method, study in group.studies.items()
        for row in store.trials(study.study + FINAL_SUFFIX).to_pylist()
        if row["status"] == "completed"
    ]
    rows.sort(key=lambda row: (row["method"], row["trial"], row["seed"]))
    pq.write_table(pa.Table.from_pylist(rows), file)


def measure_of(study: ScoredPool) -> str:
    """Return the score that a study selects by, without the split: its final runs are compared by it."""
    return study.metric.removeprefix(VALIDATION)


class Finals:
    """The test scores of final runs, by method, trial and seed."""

    def __init__(self, group: Group, file: Path) -> None:
        self._group = group
        self._rows = pq.read_table(file).to_pylist()

    def trial(self, method: str, budget: int) -> int:
        """Return the trial that the first `budget` trials chose."""
        study = self._group.studies[method]
        return int(study.trial[chosen_place(study.select, budget)])

    def scores(self, method: str, budget: int, column: str = "score") -> dict[int, float]:
        """Return the scores by seed of the configuration that the first `budget` trials chose."""
        trial = self.trial(method, budget)
        return {
            row["seed"]: row[column] for row in self._rows if (row["method"], row["trial"]) == (method, trial)
        }

    def difference(self, first: tuple[str, int], second: tuple[str, int]) -> Summary:
        """Summarise by how much the first is better, seed by seed; both are a method and a budget."""
        found = seed_by_seed(self.scores(*first), self.scores(*second))
        assert found is not None, "all final runs have the same seeds"
        return found


def print_intervals(group: Group) -> None:
    """Print the chance of every pair, and of it on the other seed, with its 95 % of drawn pools."""
    for where, outcomes in (("", group.outcomes), (", on the other seed", group.elsewhere)):
        print(f"\n| pair{where} | {' | '.join(map(str, BUDGETS))} |\n|---|{'---|' * len(BUDGETS)}")
        for (first, second), outcome in outcomes.items():
            ends = zip(outcome.above[0], *percentile_interval(outcome.above[1:]), strict=True)
            cells = [f"{percent(value)} ({percent(low)} to {percent(high)})" for value, low, high in ends]
            print(f"| {first} > {second} | {' | '.join(cells)} |")


def print_finals(group: Group, finals: Finals) -> None:
    """Print the final runs of all budgets, and hypothesis 8."""
    columns = [*group.methods, "untrained"]
    print(f"\n| chosen from | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for budget in RUN_AT:
        scores = [finals.scores(method, budget) for method in group.methods]
        scores.append(finals.scores(group.methods[0], budget, "untrained"))
        print(f"| {budget} | {' | '.join(_text(summarise(one.values())) for one in scores)} |")
    print()
    *_, fewer, most = RUN_AT
    for method in group.methods:
        if finals.trial(method, most) != finals.trial(method, fewer):
            gained = finals.difference((method, most), (method, fewer))
            print(f"{method}, chosen from {most} less from {fewer}: {_interval(gained)}")
    agrees, denied = True, False
    for pair in combinations(group.methods, 2):
        for first, second in (pair, pair[::-1]):
            if group.stable(first, second)[0]:
                found, before = (finals.difference((first, n), (second, n)) for n in (most, fewer))
                agrees, denied = agrees and found.mean > 0, denied or _ends(found)[1] < 0
                print(
                    f"{first} > {second} is stable; final runs: {_interval(found)}; "
                    f"chosen from {fewer}: {_interval(before)}"
                )
    said = "contradicted" if denied else "confirmed" if agrees else "undecided"
    print(f"8. where a claim is stable, final runs have the same order: {said}")


def _ends(difference: Summary) -> tuple[float, float]:
    return mean_interval(difference) or (np.nan, np.nan)


def _interval(difference: Summary) -> str:
    low, high = _ends(difference)
    return f"{difference.mean:+.3f} ({low:.3f} to {high:.3f})"


def _text(found: Summary | None) -> str:
    assert found is not None, "there are final runs"
    assert found.std is not None, "of more than one seed"
    return f"{100 * found.mean:.1f} ± {100 * found.std:.1f} ({found.n})"


def main() -> None:
    """Print a line for each hypothesis, and the final runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", nargs="?", choices=GROUPS, default="colour-digits")
    parser.add_argument("--keep", help="results folder with the final runs")
    parser.add_argument("--intervals", action="store_true", help="print every pair with its intervals")
    given = parser.parse_args()
    group = Group(read_pool_file(STUDIES / f"stability-{given.group}.parquet"))
    for name, holds in hypotheses(group, given.group).items():
        here = "holds" if holds[0] else "does not hold"
        print(
            f"{name}: {here} here, holds in {100 * holds[1:].mean():.1f} % of drawn pools: {verdict(holds)}"
        )
    if given.keep:
        keep_finals(group, ResultsStore(given.keep), finals_of(given.group))
    print_finals(group, Finals(group, finals_of(given.group)))
    if given.intervals:
        print_intervals(group)


if __name__ == "__main__":
    main()
