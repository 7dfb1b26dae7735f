"""`evaluate`: exported encoders on datasets, beside the same networks before training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import torch

from contrasweep.data import cut_other_test_images, normal_name
from contrasweep.notebook_tables import html_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import check_file, written_whole
from contrasweep.tuning.results.columns import texts
from contrasweep.tuning.results.commands import results_folder
from contrasweep.tuning.results.numbers import mean_and_std
from contrasweep.tuning.training.devices import AUTO, device_for
from contrasweep.tuning.transfer.encoders import GivenEncoder, read_encoders
from contrasweep.tuning.transfer.fine_tune import fine_tuning_experiment
from contrasweep.tuning.transfer.measure import Clustering, Measured, Measurement, measure
from contrasweep.tuning.transfer.plan import (
    ALL,
    FEWEST_DRAWS,
    USUAL_PROBES,
    FineTuning,
    TransferPlan,
    shots_in_words,
)
from contrasweep.tuning.transfer.sources import EncoderSource, encoder_sources
from contrasweep.tuning.transfer.table import (
    TITLE,
    Cell,
    cells_of,
    measurement_rows,
    not_beaten,
    rows_of,
    said_of,
    summarised_clusters,
)
from contrasweep.tuning.transfer.tasks import Task, load_tasks

ENDINGS = (".csv", ".parquet")
"""The endings of a file of measurements."""


MOST_SCORES = 30
"""How many rows of an evaluation a notebook shows."""


@dataclass(frozen=True, repr=False)
class Transfer:
    """The outcome of an evaluation.

    Attributes:
        encoders: the encoders, as they were read.
        notes: what was done to the images of datasets that differ from those of the encoders, and how
            encoders were fine-tuned.
        measurements: every score that was computed.
        clusterings: the scores of clusters; empty unless they were asked for.
        class_names: by dataset, the names of the classes, or their numbers.
    """

    encoders: tuple[GivenEncoder, ...]
    notes: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    clusterings: tuple[Clustering, ...]
    class_names: dict[str, tuple[str, ...]]

    def __repr__(self) -> str:
        """Return the main score of each cell of the table, and that before training."""
        scores = "; ".join(
            f"{one.encoder} on {one.dataset}, {one.probe}, {shots_in_words(one.shots)} shots: "
            f"{one.score} {mean_and_std(one.trained[one.score])}, "
            f"untrained {mean_and_std(one.untrained[one.score])}"
            for one in self.cells
        )
        return f"Transfer({scores})"

    def _repr_html_(self) -> str:
        """Return the table, for notebooks."""
        cells = self.cells
        told = not_beaten(cells)
        notes = [said_of(cells), *self.notes, f"{told[:1].upper()}{told[1:]}." if told else ""]
        return html_table(TITLE, [texts(row) for row in rows_of(cells)], *notes, most=MOST_SCORES)

    @property
    def cells(self) -> list[Cell]:
        """The table: means and intervals for each encoder, dataset, probe and number of shots."""
        return cells_of(self.measurements)

    def content(self) -> dict[str, Any]:
        """Return the table as plain values."""
        detail = bool(self.clusterings)
        encoders = [
            {"encoder": one.name, "seed": one.seed, "file": one.place, "sha256": one.file.digest}
            for one in self.encoders
        ]
        found = {
            "encoders": encoders,
            "notes": list(self.notes),
            "rows": [cell.content(detail=detail) for cell in self.cells],
        }
        if detail:
            names = {name: list(classes) for name, classes in self.class_names.items()}
            found |= {"clusters": summarised_clusters(self.clusterings), "classes": names}
        return found

    def write(self, path: Path) -> None:
        """Write every measurement as a row of a CSV or Parquet file.

        Raises:
            InputError: the file cannot be written, or has another ending.
        """
        check_file(path, "-o", ENDINGS)
        rows = measurement_rows(self.measurements)
        with written_whole(path) as file:
            if path.suffix == ".csv":
                pa_csv.write_csv(rows, file)
            else:
                pq.write_table(rows, file)


def evaluate(
    encoders: str | Path | Sequence[str | Path],
    datasets: str | Sequence[str],
    *,
    probes: Sequence[str] = USUAL_PROBES,
    shots: int | str | Sequence[int | str | None] = ALL,
    draws: int = FEWEST_DRAWS,
    fine_tuning: FineTuning | None = None,
    detail: bool = False,
    results: str | Path | None = None,
    data_root: Path | None = None,
    device: str = AUTO,
    tell: Callable[[str], object] = lambda line: None,
) -> Transfer:
    """Score exported encoders on the test images of datasets, and the same networks before training.

    On the dataset of its run, with the probe of its run and all training images, an encoder gets the score
    that `final_runs` gave it: on a CPU bit for bit, if torch uses as many threads.

    Args:
        encoders: encoder files, or names of studies (all encoders of the final runs of each, or
            those that its search has kept).
        datasets: names of datasets of single images.
        probes: among `transfer.plan.PROBES`; their settings are those of the encoder's experiment.
        shots: training images of each class, one number or several; `all` or None for all.
        draws: how often few images are drawn.
        fine_tuning: how to fine-tune encoders too; None: not.
        detail: whether to cluster the test images too.
        results: the results folder of studies; None: CONTRASWEEP_RESULTS, else `results`.
        data_root: the folder of the datasets.
        device: where to compute: `auto`, `cpu` or `cuda`.
        tell: called with a line about each step.

    Raises:
        InputError: see `TransferPlan`, `encoder_sources`, `read_encoders` and `load_tasks`; all is checked
            before an image is encoded.
        DatasetMissing: the files of a dataset are not in place.
    """
    given = [encoders] if isinstance(encoders, str | Path) else encoders
    names = (datasets,) if isinstance(datasets, str) else tuple(datasets)
    counts = [shots] if isinstance(shots, int | str) else list(shots)
    few: tuple[Any, ...] = tuple(None if one == ALL else one for one in counts)
    plan = TransferPlan(names, tuple(probes), few, draws, fine_tuning, detail)
    sources = encoder_sources([str(one) for one in given], str(results_folder(results)))
    return run_plan(plan, sources, data_root=data_root, device=device, tell=tell)


def run_plan(
    plan: TransferPlan,
    sources: Sequence[EncoderSource],
    *,
    data_root: Path | None = None,
    device: str = AUTO,
    tell: Callable[[str], object] = lambda line: None,
) -> Transfer:
    """Do what a plan says with encoder files; the arguments and errors are those of `evaluate`."""
    read = read_encoders(sources)
    uncut = [name for name in plan.datasets if _probes_learn_uncut(read, name)]
    tasks = load_tasks(plan, data_root, torch.device(device_for(device)), uncut)
    notes = _checked_notes(read, tasks, plan)
    found: list[Measured] = []
    for encoder in read:
        for task in tasks:
            tell(f"{encoder.name}, seed {encoder.seed}, on {task.name} ...")
            found += [measure(encoder, task, plan, trained=trained) for trained in (True, False)]
    return Transfer(
        tuple(read),
        tuple(notes),
        tuple(one for measured in found for one in measured.measurements),
        tuple(measured.clustering for measured in found if measured.clustering is not None),
        {task.name: task.data.spec.told_classes for task in tasks},
    )


def _probes_learn_uncut(encoders: Sequence[GivenEncoder], dataset: str) -> bool:
    """Return whether probes learn from images of a dataset that the training left out, as in its runs.

    Raises:
        InputError: runs on this dataset differ in it; all encoders are scored by probes of the same images.
    """
    asked = {one.experiment.probes.images: one.name for one in encoders if _is_of(dataset, one)}
    if len(asked) > 1:
        told = " and ".join(f"{images} ({name})" for images, name in sorted(asked.items()))
        raise InputError(f"probes.images on {dataset}: encoders have {told}; give those of one in a call")
    return "uncut" in asked


def _is_of(dataset: str, encoder: GivenEncoder) -> bool:
    """Whether an encoder was trained on a dataset, whatever the order of the options in its name."""
    try:
        return normal_name(encoder.experiment.dataset) == normal_name(dataset)
    except ValueError:
        return False  # a dataset that this machine does not know


def _checked_notes(encoders: Sequence[GivenEncoder], tasks: Sequence[Task], plan: TransferPlan) -> list[str]:
    """Return what is done to images and encoders, in words; each encoder goes with each dataset.

    Raises:
        InputError: an encoder cannot take the images of a dataset, cannot be fine-tuned on them, or the file
            that it started from is gone.
    """
    notes: dict[str, None] = {}
    for encoder in encoders:
        if (start := encoder.experiment.encoder.control) is not None:
            notes[start] = None
        for task in tasks:
            encoder.network(task.data.spec.channels, trained=False)
            if (done := task.conversion(encoder.takes, encoder.experiment.probes.centre)) is not None:
                notes[done] = None
            warnings = (_chosen_by_search(encoder, task), _trained_on_test(encoder, task))
            notes |= dict.fromkeys(filter(None, warnings))
            if plan.fine_tuning is not None:
                notes[_fine_tuning_in_words(encoder, task, plan.fine_tuning)] = None
    return list(notes)


def _chosen_by_search(encoder: GivenEncoder, task: Task) -> str | None:
    """Say that an encoder of a search, which left out validation images, is scored on its own test images."""
    experiment = encoder.experiment
    if not _is_of(task.name, encoder) or not experiment.validation.fraction:
        return None
    return (
        f"{encoder.name} was trained without the validation images, as in a search. To choose by these test "
        "scores would use them up: `contrasweep run` scores the chosen configuration on fresh seeds"
    )


def _trained_on_test(encoder: GivenEncoder, task: Task) -> str | None:
    """Say that an encoder was trained on some of the images that it is scored on."""
    experiment, fingerprint = encoder.experiment, task.data.spec.fingerprint
    if not fingerprint or experiment.data_fingerprint != fingerprint:
        return None
    if not cut_other_test_images(task.name, experiment.dataset, task.data_root):
        return None
    return (
        f"{encoder.name} was trained on some of these test images: {task.name} has no test split of its own, "
        f"and {experiment.dataset} cuts off others. Put the test images into a folder `test`, or train and "
        "score with the same labels"
    )


def _fine_tuning_in_words(encoder: GivenEncoder, task: Task, settings: FineTuning) -> str:
    experiment = fine_tuning_experiment(encoder, task, settings, None)
    optimizer = experiment.optimizer
    return (
        f"{task.name}: fine-tuned for {experiment.epochs} epochs by {optimizer.name} at {optimizer.lr:g}, "
        f"in batches of {experiment.batch_size} (of few images, fewer)"
    )
