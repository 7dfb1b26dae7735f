"""Transductive runs: few labelled objects of several views, and unlabelled ones that are the test set.

Shapes: n labelled and u unlabelled objects in a step, c labels.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import (
    DatasetFacts,
    MultiView,
    TransductiveData,
    TransductiveSpec,
    load_transductive,
)
from contrasweep.models.scores import macro_auc, multi_label_f1
from contrasweep.tuning.experiment import Experiment, ProbeSettings
from contrasweep.tuning.objectives.objective import Objective

CHUNK = 4096
"""Objects that are classified at once: bounds memory, does not change the result."""


@dataclass(frozen=True)
class PreparedTransductive:
    """One fold of a transductive dataset on a device; `untrained` is as in `PreparedData`."""

    spec: TransductiveSpec
    data: TransductiveData
    device: torch.device
    untrained: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class TransductiveBatch:
    """One step's data: `labelled` objects with their labels, and `unlabelled` ones."""

    labelled: MultiView
    unlabelled: MultiView


def prepare_transductive(
    experiment: Experiment, spec: TransductiveSpec, data_root: Path | None, device: torch.device
) -> PreparedTransductive:
    """Load the fold that belongs to the experiment's seed, with its validation part held out.

    Raises:
        ValueError: see `data.load_transductive`; its files are not in place, say.
    """
    split = experiment.validation
    fold = fold_of(experiment, spec)
    loaded = load_transductive(experiment.dataset, data_root, fold, split.fraction, split.seed)
    validation = None if loaded.validation is None else loaded.validation.to(device)
    here = replace(
        loaded,
        labelled=loaded.labelled.to(device),
        unlabelled=loaded.unlabelled.to(device),
        validation=validation,
    )
    return PreparedTransductive(spec, here, device)


def fold_of(experiment: Experiment, spec: DatasetFacts) -> int:
    """Return the fold of a run: each seed has its own, as long as there are folds."""
    return experiment.seed % spec.folds


def transductive_scores(
    objective: Objective, objects: MultiView, spec: TransductiveSpec, settings: ProbeSettings
) -> dict[str, float]:
    """Return the scores of the objective's own classifier on labelled `objects`.

    `f1` is weighted by the labels' frequency, `auc` the macro average over the labels that have both kinds.
    Of several labels an object, those above `settings.threshold` are predicted; of one, the most probable,
    and `accuracy` is given too.
    """
    assert objects.labels is not None, "scored objects have labels"
    parts = [torch.split(view, CHUNK) for view in objects.views]
    outputs = torch.cat([objective.predict(part) for part in zip(*parts, strict=True)])
    if spec.multi_label:
        f1 = multi_label_f1(outputs, objects.labels, settings.threshold, "weighted")
        return {"f1": f1, "auc": macro_auc(outputs, objects.labels).value}
    predicted = outputs.argmax(dim=1)
    chosen, true = (functional.one_hot(labels, spec.classes) for labels in (predicted, objects.labels))
    return {
        "accuracy": _share(predicted == objects.labels),
        "f1": multi_label_f1(chosen.to(outputs.dtype), true, 0.5, "weighted"),
        "auc": macro_auc(outputs, true).value,
    }


def _share(right: Tensor) -> float:
    return float(right.double().mean())
