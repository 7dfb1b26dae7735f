"""Select trials by what the model of learning curves expects of them, not by the scores that they got.

The highest of many noisy scores is usually a lucky one. The model knows the scores of all trials, those that
were stopped included, and gives each one the mean of what its configuration would score on other seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from contrasweep.names import counted
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.methods.metrics import is_fraction
from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.results.best import EXPECTED, SCORE, check_choice, merit, rule_in_words
from contrasweep.tuning.results.selection import SelectedTrials, best_trials
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.search import SearchStudy
from contrasweep.tuning.store import ResultsStore, StudyRecord


def selected_trials(
    store: ResultsStore, study: str, top: int | None = 1, where: Sequence[str] = (), by: str = SCORE
) -> SelectedTrials:
    """Return the best completed trials by their scores, or by those that are expected on another seed.

    Args:
        store, study, top, where: as in `best_trials`.
        by: one of `results.best.CHOICES`.

    Raises:
        InputError: there is no such choice; or trials are selected by `EXPECTED`, and the search has several
            metrics or too few trials for the model. See also `best_trials`.
        SweepFailed, StoreError: see `best_trials`.
    """
    check_choice(by)
    if by == SCORE:
        return best_trials(store, study, top, where)
    check_count("top", top)
    record = store.study(study)
    search = record.require_search()
    if len(search.metrics) > 1:
        raise InputError(
            f"the choice {EXPECTED!r} takes one metric; study {study} has {', '.join(search.metrics)}"
        )
    every = best_trials(store, study, search.trials, where)
    expected = expected_scores(store, record)
    of_seed = f"{rule_in_words(record.metric)}, as the model of learning curves expects it on another seed"
    # Of equal expectations, the higher score comes first, and then the earlier trial: the order of `every`.
    found = sorted(every, key=lambda one: -merit(record.metric, expected[one.trial]))
    rule = f"{of_seed}{every[0].rule.removeprefix(rule_in_words(record.metric))}"
    return SelectedTrials(
        replace(one, expected=_possible(record.metric, expected[one.trial]), rule=rule)
        for one in found[: 1 if top is None else top]
    )


def _possible(metric: str, score: float) -> float:
    """Return the score nearest to one that a model expects: it does not know that a fraction ends at 1."""
    return min(1.0, max(0.0, score)) if is_fraction(metric) else score


def expected_scores(store: ResultsStore, record: StudyRecord) -> Mapping[int, float]:
    """Return what each trial of a search is expected to score at the end of another seed, by its number.

    Raises:
        InputError: fewer than four trials have a score, all scores are alike, or nothing is searched.
    """
    tables = store.tables(record.name)
    held = trial_outcomes(tables.trials, record)
    # It proposes nothing: any sampler will do.
    search = SearchStudy(
        record.space,
        sampler="random",
        epochs=record.experiment.epochs,
        warmup=record.experiment.schedule.warmup_epochs,
    )
    search.restore(past_trials(held, tables.epochs, record))
    found = search.expected_finals()
    if found is None:
        raise InputError(
            f"the choice {EXPECTED!r} needs four trials with scores that differ; study {record.name} has "
            f"{counted(len(held), 'trial')}"
        )
    return {trial: merit(record.metric, value) for trial, value in found.items()}
