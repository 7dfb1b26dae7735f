"""All analyses of one study, and of several together."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from contrasweep.notebook_tables import html_table
from contrasweep.tuning.errors import refuse_repeats
from contrasweep.tuning.results.columns import texts
from contrasweep.tuning.sensitivity import comparison, enough
from contrasweep.tuning.sensitivity.budget import BudgetCurve, budget_curve
from contrasweep.tuning.sensitivity.effects import Effect, effects
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import Fidelity, fidelity
from contrasweep.tuning.sensitivity.forest import Forest, fit_forest
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
from contrasweep.tuning.sensitivity.scores import Stage, stages
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
        error: the root mean square error of its predictions of measured scores.
        known: the share of the scores' variance that is not uncertainty of estimates.
    """

    trials: int
    estimated: int
    left_out: int
    r2: float
    error: float
    known: float


@dataclass(frozen=True)
class ForestResults:
    """What rests on the forest of a stage. TooFew stands in place of what needs more trials.

    Attributes:
        surrogate: the model behind marginals, pairs and shares.
        interactions: shares of the surrogate's variance by pair of parameters.
        shares: the same by parameter.
        marginals: one curve per parameter; a conditional parameter has one per condition.
        pairs: maps of the pairs of `interactions`.
    """

    surrogate: Surrogate | TooFew
    interactions: tuple[Share, ...] | TooFew
    shares: tuple[Share, ...] = ()
    marginals: tuple[Marginal, ...] = ()
    pairs: tuple[PairMap, ...] = ()


