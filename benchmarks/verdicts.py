"""How often verdicts err, and how often they find what is there, under four rules.

    python -m benchmarks.verdicts [--simulations 2000]

Runs of known truth are simulated: a run is its row's mean, plus noise that all rows share within a seed, plus
noise of its own, both normal with deviation 1. Two rules judge a claim as a whole or by its comparisons:

- the old rule: the claim holds if it is true in 95 % of the bootstrap resamples of the seeds or more, and
  does not hold if it is true in 5 % or fewer;
- ours: the jackknife and Student's t for each comparison (`contrasweep.tuning.tables.evidence`).

Two more replace the test of a comparison, and join comparisons as ours does: the bootstrap of Student's t
(Efron 1979), and the permutation test that flips the signs of the paired differences (Fisher 1935).
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.tables.evidence import ERROR, against_and_for, join, leave_one_out
from contrasweep.tuning.tables.functions import CURVE_FUNCTIONS, Curve
from contrasweep.tuning.tables.statements import (
    All,
    Comparison,
    Extremum,
    Quantity,
    Statement,
    arithmetic,
    compare_sides,
    constant,
    truth,
)

SEEDS = (3, 5, 10)
RESAMPLES = 400
RUN_DEVIATION = 2**0.5
"""The deviation of a run: the noise of its seed and its own, of deviation 1 each."""

Rule = Callable[[Callable[[Floats], Statement], Floats], tuple[float, float]]
"""From a claim and runs `(rows, simulations, seeds)` to the rates of "holds" and of "contradicted"."""


@dataclass(frozen=True)
class Case:
    """A kind of claim: `state` makes its statement from samples of the means, `(rows, samples)`.

    Attributes:
        edge: true means at which the claim is neither clearly true nor clearly false.
        true, false: true means, in deviations of a run, at which it is true and at which it is false.
    """

    state: Callable[[Floats], Statement]
    edge: tuple[float, ...]
    true: tuple[float, ...]
    false: tuple[float, ...]


def _quantities(means: Floats) -> list[Quantity]:
    return [Quantity(f"r{place}", row) for place, row in enumerate(means)]


def best(means: Floats) -> Statement:
    """State that the first row is above all others."""
    first, *others = _quantities(means)
    return compare_sides(">", first, Extremum(True, tuple(others)))


def order(means: Floats) -> Statement:
    """State that the rows fall strictly, in their order."""
    return All(tuple(compare_sides(">", *two) for two in pairwise(_quantities(means))))


def trend(means: Floats) -> Statement:
    """State that a curve never falls, and ends above its start."""
    compute = CURVE_FUNCTIONS["increasing"].compute
    assert compute is not None, "increasing is computed"
    found: Statement = compute(Curve("r", tuple(map(float, range(len(means)))), means.T))
    return found


def bound(means: Floats) -> Statement:
    """State that the rows lie within two deviations of a run."""
    rows = tuple(_quantities(means))
    spread = arithmetic("-", Extremum(True, rows), Extremum(False, rows))
    return compare_sides("<=", spread, constant(2 * RUN_DEVIATION))


CASES: Mapping[str, Case] = {
    "a > b": Case(best, (0, 0), (2, 0), (0, 2)),
    "best of 6": Case(best, (0,) * 6, (2, 0, 0, 0, 0, 0), (0, 2, 0, 0, 0, 0)),
    "order of 5": Case(order, (0,) * 5, (8, 6, 4, 2, 0), (8, 6, 4, 0, 2)),
    "trend of 5": Case(trend, (0,) * 5, (0, 2, 4, 6, 8), (0, 2, 4, 8, 6)),
    "within a bound": Case(bound, (0, 1, 2), (0, 0, 0), (0, 2, 4)),
}


def old_rule(state: Callable[[Floats], Statement], runs: Floats) -> tuple[float, float]:
    """Judge by the share of the bootstrap's resamples in which the claim is true."""
    rows, simulations, seeds = runs.shape
    generator = np.random.default_rng(11)
    weights = generator.multinomial(seeds, [1 / seeds] * seeds, RESAMPLES) / seeds
    found = truth(state((runs @ weights.T).reshape(rows, -1))).reshape(simulations, RESAMPLES)
    share = found.mean(axis=1)
    return float((share >= 0.95).mean()), float((share <= 0.05).mean())


