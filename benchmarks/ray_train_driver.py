"""One sweep on a way to run groups of workers, with a fault: the child of `benchmarks.ray_train`.

    python -m benchmarks.ray_train_driver JSON

The sweep is a real one: planner, searcher, scheduler, store. Only the trainable differs. `torch_trainer` is
what Ray's documents say for a Train run inside a Tune trial: a function that builds a `TorchTrainer`, whose
first worker reports to Tune through `ray.train.report` and a `TuneReportCallback`. A sweep of which nothing
is heard for `patience` seconds is given up as hung.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ray
import ray.train
import torch
from ray import tune
from ray._private.state import actors as actors_of_gcs
from ray.train.torch import TorchConfig, TorchTrainer
from ray.tune.integration.ray_train import TuneReportCallback
from ray.util import placement_group_table

from contrasweep.tuning.errors import SweepFailed, SweepStopped
from contrasweep.tuning.objectives.ranks import group_ranks
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.seeds import new_trial
from contrasweep.tuning.planning.trial import DataCache, TrialRequest
from contrasweep.tuning.planning.trial_limits import Limits
from contrasweep.tuning.ray import cluster, sweep, tuner
from contrasweep.tuning.ray.internals import actor_of
from contrasweep.tuning.ray.trainer import RESTARTS
from contrasweep.tuning.ray.worker import TrialWorker, backend_for, bundles, report_of

STUDY = "x"
LASTS = "_AutoscalingCoordinatorActor"
"""A named actor that Ray's data library starts once in a cluster: it is no leak of a trial."""

QUICK = {"probes.max_steps": 5, "batch_size": 64, "optimizer.lr": 0.001}


@dataclass(frozen=True)
class Given:
    """What the parent asks for; `fault` is a name of `FAULTS` or empty, `address` that of a cluster.

    What was seen is written to the file `out`.
    """

    way: str
    results: str
    out: str
    trials: int
    epochs: int
    at_once: int = 1
    scheduler: str = "none"
    fault: str = ""
    dashboard: bool = True
    address: str | None = None
    checkpoint_bytes: int = 0
    patience: float = 300.0


def main() -> None:
    given = Given(**json.loads(sys.argv[1]))
    seen = Seen(given)
    sweep.tuner_of = lambda *of_tuner: Watched(tuner_in(given, seen, *of_tuner), seen)
    machine = None if given.address is None else cluster.cluster_at(given.address)
    plan = plan_sweep(
        "infonce",
        "digits",
        trials=given.trials,
        epochs=given.epochs,
        values=QUICK,
        scheduler=given.scheduler,
        sampler="random",
        workers=2,
        concurrency=1,
        machine=machine,
        # Train restarts a group by itself. What Tune restarts is the trial whose own actor died.
        limits=Limits(max_failures=1),
        results=given.results,
        name=STUDY,
    )
    plan = replace(plan, resources=replace(plan.resources, concurrency=given.at_once))
    ended = "whole"
    with dashboard(given.dashboard):
        try:
            sweep.run_sweep(plan, progress=False)
        except (SweepFailed, SweepStopped, KeyboardInterrupt) as error:
            ended = f"{type(error).__name__}: {error}"
    seen.save(ended)


@contextmanager
def dashboard(wanted: bool) -> Iterator[None]:
    """Start the local Ray with its dashboard, which serves the State API, if wanted."""
    start = cluster.start_ray

    def started(refusal: Any, again: Any = (), **options: Any) -> None:
        if options.get("address") == "local":
            options["include_dashboard"] = wanted
        start(refusal, again, **options)

    cluster.start_ray = started
    try:
        yield
    finally:
        cluster.start_ray = start


