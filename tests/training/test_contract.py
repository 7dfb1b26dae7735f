"""Every method on every kind of data that it accepts: it trains, is scored, stops and goes on.

The kinds: all embedded datasets that have what the method needs; images of which every other has no label;
images that stay on disk; and vectors and images with views of their own, with one label or several.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor
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
from contrasweep.tuning.objectives.prepared import Prepared, PreparedData
from contrasweep.tuning.objectives.transductive import PreparedTransductive
from contrasweep.tuning.planning.resolve import lacking, resolve
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain

SmallData = Callable[[str], Prepared]

QUICK = {"epochs": 2, "batch_size": 48, "probes.max_steps": 5, "schedule.warmup_epochs": 0}
PAIRS = [
    (method, facts.name)
    for method in METHODS
    for facts in known_datasets()
    if facts.embedded and not lacking(METHODS[method], facts)
]
PARTLY_LABELLED = replace(dataset_spec("digits"), unlabelled_size=48)
OF_IMAGES = [method for method in METHODS if "images" in dataset_spec(fitting_dataset(method)).offers]
OF_FILES = [
    (method, facts.name)
    for method in METHODS
    for facts in known_datasets()
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


def test_every_method_has_data_that_is_embedded() -> None:
    assert {method for method, _ in PAIRS} == set(METHODS)


@pytest.mark.parametrize(("method", "dataset"), PAIRS)
def test_it_trains_is_scored_stops_and_goes_on(method: str, dataset: str, small_data: SmallData) -> None:
    _check_contract(_experiment(method, dataset), small_data(dataset))


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
    partly = replace(data, spec=PARTLY_LABELLED, train=train, labelled=labelled, probe_rows=labelled)
    _check_contract(_experiment(method, "digits"), partly)


@pytest.mark.parametrize("method", OF_IMAGES)
def test_images_on_disk_give_what_images_in_memory_do(method: str, small_data: SmallData) -> None:
    dataset = fitting_dataset(method)
    e, data = _experiment(method, dataset).with_values({"epochs": 1}), small_data(dataset)
    assert isinstance(data, PreparedData)
    in_memory = [record.metrics for record in pretrain(e, data=data)]
    streamed = StreamedImages(_Stored(data.train.pixels))
    on_disk = replace(data, train=replace(data.train, images=streamed), untrained={})
    assert [record.metrics for record in pretrain(e, data=on_disk)] == in_memory


@pytest.mark.parametrize(("method", "dataset"), OF_FILES)
def test_it_does_on_views_of_every_kind(method: str, dataset: str) -> None:
    spec = dataset_spec(dataset)
    if spec.has_images:
        # Every encoder takes this size.
        spec = replace(
            spec, views=tuple((view[0], *(min(side, 32) for side in view[1:])) for view in spec.views)
        )
    _check_contract(_experiment(method, dataset).with_values({"batch_size": 12}), _made_up(spec))


class _Stored:
    """Images in the form in which a disk gives them."""

    def __init__(self, images: Tensor) -> None:
        self.images = images

    @property
    def shape(self) -> tuple[int, int, int]:
        channels, height, width = self.images.shape[1:]
        return channels, height, width

    def __len__(self) -> int:
        return len(self.images)

    def prepare_random_access(self) -> None:
        """Any row is at hand."""

    def decode(self, rows: Sequence[int], out: Tensor) -> None:
        out.copy_(self.images[list(rows)])


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


def _check_contract(e: Experiment, data: Prepared) -> None:
    checkpoint, whole = b"", []
    for record in pretrain(e, data=data):
        whole.append((record.epoch, record.metrics))
        if record.epoch == 1:
            checkpoint = record.checkpoint()
    state = _state(record)
    _check_names(e.method, data.spec, whole)
    after = list(pretrain(e, checkpoint, data=data))
    assert [(record.epoch, record.metrics) for record in after] == whole[2:]
    resumed = _state(after[-1])
    assert all(torch.equal(resumed[name], value) for name, value in state.items())


def _state(record: EpochRecord) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in record.objective.state_dict().items()}


def _check_names(
    method: str, spec: DatasetSpec | TransductiveSpec, records: list[tuple[int, dict[str, float]]]
) -> None:
    """Check that the recorded metrics are those that a study declares, and the goals among them."""
    declared = search_metrics(METHODS[method], spec)
    assert set(records[-1][1]) == set(declared)
    assert len(set(declared)) == len(declared)
    found = goals(METHODS[method], spec)
    assert default_goal(METHODS[method], spec) in found
    assert {*found, *found.values()} <= set(declared)
    tested = [name for name in final_metrics(METHODS[method], spec) if name.startswith("test.")]
    scored = {name.removeprefix("val.") for name in found}
    assert scored <= {name.removeprefix("test.") for name in tested}
    assert set(found.values()) <= set(records[1][1])  # what a scheduler compares is known after an epoch
