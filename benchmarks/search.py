"""Our search against what users run instead, in simulated time: nothing is trained.

    python -m benchmarks.search [--seeds 20] [--trials 40]
    python -m benchmarks.search --peers [--seeds 30] [--workers 2 8 64] [--recordings NAME ...] [--trees]
        [--earlier] [--keep FILE]

The first form uses made-up learning curves, so that the best score is known. All searches run under the same
ASHA, begin with the same defaults and run as many trials at once. Three kinds of curve:

- agreeing: all scores rise at one speed, so that early ranks are the final ranks;
- crossing: large learning rates rise fast and end low, so that early ranks mislead;
- falling: scores begin high and fall (an untrained encoder knows no colour yet), so that the last score of a
  stopped trial beats the score of every finished one.

The second form replays the recorded curves in `benchmarks/recorded` (random configurations that were never
stopped). Contrasweep and its peers (`benchmarks.peers`) come as they are, and get the same epochs. What a
configuration scores that nobody ran is predicted by the Gaussian process of `tuning.replay`, or with
`--trees` by a forest, whose scores jump: a search that models smooth scores has no advantage there.

`--earlier` lets all of them begin with what `--warm-start` begins with: the best configurations of a random
search of the same method on another dataset (`benchmarks/recorded/earlier`); recordings without one are left
out. `--keep docs/peers.parquet` keeps what `benchmarks.peers_page` shows.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from scipy.stats import ttest_rel
from sklearn.ensemble import ExtraTreesRegressor

from benchmarks.peers import PEERS, Configuration, RayTune
from benchmarks.peers_records import Record, Setting, Surrogate, keep
from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.planning.enqueued import whole_configurations
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.planning.warm_start import MOST_FIRST
from contrasweep.tuning.replay.comparison import SHARES, SearchOf, Standing, compare
from contrasweep.tuning.replay.recording import Recording, read_recording
from contrasweep.tuning.replay.request import settings_of
from contrasweep.tuning.replay.searches import OwnSearch, searches_of
from contrasweep.tuning.replay.simulation import Job, Run, Search, simulate
from contrasweep.tuning.replay.table import said_of
from contrasweep.tuning.replay.workload import Workload
from contrasweep.tuning.search.axes import values_of
from contrasweep.tuning.search.tpe import tpe
from contrasweep.tuning.statistics import Floats

EPOCHS, AT_ONCE, NOISE = 27, 4, 0.01
RECORDED = Path(__file__).parent / "recorded"
EARLIER = {
    "cacr-colour-digits": "cacr-digits",
    "fair-cclk-colour-digits": "fair-cclk-colormnist",
    "infonce-colormnist": "infonce-colour-digits",
}
"""A search of the same method on another dataset, by recording."""
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
    return OwnSearch(
        SPACE,
        sampler=sampler,
        scheduler="asha",
        halving=Halving(),
        epochs=EPOCHS,
        warmup=0.0,
        trials=trials,
        seed=seed,
    )


SEARCHES: dict[str, Callable[[int, int], Search]] = {
    "random": lambda seed, trials: ours("random", seed, trials),
    "OptunaSearch, as it comes": lambda seed, trials: RayTune(SPACE, EPOCHS, seed, None, Halving()),
    "OptunaSearch, our TPE settings": lambda seed, trials: RayTune(
        SPACE, EPOCHS, seed, tpe(seed, trials), Halving()
    ),
    "tpe, stopped told as finished": lambda seed, trials: ToldAsFinished(ours("tpe", seed, trials)),
    "tpe": lambda seed, trials: ours("tpe", seed, trials),
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


def contestants(first: Sequence[Configuration] = ()) -> Mapping[str, SearchOf]:
    """Return contrasweep as it comes, its peers, and random search with and without ASHA."""
    default, *chance = settings_of("tpe", "asha") + settings_of("random", "asha,none")
    (curves,) = settings_of("curves", "curves")
    stopping, plain = chance
    own = searches_of((default, curves, *chance), first)

    def peer(name: str, workload: Workload, seed: int) -> Search:
        return PEERS[name](workload.recording.space, workload.recording.epochs, seed, first=first)

    return {
        "contrasweep": own[default.name],
        "contrasweep: curves": own[curves.name],
        **{name: partial(peer, name) for name in PEERS},
        "random, ASHA": own[stopping.name],
        "random": own[plain.name],
    }


def best_elsewhere(recording: str, space: Space) -> list[Configuration]:
    """Return the configurations that `--warm-start` would run first, from a search on another dataset."""
    earlier = read_recording(RECORDED / "earlier" / f"{EARLIER[recording]}.parquet")
    best_first = np.argsort(-earlier.scores[:, -1], kind="stable")
    given = [values_of(earlier.axes, earlier.codes[place]) for place in best_first]
    defaults, *found = whole_configurations([{}, *given], space)
    return [one for one in found if one != defaults][:MOST_FIRST]


class Trees:
    """A surrogate in place of `replay.surrogate`: extremely randomised trees (Geurts et al. 2006)."""

    def __init__(self, recording: Recording) -> None:
        self._trees = ExtraTreesRegressor(200, min_samples_leaf=2, random_state=0)
        self._trees.fit(recording.columns, recording.spread_out(recording.scores))

    def predict(self, columns: Floats) -> Floats:
        return np.asarray(self._trees.predict(columns))


def print_peers(
    seeds: int,
    workers: list[int],
    trials: int,
    only: list[str],
    recordings: list[str],
    *,
    trees: bool,
    earlier: bool,
    kept_in: Path | None,
) -> None:
    for name in recordings:
        workload = Workload.of(read_recording(RECORDED / f"{name}.parquet"))
        epochs = workload.recording.epochs
        first = best_elsewhere(name, workload.recording.space) if earlier else []
        searches = {one: of for one, of in contestants(first).items() if not only or one in only}
        surrogate = Surrogate.of(workload)
        print(f"\n{name}: {said_of(workload)}\n")
        if trees:
            workload = replace(workload, surrogate=Trees(workload.recording))  # type: ignore[arg-type]
        print("| workers | epochs | search | " + " | ".join(f"{share:.0%}" for share in SHARES), end="")
        print(" | mean rank | epochs to the best peer's end |\n|---|---|---|---|---|---|---|---|")
        for at_once in workers:
            # With fewer, many workers would share the budget before any trial has trained to its end.
            budget = max(trials, 2 * at_once) * epochs
            found = compare(searches, workload, workers=at_once, budget=budget, seeds=seeds)
            for line in _rows(found, budget):
                print(f"| {at_once} | {budget} | {line} |", flush=True)
            if kept_in is not None:
                setting = Setting(name, at_once, budget, earlier)
                keep(kept_in, [Record.of(setting, surrogate, one) for one in found])


def _rows(found: list[Standing], budget: int) -> list[str]:
    best_peer = max((one.after(1.0)[0] for one in found if one.name in PEERS), default=math.inf)
    lines = []
    for one in found:
        scores = [one.after(share) for share in SHARES]
        share = one.share_to_reach(best_peer)
        rank, half = one.rank()
        cells = [
            one.name,
            *(f"{100 * mean:.1f} ± {100 * half:.1f}" for mean, half in scores),
            f"{rank:.2f} ({rank - half:.2f} to {rank + half:.2f})",
            "not reached" if share is None else f"{share * budget:.0f}",
        ]
        lines.append(" | ".join(cells))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=list(CURVES))
    parser.add_argument("--searches", nargs="+", default=[])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8, 64])
    recorded = sorted(path.stem for path in RECORDED.glob("*.parquet"))
    parser.add_argument("--recordings", nargs="+", choices=recorded, default=recorded)
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--earlier", action="store_true")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if given.peers:
        there = [name for name in given.recordings if name in EARLIER or not given.earlier]
        chosen = given.workers, given.trials, given.searches, there
        if given.keep is not None and (given.trees or given.searches):
            parser.error("--keep keeps all searches on the Gaussian process: no --trees, no --searches")
        print_peers(given.seeds, *chosen, trees=given.trees, earlier=given.earlier, kept_in=given.keep)
    else:
        print_made_up(given.seeds, given.trials, given.curves, given.searches or list(SEARCHES))


if __name__ == "__main__":
    main()