def tuner_in(
    given: Given, seen: "Seen", plan: Any, searcher: Any, past: Any, scratch: Any, calls: Any
) -> Any:
    """Return the sweep's own Tuner, with the trainable of the way that was asked for."""
    usual = tuner.tune
    if given.way.startswith("groups"):
        trainable, reuse = tune.with_resources(TrialWorker, bundles(plan.resources)), given.way == "groups"
    else:
        own = tune.with_parameters(
            torch_trainer, storage=str(scratch / "train"), checkpoint_bytes=given.checkpoint_bytes
        )
        # The function only waits. A trial without any resource is refused.
        trainable, reuse = tune.with_resources(own, {"memory": 1}), False

    class Tune:
        """`ray.tune` with the trainable replaced."""

        def __getattr__(self, name: str) -> Any:
            return getattr(usual, name)

        def with_resources(self, *_: Any) -> Any:
            return trainable

        def TuneConfig(self, **options: Any) -> Any:  # noqa: N802 it stands in for a class
            return usual.TuneConfig(**options | {"reuse_actors": reuse})

    tuner.tune = Tune()
    try:
        return tuner.tuner_of(plan, searcher, past, scratch, [*calls, seen])
    finally:
        tuner.tune = usual


def torch_trainer(config: dict[str, Any], storage: str, checkpoint_bytes: int) -> None:
    """Run one trial of a sweep as a Train run: a function that Tune calls in an actor of its own."""
    request: TrialRequest = config["request"]
    TorchTrainer(
        train_and_report,
        train_loop_config=config | {"checkpoint_bytes": checkpoint_bytes},
        torch_config=TorchConfig(backend=backend_for(request.gpus)),
        scaling_config=ray.train.ScalingConfig(num_workers=request.workers, resources_per_worker={"CPU": 1}),
        run_config=ray.train.RunConfig(
            # A trial that Tune starts again finds its Train run by this name.
            name=tune.get_context().get_trial_id(),
            storage_path=storage,
            failure_config=ray.train.FailureConfig(max_failures=RESTARTS),
            callbacks=[TuneReportCallback()],
        ),
    ).fit()


def train_and_report(config: dict[str, Any]) -> None:
    """Train on this rank, and report each epoch as a worker of a sweep does."""
    request: TrialRequest = config["request"]
    torch.set_num_threads(1)
    trial = new_trial(request, DataCache(request.seeds, request.device), group_ranks())
    done = False
    while not done:
        result = report_of(trial.advance(), config["rung_metric"])
        # Tune would end the trial at once, before Train has ended its workers.
        done = result.pop("done")
        report(result, config["checkpoint_bytes"])


def report(result: dict[str, Any], checkpoint_bytes: int) -> None:
    """Report to Train, with a checkpoint of so many bytes if there are any."""
    if not checkpoint_bytes or group_ranks().rank != 0:
        ray.train.report(result)
        return
    with TemporaryDirectory() as folder:
        Path(folder, "state").write_bytes(bytes(checkpoint_bytes))
        ray.train.report(result, checkpoint=ray.train.Checkpoint.from_directory(folder))


