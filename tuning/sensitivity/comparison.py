"""Comparisons of several studies: equal budgets, paired tests, and mean ranks of methods over datasets.

Friedman's test and Nemenyi's critical difference follow Demsar (2006). Pairs are tested by Wilcoxon's signed
ranks with Holm's correction.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.budget import best_weights, ended_scores, expected_best
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.statistics import holm, mean_interval, percentile_interval, signed_rank_p, summarise

RESAMPLES: Final = 2000


@dataclass(frozen=True)
class StudyAtBudget:
    """A study, and the expected best score of the common number of its trials.

    Attributes:
        study: its name.
        method: the method it trains.
        dataset: the dataset it trains on.
        metric: its score.
        ended: the number of ended trials.
        completed: the number of them with a final score.
        epochs: the epochs of a trial that is not stopped.
        seconds: wall-clock of all trials.
        best: the best score of all trials.
        expected: the expected best score of the common number of trials.
        low: lower end of its 95 % bootstrap interval.
        high: upper end.
    """

    study: str
    method: str
    dataset: str
    metric: str
    ended: int
    completed: int
    epochs: int
    seconds: float
    best: float
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """The difference between the expected best scores of two studies with the same dataset and metric.

    Attributes:
        first: study.
        second: study.
        difference: in the score's units.
        low: lower end of the 95 % bootstrap interval (trials resampled within each study).
        high: upper end.
        wins: the probability that the best of the first beats the best of the second; ties count half.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    wins: float


@dataclass(frozen=True)
class EqualBudget:
    """Studies side by side with the same number of trials.

    Attributes:
        budget: the number of trials: half of what the smallest study has, so that resampling gives intervals.
        studies: in the order given.
        differences: one for each two studies with the same dataset and metric.
        unequal: other differences between studies of one dataset, in words; they limit the comparison.
    """

    budget: int
    studies: tuple[StudyAtBudget, ...]
    differences: tuple[Difference, ...]
    unequal: tuple[str, ...]


@dataclass(frozen=True)
class PairedTest:
    """The paired test of two treatments over the blocks that both have.

    Attributes:
        first: the name of the first treatment.
        second: the name of the second.
        blocks: the number of pairs.
        difference: the mean of the first minus the second.
        low: lower end of its 95 % interval (Student's t).
        high: upper end.
        p: two-sided p value of Wilcoxon's signed-rank test.
        p_holm: the same, corrected by Holm for the number of tests.
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
        names: the treatments, best first.
        ranks: their mean ranks.
        blocks: the number of datasets.
        p: p value of Friedman's test that all treatments are alike.
        critical_difference: Nemenyi's, at 5 %: mean ranks that are closer do not differ significantly.
    """

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    blocks: int
    p: float
    critical_difference: float


