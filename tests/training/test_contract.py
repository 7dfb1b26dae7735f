"""Every method trains, is scored, stops and goes on, on every kind of data that it accepts.

Runs of each method on its first fitting dataset are compared with the run that `trained` holds. Other kinds
of data get one epoch: all embedded datasets with what the method needs; images of which every other lacks a
label; and vectors and images with views of their own, with one label or several.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from rank_runs import Trace, experiment_of, small
from torch import Tensor, nn
from trial_steps import fitting_dataset

from contrasweep.data import (
    UNLABELLED,
    DatasetSpec,
    MultiView,
    StreamedImages,
    TransductiveData,
    TransductiveSpec,
    dataset_spec,
    known_datasets,
)
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import default_goal, final_metrics, goals, search_metrics
from contrasweep.tuning.objectives.prepared import Prepared, PreparedData, PreparedTransductive
from contrasweep.tuning.planning.needs import lacking
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective, pretrain
from tests.in_memory import InMemory

pytestmark = pytest.mark.usefixtures("one_thread")

SmallData = Callable[[str], Prepared]

QUICK = {"epochs": 1, "batch_size": 48, "probes.max_steps": 5, "schedule.warmup_epochs": 0}
PAIRS = [
    (method, facts.name)
    for facts in known_datasets()
    for method in METHODS
    if facts.embedded and facts.name != fitting_dataset(method) and not lacking(METHODS[method], facts)
]
PARTLY_LABELLED = replace(dataset_spec("digits"), unlabelled_size=48)
OF_FILES = [
    (method, facts.name)
    for facts in known_datasets()
    for method in METHODS
    if isinstance(facts, TransductiveSpec)
    and facts.name in ("scene", "xrmb", "celeba", "noisy-mnist-1v")
    and not lacking(METHODS[method], facts)
]


def _experiment(method: str, dataset: str) -> Experiment:
    small = {"queue": 64, "clusters": 5, "prototypes": 8}
    own = {name: value for name, value in small.items() if name in METHODS[method].hyperparameters}
    base = resolve(method, dataset, QUICK)
    active = {name: value for name, value in own.items() if name in base.hyperparameters}
    return resolve(method, dataset, {**QUICK, **active})


@pytest.mark.parametrize("method", METHODS)
def test_it_goes_on_from_a_checkpoint_as_if_never_stopped(method: str, trained: Mapping[str, Trace]) -> None:
    whole, e = trained[method], experiment_of(method)
    torch.manual_seed(12345)
    (last,) = pretrain(e, whole.checkpoint, data=small(e, {}))
    assert (last.epoch, last.metrics) == (2, whole.metrics[2])
    assert _equal(last.objective.state_dict(), whole.state)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_is_a_function_of_its_experiment_wherever_its_images_are(
    method: str, trained: Mapping[str, Trace]
) -> None:
    """The second run reads images from disk, begins with other global generators, and leaves them alone."""
    whole, e = trained[method], experiment_of(method)
    data = small(e, {})
    if isinstance(data, PreparedData):
        streamed = StreamedImages(InMemory(data.train.pixels))
        data = replace(data, train=replace(data.train, images=streamed))
    # A state that no run could leave behind: earlier runs of the same seed would hide one that did.
    torch.manual_seed(987_654_321)
    before = _global_state()
    metrics = []
    for record in pretrain(e, data=data):
        metrics.append(record.metrics)
        assert _global_state() == before
    assert metrics == whole.metrics
    assert _equal(record.objective.state_dict(), whole.state)


@pytest.mark.parametrize("method", [method for method in METHODS if "own views" not in METHODS[method].needs])
def test_no_batch_norm_sees_two_views_at_once_where_they_pass_apart(
    method: str, small_data: SmallData
) -> None:
    e = _experiment(method, fitting_dataset(method))
    crops = {"views.local_crops": 2} if METHODS[method].local_crops else {}
    e = e.with_values({"encoder.views": "apart", **crops})
    data, rows = small_data(e.dataset), list[int]()
    objective = build_objective(e, data).train()
    for norm in (one for one in objective.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)):
        norm.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    batch = next(METHODS[method].feed(e, data).epoch(1))
    objective.on_epoch_start(1, lambda: torch.eye(len(data.train.labels), 256))
    rows.clear()
    objective.step(batch)
    assert set(rows) == {len(batch.labels)}


@pytest.mark.parametrize("method", METHODS)
def test_it_lets_go_of_its_networks_without_a_search_for_cycles(
    method: str, trained: Mapping[str, Trace]
) -> None:
    """Such a search comes late: until then, a GPU would hold the networks of trials that have ended."""
    assert trained[method].freed


@pytest.mark.parametrize("method", METHODS)
def test_another_seed_is_another_run(method: str, trained: Mapping[str, Trace]) -> None:
    e = experiment_of(method, seed=2)
    other = islice(pretrain(e, data=small(e, {})), 2)
    assert all(one.metrics != two for one, two in zip(other, trained[method].metrics, strict=False))


@pytest.mark.parametrize("method", METHODS)
def test_the_metrics_are_those_that_a_study_declares(method: str, trained: Mapping[str, Trace]) -> None:
    _check_names(method, dataset_spec(fitting_dataset(method)), trained[method].metrics)


@pytest.mark.parametrize(("method", "dataset"), PAIRS)
def test_it_trains_and_is_scored_on_every_kind_of_data(
    method: str, dataset: str, small_data: SmallData
) -> None:
    _check_epoch(_experiment(method, dataset), small_data(dataset))


@pytest.mark.parametrize(
    "method", [method for method in METHODS if not lacking(METHODS[method], PARTLY_LABELLED)]
)
def test_it_does_where_images_have_no_label(method: str, small_data: SmallData) -> None:
    data = small_data("digits")
    assert isinstance(data, PreparedData)
    labels = data.train.labels.clone()
    labels[::2] = UNLABELLED
    train = replace(data.train, labels=labels)
    labelled = train.labelled()
    partly = replace(data, spec=PARTLY_LABELLED, train=train, probed=labelled, probe_rows=labelled)
    _check_epoch(_experiment(method, "digits"), partly)


@pytest.mark.parametrize(("method", "dataset"), OF_FILES)
def test_it_does_on_views_of_every_kind(method: str, dataset: str) -> None:
    spec = dataset_spec(dataset)
    if spec.has_images:
        # Every encoder takes this size.
        spec = replace(
            spec, views=tuple((view[0], *(min(side, 32) for side in view[1:])) for view in spec.views)
        )
    _check_epoch(_experiment(method, dataset).with_values({"batch_size": 12}), _made_up(spec))


def _made_up(spec: TransductiveSpec) -> PreparedTransductive:
    """Objects of the dataset's shapes, with random values."""
    generator = torch.Generator().manual_seed(0)

    def objects(count: int, *, labelled: bool = True) -> MultiView:
        views = tuple(_values((count, *shape), spec.has_images, generator) for shape in spec.views)
        return MultiView(views, _labels(spec, count, generator) if labelled else None)

    data = TransductiveData(objects(20), objects(24, labelled=False), objects(16))
    return PreparedTransductive(spec, data, torch.device("cpu"))


