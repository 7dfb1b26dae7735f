"""Stopped trials at their own fidelity: our search against Ray's OptunaSearch, on made-up learning curves.

    python -m benchmarks.search [--seeds 20] [--trials 40]

Nothing is trained: a formula gives a trial's score after an epoch from its values, so the best score is
known. Both searches run under the same ASHA, begin with the same defaults and run as many trials at once. The
benchmark compares the best noiseless final score among the trials that ran to the end.

Three kinds of curve:

- agreeing: all scores rise at one speed, so that early ranks are the final ranks;
- crossing: large learning rates rise fast and end low, so that early ranks mislead;
- falling: scores begin high and fall (an untrained encoder knows no colour yet), so that the last score of a
  stopped trial beats the score of every finished one.
"""

import argparse
import math
import random
import statistics
from collections.abc import Callable
from typing import Any, Protocol

import optuna
from optuna.samplers import TPESampler
from ray.tune.search.optuna import OptunaSearch
from scipy.stats import ttest_rel

from contrasweep.search_spaces import Space
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.ray.scheduler import ResumableASHA
from contrasweep.tuning.search import SearchStudy

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
Values = dict[str, Any]
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


class Search(Protocol):
    """The interface of a search that the loop below needs."""

    def ask(self, number: int) -> Values: ...
    def report(self, number: int, epoch: int, score: float) -> None: ...
    def end(self, number: int, epoch: int, score: float, finished: bool) -> None: ...


class Ours:
    """`SearchStudy`; with `complete_all` it hears of stopped trials as OptunaSearch tells Optuna."""

    def __init__(self, sampler: str, seed: int, trials: int, complete_all: bool = False) -> None:
        self._study = SearchStudy(SPACE, sampler=sampler, seed=seed, trials=trials)
        self._complete_all = complete_all

    def ask(self, number: int) -> Values:
        return dict(self._study.ask().values)

    def report(self, number: int, epoch: int, score: float) -> None:
        self._study.report(number, epoch, score)

    def end(self, number: int, epoch: int, score: float, finished: bool) -> None:
        if finished or self._complete_all:
            self._study.complete(number, score)
        else:
            self._study.prune(number)


def defined_by_run(trial: optuna.Trial) -> None:
    kernel = trial.suggest_categorical("kernel", SPACE["kernel"].choices)  # type: ignore[union-attr]
    if kernel != "cosine":
        trial.suggest_float("sigma2", 1.0, 1.0e4, log=True)
    trial.suggest_float("lr", 1.0e-3, 3.0, log=True)
    trial.suggest_float("temperature", 0.03, 1.0, log=True)
    trial.suggest_float("crop", 0.08, 0.8)


class Rays:
    """Ray's `OptunaSearch`, with its default sampler or with ours."""

    def __init__(self, seed: int, sampler: TPESampler | None = None) -> None:
        options: dict[str, Any] = {"seed": seed} if sampler is None else {"sampler": sampler}
        self._search = OptunaSearch(
            defined_by_run, metric="score", mode="max", points_to_evaluate=[SPACE.defaults()], **options
        )

    def ask(self, number: int) -> Values:
        return dict(self._search.suggest(str(number)))

    def report(self, number: int, epoch: int, score: float) -> None:
        self._search.on_trial_result(str(number), {"training_iteration": epoch, "score": score})

    def end(self, number: int, epoch: int, score: float, finished: bool) -> None:
        self._search.on_trial_complete(str(number), {"training_iteration": epoch, "score": score})


def our_tpe(seed: int, trials: int) -> TPESampler:
    """The settings of our `tpe`, for OptunaSearch."""
    startup = max(5, min(10, trials // 3))
    return TPESampler(seed=seed, multivariate=False, constant_liar=True, n_startup_trials=startup)


SEARCHES: dict[str, Callable[[int, int], Search]] = {
    "random": lambda seed, trials: Ours("random", seed, trials),
    "OptunaSearch, as it comes": lambda seed, trials: Rays(seed),
    "OptunaSearch, our TPE settings": lambda seed, trials: Rays(seed, our_tpe(seed, trials)),
    "tpe, stopped told as finished": lambda seed, trials: Ours("tpe", seed, trials, complete_all=True),
    "tpe": lambda seed, trials: Ours("tpe", seed, trials),
    "gp": lambda seed, trials: Ours("gp", seed, trials),
    "cmaes": lambda seed, trials: Ours("cmaes", seed, trials),
}


class Trial:
    """Stands in for Ray's trial: ASHA reads its id and its configuration."""

    def __init__(self, number: int, values: Values) -> None:
        self.trial_id = str(number)
        self.number = number
        self.values = values
        self.epoch = 0
        self.config = {"request": argparse.Namespace(trial=number)}


def best_found(search: Search, curve: Curve, seed: int, trials: int) -> tuple[float, int]:
    """Run a search under ASHA; return the best final score of a complete trial, and the epochs spent."""
    asha = ResumableASHA(EPOCHS, 0.0, [], {}, Halving())
    noise = random.Random(seed)
    running: list[Trial] = []
    asked, spent, best = 0, 0, 0.0
    while running or asked < trials:
        while asked < trials and len(running) < AT_ONCE:
            trial = Trial(asked, search.ask(asked))
            asha.on_trial_add(None, trial)  # type: ignore[arg-type]
            running.append(trial)
            asked += 1
        trial = running.pop(0)
        trial.epoch += 1
        spent += 1
        score = curve(trial.values, trial.epoch) + noise.gauss(0, NOISE)
        search.report(trial.number, trial.epoch, score)
        finished = trial.epoch == EPOCHS
        if asha.on_trial_result(None, trial, {"epoch": trial.epoch, "score": score}) == "CONTINUE":
            running.append(trial)
            continue
        asha.on_trial_remove(None, trial)  # type: ignore[arg-type]
        search.end(trial.number, trial.epoch, score, finished)
        if finished:
            best = max(best, curve(trial.values, EPOCHS))
    return best, spent


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
    print(f"{given.trials} trials of {EPOCHS} epochs at most, {AT_ONCE} at once, {given.seeds} seeds, ASHA;")
    print("best final score (x 100, at most 95): mean ± sample std; p: paired t-test against tpe\n")
    print("| curves | search | best | p | epochs |\n|---|---|---|---|---|")
    for name in given.curves:
        found = {}
        for label in given.searches:
            runs = [
                best_found(SEARCHES[label](seed, given.trials), CURVES[name], seed, given.trials)
                for seed in range(given.seeds)
            ]
            found[label] = ([100 * best for best, _ in runs], statistics.mean(spent for _, spent in runs))
        for label, (scores, spent) in found.items():
            p = (
                ""
                if label == "tpe" or "tpe" not in found
                else f"{ttest_rel(scores, found['tpe'][0]).pvalue:.2g}"
            )
            spread = f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"
            print(f"| {name} | {label} | {spread} | {p} | {spent:.0f} |", flush=True)


if __name__ == "__main__":
    main()
