"""The Tuner of a sweep: a plan in Ray Tune's words."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune import Callback
from ray.tune.stopper import Stopper

from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.progress.display import TICK
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.reserved import bundles
from contrasweep.tuning.ray.scheduler import scheduler_for
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.ray.worker import TrialWorker
from contrasweep.tuning.search import PastTrial

Show = Callable[[SweepProgress], object]


def tuner_of(
    plan: SweepPlan,
    searcher: StoreSearcher,
    past: Sequence[PastTrial],
    scratch: Path,
    callbacks: list[Callback],
) -> tune.Tuner:
    """Return the Tuner that runs what `searcher` proposes; `scratch` is a folder for its files."""
    return tune.Tuner(
        tune.with_resources(TrialWorker, bundles(plan.resources)),
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            scheduler=scheduler_for(plan, searcher.study, past),
            # The searcher proposes a trial again if its worker dies before the trial begins.
            num_samples=plan.search.trials * (1 + plan.search.max_failures),
            max_concurrent_trials=plan.resources.concurrency,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            name=plan.name,
            storage_path=str(scratch / "tune"),
            verbose=0,
            # Given none, Tune shows an empty output of its own in a notebook.
            progress_reporter=tune.CLIReporter(),
            stop=_StopWith(searcher),
            callbacks=callbacks,
            # Trials save their own state, in the store.
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
            # After the death of its worker, a trial goes on from its checkpoint.
            failure_config=tune.FailureConfig(max_failures=plan.search.max_failures),
        ),
    )


class _StopWith(Stopper):
    """Stops the sweep when its searcher says that it must stop."""

    def __init__(self, searcher: StoreSearcher) -> None:
        self._searcher = searcher

    def __getstate__(self) -> dict[str, Any]:
        """Pickle nothing: Ray pickles its settings for a restore that we never use."""
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return False: single trials are stopped by the scheduler."""
        return False

    def stop_all(self) -> bool:
        """Return whether the sweep must stop; Tune asks several times a second."""
        return self._searcher.stopped_by is not None


class ShowProgress(Callback):
    """Calls `show` with the progress after every report of a trial, when one ended, and from time to time."""

    def __init__(
        self, searcher: StoreSearcher, show: Show | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._searcher = searcher
        self._show = show
        self._clock = clock
        self._last = clock()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle nothing: `show` may not pickle, and we never use the restore that Ray pickles for."""
        return {"_searcher": None, "_show": None}

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Note that the worker of a trial is there; the next tick shows it."""
        self._searcher.on_trial_start(trial.trial_id)

    def on_trial_recover(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Note that a trial waits for another worker."""
        self._searcher.on_trial_recover(trial.trial_id)

    def on_trial_result(self, *about: Any, **info: Any) -> None:
        """Show the progress."""
        if self._show is not None:
            self._last = self._clock()
            self._show(self._searcher.progress())

    on_trial_complete = on_trial_error = on_trial_result

    def on_step_end(self, *about: Any, **info: Any) -> None:
        """Show the progress again, if the last time is long ago; Tune calls this several times a second."""
        if self._show is not None and self._clock() - self._last >= TICK:
            self.on_trial_result()
