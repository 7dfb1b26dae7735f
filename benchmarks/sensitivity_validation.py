"""How often the sensitivity of searches that ASHA stopped says something true or false; the truth is known.

    python -m benchmarks.sensitivity_validation [--studies 60] [--trials 24 60 150]
        [--samplers random tpe curves]

The learning curves are those of `tests/sensitivity/learning_curves.py`: five parameters, of which `c`, `d`
and `kernel` do nothing. A line is a kind of curves, a number of trials and an epoch. It says in how many
studies enough is known there; in how many of those the parameter with the largest effect is the true one; how
often each of `a` and `b` is said to matter, and any that does nothing; and how often the interval of the rank
correlation between the first rung and this epoch covers the truth: over random configurations, so it is left
out for samplers that propose others.
"""

import argparse
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from contrasweep.tuning.sensitivity.effects import Effect, effects
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import fidelity
from contrasweep.tuning.sensitivity.scores import stages
from tests.sensitivity import learning_curves
from tests.sensitivity.learning_curves import EPOCHS, RUNGS, Kind, searched

KINDS: tuple[Kind, ...] = ("steady", "crossing", "fading", "noise")
IDLE = ("c", "d", "kernel")
UNSTOPPED = 4000


def main() -> None:
    """Print a line for each kind of curves, number of trials and epoch."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--trials", type=int, nargs="+", default=[24, 60, 150])
    parser.add_argument("--samplers", nargs="+", default=["random", "tpe", "curves"])
    given = parser.parse_args()
    print("| curves | sampler | trials | epoch | known | first | a | b | any idle | interval covers |")
    print("|" + "---|" * 10)
    for kind, sampler, trials in itertools.product(KINDS, given.samplers, given.trials):
        for line in _lines(kind, sampler, trials, given.studies):
            print(line, flush=True)


def _lines(kind: Kind, sampler: str, trials: int, studies: int) -> Iterator[str]:
    found: dict[int, list[Mapping[str, Effect]]] = defaultdict(list)
    covered: dict[int, list[bool]] = defaultdict(list)
    truth = _correlations(kind)
    for seed in range(studies):
        one = searched(kind, trials, seed, sampler)
        of_study = stages(one)
        for stage in of_study:
            known = stage.known
            if not isinstance(known, TooFew):
                found[stage.epoch].append({e.parameter: e for e in effects(one.axes, known)})
        links = fidelity(one, of_study)
        for link in () if isinstance(links, TooFew) or sampler != "random" else links.links:
            if link.epoch == RUNGS[0]:
                covered[link.later].append(link.estimated_low <= truth[link.later] <= link.estimated_high)
    for epoch, each in sorted(found.items()):
        first = np.mean([max(e, key=lambda name: e[name].share) in _largest(kind, epoch) for e in each])
        says = [np.mean([e[name].verdict == "matters" for e in each]) for name in ("a", "b")]
        idle = np.mean([any(e[name].verdict == "matters" for name in IDLE) for e in each])
        numbers = [_percent(value) for value in (len(each) / studies, first, *says, idle)]
        inside = _percent(np.mean(covered[epoch])) if covered[epoch] else "-"
        yield f"| {kind} | {sampler} | {trials} | {epoch} | {' | '.join(numbers)} | {inside} |"


def _largest(kind: Kind, epoch: int) -> tuple[str, ...]:
    """Return the parameters with the largest effect; two where they are equal, none in noise."""
    if kind == "noise":
        return ()
    if kind == "crossing":
        return ("a",) if epoch < 4 else ("b",)
    return ("a", "b") if kind == "fading" and epoch == 1 else ("a",)


def _correlations(kind: Kind) -> dict[int, float]:
    """Return the rank correlation of the first rung with each epoch when nothing is stopped."""
    codes = np.random.default_rng(10**6).random((UNSTOPPED, 5))
    curve = learning_curves.curves(kind, codes, np.random.default_rng(10**6 + 1))
    ranks = curve.argsort(axis=0).argsort(axis=0)
    return {e: float(np.corrcoef(ranks[:, RUNGS[0]], ranks[:, e])[0, 1]) for e in range(1, EPOCHS + 1)}


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


if __name__ == "__main__":
    main()
