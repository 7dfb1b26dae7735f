"""What untrained encoders score: the distribution over random initialisations, on the test images.

    python -m benchmarks.untrained METHOD DATASET [--encoders 100] [--processes 2] [-o scores.parquet]

The encoder, its head and its probes are those of the papers' preset of METHOD on DATASET. Encoder n is the
one with which a run of seed n begins. Probes are fitted on all training images, as for a final run. Nothing
is selected, so the test images may be read for every encoder.
"""

import argparse
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from contrasweep.data import load_test
from contrasweep.tuning.objectives.prepared import Prepared, prepare_data
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.evaluation import fitted_scores
from contrasweep.tuning.training.pretrain import build_objective

QUANTILES = (0.0, 0.025, 0.25, 0.5, 0.75, 0.975, 1.0)


def scores_of(method: str, dataset: str, seed: int) -> Mapping[str, float]:
    """Return the test scores of the encoder of a seed before training, by name."""
    torch.set_num_threads(1)
    experiment = resolve(method, dataset, {"seed": seed, "validation.fraction": 0.0}, use_preset=True)
    data = _data(method, dataset)
    objective = build_objective(experiment, data)
    test = data.test_data(load_test(dataset))
    return fitted_scores(objective, data, test, experiment, experiment.probes.classifier, test=True)


@cache
def _data(method: str, dataset: str) -> Prepared:
    """Return the whole training set, once a process: without a validation split it has no seed."""
    experiment = resolve(method, dataset, {"validation.fraction": 0.0}, use_preset=True)
    return prepare_data(experiment, None, torch.device("cpu"))


def main() -> None:
    """Score the encoders, print the distribution of each score, and keep the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("method")
    parser.add_argument("dataset")
    parser.add_argument("--encoders", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    seeds = range(given.encoders)
    with ProcessPoolExecutor(given.processes) as pool:
        found = list(pool.map(partial(scores_of, given.method, given.dataset), seeds))
    rows = [{"seed": seed, **scores} for seed, scores in zip(seeds, found, strict=True)]
    if given.output is not None:
        pq.write_table(pa.Table.from_pylist(rows), given.output)
    print(f"{given.encoders} untrained encoders: {given.method} on {given.dataset}, test scores")
    print(f"{'':16}{'mean':>9}{'std':>9}" + "".join(f"{100 * share:>8g}%" for share in QUANTILES))
    for name in found[0]:
        values = np.array([scores[name] for scores in found])
        spread = (values.mean(), values.std(ddof=1), *np.quantile(values, QUANTILES))
        print(f"{name:16}" + "".join(f"{value:9.4g}" for value in spread))


if __name__ == "__main__":
    main()
