"""The end of a sweep: what its study then plans and holds, its result, or why no trial finished."""

import logging

from contrasweep.data import DatasetDamaged
from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.experiment.statuses import counts_in_words
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.ray.result import SweepResult
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.results.commands import delete_command, resume_command, show_command
from contrasweep.tuning.results.failures import common_error
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.store import Location, ResultsStore
from contrasweep.tuning.store.record import StudyRecord
from contrasweep.tuning.store.study import save_study

log = logging.getLogger(__name__)


def as_begun(plan: SweepPlan, searcher: StoreSearcher, record: StudyRecord, location: Location) -> SweepPlan:
    """Return the plan of a sweep that has ended; one that ended early planned what it began."""
    reason = searcher.ends_early
    if reason is None:
        return plan
    # The store may lack a trial between others, whose driver was killed: the study has room for all of them.
    trials = searcher.study.numbered
    left_out = plan.search.trials - trials
    begun = plan.with_search(trials=trials, not_begun=left_out + plan.search.not_begun)
    save_study(location, record.model_copy(update={"search": begun.search}), replace=True)
    log.warning(
        "No trial began after %d of %d, because %s; %s%s adds the others",
        plan.search.trials - searcher.not_begun,
        plan.search.trials,
        reason.why,
        f"--extend {left_out}" if left_out else "--resume",
        reason.beside,
    )
    return begun


def result_of(
    plan: SweepPlan, searcher: StoreSearcher, record: StudyRecord, location: Location
) -> SweepResult:
    """Return the result of a sweep that has ended.

    Raises:
        SweepFailed: no trial finished; the message has the most common error and what goes on.
    """
    counts = searcher.counts
    if not counts.get("completed"):
        ended = counts_in_words(counts) or "none ran"
        why = _why(plan, record, location)
        mended = f" Once the cause is mended, {runs_again(plan, why)}." if counts.get("failed") else ""
        raise SweepFailed(f"no trial of {plan.name} finished ({ended}){why}.{mended}")
    ended_early = searcher.ends_early
    return SweepResult(plan, counts, None if ended_early is None else ended_early.why)


def _why(plan: SweepPlan, record: StudyRecord, location: Location) -> str:
    """Return what most trials of a failed sweep died of, and the command that shows the errors of all."""
    outcomes = trial_outcomes(ResultsStore(location).trials(plan.name), record)
    error = common_error([one.error for one in outcomes])
    show = f"`{show_command(plan.name, plan.results)}` shows"
    return f"; {show} why" if error is None else f": {error}. {show} each trial"


def runs_again(plan: SweepPlan, why: str) -> str:
    """Return what runs the trials of a failed sweep again: with other files of the data, a new study."""
    if DatasetDamaged.__name__ in why:
        delete = delete_command(plan.name, plan.results)
        return f"begin a new study, because the data is then another (`{delete}` frees the name)"
    again = resume_command([plan.method], plan.name, plan.results)
    return f"`{again} --retry-failed` runs them again"
