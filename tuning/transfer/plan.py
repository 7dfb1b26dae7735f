"""The request for an evaluation of encoders, and the checks that need no torch."""

import re
from dataclasses import dataclass
from typing import Final, get_args

from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS
from contrasweep.tuning.errors import InputError, refuse_repeats, told_to_user, unknown_name
from contrasweep.tuning.experiment import ProbeSettings
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.spaces import check_dataset_name

PROBES: Final[tuple[str, ...]] = get_args(ProbeSettings.model_fields["classifier"].annotation)
"""The probes by name, as `probes.classifier` has them."""

USUAL_PROBES: Final = ("logistic", "knn")
FINE_TUNED: Final = "fine-tuned"
"""What the table calls an encoder that was trained further together with a linear classifier."""

ALL: Final = "all"
"""The word for all training images of a dataset."""

FEWEST_DRAWS: Final = 5
"""Draws of few images differ so much that fewer than these say little."""

METHOD: Final = "cross-entropy"
"""The method that fine-tunes: its settings on a dataset are those of a sweep."""


@dataclass(frozen=True)
class FineTuning:
    """Fine-tuning of encoder and classifier: the epochs, and the learning rate (None: the method's)."""

    epochs: int = 20
    lr: float | None = None

    def __post_init__(self) -> None:
        check_count("--epochs", self.epochs)
        if self.lr is not None and not 0 < self.lr < float("inf"):
            raise InputError(f"--lr must be a number above 0, given {self.lr:g}")


@dataclass(frozen=True)
class TransferPlan:
    """What is evaluated: probes on datasets, with a number of training images of each class.

    Attributes:
        datasets: names of datasets of images, with their options.
        probes: names among `PROBES`.
        shots: training images of each class; None for all that there are.
        draws: how often few images are drawn.
        fine_tuning: how encoders are fine-tuned too; None: they are not.
        detail: whether the test images are clustered too.

    Raises:
        InputError: a name is unknown (with the nearest), a number is out of range, something is given twice,
            or a dataset is known to have no single images, or fewer than are asked for.
    """

    datasets: tuple[str, ...]
    probes: tuple[str, ...] = USUAL_PROBES
    shots: tuple[int | None, ...] = (None,)
    draws: int = FEWEST_DRAWS
    fine_tuning: FineTuning | None = None
    detail: bool = False

    def __post_init__(self) -> None:
        refuse_repeats("dataset", self.datasets)
        refuse_repeats("probe", self.probes)
        refuse_repeats("number of shots", [shots_in_words(count) for count in self.shots])
        for probe in self.probes:
            if probe not in PROBES:
                raise unknown_name("probe", probe, PROBES)
        check_count("--draws", self.draws, least=FEWEST_DRAWS)
        for count in self.shots:
            check_count("--shots", count)
        for dataset in self.datasets:
            self._check_dataset(dataset)

    def _check_dataset(self, dataset: str) -> None:
        check_image_dataset(dataset)
        declared = DECLARED_DATASETS.get(dataset)
        if declared is None or declared.facts is None:
            return  # Only its files know its facts.
        most = max((count for count in self.shots if count), default=0)
        there = declared.facts.train_size
        if most * declared.facts.classes > there:
            classes = f"{declared.facts.classes} classes"
            told = f"dataset {dataset} has {there:,} training images of {classes}"
            allowed = f"at most {there // declared.facts.classes:,}, or all"
            raise InputError(f"--shots {most}: {told}; allowed: {allowed}")


def check_image_dataset(dataset: str) -> None:
    """Raise InputError unless a dataset of that name exists and, as far as is known, has single images."""
    with told_to_user():
        check_dataset_name(dataset)
    facts = DECLARED_DATASETS[dataset.partition(":")[0]].facts
    if facts is not None and "images" not in facts.offers:
        raise InputError(f"dataset {dataset!r} has objects of several views: give a dataset of single images")


def split_datasets(text: str) -> tuple[str, ...]:
    """Return the datasets in `A,B`; an `OPTION=VALUE` after a comma belongs to the dataset before it."""
    return tuple(one.strip() for one in re.split(r",(?![^,:=]*=)", text))


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in `A,B`."""
    return tuple(one.strip() for one in text.split(","))


def split_shots(text: str) -> tuple[int | None, ...]:
    """Return the numbers of images of each class in `1,5,all`.

    Raises:
        InputError: a part is neither a whole number nor `all`.
    """
    return tuple(None if one == ALL else _shots(one) for one in split_names(text))


def shots_in_words(count: int | None) -> str:
    """Return the number of training images of each class, as `--shots` spells it."""
    return ALL if count is None else str(count)


def fine_tuning_of(fine_tune: bool, epochs: int | None, lr: float | None) -> FineTuning | None:
    """Return the fine-tuning that the options of `contrasweep eval` describe.

    Raises:
        InputError: a number is out of range, or an option of fine-tuning is given without it.
    """
    given = {"--epochs": epochs, "--lr": lr}
    idle = [name for name, value in given.items() if value is not None and not fine_tune]
    if idle:
        raise InputError(f"{' and '.join(idle)} given; allowed: with --fine-tune, which trains the encoders")
    return FineTuning(FineTuning.epochs if epochs is None else epochs, lr) if fine_tune else None


def _shots(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise InputError(f"--shots takes numbers of images of each class and {ALL!r}, given {text!r}")
    return int(text)
