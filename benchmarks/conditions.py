"""Conditions inside the search: what it is worth that the sampler knows of them, on made-up scores.

    python -m benchmarks.conditions [--seeds 20] [--trials 30]

Nothing is trained: formulas give a trial's score and the metric of the condition from its values, so the
best score that keeps the condition is known. Each search runs twice: told how far each trial breaks the
condition, or not told, as where `--where` selects afterwards. The benchmark prints by how much the best kept
trial of each search misses the best possible score, times 100, and how many trials kept the condition.

Three conditions, each broken by the best trial of all:

- line: six tenths of the square of x and y keep it, and the best kept trial lies on its edge;
- diamond: a quarter of that square keeps it;
- choice: one of three choices breaks it, the one that scores best.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from contrasweep.search_spaces import Space
from contrasweep.tuning.search import SearchStudy

SPACE = Space.parse(
    {
        "x": {"uniform": [0.0, 1.0], "default": 0.1},
        "y": {"uniform": [0.0, 1.0], "default": 0.1},
        "z": {"log": [1.0e-3, 1.0], "default": 0.01},
        "k": {"choice": ["a", "b", "c"], "default": "a"},
    }
)
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A condition: how far values break it (above 0 where they do), and the best score that keeps it."""

    violation: Callable[[Values], float]
    best: float


TASKS = {
    "line": Task(lambda v: 1000 * (v["x"] + v["y"] - 1.1), 0.02),
    "diamond": Task(
        lambda v: 50 - 50 * math.exp(3 * (0.35 - abs(v["x"] - 0.4) - abs(v["y"] - 0.3))), -0.00125
    ),
    "choice": Task(lambda v: v["x"] - 0.5 - {"a": 1, "b": -1, "c": 1}[v["k"]], 0.0),
}


def score(values: Values) -> float:
    """Return the score; without a condition the best, 0.1, is at x 0.8, y 0.7, z 0.063 and k b."""
    z = (math.log10(values["z"]) + 3) / 3
    choice = {"a": 0.0, "b": 0.1, "c": -0.2}[values["k"]]
    return choice - (values["x"] - 0.8) ** 2 - (values["y"] - 0.7) ** 2 - 0.5 * (z - 0.6) ** 2


def search(task: Task, sampler: str, seed: int, trials: int, *, told: bool) -> tuple[float, int]:
    """Return how far the best kept trial lies below the best possible one, and how many trials were kept."""
    study = SearchStudy(SPACE, sampler=sampler, seed=seed, trials=trials)
    kept = []
    for _ in range(trials):
        one = study.ask()
        violation = task.violation(one.values)
        study.complete(one.number, score(one.values), {"condition": violation} if told else {})
        kept += [score(one.values)] if violation <= 0 else []
    return task.best - max(kept, default=-math.inf), len(kept)


def main() -> None:
    """Print a row for each sampler, and two columns for each condition."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=30)
    options = parser.parse_args()
    for sampler in ("tpe", "curves", "gp", "cmaes", "random"):
        for told in (True, False) if sampler != "random" else (False,):
            cells = []
            for name, task in TASKS.items():
                runs = [search(task, sampler, s, options.trials, told=told) for s in range(options.seeds)]
                gaps = [100 * gap for gap, _ in runs]
                spread = f"{statistics.fmean(gaps):.1f} ± {statistics.stdev(gaps):.1f}"
                cells.append(f"{name} {spread} ({statistics.fmean(count for _, count in runs):.1f} kept)")
            print(f"{sampler}, {'told' if told else 'not told'}: " + "; ".join(cells), flush=True)


if __name__ == "__main__":
    main()
