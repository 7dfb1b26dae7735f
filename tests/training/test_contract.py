"""Every method on every embedded dataset that has what it needs: it trains, is scored, stops and goes on."""

from collections.abc import Callable

import pytest
import torch

from tuning.config import Experiment
from tuning.facts import known_datasets
from tuning.methods import METHODS
from tuning.resolve import lacking, resolve
from tuning.training.metrics import default_goal, final_metrics, goals, search_metrics
from tuning.training.prepared import Prepared
from tuning.training.pretrain import EpochRecord, pretrain

QUICK = {"epochs": 2, "batch_size": 48, "probes.max_steps": 5, "schedule.warmup_epochs": 0}
PAIRS = [
    (method, facts.name)
    for method in METHODS
    for facts in known_datasets()
    if facts.embedded and not lacking(METHODS[method], facts)
]


def _experiment(method: str, dataset: str) -> Experiment:
    small = {"queue": 64, "clusters": 5, "prototypes": 8}
    own = {name: value for name, value in small.items() if name in METHODS[method].hyperparameters}
    base = resolve(method, dataset, QUICK)
    active = {name: value for name, value in own.items() if name in base.hyperparameters}
    return resolve(method, dataset, {**QUICK, **active})


def test_every_method_has_data_that_is_embedded() -> None:
    assert {method for method, _ in PAIRS} == set(METHODS)


@pytest.mark.parametrize(("method", "dataset"), PAIRS)
def test_it_trains_is_scored_stops_and_goes_on(
    method: str, dataset: str, small_data: Callable[[str], Prepared]
) -> None:
    e, data = _experiment(method, dataset), small_data(dataset)
    checkpoint, whole = b"", []
    for record in pretrain(e, data=data):
        whole.append((record.epoch, record.metrics))
        if record.epoch == 1:
            checkpoint = record.checkpoint()
    state = _state(record)
    _check_names(method, data, whole)
    after = list(pretrain(e, checkpoint, data=data))
    assert [(record.epoch, record.metrics) for record in after] == whole[2:]
    resumed = _state(after[-1])
    assert all(torch.equal(resumed[name], value) for name, value in state.items())


def _state(record: EpochRecord) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in record.objective.state_dict().items()}


def _check_names(method: str, data: Prepared, records: list[tuple[int, dict[str, float]]]) -> None:
    """Check that the recorded metrics are those that a study declares, and the goals among them."""
    declared = search_metrics(METHODS[method], data.spec)
    assert set(records[-1][1]) == set(declared)
    assert len(set(declared)) == len(declared)
    found = goals(METHODS[method], data.spec)
    assert default_goal(METHODS[method], data.spec) in found
    assert {*found, *found.values()} <= set(declared)
    tested = [name for name in final_metrics(METHODS[method], data.spec) if name.startswith("test.")]
    scored = {name.removeprefix("val.") for name in found}
    assert scored <= {name.removeprefix("test.") for name in tested}
    assert set(found.values()) <= set(records[1][1])  # what a scheduler compares is known after an epoch
