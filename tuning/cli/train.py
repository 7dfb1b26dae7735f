"""`contrasweep train`: train one experiment file; only several workers need Ray."""

import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from contrasweep.tuning.cli.options import (
    AsJson,
    DataRoot,
    Device,
    GpusPerWorker,
    Preset,
    Set,
    Workers,
    parse_settings,
)
from contrasweep.tuning.cli.rendering import print_json, text
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import check_file, write_whole

if TYPE_CHECKING:
    from contrasweep.tuning.experiment import Experiment
    from contrasweep.tuning.ray.board import Row
    from contrasweep.tuning.training.pretrain import EpochRecord

    Records = Iterator[tuple[EpochRecord | Row, Callable[[], bytes]]]


def train(
    experiment: Annotated[Path, typer.Argument(help="Experiment (YAML): method, dataset, settings.")],
    set_: Set = None,
    preset: Preset = False,
    cpus: Annotated[int, typer.Option(help="Threads per worker.", min=1)] = 1,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    device: Device = None,
    data_root: DataRoot = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the run's state in this file; continue from it if it exists.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Train one experiment and print its scores after every epoch.

    Example: contrasweep train experiment.yaml --set epochs=20
    """
    import torch

    from contrasweep.data import check_available
    from contrasweep.tuning.planning.resources import AUTO, device_for, gpus_for
    from contrasweep.tuning.training.pretrain import pretrain

    alone, asked = workers in (None, 1) and not gpus_per_worker, device or AUTO
    here = device_for(asked) if alone else ""
    gpus = 0.0 if alone else gpus_for(asked, gpus_per_worker)
    torch.set_num_threads(cpus)
    resolved = _experiment(experiment, parse_settings(set_), preset, data_root)
    check_available(resolved.dataset, data_root)
    state = None
    if checkpoint is not None:
        check_file(checkpoint, "--checkpoint")
        state = checkpoint.read_bytes() if checkpoint.is_file() else None
    if alone:
        own = pretrain(resolved, state, data_root=data_root, device=here)
        records: Records = ((record, record.checkpoint) for record in own)
    else:
        given = 1 if workers is None else workers
        records = _on_workers(resolved, state, data_root, cpus, given, gpus)
    rows = _show(resolved, records, checkpoint, sys.stderr if json else sys.stdout)
    if json:
        print_json({"experiment": resolved.model_dump(mode="json"), "epochs": rows})


def _show(
    experiment: "Experiment", records: "Records", checkpoint: Path | None, file: IO[str]
) -> list[dict[str, Any]]:
    """Print each record as it comes, save the state after it, and return the scores of all epochs."""
    console = Console(highlight=False, file=file)
    console.print(f"{experiment.method} on {experiment.dataset}, seed {experiment.seed}")
    rows: list[dict[str, Any]] = []
    # Ray writes the death of a worker to stdout, which must hold only our JSON.
    with redirect_stdout(sys.stderr):
        for record, saved in records:
            rows.append({"epoch": record.epoch, **record.metrics})
            scores = "  ".join(f"{name} {text(value)}" for name, value in record.metrics.items())
            console.print(f"epoch {record.epoch}/{record.epochs}  {scores}", soft_wrap=True)
            if checkpoint is not None:
                write_whole(checkpoint, saved())
    if not rows:
        console.print(f"{checkpoint} holds the end of this run: nothing was left to train")
    return rows


def _on_workers(
    experiment: "Experiment",
    state: bytes | None,
    data_root: Path | None,
    cpus: int,
    workers: int,
    gpus: float,
) -> "Records":
    """Return the records of the workers; refuse impossible resources now, not with the first record."""
    from contrasweep.tuning.planning.resources import resources_for
    from contrasweep.tuning.ray.trainer import pretrain_on_workers

    resources = resources_for(1, cpus, workers, gpus)
    rows = pretrain_on_workers(experiment, resources, state=state, data_root=data_root)
    return ((row, partial(bytes, saved)) for row, saved in rows)


def _experiment(path: Path, values: dict[str, Any], preset: bool, data_root: Path | None) -> "Experiment":
    """Resolve an experiment file: its settings win over the preset (if asked for) and the defaults."""
    from contrasweep.tuning.experiment import flat_settings
    from contrasweep.tuning.planning.best_config import read_mapping
    from contrasweep.tuning.planning.resolve import resolve

    content = read_mapping(path)
    missing = [name for name in ("method", "dataset") if name not in content]
    if missing:
        raise InputError(f"{path}: {' and '.join(missing)} missing")
    method, dataset = str(content.pop("method")), str(content.pop("dataset"))
    hyperparameters = content.pop("hyperparameters", None) or {}
    if not isinstance(hyperparameters, dict):
        raise InputError(f"{path}: hyperparameters must be values by name, given {hyperparameters!r}")
    settings = flat_settings({**hyperparameters, **content})
    return resolve(method, dataset, {**settings, **values}, use_preset=preset, data_root=data_root)