def ours(state: Callable[[Floats], Statement], runs: Floats) -> tuple[float, float]:
    """Judge by the jackknife and Student's t."""
    rows, _, seeds = runs.shape
    false, true = against_and_for(state((runs @ leave_one_out(seeds).T).reshape(rows, -1)), seeds)
    return _rates(false, true)


def bootstrap_t(state: Callable[[Floats], Statement], runs: Floats) -> tuple[float, float]:
    """Judge each comparison by the bootstrap of Student's t."""
    seeds = runs.shape[2]
    drawn = np.random.default_rng(11).integers(seeds, size=(RESAMPLES, seeds))

    def test(margins: Floats) -> tuple[Floats, Floats]:
        again = margins[:, drawn]
        centred = again.mean(axis=2) - margins.mean(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_chance = centred / again.std(axis=2, ddof=1)
            t = (margins.mean(axis=1) / margins.std(axis=1, ddof=1))[:, None]
        # Resamples of one seed alone have no t and do not count.
        there = np.isfinite(by_chance)
        above, below = (by_chance >= t) & there, (by_chance <= t) & there
        return above.sum(axis=1) / there.sum(axis=1), below.sum(axis=1) / there.sum(axis=1)

    return _by_comparison(state, runs, test)


def sign_flips(state: Callable[[Floats], Statement], runs: Floats) -> tuple[float, float]:
    """Judge each comparison by flipping the signs of its differences in all ways."""
    signs = np.array(list(product((1, -1), repeat=runs.shape[2])))

    def test(margins: Floats) -> tuple[Floats, Floats]:
        flipped = margins @ signs.T
        still = flipped[:, :1]
        return (flipped >= still - 1e-12).mean(axis=1), (flipped <= still + 1e-12).mean(axis=1)

    return _by_comparison(state, runs, test)


def _by_comparison(
    state: Callable[[Floats], Statement], runs: Floats, test: Callable[[Floats], tuple[Floats, Floats]]
) -> tuple[float, float]:
    """Judge each comparison by a test of its margins on single seeds, `(simulations, seeds)`."""
    rows, simulations, seeds = runs.shape

    def judge(comparison: Comparison) -> tuple[Floats, Floats]:
        return test(np.broadcast_to(comparison.margin, simulations * seeds).reshape(simulations, seeds))

    return _rates(*join(state(runs.reshape(rows, -1)), judge))


def _rates(false: Floats, true: Floats) -> tuple[float, float]:
    return float((false <= ERROR).mean()), float((true <= ERROR).mean())


RULES: Mapping[str, Rule] = {
    "old rule": old_rule,
    "ours": ours,
    "bootstrap-t": bootstrap_t,
    "sign flips": sign_flips,
}


def simulated(means: Sequence[float], simulations: int, seeds: int) -> Floats:
    """Return runs `(rows, simulations, seeds)`; `means` are in deviations of a run."""
    generator = np.random.default_rng([seeds, len(means)])
    noise = generator.standard_normal((len(means), simulations, seeds))
    shared = generator.standard_normal((1, simulations, seeds))
    return noise + shared + RUN_DEVIATION * np.array(means, dtype=float)[:, None, None]


def main() -> None:
    parser = argparse.ArgumentParser(description="The error rates and the power of verdicts.")
    parser.add_argument("--simulations", type=int, default=2_000)
    count = parser.parse_args().simulations
    print("False verdicts: holds / contradicted, in % of the simulations.\n")
    _print_table(lambda case, rule, seeds: rule(case.state, simulated(case.edge, count, seeds)))
    print("\nFound: holds where true / contradicted where false, in % of the simulations.\n")

    def power(case: Case, rule: Rule, seeds: int) -> tuple[float, float]:
        holds, _ = rule(case.state, simulated(case.true, count, seeds))
        return holds, rule(case.state, simulated(case.false, count, seeds))[1]

    _print_table(power)


def _print_table(rates: Callable[[Case, Rule, int], tuple[float, float]]) -> None:
    print(f"| claim | n | {' | '.join(RULES)} |\n|{'---|' * (2 + len(RULES))}")
    for name, case in CASES.items():
        for seeds in SEEDS:
            pairs = (rates(case, rule, seeds) for rule in RULES.values())
            cells = [f"{100 * one:.0f} / {100 * other:.0f}" for one, other in pairs]
            print(f"| {name} | {seeds} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
