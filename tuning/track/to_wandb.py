"""Weights & Biases: a study is a group, its trials are runs in it; the seeds of a trial share a job type."""

import hashlib
from typing import Any

import wandb
from wandb.errors import Error

from contrasweep.tuning.track.runs import TrackedRun
from contrasweep.tuning.track.tracker import TrackerFailed

_EXIT = {"failed": 1, "interrupted": 255}


class WandbTracker:
    """Sends runs to the project `project` of Weights & Biases, or of WANDB_MODE=offline to its local files.

    A run of one seed, or a seed of a trial, is a run there; studies, and trials of several seeds, are groups
    and job types. A run that is sent again continues at the step that W&B has.
    """

    def __init__(self, project: str) -> None:
        self._project = project
        self._above: dict[str, TrackedRun] = {}
        self._whole: set[str] = set()

    def send(self, run: TrackedRun) -> bool:
        """Send what W&B lacks of a run; return whether anything was sent.

        Raises:
            TrackerFailed: W&B refused, or did not answer.
        """
        if run.kind != "run":
            self._above[run.key] = run
            return False
        if run.key in self._whole:
            return False
        try:
            self._write(run)
        except (Error, OSError) as error:
            raise TrackerFailed(f"W&B took no more: {' '.join(str(error).split())}") from error
        if run.whole:
            self._whole.add(run.key)
        return True

    def _write(self, run: TrackedRun) -> None:
        above = self._above[run.parent or ""]
        study = above if above.kind == "study" else self._above[above.parent or ""]
        with wandb.init(
            project=self._project,
            id=hashlib.blake2b(run.key.encode(), digest_size=8).hexdigest(),
            name=run.name,
            group=study.name,
            job_type=run.name if above is study else above.name,
            config={**study.params, **run.params},
            tags=[run.status],
            resume="allow",
            reinit="finish_previous",
            settings=wandb.Settings(silent=True),
        ) as there:
            for point in run.points:
                if point.epoch >= there.starting_step:
                    there.log(dict(point.metrics), step=point.epoch)
            summary: Any = there.summary
            # Test scores come after the last epoch, whose step may have been sent before.
            ended = {"status": run.status, "started": run.started.isoformat()}
            # The error of an earlier attempt; that of this one is a tag of the run.
            before = {} if summary.get("error") is None else {"error": None}
            summary.update({**before, **run.final, **run.tags, **ended})
            there.finish(exit_code=_EXIT.get(run.status, 0))
