"""The configurations of a study, each with the score that selects and the score that is reported."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods.metrics import report_form
from contrasweep.tuning.results.best import merit, merit_name
from contrasweep.tuning.results.final_runs import same_network
from contrasweep.tuning.results.study_checks import (
    differs_beyond_seed,
    refuse_as_other_seeds,
    refuse_conditions,
)
from contrasweep.tuning.results.trials import (
    TrialOutcome,
    merit_of,
    trial_outcomes,
    untrained_mean,
    untrained_scores,
)
from contrasweep.tuning.search.axes import configuration_key
from contrasweep.tuning.search.sampler import SAMPLERS
from contrasweep.tuning.stability.smallest_pool import refuse_few
from contrasweep.tuning.statistics import Floats, Ints
from contrasweep.tuning.store import ResultsStore, SearchRecord, StudyRecord
from contrasweep.tuning.store.schema import metric_column

Values = Mapping[str, Scalar]


@dataclass(frozen=True)
class ScoredPool:
    """The configurations of one study, without the defaults, in the order of its trials.

    A score that is better when it is smaller is negated, in its name too (`results.best`).

    Attributes:
        study, method, dataset: its name, and what it trains on what.
        metric: the score that chooses.
        report_metric: the score of what was chosen; the same one where the split is not halved.
        trial: the numbers of the trials, (n,).
        values: their searched values.
        select, report: their scores, (n,). A failed trial counts as the worst completed one.
        untrained: the report score of the untrained encoder; NaN where it is unknown or not the same in all
            trials.
        again: the report scores of the same configurations on other seeds, (seeds, n); NaN where there is
            none.
        failed: how many trials failed.
        left_out: how many have not ended.
        epochs: the length of a trial; None in files of earlier versions.
        learned_by: the sampler that may have proposed some of the trials from scores of others; empty if
            chance, a grid or the user chose all of them.
    """

    study: str
    method: str
    dataset: str
    metric: str
    report_metric: str
    trial: Ints
    values: tuple[Values, ...]
    select: Floats
    report: Floats
    untrained: float
    again: Floats
    failed: int = 0
    left_out: int = 0
    epochs: int | None = None
    learned_by: str = ""

    def __len__(self) -> int:
        return len(self.trial)

    @property
    def is_halved(self) -> bool:
        """Whether one half of the split chooses and the other reports."""
        return self.metric != self.report_metric

    def some(self, rows: Ints) -> "ScoredPool":
        """Return some of the trials, by their places."""
        return replace(
            self,
            trial=self.trial[rows],
            values=tuple(self.values[row] for row in rows),
            select=self.select[rows],
            report=self.report[rows],
            again=self.again[:, rows],
        )


def read_scored_pools(
    store: ResultsStore, studies: Sequence[str], again: Sequence[str] = ()
) -> list[ScoredPool]:
    """Read studies of one dataset and metric.

    Args:
        store: the results.
        studies: searches without early stopping, one or more for each method.
        again: studies of the same configurations on other seeds; each belongs to the studies of its method
            that share configurations with it and differ from it in `seed` alone.

    Raises:
        StoreError: there is no such study.
        InputError: a study holds final runs, stopped trials or too few, or keeps conditions; they differ in
            dataset or metric; or one of `again` shares no configuration with the others, or a seed, or
            differs from them in other settings.
    """
    found = [_read(store, one) for one in studies]
    for one in found:
        refuse_few(len(one), f"study {one.study}: {len(one)} trials besides the defaults have ended")
    check_alike(found)
    for name in again:
        found = _with_seed(store, found, _read(store, name))
    return found


def check_alike(found: Sequence[ScoredPool]) -> None:
    """Raise InputError unless the studies are about one dataset and score."""
    first = found[0]
    for one in found[1:]:
        for what, own, other in (
            ("dataset", one.dataset, first.dataset),
            ("metric", one.metric, first.metric),
            ("reported score", one.report_metric, first.report_metric),
        ):
            if own != other:
                raise InputError(
                    f"the {what} of {one.study} is {own}, that of {first.study} is {other}: scores of "
                    "different kinds cannot be compared"
                )


def _read(store: ResultsStore, study: str) -> ScoredPool:
    record = store.study(study)
    refuse_conditions(record)
    tables = store.tables(study)
    report = report_form(record.metric)
    report = report if report in record.columns.metrics else record.metric
    defaults = configuration_key(record.space.defaults())
    outcomes = [
        one for one in trial_outcomes(tables.trials, record) if configuration_key(one.values) != defaults
    ]
    _refuse_stopped(study, outcomes)
    ended = [one for one in outcomes if one.status in ("completed", "failed")]
    select = np.array([_score(one, record.metric) for one in ended], dtype=np.float64)
    reported = np.array([_score(one, report) for one in ended], dtype=np.float64)
    completed = [one.trial for one in ended if one.status == "completed"]
    lost = ~(np.isfinite(select) & np.isfinite(reported))
    if lost.all():
        raise InputError(f"study {study}: no trial besides the defaults has a score")
    return ScoredPool(
        study=study,
        method=record.method,
        dataset=record.dataset,
        metric=merit_name(record.metric),
        report_metric=merit_name(report),
        trial=np.array([one.trial for one in ended], dtype=np.int64),
        values=tuple(_searched(record, one.values) for one in ended),
        select=np.where(lost, select[~lost].min(), select),
        report=np.where(lost, reported[~lost].min(), reported),
        untrained=_untrained(tables.epochs, record, report, completed),
        again=np.zeros((0, len(ended))),
        failed=int(np.count_nonzero(lost)),
        left_out=len(outcomes) - len(ended),
        epochs=record.experiment.epochs,
        learned_by=_learned_by(record.require_search()),
    )


def _learned_by(search: SearchRecord) -> str:
    """Return the sampler if it may have proposed trials from scores; one that is not installed may have."""
    known = SAMPLERS.get(search.sampler)
    proposed = search.trials - 1 - len(search.enqueued)  # the defaults run first
    if search.warm_start.studies:
        return f"{search.sampler} (--warm-start)"
    return search.sampler if proposed > 0 and (known is None or known.learns) else ""


def _searched(record: StudyRecord, values: Values) -> Values:
    searched = {one.name for one in record.space.searched}
    return {name: value for name, value in values.items() if name in searched}


def _refuse_stopped(study: str, outcomes: Sequence[TrialOutcome]) -> None:
    stopped = sum(one.status == "stopped" for one in outcomes)
    if stopped:
        raise InputError(
            f"study {study}: {stopped} of its trials were stopped early, so nobody knows what they would "
            "have scored; give studies that ran with --scheduler none"
        )


def _score(one: TrialOutcome, metric: str) -> float | None:
    return merit_of(one, metric) if one.status == "completed" else None


def _untrained(epochs: pa.Table, record: StudyRecord, metric: str, completed: Iterable[int]) -> float:
    """Return the score of the untrained encoder; NaN where it is unknown, or the trials have several."""
    if metric_column(metric) not in epochs.column_names:
        return np.nan
    by_trial = untrained_scores(epochs, record, metric)
    scores = {trial: by_trial[trial] for trial in completed if trial in by_trial}
    mean = untrained_mean(scores)
    if mean is None or not same_network(scores, dict.fromkeys(scores, mean)):
        return np.nan
    return merit(metric, mean)


def _with_seed(store: ResultsStore, found: Sequence[ScoredPool], again: ScoredPool) -> list[ScoredPool]:
    """Return the studies, with another seed's report scores where a study's configurations ran again."""
    keys = map(configuration_key, again.values)
    scores = dict(zip(keys, again.report, strict=True))
    rows = [np.array([scores.get(configuration_key(one), np.nan) for one in own.values]) for own in found]
    alike = [
        one.method == again.method
        and one.report_metric == again.report_metric
        and one.dataset == again.dataset
        and bool(np.isfinite(row).any())
        for one, row in zip(found, rows, strict=True)
    ]
    sharing = [one.study for one, shares in zip(found, alike, strict=True) if shares]
    if not sharing:
        names = ", ".join(one.study for one in found)
        raise InputError(f"--again {again.study}: it shares no configuration with {names}")
    # Two studies of one method may have other settings: each has other seeds of its own.
    own = [one for one in sharing if not differs_beyond_seed(store, again.study, one)] or sharing[:1]
    for study in own:
        refuse_as_other_seeds(store, again.study, study)
    return [
        replace(one, again=np.vstack([one.again, row])) if one.study in own else one
        for one, row in zip(found, rows, strict=True)
    ]
