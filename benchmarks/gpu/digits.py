"""Runs of every method on a few embedded digits: nothing to download, a run in about a second."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from benchmarks.sanity import suitable_data
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.prepared import (
    Prepared,
    PreparedData,
    PreparedTransductive,
    preparation_key,
    prepare_data,
)
from contrasweep.tuning.planning.resolve import resolve
from tests.training.golden_settings import OWN, SETTINGS, resolved

QUICK = {"epochs": 2, "batch_size": 48, "probes.max_steps": 5, "schedule.warmup_epochs": 0}
FEW = {"queue": 64, "clusters": 5, "prototypes": 8}
"""Hyperparameters of methods that count something, cut to the number of images."""


def quick_run(method: str, values: Mapping[str, Any] | None = None) -> Experiment:
    """Return two short epochs of a method on the embedded data that suit it."""
    where = suitable_data(method)
    base = resolve(method, where, QUICK)
    few = {name: value for name, value in FEW.items() if name in base.hyperparameters}
    return resolve(method, where, {**QUICK, **few, **(values or {})})


def well_conditioned_run(method: str) -> Experiment:
    """Return a run with the settings of the golden traces, whose losses and gradients bear rounding."""
    return resolved(method, _colourful(method), {**SETTINGS, **QUICK, **OWN.get(method, {})})


def _colourful(method: str) -> str:
    """Return the data that suit the method, with coloured backgrounds.

    Plain ones are exactly 0, where rounding decides the gradient of a ReLU and of a pooling.
    """
    suitable = suitable_data(method)
    return "colour-digits" if suitable == "digits" else suitable


@dataclass
class FewImages:
    """The first images of the embedded datasets on a device: `train` to train on, and some held out."""

    device: str
    train: int
    held_out: int = 64
    _held: dict[str, Prepared] = field(default_factory=dict)

    def of(self, experiment: Experiment) -> Prepared:
        """Return the experiment's data; earlier runs leave nothing in it."""
        key = preparation_key(experiment)
        if key not in self._held:
            self._held[key] = self._first(prepare_data(experiment, None, torch.device(self.device)))
        return replace(self._held[key], untrained={})  # type: ignore[type-var]

    def _first(self, whole: Prepared) -> Prepared:
        if isinstance(whole, PreparedTransductive):
            objects = whole.data.unlabelled
            seen = objects.subset(range(min(self.train, len(objects))))
            return replace(whole, data=replace(whole.data, unlabelled=seen))
        assert isinstance(whole, PreparedData)
        train = whole.train.subset(range(min(self.train, len(whole.train))))
        held_out = whole.validation
        if held_out is not None:
            held_out = held_out.subset(range(min(self.held_out, len(held_out))))
        return replace(whole, train=train, validation=held_out, probed=train, probe_rows=train)


def methods(count: int) -> list[str]:
    """Return so many methods, from all over the list."""
    names = list(METHODS)
    return names[:: max(1, len(names) // count)][:count]
