"""Datasets that encoders are evaluated on: all training images, and the test images with their labels."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from contrasweep.data import LabelledImages, check_available, load_test
from contrasweep.models import ImageInput
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.experiment import Experiment, ProbeSettings, ValidationSettings
from contrasweep.tuning.objectives.prepared import PreparedData, prepare_data, spec_for, versions_of
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.transfer.plan import METHOD, TransferPlan, check_image_dataset


@dataclass(frozen=True)
class Task:
    """A dataset as final runs have it: no validation split is cut off, and the test images are at hand."""

    name: str
    data: PreparedData
    test: LabelledImages
    data_root: Path | None = None

    @property
    def train(self) -> LabelledImages:
        """The training images that have a label, which probes learn from."""
        assert self.data.probed is not None, "checked by load_tasks"
        return self.data.probed

    def at_size(self, size: int) -> "Task":
        """Return the same images, shown to an encoder at `size` pixels a side."""
        return replace(self, data=replace(self.data, spec=self.data.spec.at_view_size(size)))

    def with_rows(self, rows: torch.Tensor | None) -> "Task":
        """Return the task with the labelled training images of `rows` alone; None: with all of them."""
        if rows is None:
            return self
        few = self.train.subset(rows)
        return replace(self, data=replace(self.data, train=few, probed=few, probe_rows=few))

    def conversion(self, takes: ImageInput, centre: float) -> str | None:
        """Return in words what is done to the images before an encoder sees them; None for nothing.

        `centre` is the share of the sides that is kept.
        """
        spec = self.data.spec
        done = []
        if spec.image_size != takes.size:
            there = f"{spec.image_size} x {spec.image_size}"
            done.append(f"resized from {there} to {takes.size} x {takes.size} pixels (bilinear)")
        if spec.channels != takes.channels:
            done.append("grey repeated in 3 channels" if spec.channels == 1 else "colours turned to grey")
        done += centre_in_words(centre)
        return f"{self.name}: {', '.join(done)}" if done else None


def centre_in_words(centre: float) -> list[str]:
    """Say that only a central share of the sides is kept; nothing where all is."""
    return [] if centre == 1 else [f"the central {number_text(centre)} of the sides kept"]


def load_tasks(
    plan: TransferPlan, data_root: Path | None, device: torch.device, uncut: Collection[str] = ()
) -> list[Task]:
    """Load the datasets of a plan, after all of them were checked.

    Args:
        plan: says which.
        data_root: the folder of the datasets.
        device: where their images are put.
        uncut: those whose probes learn from images that the training leaves out, too.

    Raises:
        InputError: a dataset has no single images, no probe of its features, or too few images of a class.
        DatasetMissing: its files are not in place.
    """
    for name in plan.datasets:
        check_image_dataset(name)
        with told_to_user():
            check_available(name, data_root)
    tasks = [_load(name, data_root, device, name in uncut) for name in plan.datasets]
    for task in tasks:
        _check_shots(task, plan)
    return tasks


def test_images(name: str, data_root: Path | None) -> LabelledImages:
    """Return the test images of a dataset of single images; where they are stored encoded, they stay there.

    Raises:
        InputError: the dataset has no single images.
        DatasetMissing: its files are not in place.
    """
    found = load_test(name, data_root, placement="stream")
    if not isinstance(found, LabelledImages):
        raise of_several_views(name)
    return found


def _load(name: str, data_root: Path | None, device: torch.device, uncut: bool) -> Task:
    probes = ProbeSettings(images="uncut" if uncut else "training")
    held_out = ValidationSettings(fraction=0.0)
    whole = Experiment(method=METHOD, dataset=name, validation=held_out, probes=probes)
    with told_to_user():
        versions = versions_of(spec_for(whole, data_root))
        data = prepare_data(whole.with_values(versions), data_root, device)
        test = load_test(name, data_root, device=device)
    if not isinstance(data, PreparedData) or not isinstance(test, LabelledImages):
        raise of_several_views(name)
    if data.probed is None:
        raise InputError(f"no image of {name} has a label: scores need some; `contrasweep embed` needs none")
    return Task(name, data, data.test_data(test), data_root)


def of_several_views(name: str) -> InputError:
    """Return the error about a dataset whose objects are no single images."""
    return InputError(f"dataset {name!r} has objects of several views: give a dataset of single images")


def _check_shots(task: Task, plan: TransferPlan) -> None:
    most = max((count for count in plan.shots if count), default=0)
    counts = task.train.labels.bincount(minlength=task.data.spec.classes)
    fewest = int(counts.min())
    if most > fewest:
        name = task.data.spec.told_classes[int(counts.argmin())]
        told = f"class {name} of {task.name} has {fewest:,} training images"
        raise InputError(f"--shots {most}: {told}; allowed: at most {fewest:,}, or all")
