"""All analyses of one study, and of several together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from contrasweep.tuning.sensitivity import comparison, enough
from contrasweep.tuning.sensitivity.budget import BudgetCurve, budget_curve
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import Fidelity, fidelity
from contrasweep.tuning.sensitivity.forest import Forest, fit_forest, scored_trials
from contrasweep.tuning.sensitivity.importance import Importance, importances
from contrasweep.tuning.sensitivity.marginals import (
    Marginal,
    PairMap,
    Share,
    interaction_shares,
    marginals,
    pair_maps,
    variance_shares,
)
from contrasweep.tuning.sensitivity.noise import SeedNoise, seed_noise
from contrasweep.tuning.sensitivity.observations import Observations, observe
from contrasweep.tuning.sensitivity.tunability import (
    BestDefault,
    Robustness,
    Tunability,
    best_default,
    robustness,
    tunability,
)
from contrasweep.tuning.store import ResultsStore


@dataclass(frozen=True)
class Surrogate:
    """The data behind the forest, and how well it predicts unseen trials.

    Attributes:
        trials, estimated: the number of trials that it was fitted on, and of those with an estimated score.
        left_out: the number of ended trials without a score.
        r2: the share of the variance that it predicts; 0 or less means none (see `Forest.r2`).
    """

    trials: int
    estimated: int
    left_out: int
    r2: float


@dataclass(frozen=True)
class StudySensitivity:
    """The analyses of one study. TooFew stands in place of a result that needs more trials.

    Attributes:
        observations: the trials.
        surrogate: the model behind marginals, pairs, shares, tunability and robustness.
        marginals: one curve per parameter; a conditional parameter has one per condition.
        importances: of each parameter, by PED-ANOVA.
        shares, interactions: shares of the surrogate's variance, by parameter and by pair.
        pairs: maps of the same pairs.
        fidelity: how early scores agree with final ones.
        tunability: gains over the defaults.
        robustness: ranges around the best configuration that are as good.
        budget: the expected best score by number of trials.
        noise: scatter of seeds and of configurations.
    """

    observations: Observations
    surrogate: Surrogate | TooFew
    marginals: tuple[Marginal, ...]
    importances: tuple[Importance | TooFew, ...]
    shares: tuple[Share, ...]
    interactions: tuple[Share, ...] | TooFew
    pairs: tuple[PairMap, ...]
    fidelity: Fidelity | TooFew
    tunability: Tunability | TooFew
    robustness: Robustness | TooFew
    budget: BudgetCurve | TooFew
    noise: SeedNoise | TooFew


@dataclass(frozen=True)
class Sensitivity:
    """The analyses of one or several studies. With one study, the comparisons are None or empty.

    Attributes:
        studies: each by itself, in the order given.
        budgets: the best score of each with the same number of trials.
        ranks: mean ranks of methods over datasets.
        methods, seeds: paired tests of methods over datasets, and of studies over shared seeds.
        defaults: the best default of each method that was searched on several datasets.
    """

    studies: tuple[StudySensitivity, ...]
    budgets: comparison.EqualBudget | TooFew | None
    ranks: comparison.MeanRanks | TooFew | None
    methods: tuple[comparison.PairedTest, ...] | TooFew | None
    seeds: tuple[comparison.PairedTest, ...] | TooFew | None
    defaults: tuple[BestDefault, ...]


def analyse(store: ResultsStore, studies: Sequence[str]) -> Sensitivity:
    """Analyse the hyperparameters of studies in the store.

    Raises:
        StoreError: there is no such study.
    """
    return analyse_observations([observe(store, study) for study in studies])


def analyse_observations(studies: Sequence[Observations]) -> Sensitivity:
    """Analyse one or more studies that were already read."""
    # The matrices are small: starting more threads would take longer than multiplying.
    with threadpool_limits(limits=1, user_api="blas"):
        forests = [_forest(one) for one in studies]
        single = tuple(_study(one, forest) for one, forest in zip(studies, forests, strict=True))
        if len(studies) == 1:
            return Sensitivity(single, None, None, None, None, ())
        budgets = comparison.equal_budget(studies)
        return Sensitivity(
            studies=single,
            budgets=budgets,
            ranks=None if isinstance(budgets, TooFew) else comparison.method_ranks(budgets),
            methods=None if isinstance(budgets, TooFew) else comparison.method_tests(budgets),
            seeds=comparison.seed_tests(studies),
            defaults=_defaults(studies, forests),
        )


def _forest(observations: Observations) -> Forest | TooFew:
    trials = scored_trials(observations)
    if len(trials) < enough.SURROGATE:
        return TooFew(len(trials), enough.SURROGATE, "trials with a score")
    if not observations.axes:
        return TooFew(0, 1, "searched parameters")
    return fit_forest(observations.axes, observations.strata, trials)


def _study(observations: Observations, forest: Forest | TooFew) -> StudySensitivity:
    return StudySensitivity(
        observations=observations,
        importances=tuple(importances(observations)),
        fidelity=fidelity(observations),
        budget=budget_curve(observations),
        noise=seed_noise(observations),
        **_without_forest(forest) if isinstance(forest, TooFew) else _by_forest(forest),
    )


def _without_forest(lack: TooFew) -> dict[str, Any]:
    instead = dict.fromkeys(("surrogate", "interactions", "tunability", "robustness"), lack)
    return {**instead, "marginals": (), "shares": (), "pairs": ()}


def _by_forest(forest: Forest) -> dict[str, Any]:
    """Return the results that rest on the surrogate, by their names in `StudySensitivity`."""
    trials, shares = forest.trials, variance_shares(forest)
    interactions: tuple[Share, ...] | TooFew = TooFew(len(trials), enough.INTERACTIONS, "trials with a score")
    pairs: list[PairMap] = []
    if len(trials) >= enough.INTERACTIONS:
        views, found = interaction_shares(forest, shares)
        interactions, pairs = tuple(found), pair_maps(forest, views)
    return {
        "surrogate": Surrogate(len(trials), int(trials.estimated.sum()), trials.left_out, forest.r2),
        "marginals": tuple(marginals(forest)),
        "shares": tuple(shares),
        "interactions": interactions,
        "pairs": tuple(pairs),
        "tunability": tunability(forest),
        "robustness": robustness(forest),
    }


def _defaults(studies: Sequence[Observations], forests: Sequence[Forest | TooFew]) -> tuple[BestDefault, ...]:
    """Find the best default of each method whose studies share a space and cover several datasets."""
    groups: dict[tuple[str, str], list[tuple[Observations, Forest]]] = {}
    for one, forest in zip(studies, forests, strict=True):
        if not isinstance(forest, TooFew):
            # Two studies share a space if their axes do, wherever the values were found.
            space = repr([(axis.parameter.model_dump(exclude={"source"}), axis.when) for axis in one.axes])
            groups.setdefault((one.method, space), []).append((one, forest))
    return tuple(
        best_default(method, {one.study: one.dataset for one, _ in members}, [f for _, f in members])
        for (method, _), members in groups.items()
        if len({one.dataset for one, _ in members}) > 1
    )
