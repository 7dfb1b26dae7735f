"""Tests over several datasets or seeds: paired differences, and critical differences of mean ranks.

Friedman's test and Nemenyi's critical difference as Demsar (2006) puts them together; pairs by Wilcoxon's
signed ranks, with Holm's correction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, t, wilcoxon

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.comparison import EqualBudget
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations


@dataclass(frozen=True)
class PairedTest:
    """Two treatments over the blocks that both have.

    Attributes:
        first: name.
        second: name.
        blocks: how many pairs.
        difference: mean of first less second.
        low: lower end of its 95 % interval (Student's t).
        high: upper end.
        p: two-sided, of Wilcoxon's signed ranks.
        p_holm: the same, corrected for the number of pairs tested together.
    """

    first: str
    second: str
    blocks: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


@dataclass(frozen=True)
class MeanRanks:
    """Mean ranks over blocks; 1 is the best.

    Attributes:
        names: of the treatments, best first.
        ranks: their mean ranks.
        blocks: datasets.
        p: of Friedman's test that all are alike.
        critical_difference: Nemenyi's, at 5 %: mean ranks closer than this are not told apart.
    """

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    blocks: int
    p: float
    critical_difference: float


def method_ranks(compared: EqualBudget) -> MeanRanks | TooFew:
    """Return the mean ranks of methods over datasets, by what they find with the common budget."""
    table = method_table(compared)
    methods = sorted({method for row in table.values() for method in row})
    whole = [row for row in table.values() if set(row) == set(methods)]
    if len(methods) < 3:
        return TooFew(len(methods), 3, "methods")
    if len(whole) < enough.BLOCKS:
        return TooFew(len(whole), enough.BLOCKS, "datasets that all methods have a study of")
    return mean_ranks(methods, np.array([[row[method] for method in methods] for row in whole]))


def method_table(compared: EqualBudget) -> dict[str, dict[str, float]]:
    """Return dataset to method to expected best; of several studies of one pair, their mean."""
    found: dict[str, dict[str, list[float]]] = {}
    for one in compared.studies:
        found.setdefault(one.dataset, {}).setdefault(one.method, []).append(one.expected)
    return {d: {m: float(np.mean(v)) for m, v in row.items()} for d, row in found.items()}


def mean_ranks(names: Sequence[str], scores: Floats) -> MeanRanks:
    """Return the mean ranks of scores (blocks, treatments), at least three treatments, larger is better."""
    blocks, count = scores.shape
    ranks = np.array([rankdata(-row) for row in scores]).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    critical = studentized_range.ppf(0.95, count, np.inf) / math.sqrt(2)
    alike = bool((np.ptp(scores, axis=1) == 0).all())
    return MeanRanks(
        names=tuple(names[i] for i in order),
        ranks=tuple(float(ranks[i]) for i in order),
        blocks=blocks,
        p=1.0 if alike else float(friedmanchisquare(*scores.T).pvalue),
        critical_difference=float(critical * math.sqrt(count * (count + 1) / (6 * blocks))),
    )


def method_tests(compared: EqualBudget) -> list[PairedTest] | TooFew:
    """Return the test of each two methods over the datasets that both have a study of."""
    table = method_table(compared)
    columns: dict[str, dict[str, float]] = {}
    for dataset, row in table.items():
        for method, value in row.items():
            columns.setdefault(method, {})[dataset] = value
    return paired_tests(columns, "datasets")


def seed_tests(studies: Sequence[Observations]) -> list[PairedTest] | TooFew:
    """Return the test of each two studies of one dataset and metric over the seeds that both ran.

    Of a study with several trials, the one with the best mean score is taken.
    """
    found: list[PairedTest] | TooFew = TooFew(0, enough.PAIRS, "shared seeds")
    groups: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for one in studies:
        groups.setdefault((one.dataset, one.metric), {})[one.study] = _by_seed(one)
    tests: list[PairedTest] = []
    for columns in groups.values():
        result = paired_tests(columns, "shared seeds")
        if isinstance(result, TooFew):
            found = result if isinstance(found, TooFew) and result.found >= found.found else found
        else:
            tests += result
    return _holm(tests) if tests else found


def paired_tests(columns: Mapping[str, Mapping[str, float]], what: str) -> list[PairedTest] | TooFew:
    """Return the test of each two treatments (name to block to score) over the blocks they share."""
    tests, most = [], 0
    for first, second in itertools.combinations(columns, 2):
        shared = sorted(set(columns[first]) & set(columns[second]))
        most = max(most, len(shared))
        if len(shared) < enough.PAIRS:
            continue
        gaps = np.array([columns[first][block] - columns[second][block] for block in shared])
        tests.append(_test(first, second, gaps))
    return _holm(tests) if tests else TooFew(most, enough.PAIRS, what)


def _test(first: str, second: str, gaps: Floats) -> PairedTest:
    mean, error = float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    half = float(t.ppf(0.975, len(gaps) - 1)) * error
    p = float(wilcoxon(gaps).pvalue) if gaps.any() else 1.0
    return PairedTest(first, second, len(gaps), mean, mean - half, mean + half, p, p)


def _holm(tests: list[PairedTest]) -> list[PairedTest]:
    """Holm's step-down correction: the smallest p times the number of tests, and so on, never falling."""
    ordered = sorted(tests, key=lambda one: one.p)
    corrected, least = [], 0.0
    for place, one in enumerate(ordered):
        least = max(least, min(1.0, one.p * (len(ordered) - place)))
        corrected.append(PairedTest(**{**vars(one), "p_holm": least}))
    return corrected


def _by_seed(study: Observations) -> dict[str, float]:
    runs = study.replicates
    if not len(runs.trial):
        return {}
    trials = np.unique(runs.trial)
    best = max(trials, key=lambda trial: (runs.score[runs.trial == trial].mean(), -trial))
    own = runs.trial == best
    return {str(seed): float(score) for seed, score in zip(runs.seed[own], runs.score[own], strict=True)}
