"""Run a sweep in this process, and end the process after some trials by the signal that the test names.

drive.py RESULTS SIGNAL DONE WHERE: runs (or, if the study is there, resumes) the small study, and sends
itself SIGNAL once DONE trials have ended; SIGNAL `none` lets it finish. SIGNAL `raylet` or `gcs_server` kills
this process of Ray, whose death the driver then tells sooner than for users. Trials run on Ray where WHERE is
`ray`, and in this process where it is `here`.
"""

import os
import signal
import sys
from contextlib import nullcontext

import ray._private.worker
from in_process import without_ray
from studies import small_plan, tiny_plan

from contrasweep.tuning.cli.errors import reporting_errors
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray import liveness
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.store import open_location, study_names

# A driver of users waits 10 and 8 s. A connection is taken on the busiest machine, so 4 s are no false alarm.
SILENCE_SECONDS, GRACE_SECONDS = 4.0, 3.0


@reporting_errors
def drive(results: str, ending: str, done: int, where: str) -> None:
    def show(progress: SweepProgress) -> None:
        # Now a further trial is running.
        if ending == "none" or progress.done < done or not progress.running:
            return
        if ending.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, ending))
        else:
            (process,) = ray._private.worker._global_node.all_processes[ending]
            process.process.kill()

    # On Ray, the sweep must not be over before the driver sees that Ray is dead.
    plan = tiny_plan if where == "here" else small_plan
    with without_ray() if where == "here" else nullcontext():
        if "small" in study_names(open_location(results)):
            resume_sweep("small", results, progress=show)
        else:
            run_sweep(plan(results), progress=show)


if __name__ == "__main__":
    # If a shell started the tests in the background, this process has inherited that SIGINT is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    vars(liveness).update(SILENCE_SECONDS=SILENCE_SECONDS, GRACE_SECONDS=GRACE_SECONDS)
    drive(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