def equal_budget(studies: Sequence[Observations], seed: int = 0) -> EqualBudget | TooFew:
    """Compare studies by the expected best score of equally many of their trials."""
    smallest = min(studies, key=lambda one: int(one.over.sum()))
    count = int(smallest.over.sum())
    if count < enough.BUDGET:
        return TooFew(count, enough.BUDGET, f"ended trials in study {smallest.study}")
    without = [one.study for one in studies if not one.completed.any()]
    if without:
        return TooFew(0, 1, f"completed trials in study {without[0]}")
    budget = max(1, count // 2)
    resampled = {one.study: _resampled(one, budget, seed + i) for i, one in enumerate(studies)}
    pairs = [(a, b) for a, b in itertools.combinations(studies, 2) if _comparable(a, b)]
    return EqualBudget(
        budget=budget,
        studies=tuple(_at_budget(one, budget, resampled[one.study]) for one in studies),
        differences=tuple(_difference(a, b, budget, resampled) for a, b in pairs),
        unequal=tuple(line for a, b in pairs for line in _unequal(a, b)),
    )


def wins(first: Floats, second: Floats, budget: int) -> float:
    """Return the probability that the first study's best of `budget` scores beats the second study's best.

    Args:
        first: scores, ascending.
        second: scores, ascending.
        budget: how many are drawn from each, without replacement.
    """
    chances_first = best_weights(len(first), np.array([budget]))[:, 0]
    chances_second = np.cumsum(best_weights(len(second), np.array([budget]))[:, 0])
    below = np.concatenate([[0.0], chances_second])
    less = below[np.searchsorted(second, first, side="left")]
    less_or_equal = below[np.searchsorted(second, first, side="right")]
    return float(chances_first @ ((less + less_or_equal) / 2))


def _comparable(first: Observations, second: Observations) -> bool:
    return first.dataset == second.dataset and first.metric == second.metric


def _resampled(study: Observations, budget: int, seed: int) -> Floats:
    scores = ended_scores(study)
    draws = np.random.default_rng(seed).integers(len(scores), size=(RESAMPLES, len(scores)))
    return expected_best(np.sort(scores[draws], axis=1), budget)


def _at_budget(study: Observations, budget: int, resampled: Floats) -> StudyAtBudget:
    scores = ended_scores(study)
    low, high = percentile_interval(resampled)
    return StudyAtBudget(
        study=study.study,
        method=study.method,
        dataset=study.dataset,
        metric=study.metric,
        ended=len(scores),
        completed=int(study.completed.sum()),
        epochs=study.epochs,
        seconds=float(np.nansum(study.seconds)),
        best=float(scores[-1]),
        expected=float(expected_best(scores, budget)),
        low=float(low),
        high=float(high),
    )


def _difference(
    first: Observations, second: Observations, budget: int, resampled: dict[str, Floats]
) -> Difference:
    scores, others = ended_scores(first), ended_scores(second)
    gap = float(expected_best(scores, budget) - expected_best(others, budget))
    low, high = percentile_interval(resampled[first.study] - resampled[second.study])
    chance = wins(scores, others, budget)
    return Difference(first.study, second.study, gap, float(low), float(high), chance)


def _unequal(first: Observations, second: Observations) -> list[str]:
    found = []
    if first.epochs != second.epochs:
        found.append(
            f"{first.study} trains for {first.epochs} epochs, {second.study} for {second.epochs}: "
            "equal trials are not equal budgets"
        )
    stopped = [one.study for one in (first, second) if one.count("stopped")]
    if len(stopped) == 1:
        found.append(f"only {stopped[0]} had trials stopped early: its trials cost less")
    return found


def method_ranks(compared: EqualBudget) -> MeanRanks | TooFew:
    """Return the mean ranks of methods over datasets, by expected best score with the common budget."""
    table = method_table(compared)
    methods = sorted({method for row in table.values() for method in row})
    whole = [row for row in table.values() if set(row) == set(methods)]
    if len(methods) < 3:
        return TooFew(len(methods), 3, "methods")
    if len(whole) < enough.BLOCKS:
        return TooFew(len(whole), enough.BLOCKS, "datasets that all methods have a study of")
    return mean_ranks(methods, np.array([[row[method] for method in methods] for row in whole]))


def method_table(compared: EqualBudget) -> dict[str, dict[str, float]]:
    """Return dataset to method to expected best score: the mean over the studies of the pair."""
    found: dict[str, dict[str, list[float]]] = {}
    for one in compared.studies:
        found.setdefault(one.dataset, {}).setdefault(one.method, []).append(one.expected)
    return {d: {m: float(np.mean(v)) for m, v in row.items()} for d, row in found.items()}


def mean_ranks(names: Sequence[str], scores: Floats) -> MeanRanks:
    """Return the mean ranks of scores (blocks, treatments), larger is better; at least three treatments."""
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


def method_tests(compared: EqualBudget) -> tuple[PairedTest, ...] | TooFew:
    """Test each two methods over the datasets that both have a study of."""
    table = method_table(compared)
    columns: dict[str, dict[str, float]] = {}
    for dataset, row in table.items():
        for method, value in row.items():
            columns.setdefault(method, {})[dataset] = value
    return paired_tests(columns, "datasets")


def seed_tests(studies: Sequence[Observations]) -> tuple[PairedTest, ...] | TooFew:
    """Test each two studies of one dataset and metric over the seeds that both ran.

    A study with several trials takes part with the trial of the best mean score.
    """
    most = 0
    groups: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for one in studies:
        groups.setdefault((one.dataset, one.metric), {})[one.study] = _by_seed(one)
    tests: list[PairedTest] = []
    for columns in groups.values():
        result = paired_tests(columns, "shared seeds")
        if isinstance(result, TooFew):
            most = max(most, result.found)
        else:
            tests += result
    return _holm(tests) if tests else TooFew(most, enough.PAIRS, "shared seeds")


def paired_tests(columns: Mapping[str, Mapping[str, float]], what: str) -> tuple[PairedTest, ...] | TooFew:
    """Test each two treatments (name to block to score) over the blocks they share."""
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
    mean = summarise(gaps.tolist())
    assert mean is not None, "a test takes pairs"
    interval = mean_interval(mean)
    assert interval is not None, "a test takes several pairs"
    p = signed_rank_p(gaps)
    return PairedTest(first, second, mean.n, mean.mean, *interval, p, p)


def _holm(tests: Sequence[PairedTest]) -> tuple[PairedTest, ...]:
    """Return the tests with corrected p values, the smallest p first."""
    ordered = sorted(tests, key=lambda one: one.p)
    corrected = holm([one.p for one in ordered])
    return tuple(replace(one, p_holm=p) for one, p in zip(ordered, corrected, strict=True))


def _by_seed(study: Observations) -> dict[str, float]:
    runs = study.replicates
    if not len(runs.trial):
        return {}
    trials = np.unique(runs.trial)
    best = max(trials, key=lambda trial: (runs.score[runs.trial == trial].mean(), -trial))
    own = runs.trial == best
    return {str(seed): float(score) for seed, score in zip(runs.seed[own], runs.score[own], strict=True)}
