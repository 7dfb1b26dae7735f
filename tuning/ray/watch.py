"""Callbacks of the driver: time limits, causes of death, warnings of workers, forgetting ended trials."""

import faulthandler
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.tune import Callback
from ray.tune.experiment import Trial

from contrasweep.tuning.errors import GpuFault
from contrasweep.tuning.ray import internals
from contrasweep.tuning.trials.worker_warnings import WarnOnce

DEATH = "worker process has died"
"""Part of Ray's message when a worker disappears. Ray knows neither the signal nor the exit code."""


OURS = f"{GpuFault.__module__}."
"""How a traceback names the module of our own errors."""


def kernel_oom_kills() -> int | None:
    """Return how many processes the kernel has killed since its start because memory ran out (Linux only)."""
    try:
        found = re.search(r"^oom_kill (\d+)$", Path("/proc/vmstat").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found is not None else None


class TrialWatch(Callback):
    """Ends trials that take too long, and tells why Tune gave up others.

    The worker of an overdue trial is killed, because a step that hangs cannot be asked to stop.

    Args:
        timeout: the seconds that a trial may spend in one worker; None for no limit.
        crashes: the folder in which workers leave crash reports, named by process number (`report_crashes`).
        clock: returns monotonic seconds.
        oom_kills: returns how many processes the kernel killed because memory ran out; None if unknown.
        kill: ends an actor, whatever the actor does.
    """

    def __init__(
        self,
        timeout: float | None,
        crashes: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        oom_kills: Callable[[], int | None] = kernel_oom_kills,
        kill: Callable[[Any], None] = ray.kill,
    ) -> None:
        self._timeout = timeout
        self._crashes = crashes
        self._clock = clock
        self._oom_kills = oom_kills
        self._kill = kill
        self._oom_kills_seen = oom_kills()
        self._trials: Sequence[Trial] = ()
        self._running: dict[str, tuple[Trial, float]] = {}
        self._overdue: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle nothing: Ray pickles callbacks for a restore that we never use."""
        return {}

    def on_step_begin(self, iteration: int, trials: Any, **info: Any) -> None:
        """Remember all trials, also those whose worker has not started."""
        self._trials = trials

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Start the clock: a worker has taken the trial."""
        self._running[trial.trial_id] = (trial, self._clock())

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Stop the clock; a trial that recovers has it started again by its next worker."""
        self._running.pop(trial.trial_id, None)

    on_trial_error = on_trial_recover = on_trial_complete

    def on_step_end(self, iteration: int, trials: Any, **info: Any) -> None:
        """Kill the workers of trials that are overdue; Tune calls this several times a second."""
        for trial_id, (trial, started) in self._running.items():
            overdue = self._timeout is not None and self._clock() - started > self._timeout
            if overdue and trial_id not in self._overdue:
                self._overdue.add(trial_id)
                # It would take as long again.
                internals.never_restart(trial)
                self._kill(internals.actor_of(trial))

    def cause(self, trial_id: str, earlier: int = 0) -> str:
        """Return why Tune gave up a trial, as a sentence; it failed `earlier` times under other Ray ids."""
        if trial_id in self._overdue:
            self._overdue.discard(trial_id)
            return f"timed out after {self._timeout:g} s"
        last = self._last_failure(trial_id)
        if last is None:
            return "its worker died"
        failures, told = last[0] + earlier, last[1]
        times = f" {failures} times, the last time" if failures > 1 else ""
        return f"its worker failed{times}: {self._in_words(told)}"

    def failures(self, trial_id: str) -> int:
        """Return how often a trial has failed under this Ray id."""
        last = self._last_failure(trial_id)
        return 0 if last is None else last[0]

    def _last_failure(self, trial_id: str) -> tuple[int, str] | None:
        trial = next((trial for trial in reversed(self._trials) if trial.trial_id == trial_id), None)
        return None if trial is None else internals.last_failure(trial)

    def _in_words(self, told: str) -> str:
        # A GPU's memory is another matter.
        if "low on memory" in told or "OutOfMemory" in told.replace("torch.OutOfMemoryError", ""):
            used = re.search(r"was ([\d.]+GB) used / ([\d.]+GB) limit", told)
            amount = "" if used is None else f": {used[1]} of {used[2]} used"
            return f"Ray ended it because memory ran out on its node{amount}"
        if DEATH not in told:
            return last_line(told)
        before, self._oom_kills_seen = self._oom_kills_seen, self._oom_kills()
        crash = self._crash(told)
        if crash is not None:
            return f"it crashed: {crash}"
        if before is None or self._oom_kills_seen is None:
            return "it was killed from outside (SIGKILL), perhaps because memory ran out"
        if self._oom_kills_seen > before:
            return "it was killed by the kernel because memory ran out"
        return "it was killed from outside (SIGKILL), and not by the kernel for want of memory"

    def _crash(self, told: str) -> str | None:
        pid = re.search(r"pid: (\d+)", told)
        report = self._crashes / pid[1] if pid is not None else None
        if report is None or not report.is_file():
            return None
        text = report.read_text(encoding="utf-8", errors="replace")
        fatal = re.search(r"Fatal Python error: (.+)", text)
        place = re.search(r"Current thread .*\n\s*(File .+)", text)
        return None if fatal is None else fatal[1] + (f" ({place[1]})" if place is not None else "")


def last_line(text: str) -> str:
    """Return the last line of a traceback, which names the error; our own errors without their module."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix(OURS) if lines else "no reason was given"


def report_crashes(folder: Path) -> None:
    """Write a report into `folder`, named by the process number, if this process crashes (SIGSEGV, ...).

    Ray tells the driver only that a worker is gone. A worker on another machine does not have the folder
    and writes no report.
    """
    if folder.is_dir():
        # The file stays open: a crashing process cannot open one.
        faulthandler.enable(os.open(folder / str(os.getpid()), os.O_WRONLY | os.O_CREAT))


class TellWarnings(Callback):
    """Logs the warnings that come with the results of trials, the first of each kind."""

    def __init__(self) -> None:
        self._tell = WarnOnce()

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
        """Log the warnings of a result."""
        self._tell(result["warned"])


class ForgetEnded(Callback):
    """Frees the memory of trials that have ended: Tune would keep configurations and results to the end."""

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Free a trial that finished, was stopped or was given up."""
        internals.forget(trial)

    on_trial_error = on_trial_complete