def _values(shape: tuple[int, ...], image: bool, generator: torch.Generator) -> Tensor:
    if image:
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    return torch.rand(shape, generator=generator)


def _labels(spec: TransductiveSpec, count: int, generator: torch.Generator) -> Tensor:
    if spec.multi_label:
        return torch.randint(0, 2, (count, spec.classes), generator=generator)
    return torch.randint(0, spec.classes, (count,), generator=generator)


def _check_epoch(e: Experiment, data: Prepared) -> None:
    _check_names(e.method, data.spec, [record.metrics for record in pretrain(e, data=data)])


def _equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def _global_state() -> tuple[Any, ...]:
    numpy_state = np.random.get_state()  # noqa: NPY002 - it is this state that must not move
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        numpy_state[1].tolist(),
        numpy_state[2],
        torch.get_num_threads(),
        torch.get_num_interop_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
    )


def _check_names(
    method: str, spec: DatasetSpec | TransductiveSpec, records: Sequence[Mapping[str, float]]
) -> None:
    """Check that the recorded metrics are those that a study declares, and the goals among them."""
    declared = search_metrics(METHODS[method], spec)
    assert set(records[-1]) == set(declared)
    assert len(set(declared)) == len(declared)
    found = goals(METHODS[method], spec)
    assert default_goal(METHODS[method], spec) in found
    assert {*found, *found.values()} <= set(declared)
    tested = [name for name in final_metrics(METHODS[method], spec) if name.startswith("test.")]
    scored = {name.removeprefix("val.") for name in found}
    assert scored <= {name.removeprefix("test.") for name in tested}
    assert set(found.values()) <= set(records[1])  # what a scheduler compares is known after an epoch