class Seen(tune.Callback):
    """Does the fault once, and notes when trials report and end, and what Ray holds meanwhile."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._fault = FAULTS.get(given.fault)
        self._events: list[tuple[float, str, str, int, float]] = []
        self._most: Counter[str] = Counter()
        self._most_groups = 0
        self._begun: dict[str, float] = {}
        self._left: list[dict[str, Any]] = []
        self._heard = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        self._begun[trial.trial_id] = time.monotonic()
        self._note("start", trial, {})

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
        self._begun.pop(trial.trial_id, None)
        self._note("report", trial, result)
        if result["epoch"] == 1:
            self._most_groups = max(self._most_groups, groups())
            self._most |= actors()
        if self._fault is not None and self._fault.due(len(trials), result):
            fault, self._fault = self._fault, None
            fault.harm(trial)

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        self._begun.pop(trial.trial_id, None)
        self._note("end", trial, {})

    on_trial_error = on_trial_recover = on_trial_complete

    def on_step_end(self, iteration: int, trials: Any, **info: Any) -> None:
        if time.monotonic() - self._heard > self._given.patience:
            self._left.append(look(0))
            self.save(f"hung: nothing for {self._given.patience:.0f} s")
            os._exit(1)
        fault = self._fault
        for trial in trials:
            begun = self._begun.get(trial.trial_id)
            if fault is not None and begun is not None and fault.due_at_start(self._given.way, begun):
                self._fault = None
                fault.harm(trial)
                return

    def after_fit(self) -> None:
        """Note what is left while the driver lives on: it would hinder the next trial, too."""
        ended = time.monotonic()
        for seconds in (0, 2, 5, 10, 20):
            time.sleep(max(0.0, ended + seconds - time.monotonic()))
            self._left.append(look(seconds))
            if nothing_in(self._left[-1]):
                return

    def save(self, ended: str) -> None:
        """Write down what was seen; a driver that is killed leaves what it had seen until then."""
        most = {"groups": self._most_groups, "actors": dict(self._most)}
        told = {"events": self._events, "most": most, "left": self._left, "ended": ended}
        Path(self._given.out).write_text(json.dumps(told))

    def _note(self, what: str, trial: Any, result: dict[str, Any]) -> None:
        epoch, spent = result.get("epoch", -1), result.get("train_seconds", 0.0)
        self._heard = time.monotonic()
        self._events.append((self._heard, what, trial.trial_id, epoch, spent))
        self.save("killed")


class Watched:
    """A Tuner after whose end it is noted what is left."""

    def __init__(self, tuner: Any, seen: Seen) -> None:
        self._tuner, self._seen = tuner, seen

    def fit(self) -> None:
        self._tuner.fit()
        self._seen.after_fit()


def look(seconds: float) -> dict[str, Any]:
    """Return what Ray holds now, so many seconds after the end."""
    return {"seconds": seconds, "groups": groups(), "states": states(), "actors": dict(actors())}


def nothing_in(seen: dict[str, Any]) -> bool:
    """Return whether a look found neither groups nor actors of trials."""
    return not seen["groups"] and set(seen["actors"]) <= {LASTS}


def groups() -> int:
    """Return how many placement groups there are."""
    return len(states())


def states() -> list[str]:
    """Return the state of each placement group, and how many bundles it has."""
    table = placement_group_table().values()
    return [f"{one['state']} {len(one['bundles'])}" for one in table if one["state"] != "REMOVED"]


def actors() -> Counter[str]:
    """Return how many actors there are of each class; Ray's control process tells it without a dashboard."""
    found = actors_of_gcs().values()
    return Counter(actor["ActorClassName"] for actor in found if actor["State"] != "DEAD")


def kill_worker(trial: Any) -> None:
    """Kill the process of a rank."""
    ranks = [
        actor
        for actor in actors_of_gcs().values()
        if actor["State"] == "ALIVE" and actor["ActorClassName"] in ("RankActor", "RayTrainWorker")
    ]
    os.kill(ranks[-1]["Pid"], signal.SIGKILL)


def kill_trial(trial: Any) -> None:
    """Kill the trial's actor, as the time limit of a trial does, and as a fault would."""
    ray.kill(actor_of(trial), no_restart=True)


def to_driver(number: signal.Signals) -> Callable[[Any], None]:
    return lambda trial: os.kill(os.getpid(), number)


@dataclass(frozen=True)
class Fault:
    """What is done, and when: after epoch 2 of the second trial, or while the first trial starts."""

    harm: Callable[[Any], None]
    at_start: bool = False

    def due(self, trials: int, result: dict[str, Any]) -> bool:
        return not self.at_start and trials >= 2 and result["epoch"] == 2

    def due_at_start(self, way: str, begun: float) -> bool:
        """Return whether the group of the trial's workers is there, and hardly more than that."""
        ready = groups() >= 2 if way == "TorchTrainer" else time.monotonic() - begun > 1
        return self.at_start and ready


FAULTS = {
    "trial killed": Fault(kill_trial),
    "trial killed at its start": Fault(kill_trial, at_start=True),
    "worker killed": Fault(kill_worker),
    "driver killed": Fault(to_driver(signal.SIGKILL)),
    "Ctrl-C": Fault(to_driver(signal.SIGINT)),
}

if __name__ == "__main__":
    main()
