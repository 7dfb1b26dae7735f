"""What methods and metrics need of the data, and which datasets have it. Only plug-ins import torch here."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from contrasweep.data.facts import DatasetFacts, DatasetSpec
from contrasweep.names import unknown
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_METHODS
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Value
from contrasweep.tuning.methods.added_metrics import ADDED_METRICS, IMAGE_ARGUMENTS, Metric
from contrasweep.tuning.methods.declaration import Declaration
from contrasweep.tuning.planning.spaces import check_dataset_name

NEED_IN_WORDS = {
    "images": "images",
    "labels": "class labels",
    "condition": "a conditioning variable",
    "bias": "a bias label",
    "bias or condition": "a bias label or a conditioning variable",
    "own views": "objects with views of their own",
}

_MET_BY_OPTIONS = ("bias", "condition")
"""The needs that an option of the same name meets, where a dataset has it."""


def lacking(
    method: Declaration, data: DatasetFacts, hyperparameters: Mapping[str, Value] = MappingProxyType({})
) -> list[str]:
    """Return what the method needs with these hyperparameters and the dataset lacks."""
    needs: list[str] = sorted(method.needs_with(hyperparameters))
    if "own views" not in needs:
        needs = ["images", *needs]
    return [NEED_IN_WORDS[need] for need in needs if data.offers.isdisjoint(need.split(" or "))]


def check_needs(method: Declaration, data: DatasetFacts, hyperparameters: Mapping[str, Value]) -> None:
    """Raise InputError, with the datasets that fit, if the data lacks what the method needs."""
    missing = lacking(method, data, hyperparameters)
    if missing:
        known = [one.facts for one in DECLARED_DATASETS.values() if one.facts is not None]
        fitting = [facts.name for facts in known if not lacking(method, facts, hyperparameters)]
        asking = [
            f"{name}={value}"
            for name, value in hyperparameters.items()
            if value in method.hyperparameters[name].needs
        ]
        having = f" with {' and '.join(asking)}" if asking else ""
        free = "" if data.has_labels else f". Methods that need none: {', '.join(_free_of_labels(data))}"
        given = "; labels=none leaves out those that class folders give" if "labels=none" in data.name else ""
        if NEED_IN_WORDS["labels"] in missing and isinstance(data, DatasetSpec) and data.has_labels:
            given += f" ({data.unlabelled_size:,} of {data.train_size:,} training images have no label)"
        own = _by_an_option(data.name, missing)
        raise InputError(
            f"{method.name}{having} needs {' and '.join(missing)}, which {data.name} has not{given}{own}; "
            f"datasets that do: {', '.join(fitting) or 'none'}{free}"
        )


def _by_an_option(dataset: str, missing: Iterable[str]) -> str:
    """Return the option of a dataset that gives it what a method lacks; nothing where there is none."""
    family, _, options = dataset.partition(":")
    known = DECLARED_DATASETS[family].options if family in DECLARED_DATASETS else {}
    for option in _MET_BY_OPTIONS:
        if option in known and any(NEED_IN_WORDS[option] in one for one in missing):
            name = f"{family}:{options},{option}=..." if options else f"{family}:{option}=..."
            return f"; {name} would have one ({known[option].summary})"
    return ""


def check_added_metrics(names: Iterable[str], data: DatasetFacts) -> None:
    """Raise InputError unless plug-ins have metrics of these names, and the data what they take.

    Each is imported.
    """
    for name in names:
        if name not in ADDED_METRICS:
            raise InputError(f"probes.metrics: {unknown('metric', name, sorted(ADDED_METRICS))}")
        missing = metric_lacks(ADDED_METRICS[name], data)
        if missing:
            raise InputError(f"the metric {name} needs {' and '.join(missing)}, which {data.name} has not")


def metric_lacks(metric: Metric, data: DatasetFacts) -> list[str]:
    """Return what a plug-in's metric takes and the dataset lacks."""
    needs = ("images", *(IMAGE_ARGUMENTS[one] for one in metric.takes))
    return [NEED_IN_WORDS[need] for need in needs if need not in data.offers]


def _free_of_labels(data: DatasetFacts) -> list[str]:
    """Return the methods that train on data without labels, at their defaults."""
    return [name for name, one in DECLARED_METHODS.items() if not lacking(one, data, _defaults(one))]


def facts_of(dataset: str, data_root: Path | None) -> DatasetFacts:
    """Return the facts of a dataset, without its files where they are declared.

    Raises:
        ValueError: there is no such dataset or option, or its facts are in files that are missing.
    """
    check_dataset_name(dataset)
    name, _, options = dataset.partition(":")
    declared = DECLARED_DATASETS[name].facts
    if declared is not None and not options:
        return declared
    from contrasweep.data import dataset_spec  # it imports torch

    return dataset_spec(dataset, data_root)


def _defaults(method: Declaration) -> dict[str, Value]:
    defaults = method.search_space().defaults().items()
    return {name: value for name, value in defaults if name in method.hyperparameters}
