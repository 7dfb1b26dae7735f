"""A few real digits: a run of two epochs takes a tenth of a second."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from golden_settings import resolved
from rank_runs import Trace, run_all
from trial_steps import STUDY, fitting_dataset

from contrasweep.data import dataset_spec
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import Prepared, PreparedData, PreparedTransductive, prepare_data
from contrasweep.tuning.objectives.ranks import ONE
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.store import Location, ResultsStore, open_location, save_study
from contrasweep.tuning.trials.trial import DataCache, TrialRequest
from tests.threads import torch_threads

# Every setting is written out: a better default elsewhere does not change these tests.
SMALL = {
    "epochs": 2,
    "batch_size": 32,
    "probes.max_steps": 20,
    "temperature": 0.1,
    "optimizer.lr": 0.05,
    "schedule.warmup_epochs": 0.0,
    "views.min_crop": 0.2,
    "views.flip": 0.5,
}
TRAIN, VALIDATION, PROBE = 96, 64, 80

_loaded: dict[str, Prepared] = {}


def _load(dataset: str) -> Prepared:
    method = "infonce" if "images" in dataset_spec(dataset).offers else "herocon"
    whole = prepare_data(resolve(method, dataset), None, torch.device("cpu"))
    if isinstance(whole, PreparedTransductive):
        seen = replace(whole.data, unlabelled=whole.data.unlabelled.subset(range(TRAIN)))
        return replace(whole, data=seen)
    assert whole.validation is not None
    train = whole.train.subset(range(TRAIN))
    validation = whole.validation.subset(range(VALIDATION))
    probe_rows = train.subset(range(PROBE))
    return replace(whole, train=train, validation=validation, probed=train, probe_rows=probe_rows)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """Every method, trained once on one thread: all processes of the test run share these traces.

    Do not change a trace: other tests read it.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    file = shared / "trained.pt"
    with FileLock(f"{file}.lock"):
        if not file.exists():
            with torch_threads(1):
                torch.save(run_all(ONE), file)
    found: dict[str, Trace] = torch.load(file, weights_only=False)
    return found


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch add up as `trained` did: with more threads, it adds in another order."""
    with torch_threads(1):
        yield


@pytest.fixture
def small_data() -> Callable[[str], Prepared]:
    """A dataset's first images; the runs of other tests leave nothing in them."""

    def prepared(dataset: str = "colour-digits") -> Prepared:
        if dataset not in _loaded:
            _loaded[dataset] = _load(dataset)
        return replace(_loaded[dataset], untrained={})

    return prepared


@pytest.fixture
def data(small_data: Callable[[str], Prepared]) -> PreparedData:
    found = small_data("colour-digits")
    assert isinstance(found, PreparedData)
    return found


@pytest.fixture
def experiment() -> Callable[..., Experiment]:
    """An experiment on the small data: two epochs of three steps."""

    def make(
        method: str = "infonce", values: Mapping[str, Any] | None = None, dataset: str | None = None
    ) -> Experiment:
        return resolved(method, dataset or fitting_dataset(method), {**SMALL, **(values or {})})

    return make


@pytest.fixture
def plan(tmp_path: Path) -> SweepPlan:
    values = {"batch_size": 32, "probes.max_steps": 20}
    return plan_sweep(
        "infonce", "colour-digits", epochs=3, values=values, results=tmp_path / "results", name=STUDY
    )


@pytest.fixture
def location(plan: SweepPlan) -> Location:
    return open_location(plan.results, writable=True)


@pytest.fixture
def store(location: Location) -> ResultsStore:
    return ResultsStore(location)


@pytest.fixture
def request_of(plan: SweepPlan, location: Location) -> Callable[..., TrialRequest]:
    """The request of a trial: the default values, overridden by the given ones."""
    record = plan.record()
    save_study(location, record)

    def make(trial: int = 0, changed: Mapping[str, Any] | None = None) -> TrialRequest:
        values = {**plan.space.defaults(), **(changed or {})}
        return TrialRequest(location, record, trial, plan.experiment_of(values), values)

    return make


@pytest.fixture
def cache(small_data: Callable[[str], PreparedData], monkeypatch: pytest.MonkeyPatch) -> DataCache:
    def prepare(experiment: Experiment, *_: Any) -> PreparedData:
        return small_data(experiment.dataset)

    monkeypatch.setattr("contrasweep.tuning.trials.trial.prepare_data", prepare)
    return DataCache()


@pytest.fixture
def digits(small_data: Callable[[str], Prepared]) -> PreparedTransductive:
    """The first digits, in two views."""
    found = small_data("two-view-digits")
    assert isinstance(found, PreparedTransductive)
    return found
