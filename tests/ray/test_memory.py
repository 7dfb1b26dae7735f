"""The driver keeps nothing of ended trials, so its memory does not grow with the number of trials."""

import gc
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from studies import small_plan

from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.ray.watch import ForgetEnded, TrialWatch
from contrasweep.tuning.ray.worker import TrialWorker
from contrasweep.tuning.store import open_location, save_study


def test_nothing_holds_on_to_a_trial_that_ended(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    location, record = open_location(tmp_path, writable=True), plan.record()
    save_study(location, record)
    searcher = StoreSearcher(plan, record, location, [])
    callbacks = [TrialWatch(None, tmp_path), ForgetEnded()]
    for name, ending in (("a", "on_trial_complete"), ("b", "on_trial_error")):
        config = searcher.suggest(name)
        request = weakref.ref(config["request"])
        # Tune holds the configuration twice, and once more in every result.
        metadata = SimpleNamespace(
            last_result={"config": config}, metric_analysis={"score": [0.5]}, metric_n_steps={"score": [0.5]}
        )
        trial: Any = SimpleNamespace(
            trial_id=name,
            config=config,
            evaluated_params=dict(config),
            experiment_tag="1_" + str(config),
            run_metadata=metadata,
        )
        for callback in callbacks:
            callback.on_trial_start(0, [], trial)
        searcher.on_trial_complete(name, {"epoch": 1, "score": 0.5, "finished": True, "metrics": {}})
        for callback in callbacks:
            getattr(callback, ending)(0, [], trial)
        del config
        gc.collect()
        assert request() is None
        assert not metadata.metric_analysis
        assert not metadata.metric_n_steps


def test_results_do_not_carry_the_configuration(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    location, record = open_location(tmp_path, writable=True), plan.record()
    save_study(location, record)
    worker = TrialWorker(StoreSearcher(plan, record, location, []).suggest("a"))
    assert worker.train()["config"] == {}
