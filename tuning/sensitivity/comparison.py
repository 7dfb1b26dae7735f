"""Comparisons of several studies: equal budgets, paired tests, and mean ranks of methods over datasets.

Friedman's test and Nemenyi's critical difference follow Demsar (2006). Pairs are tested by Wilcoxon's signed
ranks with Holm's correction.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from contrasweep.names import counted
from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.budget import (
    best_error,
    best_interval,
    best_weights,
    ended_scores,
    expected_best,
    largest_budget,
)
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations, SeedScores
from contrasweep.tuning.statistics import (
    LEVEL,
    Floats,
    difference_interval,
    holm,
    signed_rank_p,
    student_interval,
    summarise,
    without_rounding,
)


@dataclass(frozen=True)
class StudyAtBudget:
    """A study, and the expected best score of the common number of its trials.

    Attributes:
        study, method, dataset, metric: its name, what it trains on what, and its score.
        ended, completed: the number of ended trials, and of those with a final score.
        epochs: the epochs of a trial that is not stopped.
        seconds: wall-clock of all trials.
        best: the best score of all trials.
        expected: the expected best score of the common number of trials.
        low, high: its interval, see `budget.best_interval`.
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
        first, second: the studies' names.
        difference: in the score's units.
        low, high: its 95 % interval: standard errors of the jackknife, and Student's t with one degree of
            freedom less than the smaller study has trials.
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
        budget: the number of trials: see `budget.largest_budget`, of the smallest study.
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
        first, second: the names of the treatments.
        blocks: the number of pairs.
        difference: the mean of the first minus the second.
        low, high: its 95 % interval (Student's t); NaN where all pairs differ alike.
        p, p_holm: two-sided p value of Wilcoxon's signed-rank test; corrected by Holm for all tests.
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
        names, ranks: the treatments, best first, and their mean ranks.
        blocks: the number of datasets.
        p: p value of Friedman's test that all treatments are alike.
        critical_difference: Nemenyi's, at 5 %: mean ranks that are closer do not differ significantly.
    """

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    blocks: int
    p: float
    critical_difference: float


def equal_budget(studies: Sequence[Observations]) -> EqualBudget | TooFew:
    """Compare studies by the expected best score of equally many of their trials."""
    fewest = min(studies, key=lambda one: int(one.completed.sum()))
    completed = int(fewest.completed.sum())
    if completed < enough.BUDGET:
        return TooFew(completed, enough.BUDGET, f"completed trials in study {fewest.study}")
    budget = largest_budget(min(int(one.over.sum()) for one in studies))
    scores = {one.study: ended_scores(one) for one in studies}
    found = [_at_budget(one, scores[one.study], budget) for one in studies]
    differences, unequal = [], []
    for first, second in itertools.combinations(studies, 2):
        if (first.dataset, first.metric) == (second.dataset, second.metric):
            differences.append(_difference((first.study, second.study), scores, budget))
            unequal += _unequal(first, second)
    return EqualBudget(budget, tuple(found), tuple(differences), tuple(unequal))


def _difference(studies: tuple[str, str], scores: Mapping[str, Floats], budget: int) -> Difference:
    first, second = (scores[name] for name in studies)
    budgets = np.array([budget])
    difference = float((expected_best(first, budgets) - expected_best(second, budgets))[0])
    error = float(np.hypot(best_error(first, budgets), best_error(second, budgets))[0])
    # The scores are not pooled, so the smaller study decides how well the error is known.
    low, high = student_interval(difference, error, min(len(first), len(second)) - 1)
    return Difference(*studies, difference, low, high, wins(first, second, budget))


def _at_budget(study: Observations, scores: Floats, budget: int) -> StudyAtBudget:
    budgets = np.array([budget])
    low, high = best_interval(scores, budgets)
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
        expected=float(expected_best(scores, budgets)[0]),
        low=float(low[0]),
        high=float(high[0]),
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


def _unequal(first: Observations, second: Observations) -> list[str]:
    found = []
    if first.epochs != second.epochs:
        found.append(
            f"{first.study} trains for {first.epochs} epochs, {second.study} for {second.epochs}: "
            "equal trials are not equal budgets"
        )
    if first.keep != second.keep:
        asked = ", ".join(f"{one.study} keeps {one.keep or 'nothing'}" for one in (first, second))
        found.append(f"the searches have different conditions, which are not applied here: {asked}")
    seeds = [len(np.unique(one.replicates.seed)) for one in (first, second)]
    if seeds[0] != seeds[1]:
        found.append(
            f"a trial of {first.study} has {counted(seeds[0], 'seed')}, one of {second.study} has "
            f"{seeds[1]}: a mean over more seeds varies less, and the best of the others is luckier"
        )
    stopped = [one.study for one in (first, second) if one.count("stopped")]
    if len(stopped) == 1:
        found.append(f"only {stopped[0]} had trials stopped early: its trials cost less")
    return found


def method_ranks(compared: EqualBudget) -> MeanRanks | TooFew:
    """Return the mean ranks of methods over datasets, by expected best score with the common budget.

    Ranks are among the scores of one dataset and metric.
    """
    columns = _by_method(compared.studies)
    methods = sorted(columns)
    blocks = dict.fromkeys(map(_block, compared.studies))
    whole = [block for block in blocks if all(block in columns[method] for method in methods)]
    if len(methods) < 3:
        return TooFew(len(methods), 3, "methods")
    if len(whole) < enough.BLOCKS:
        return TooFew(len(whole), enough.BLOCKS, "datasets that all methods have a study of")
    return mean_ranks(methods, np.array([[columns[m][block] for m in methods] for block in whole]))


def mean_ranks(names: Sequence[str], scores: Floats) -> MeanRanks:
    """Return the mean ranks of scores (blocks, treatments), larger is better; at least three treatments."""
    blocks, count = scores.shape
    scores = np.stack([without_rounding(block, block) for block in scores])
    ranks = rankdata(-scores, axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    critical = studentized_range.ppf(LEVEL, count, np.inf) / math.sqrt(2)
    alike = bool((np.ptp(scores, axis=1) == 0).all())
    return MeanRanks(
        names=tuple(names[i] for i in order),
        ranks=tuple(float(ranks[i]) for i in order),
        blocks=blocks,
        p=1.0 if alike else float(friedmanchisquare(*scores.T).pvalue),
        critical_difference=float(critical * math.sqrt(count * (count + 1) / (6 * blocks))),
    )


def method_tests(compared: EqualBudget) -> tuple[PairedTest, ...] | TooFew:
    """Test each two methods over the datasets that both have a study of, for each metric by itself."""
    metrics = list(dict.fromkeys(one.metric for one in compared.studies))
    groups = [_by_method([one for one in compared.studies if one.metric == metric]) for metric in metrics]
    if len(metrics) > 1:
        groups = [
            {f"{method}, {metric}": scores for method, scores in group.items()}
            for metric, group in zip(metrics, groups, strict=True)
        ]
    return paired_tests(groups, "datasets")


def _by_method(studies: Sequence[StudyAtBudget]) -> dict[str, dict[str, float]]:
    """Return method to block to expected best score: the mean over the studies of the pair."""
    found: dict[str, dict[str, list[float]]] = {}
    # By dataset first: the order in which pairs of methods are tested follows from it.
    datasets = list(dict.fromkeys(one.dataset for one in studies))
    for one in sorted(studies, key=lambda one: datasets.index(one.dataset)):
        found.setdefault(one.method, {}).setdefault(_block(one), []).append(one.expected)
    return {m: {block: float(np.mean(v)) for block, v in own.items()} for m, own in found.items()}


def _block(study: StudyAtBudget) -> str:
    """Return the dataset and the metric, within which scores can be compared."""
    return f"{study.dataset}, {study.metric}"


def seed_tests(studies: Sequence[Observations]) -> tuple[PairedTest, ...] | TooFew:
    """Test each two studies of one dataset and metric over the seeds that both ran.

    Studies with several trials are left out: the scores that select the best of them flatter it, so a test
    of the same scores would find differences where there are none.
    """
    groups: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for one in studies:
        if len(np.unique(one.replicates.trial)) == 1:
            groups.setdefault((one.dataset, one.metric), {})[one.study] = _by_seed(one.replicates)
    return paired_tests(list(groups.values()), "shared seeds of studies with a single configuration")


def _by_seed(runs: SeedScores) -> dict[str, float]:
    return {str(seed): float(score) for seed, score in zip(runs.seed, runs.score, strict=True)}


def paired_tests(
    groups: Sequence[Mapping[str, Mapping[str, float]]], what: str
) -> tuple[PairedTest, ...] | TooFew:
    """Test each two treatments of a group over the blocks they share, the smallest p first.

    Args:
        groups: treatment to block to score; treatments of different groups are not compared.
        what: the blocks, in the plural.
    """
    tests, most = [], 0
    for columns in groups:
        for first, second in itertools.combinations(columns, 2):
            shared = sorted(set(columns[first]) & set(columns[second]))
            most = max(most, len(shared))
            if len(shared) >= enough.PAIRS:
                scores = [np.array([columns[name][block] for block in shared]) for name in (first, second)]
                tests.append(_test(first, second, *scores))
    if not tests:
        return TooFew(most, enough.PAIRS, what)
    tests.sort(key=lambda one: one.p)
    corrected = holm([one.p for one in tests])
    return tuple(replace(one, p_holm=p) for one, p in zip(tests, corrected, strict=True))


def _test(first: str, second: str, own: Floats, other: Floats) -> PairedTest:
    mean = summarise((own - other).tolist())
    assert mean is not None, "a test takes pairs"
    low, high = difference_interval(mean) or (math.nan, math.nan)
    p = signed_rank_p(own, other)
    return PairedTest(first, second, mean.n, mean.mean, low, high, p, p)
