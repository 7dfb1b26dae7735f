"""Every method with its defaults against its own untrained encoder, on embedded data that suits it.

    python -m benchmarks.sanity [--method NAME ...] [--data DATASET] [--epochs E] [--seeds 3] [--processes 2]

Methods for objects with several views get two-view digits, methods that need a bias label get biased digits,
methods that need a condition get coloured digits, and all others get plain digits; `--data` overrides this.
Scores are those of the validation split, which is cut from the training images: `pretrain` never sees a test
image. Both encoders of a row have the same seeds, so differences are taken seed by seed; their interval is
Student's t at 95 %.
"""

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import torch

from contrasweep.data import dataset_spec
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import default_goal
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.statistics import Summary, mean_interval, summarise
from contrasweep.tuning.training.pretrain import pretrain

COLOUR = "val.colour_mse"
"""In squared 8-bit levels (the other metrics are shares): the larger, the less colour the features keep."""

HEADER = ("method", "data", "metric", "untrained", "trained", "n", "difference", "95 % interval", "higher in")


@dataclass(frozen=True)
class Run:
    """The scores of one seed by metric: for the untrained encoder and after the last epoch."""

    untrained: Mapping[str, float]
    trained: Mapping[str, float]


def suitable_data(method: str) -> str:
    """Return the simplest embedded dataset that has what the method needs."""
    needs = METHODS[method].needs
    if "own views" in needs:
        return "two-view-digits"
    if any("bias" in need for need in needs):
        return "biased-digits"
    return "colour-digits" if "condition" in needs else "digits"


def metrics_of(method: str, dataset: str) -> list[str]:
    """Return the metrics to show: what a sweep maximises and, for a method with a condition, the colour."""
    goal = default_goal(METHODS[method], dataset_spec(dataset))
    return [goal, COLOUR] if "condition" in METHODS[method].needs else [goal]


def run(method: str, dataset: str, epochs: int | None, seed: int) -> Run:
    """Train the method with its defaults."""
    torch.set_num_threads(1)
    given = {"seed": seed} if epochs is None else {"seed": seed, "epochs": epochs}
    records = [record.metrics for record in pretrain(resolve(method, dataset, given))]
    return Run(records[0], records[-1])


def rows_of(method: str, dataset: str, runs: Sequence[Run]) -> Iterator[list[str]]:
    """Yield a row of the table for each metric."""
    for metric in metrics_of(method, dataset):
        pairs = [(one.untrained[metric], one.trained[metric]) for one in runs]
        untrained, trained = (summarise(scores) for scores in zip(*pairs, strict=True))
        difference = summarise(after - before for before, after in pairs)
        assert untrained is not None
        assert trained is not None
        assert difference is not None
        interval = mean_interval(difference)
        scale = 1.0 if metric == COLOUR else 100.0
        yield [
            method,
            dataset,
            metric.removeprefix("val.") + ("" if metric == COLOUR else ", %"),
            _mean_and_std(untrained, scale),
            _mean_and_std(trained, scale),
            str(difference.n),
            f"{scale * difference.mean:+.1f}",
            "" if interval is None else f"{scale * interval[0]:+.1f} to {scale * interval[1]:+.1f}",
            f"{sum(after > before for before, after in pairs)} of {len(pairs)}",
        ]


def _mean_and_std(summary: Summary, scale: float) -> str:
    spread = "" if summary.std is None else f" ± {scale * summary.std:.1f}"
    return f"{scale * summary.mean:.1f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Every method beside its untrained encoder.")
    parser.add_argument("--method", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="NAME")
    parser.add_argument("--data", help="dataset; default: the one that suits the method")
    parser.add_argument("--epochs", type=int, help="default: the method's own")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    data = {method: options.data or suitable_data(method) for method in options.method}
    jobs = list(itertools.product(data.items(), range(options.seeds)))
    print("| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|", sep="\n")
    with ProcessPoolExecutor(options.processes) as pool:
        futures = [pool.submit(run, *pair, options.epochs, seed) for pair, seed in jobs]
        for place, (method, dataset) in enumerate(data.items()):
            own = futures[place * options.seeds : (place + 1) * options.seeds]
            for row in rows_of(method, dataset, [future.result() for future in own]):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
