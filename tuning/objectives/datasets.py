"""What is known of any dataset by its name, of images or transductive, without loading it."""

from pathlib import Path

from contrasweep.data import (
    DATASETS,
    TRANSDUCTIVE,
    DatasetSpec,
    TransductiveSpec,
    check_available,
    check_transductive,
    dataset_spec,
    parse_dataset,
    parse_transductive,
    transductive_spec,
)
from contrasweep.data.names import unknown
from contrasweep.tuning.errors import InputError

Facts = DatasetSpec | TransductiveSpec


def is_transductive(dataset: str) -> bool:
    """Return whether a dataset's name is that of a transductive one."""
    return dataset.partition(":")[0] in TRANSDUCTIVE


def check_name(dataset: str) -> None:
    """Raise InputError unless the dataset is known and has the options that its name spells."""
    bare = dataset.partition(":")[0]
    if bare not in DATASETS and bare not in TRANSDUCTIVE:
        raise InputError(unknown("dataset", bare, {**DATASETS, **TRANSDUCTIVE}))
    try:
        parse_transductive(dataset) if is_transductive(dataset) else parse_dataset(dataset)
    except ValueError as error:
        raise InputError(str(error)) from None


def facts_of(dataset: str, data_root: Path | None = None) -> Facts:
    """Return what is known of a dataset.

    Raises:
        ValueError: it is unknown, or its facts are in files that are not there.
    """
    return transductive_spec(dataset) if is_transductive(dataset) else dataset_spec(dataset, data_root)


def check_files(dataset: str, data_root: Path | None = None) -> None:
    """Raise DatasetMissing unless the dataset's files are in place."""
    if is_transductive(dataset):
        check_transductive(dataset, data_root)
    else:
        check_available(dataset, data_root)


def known_datasets(data_root: Path | None = None) -> list[Facts]:
    """Return the facts of every dataset that its bare name says all of."""
    images = [dataset_spec(name, data_root) for name, family in DATASETS.items() if not family.needs_options]
    return [*images, *(transductive_spec(name) for name in TRANSDUCTIVE)]
