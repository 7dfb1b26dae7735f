"""The link between Ray Tune and our search: propose trials, record how they end in Optuna and the store."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from ray.tune.search import Searcher
from ray.tune.utils import flatten_dict

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.early_end import EarlyEnd, Reason
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.progress.forecast import Forecast
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.progress.tracker import SweepTracker
from contrasweep.tuning.ray.liveness import what_is_silent
from contrasweep.tuning.ray.nodes import Needs, lacking_anywhere
from contrasweep.tuning.ray.result_reader import ResultReader, final_merits, merits_of_past
from contrasweep.tuning.ray.trial_requests import request_of, without_earlier_studies
from contrasweep.tuning.ray.worker import report_of
from contrasweep.tuning.results.best import merit, merit_name
from contrasweep.tuning.results.encoders import KeptEncoders
from contrasweep.tuning.search import Mirror, PastTrial, Proposal, keeps
from contrasweep.tuning.store import (
    Location,
    StoreUnavailable,
    StudyRecord,
    TrialInfo,
    end_trial,
)
from contrasweep.tuning.trials.seeds import all_completed, end_all
from contrasweep.tuning.trials.trial import TrialRequest

NO_EXPERIMENT: Final = ""
"""The `config` of a trial whose values give no experiment."""


class StoreSearcher(Searcher):
    """Propose the trials of a plan: first those that an earlier driver left unfinished, then new ones.

    Ray identifies a trial by a random id. We use its number in the study, which is also Optuna's.

    Args:
        plan: the plan of the sweep.
        record: the record of its study.
        location: the results folder.
        past: the trials of earlier drivers.
        in_charge: tells whether this driver still owns the study; if not, it writes nothing more.
        cause: returns why Tune gave up a trial, by its Ray id and how often it failed under others.
        failures: returns how often a trial failed, by its Ray id.
        crashes: the folder in which workers report crashes.
        early: says whether a further trial may begin; the default knows of no earlier trials.
    """

    def __init__(
        self,
        plan: SweepPlan,
        record: StudyRecord,
        location: Location,
        past: Sequence[PastTrial],
        *,
        in_charge: Callable[[], bool] = lambda: True,
        cause: Callable[[str, int], str] = lambda *_: "its worker died",
        failures: Callable[[str], int] = lambda _: 1,
        crashes: Path = Path("/nowhere"),
        early: EarlyEnd | None = None,
    ) -> None:
        super().__init__(metric="score", mode="max")
        self.stopped_by: str | None = None
        """Why the sweep must stop before its end; None if it need not."""
        self._in_charge = in_charge
        self._cause = cause
        self._failures = failures
        self._crashes = crashes
        self._since = datetime.now(UTC)
        self._plan = plan
        self._reader = ResultReader(plan.search, record.columns.metrics)
        self._record = record
        self._sent = without_earlier_studies(record)
        self._location = location
        storage, merits = plan.search.storage, [merit_name(metric) for metric in plan.search.metrics]
        self.study = plan.new_study(None if storage is None else partial(Mirror, storage, plan.name, merits))
        self.study.restore(past)
        self._waiting = [Proposal(trial.number, trial.values) for trial in past if trial.unfinished]
        self._left = plan.search.trials - len(past)
        self._early = early or EarlyEnd(plan.search)
        self._running: dict[str, TrialRequest] = {}
        # Those among the running ones whose worker is not there yet.
        self._starting: set[str] = set()
        self._earlier_failures: Counter[int] = Counter()
        self._begun = {trial.number: max(trial.epochs, default=0) for trial in past if trial.unfinished}
        self._tracker = self._following(past)
        ended = {one.number: merits_of_past(one) for one in past if one.state == "completed"}
        self._kept = KeptEncoders(location, plan.name, plan.search.keep_weights, ended)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle nothing: Ray pickles its searcher for a restore that we never use."""
        return {}

    def progress(self, stage: str | None = None) -> SweepProgress:
        """Return the state of the sweep now; `stage` says what goes on before the first trial begins."""
        return self._tracker.progress(stage, self.not_begun)

    @property
    def needs(self) -> Needs:
        """What a trial needs of its node."""
        return Needs(self._location, self._plan.experiment, self._record.versions, self._plan.data_root)

    @property
    def counts(self) -> dict[str, int]:
        """The number of ended trials by status."""
        return self._tracker.counts

    @property
    def has_more(self) -> bool:
        """Whether a trial has to go on, or may begin."""
        return bool(self._waiting) or self.not_begun < self._left

    @property
    def not_begun(self) -> int:
        """How many planned trials do not begin, because the sweep ends early."""
        return 0 if self.ends_early is None else self._left

    @property
    def ends_early(self) -> Reason | None:
        """Why planned trials do not begin; None if they may, or if none is left."""
        return self._early.reason() if self._left else None

    def tidy(self) -> None:
        """Delete encoders that an earlier driver left: it was killed before it could, or kept more."""
        self._kept.tidy()

    def set_search_properties(self, metric: str | None, mode: str | None, config: Any, **spec: Any) -> bool:
        """Accept and ignore Tune's settings: the plan says what is searched."""
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return the configuration of the next trial (a dict), or `Searcher.FINISHED` after the last one.

        After the last one, it is None while a trial waits for its worker, as that one may be proposed again.
        """
        request = self._next_request()
        if request is None:
            return None if self._starting and not self.has_more else Searcher.FINISHED
        self._running[trial_id] = request
        self._starting.add(trial_id)
        self._early.begin()
        self._tracker.begin(request.trial, self._begun.get(request.trial, 0))
        # A node of a cluster may have come after the others were asked.
        checks_node = self._plan.resources.machine is not None
        config = {"request": request, "rung_metric": self._plan.rung_metric, "crashes": str(self._crashes)}
        return {**config, "checks_node": checks_node}

    def _next_request(self) -> TrialRequest | None:
        """Return the next trial that can be run; None after the last one."""
        while not self._must_stop():
            if self._waiting:
                proposal = self._waiting.pop(0)
            elif self._left > self.not_begun:
                proposal = self.study.ask()
                self._left -= 1
            else:
                break
            try:
                return self._request(proposal)
            except InputError as error:
                # Where the defaults give no experiment either, it is not for the trial's values.
                self._plan.experiment_of(self._plan.space.defaults())
                self._refuse(proposal, f"its values do not go together: {error}")
        return None

    def _refuse(self, proposal: Proposal, error: str) -> None:
        """Record a trial that cannot be run, such as a point of a grid, as failed."""
        plan = self._plan
        for replicate in range(plan.search.seeds):
            info = TrialInfo(
                trial=proposal.number,
                seed=plan.experiment.seed + replicate,
                phase="search",
                config=NO_EXPERIMENT,
                hyperparameters=proposal.values,
                epochs=plan.experiment.epochs,
            )
            try:
                end_trial(self._location, self._record, info, "failed", error=error, since=self._since)
            except StoreUnavailable as problem:
                self.stopped_by = str(problem)
                return
        self.study.fail(proposal.number)
        self._early.begin()
        self._early.end(proposal.number, "refused", None)
        self._tracker.begin(proposal.number, 0)
        self._tracker.end(proposal.number, "failed", None)

    def on_trial_start(self, trial_id: str) -> None:
        """Note that the worker of a trial is there."""
        self._starting.discard(trial_id)
        if trial_id in self._running:
            self._tracker.start(self._running[trial_id].trial)

    def on_trial_recover(self, trial_id: str) -> None:
        """Note that a trial has lost its worker, or never got it, and that Tune begins it again."""
        if trial_id in self._starting:
            self._look_at_nodes()
        self._starting.add(trial_id)

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Tell Optuna the score of an epoch. Ray passes a trial's last epoch to `on_trial_complete` only."""
        self._learn(self._running.get(trial_id), result)

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tell Optuna how a trial ended, and the store if the worker could not."""
        request = self._running.pop(trial_id, None)
        never_began = trial_id in self._starting
        self._starting.discard(trial_id)
        result = result or {}
        if result.get("lost") is not None:
            self.stopped_by = self.stopped_by or str(result["lost"])
        if error:
            # A trial that Ray took down with it has not failed: a resumed sweep goes on with it.
            self.stopped_by = self.stopped_by or what_is_silent()
        if error and never_began:
            self._look_at_nodes()
        if request is None or self._must_stop():
            return
        if error and never_began and self._again(trial_id, request):
            return
        self._learn(request, result)
        cause = self._cause(trial_id, self._earlier_failures[request.trial]) if error else None
        try:
            status, result = self._end(request, result, cause)
        except StoreUnavailable as problem:
            self.stopped_by = str(problem)
        else:
            kept = keeps(self._reader.violations(result, status))
            self._early.end(request.trial, status, self._reader.score(result), kept=kept)
            merits = final_merits(self._reader.merits(result)) if status == "completed" and kept else None
            self._tracker.end(request.trial, status, self._shown(merits))
            # Encoders of a failed trial stay: `--retry-failed` does not train its completed seeds again.
            if status == "completed":
                self._kept.add(request.trial, merits)

    def _look_at_nodes(self) -> None:
        """Stop the sweep if a worker could not start because a node that came late lacks something."""
        if self._plan.resources.machine is not None:
            self.stopped_by = (
                self.stopped_by or what_is_silent() or lacking_anywhere(self.needs, self._plan.name)
            )

    def _again(self, trial_id: str, request: TrialRequest) -> bool:
        """Let a trial that never began be proposed again, unless it failed too often; return whether it is.

        Tune begins only a running trial again: it gives up one whose worker died while taking it over.
        """
        failures = self._earlier_failures[request.trial] + self._failures(trial_id)
        if failures > self._plan.search.max_failures:
            return False
        self._earlier_failures[request.trial] = failures
        self._waiting.insert(0, Proposal(request.trial, request.values))
        return True

    def _end(
        self, request: TrialRequest, result: Mapping[str, Any], cause: str | None
    ) -> tuple[str, Mapping[str, Any]]:
        """Tell Optuna and the store how a trial ended; return its status and its last result."""
        if cause is not None:
            status = end_all(request, "failed", error=cause, since=self._since)
            # The worker may have died after it recorded the end, and before Tune took its last result.
            report = all_completed(request) if status == "completed" else None
            if report is None:
                self.study.fail(request.trial)
                return status, result
            result = flatten_dict(report_of(report, self._plan.rung_metric))
            self._learn(request, result)
        if result.get("error") is not None:
            self.study.fail(request.trial)
            return "failed", result
        if result.get("finished"):
            self.study.complete(
                request.trial, self._reader.merits(result), self._reader.violations(result, "completed")
            )
            return "completed", result
        self.study.prune(request.trial, self._reader.violations(result, "stopped"))
        rung = self._plan.rung_of(int(result.get("epoch", 0)))
        return end_all(request, "stopped", rung=rung, since=self._since, **self._reader.ended(result)), result

    def _following(self, past: Sequence[PastTrial]) -> SweepTracker:
        plan = self._plan
        share = 1 / plan.search.eta if plan.rungs else 1.0
        forecast = Forecast(plan.experiment.epochs, plan.rungs, share, plan.resources.concurrency)
        tracker = SweepTracker(plan.search.trials, plan.metric, forecast)
        for trial in past:
            if not trial.unfinished:
                score = self._shown(merits_of_past(trial))
                tracker.restore(trial.number, trial.state, max(trial.epochs, default=0), score)
        return tracker

    def _shown(self, merits: Sequence[float] | None) -> float | None:
        """Return the final score of a trial from its merits, as users read it; None of no candidate."""
        return None if merits is None else merit(self._plan.metric, merits[0])

    def _must_stop(self) -> bool:
        if self.stopped_by is None and not self._in_charge():
            self.stopped_by = "another driver has taken the study over, or it was deleted"
        return self.stopped_by is not None

    def save(self, checkpoint_path: str) -> None:
        """Write nothing: a sweep resumes from the results store."""

    def restore(self, checkpoint_path: str) -> None:
        """Refuse: a sweep resumes from the results store."""
        raise RuntimeError("a sweep is resumed from its results store, not from Ray's files")

    def _request(self, proposal: Proposal) -> TrialRequest:
        return request_of(self._plan, self._sent, self._location, proposal)

    def _learn(self, request: TrialRequest | None, result: Mapping[str, Any]) -> None:
        if request is None or result.get("error") is not None or "epoch" not in result:
            return
        epoch = int(result["epoch"])
        self._tracker.report(request.trial, epoch, float(result.get("age", 0.0)))
        # Epoch 0 is the untrained encoder, a control that does not depend on the trial's values.
        if epoch > 0:
            self.study.report(request.trial, epoch, float(result["score"]))
