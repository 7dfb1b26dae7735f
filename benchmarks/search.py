"""Our samplers against Ray Tune's OptunaSearch in simulated time, on made-up learning curves.

    python -m benchmarks.search [--seeds 20] [--trials 40] [--curves NAME ...] [--searches NAME ...]

The curves are made up, so that the best score is known. All searches run under the same ASHA, begin with the
same defaults and run as many trials at once. Three kinds of curve:

- agreeing: all scores rise at one speed, so that early ranks are the final ranks;
- crossing: large learning rates rise fast and end low, so that early ranks mislead;
- falling: scores begin high and fall (an untrained encoder knows no colour yet), so that the last score of a
  stopped trial beats the score of every finished one.

`benchmarks.peers` compares whole searches on recorded curves.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optuna
from scipy.stats import ttest_rel

from benchmarks.peers.contestants import RayTune
from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.ray.scheduler import scheduler_of
from contrasweep.tuning.replay.searches import OwnSearch
from contrasweep.tuning.replay.simulation import Job, Run, Search, simulate
from contrasweep.tuning.search import SearchStudy
from contrasweep.tuning.search.tpe import tpe

EPOCHS, AT_ONCE, NOISE = 27, 4, 0.01
SPACE = Space.parse(
    {
        "kernel": {"choice": ["rbf", "laplacian", "linear", "cosine"], "default": "cosine"},
        "sigma2": {"log": [1.0, 1.0e4], "default": 10.0, "when": {"kernel": ["rbf", "laplacian", "linear"]}},
        "lr": {"log": [1.0e-3, 3.0], "default": 0.5},
        "temperature": {"log": [0.03, 1.0], "default": 0.5},
        "crop": {"uniform": [0.08, 0.8], "default": 0.2},
    }
)
Values = Mapping[str, Any]
Curve = Callable[[Values, int], float]


def final_score(values: Values) -> float:
    """Return the final score; the best, 0.95, is at rbf, sigma2 300, lr 0.05, temperature 0.1, crop 0.5."""
    kernel = {"rbf": 0.0, "laplacian": 0.02, "linear": 0.15, "cosine": 0.08}[values["kernel"]]
    sigma2 = 0.04 * abs(math.log10(values.get("sigma2", 300.0) / 300.0))
    lr = 0.10 * math.log10(values["lr"] / 0.05) ** 2
    temperature = 0.15 * math.log10(values["temperature"] / 0.1) ** 2
    crop = 0.5 * (values["crop"] - 0.5) ** 2
    return max(0.1, 0.95 - kernel - sigma2 - lr - temperature - crop)


def agreeing(values: Values, epoch: int) -> float:
    return final_score(values) * (1 - math.exp(-epoch / 5)) / (1 - math.exp(-EPOCHS / 5))


def crossing(values: Values, epoch: int) -> float:
    tau = 2 + 8 * (3 - math.log10(values["lr"] / 0.003)) / 3
    return final_score(values) * (1 - math.exp(-epoch / tau)) / (1 - math.exp(-EPOCHS / tau))


def falling(values: Values, epoch: int) -> float:
    final = final_score(values)
    return final + (1 - final) * (math.exp(-epoch / 8) - math.exp(-EPOCHS / 8))


CURVES: dict[str, Curve] = {"agreeing": agreeing, "crossing": crossing, "falling": falling}


class FirstTrials:
    """A search that proposes so many trials."""

    def __init__(self, search: Search, trials: int) -> None:
        self._search, self._left = search, trials
        self.report, self.end = search.report, search.end

    def next(self) -> Job | None:
        self._left -= 1
        return self._search.next() if self._left >= 0 else None


class ToldAsFinished:
    """A search that hears of stopped trials as if they had finished."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self.next, self.report = search.next, search.report

    def end(self, trial: int, epoch: int, last: float, final: float | None) -> None:
        self._search.end(trial, epoch, last, last if final is None else final)


def ours(sampler: str, seed: int, trials: int) -> Search:
    study = SearchStudy(SPACE, sampler=sampler, seed=seed, trials=trials, epochs=EPOCHS)
    return OwnSearch(study, scheduler_of("asha", study, epochs=EPOCHS, warmup=0.0, halving=Halving()))


SEARCHES: dict[str, Callable[[int, int], Search]] = {
    "random": lambda seed, trials: ours("random", seed, trials),
    "OptunaSearch, as it comes": lambda seed, trials: RayTune(SPACE, EPOCHS, seed, None, Halving()),
    "OptunaSearch, our TPE settings": lambda seed, trials: RayTune(
        SPACE, EPOCHS, seed, tpe(seed, trials), Halving()
    ),
    "tpe, stopped told as finished": lambda seed, trials: ToldAsFinished(ours("tpe", seed, trials)),
    "tpe": lambda seed, trials: ours("tpe", seed, trials),
    "curves": lambda seed, trials: ours("curves", seed, trials),
    "gp": lambda seed, trials: ours("gp", seed, trials),
    "cmaes": lambda seed, trials: ours("cmaes", seed, trials),
}


def best_found(name: str, curve: Curve, seed: int, trials: int) -> tuple[float, int]:
    """Run a search of made-up curves; return the best true final score, and the epochs spent."""

    def run_of(values: Mapping[str, Scalar], rng: np.random.Generator) -> Run:
        true = np.array([curve(values, epoch) for epoch in range(1, EPOCHS + 1)])
        scores = true + rng.normal(0, NOISE, EPOCHS)
        return Run(scores, float(scores[-1]), float(true[-1]), seconds=1.0)

    search = FirstTrials(SEARCHES[name](seed, trials), trials)
    rng = np.random.default_rng(seed)
    history = simulate(search, run_of, EPOCHS, workers=AT_ONCE, budget=trials * EPOCHS, rng=rng)
    return max((one.expected for one in history.finished), default=0.0), history.spent


def print_made_up(seeds: int, trials: int, curves: list[str], searches: list[str]) -> None:
    print(f"{trials} trials of {EPOCHS} epochs at most, {AT_ONCE} at once, {seeds} seeds, ASHA;")
    print("best final score (x 100, at most 95): mean ± sample std; p: paired t-test against tpe\n")
    print("| curves | search | best | p | epochs |\n|---|---|---|---|---|")
    for name in curves:
        found = {}
        for label in searches:
            runs = [best_found(label, CURVES[name], seed, trials) for seed in range(seeds)]
            found[label] = ([100 * best for best, _ in runs], statistics.mean(spent for _, spent in runs))
        for label, (scores, spent) in found.items():
            alone = label == "tpe" or "tpe" not in found
            p = "" if alone else f"{ttest_rel(scores, found['tpe'][0]).pvalue:.2g}"
            spread = f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"
            print(f"| {name} | {label} | {spread} | {p} | {spent:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=list(CURVES))
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print_made_up(given.seeds, given.trials, given.curves, given.searches)


if __name__ == "__main__":
    main()