@dataclass(frozen=True)
class StageSensitivity:
    """What the parameters do to the score at one stage. TooFew stands in place of what needs more trials.

    Attributes:
        stage: a rung, or the end.
        effects: whether each parameter matters beyond the others.
        importances: of each parameter, by PED-ANOVA.
        forest: the results that rest on the forest.
    """

    stage: Stage
    effects: tuple[Effect, ...] | TooFew
    importances: tuple[Importance | TooFew, ...]
    forest: ForestResults

    def effect_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each effect; none where there are too few trials."""
        for effect in () if isinstance(self.effects, TooFew) else self.effects:
            named = {name.replace("_", " "): value for name, value in asdict(effect).items()}
            # A narrow terminal shows the first columns.
            yield {
                "epoch": self.stage.epoch,
                "parameter": effect.parameter,
                "verdict": effect.verdict,
            } | named

    @property
    def judged(self) -> list[Importance]:
        """The importances that are known."""
        return [entry for entry in self.importances if isinstance(entry, Importance)]


@dataclass(frozen=True)
class StudySensitivity:
    """The analyses of one study. TooFew stands in place of a result that needs more trials.

    Attributes:
        observations: the trials.
        stages: what the parameters do at each rung where trials were stopped, and at the end.
        fidelity: how early scores agree with later ones.
        tunability: gains over the defaults, at the end.
        robustness: ranges around the best configuration that are as good, at the end.
        budget: the expected best score by number of trials.
        noise: scatter of seeds and of configurations.
    """

    observations: Observations
    stages: tuple[StageSensitivity, ...]
    fidelity: Fidelity | TooFew
    tunability: Tunability | TooFew
    robustness: Robustness | TooFew
    budget: BudgetCurve | TooFew
    noise: SeedNoise | TooFew

    @property
    def end(self) -> StageSensitivity:
        """What the parameters do to the final score."""
        return self.stages[-1]


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        """Return the studies and the number of their trials."""
        studies = ", ".join(f"{one.observations.study} {len(one.observations.trial)}" for one in self.studies)
        return f"Sensitivity(trials: {studies})"

    def _repr_html_(self) -> str:
        """Return the effects at each stage of each study as tables, for notebooks."""
        return "".join(map(_effects_html, self.studies))


def analyse(store: ResultsStore, studies: Sequence[str]) -> Sensitivity:
    """Analyse the hyperparameters of studies in the store.

    Raises:
        InputError: no study is given, or one is given twice.
        StoreError: there is no such study.
    """
    return analyse_observations([observe(store, study) for study in studies])


def analyse_observations(studies: Sequence[Observations]) -> Sensitivity:
    """Analyse one or more studies that were already read, perhaps from several stores.

    Raises:
        InputError: no study is given, or two have the same name.
    """
    refuse_repeats("study", [one.study for one in studies])
    # The matrices are small: starting more threads would take longer than multiplying.
    with threadpool_limits(limits=1, user_api="blas"):
        of_studies = [stages(one) for one in studies]
        ends = [_forest(one, found[-1]) for one, found in zip(studies, of_studies, strict=True)]
        single = tuple(map(_study, studies, of_studies, ends))
        if len(studies) == 1:
            return Sensitivity(single, None, None, None, None, ())
        budgets = comparison.equal_budget(studies)
        return Sensitivity(
            studies=single,
            budgets=budgets,
            ranks=None if isinstance(budgets, TooFew) else comparison.method_ranks(budgets),
            methods=None if isinstance(budgets, TooFew) else comparison.method_tests(budgets),
            seeds=comparison.seed_tests(studies),
            defaults=_defaults(studies, ends),
        )


def _effects_html(one: StudySensitivity) -> str:
    rows = [texts(row) for stage in one.stages for row in stage.effect_rows()]
    lacking = [
        f"At {stage.stage.name}: {stage.effects}."
        for stage in one.stages
        if isinstance(stage.effects, TooFew)
    ]
    title = f"{one.observations.study}: the effect of each parameter beyond the others"
    note = "Share: of the scores' variance. Verdicts: permutation tests, with Holm's correction."
    return html_table(title, rows, note if rows else "", *lacking, most=len(rows))


def _forest(observations: Observations, stage: Stage) -> Forest | TooFew:
    trials = stage.known
    if isinstance(trials, TooFew):
        return trials
    if len(trials) < enough.SURROGATE:
        return TooFew(len(trials), enough.SURROGATE, "trials with a score")
    if not observations.axes:
        return TooFew(0, 1, "searched parameters")
    return fit_forest(observations.axes, observations.strata, trials)


def _study(observations: Observations, found: Sequence[Stage], end: Forest | TooFew) -> StudySensitivity:
    rungs = [_stage(observations, stage, _forest(observations, stage)) for stage in found[:-1]]
    return StudySensitivity(
        observations=observations,
        stages=(*rungs, _stage(observations, found[-1], end)),
        fidelity=fidelity(observations, found),
        tunability=end if isinstance(end, TooFew) else tunability(end),
        robustness=end if isinstance(end, TooFew) else robustness(end),
        budget=budget_curve(observations),
        noise=seed_noise(observations),
    )


def _stage(observations: Observations, stage: Stage, forest: Forest | TooFew) -> StageSensitivity:
    o, trials = observations, stage.known
    return StageSensitivity(
        stage=stage,
        effects=forest if isinstance(forest, TooFew) else tuple(effects(o.axes, forest.trials)),
        importances=(trials,) if isinstance(trials, TooFew) else tuple(importances(o.axes, o.strata, trials)),
        forest=ForestResults(forest, forest) if isinstance(forest, TooFew) else _by_forest(forest),
    )


def _by_forest(forest: Forest) -> ForestResults:
    """Return the results that rest on a fitted forest."""
    trials, shares = forest.trials, variance_shares(forest)
    interactions: tuple[Share, ...] | TooFew = TooFew(len(trials), enough.INTERACTIONS, "trials with a score")
    pairs: list[PairMap] = []
    if len(trials) >= enough.INTERACTIONS:
        views, found = interaction_shares(forest, shares)
        interactions, pairs = tuple(found), pair_maps(forest, views)
    estimated = int(trials.estimated.sum())
    return ForestResults(
        surrogate=Surrogate(len(trials), estimated, trials.left_out, forest.r2, forest.error, trials.known),
        interactions=interactions,
        shares=tuple(shares),
        marginals=tuple(marginals(forest)),
        pairs=tuple(pairs),
    )


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
