"""`contrasweep train`: train one experiment file; only several workers need Ray."""

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.given_files import read_given
from contrasweep.tuning.cli.columns import text
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
from contrasweep.tuning.cli.rendering import plain_console, print_json, progress_line, remark, warn
from contrasweep.tuning.cli.temporary import Tmp
from contrasweep.tuning.errors import InputError, every_fault, told_to_user
from contrasweep.tuning.files import check_file, write_whole
from contrasweep.tuning.progress.display import Shown
from contrasweep.tuning.results.commands import search_command

if TYPE_CHECKING:
    from contrasweep.tuning.experiment import Experiment
    from contrasweep.tuning.ray.board import Row
    from contrasweep.tuning.training.pretrain import EpochRecord

    Records = Iterator[tuple[EpochRecord | Row, Callable[[], bytes]]]


def train(
    experiment: Annotated[Path, typer.Argument(help="Experiment, or best configuration (YAML).")],
    set_: Set = None,
    preset: Preset = False,
    cpus: Annotated[int, typer.Option(help="Threads per worker.")] = 1,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    device: Device = None,
    data_root: DataRoot = None,
    tmp: Tmp = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the run's state in this file; continue from it if it exists.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the trained encoder there, for eval, embed and export."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Train one experiment and print its scores after every epoch.

    Example: contrasweep train experiment.yaml --set epochs=20 -o encoder.safetensors
    """
    from contrasweep.tuning.planning.resources import AskedResources
    from contrasweep.tuning.planning.settings import known_experiment

    # All that is known to be wrong is refused here, before torch is imported.
    on = AskedResources(1, cpus, workers, gpus_per_worker, device)
    alone = workers in (None, 1) and not gpus_per_worker
    method, dataset, values = asked = _asked(experiment, parse_settings(set_))
    every_fault(lambda some: known_experiment(method, dataset, some, use_preset=preset), values)
    state = None
    if checkpoint is not None:
        check_file(checkpoint, "--checkpoint")
        with told_to_user("--checkpoint "):
            state = read_given(checkpoint) if checkpoint.exists() else None
    if output is not None:
        check_file(output, "-o")
        for read, what in ((experiment, "the experiment"), (checkpoint, "--checkpoint")):
            if read is not None and output.resolve() == read.resolve():
                raise InputError(f"-o {output} is {what}: give another file")
    remark("Loading torch ..." if alone else "Loading torch and Ray ...")
    import torch

    from contrasweep.data import check_available
    from contrasweep.tuning.objectives.prepared import spec_for
    from contrasweep.tuning.planning.resolve import check_enough_images, resolve
    from contrasweep.tuning.planning.setup import setup_in_words, unreached_in_words
    from contrasweep.tuning.progress.tracker import SCORING, STARTING_RAY, TrainingTracker
    from contrasweep.tuning.training.checkpoint import load_checkpoint
    from contrasweep.tuning.training.devices import AUTO, device_for, device_of
    from contrasweep.tuning.training.pretrain import pretrain
    from contrasweep.tuning.training.trained_encoder import encoder_file_of
    from contrasweep.tuning.trials.gpu_errors import gpu_errors_in_words
    from contrasweep.tuning.trials.warned import warning_once

    place = device_for(device or AUTO) if alone else device_of(on.gpus_each())
    resolved = resolve(*asked, use_preset=preset, data_root=data_root)
    check_available(resolved.dataset, data_root)
    check_enough_images(resolved, data_root)
    if state is not None:
        load_checkpoint(state, resolved)
    facts = spec_for(resolved, data_root)
    for warning in unreached_in_words(resolved):
        warn(warning)
    if not resolved.validation.fraction:
        warn("validation.fraction is 0: without images that are held out, there are no scores.")
    if alone:
        torch.set_num_threads(AskedResources(1, cpus, gpus=0.0).resources().cpus)
    with progress_line() as line:
        tracker = TrainingTracker(resolved.epochs)

        def show_step(epoch: int, step: int, steps: int) -> None:
            line.training(tracker.progress(epoch, step, steps))

        if alone:
            own = pretrain(resolved, state, data_root=data_root, device=place, on_step=show_step)
            records: Records = ((record, record.checkpoint) for record in own)
        else:
            from contrasweep.tuning.ray.trainer import pretrain_on_workers

            # Here, and not with the first record, what there is not is refused.
            records = pretrain_on_workers(
                resolved,
                on.resources(),
                state=state,
                data_root=data_root,
                on_step=show_step,
                keeps_states=checkpoint is not None or output is not None,
            )
        setup = setup_in_words(resolved, facts, place)
        stage = SCORING if state is None else "going on from the checkpoint"
        stage = stage if alone else f"{STARTING_RAY} and its workers"
        file = sys.stderr if json else sys.stdout
        with gpu_errors_in_words(resolved), warning_once() if alone else nullcontext():
            rows, end = _show(resolved, setup, stage, records, checkpoint, output is not None, file, line)
    if output is not None:
        write_whole(output, encoder_file_of(end or state or b"", resolved, data_root))
        remark(f"Wrote {output}: the trained encoder")
    if json:
        print_json({"experiment": resolved.model_dump(mode="json"), "epochs": rows})


def _show(
    experiment: "Experiment",
    setup: str,
    stage: str,
    records: "Records",
    checkpoint: Path | None,
    keeps_end: bool,
    file: IO[str],
    line: Shown,
) -> tuple[list[dict[str, Any]], bytes | None]:
    """Print each record as it comes, and save the state after it.

    Return the scores of all epochs, and the last state that was saved: that of the end if `keeps_end`.
    """
    from contrasweep.tuning.results.collapse import collapse_warning

    console = plain_console(file=file)
    console.print(
        f"{experiment.method} on {experiment.dataset}, seed {experiment.seed}: {setup}", soft_wrap=True
    )
    rows: list[dict[str, Any]] = []
    line.stage(stage)
    warned, state = False, None
    # Ray writes the death of a worker to stdout, which must hold only our JSON.
    with redirect_stdout(sys.stderr):
        for record, saved in records:
            rows.append({"epoch": record.epoch, **record.metrics})
            scores = "  ".join(f"{name} {text(value)}" for name, value in record.metrics.items())
            line.clear()
            console.print(f"epoch {record.epoch}/{record.epochs}  {scores}", soft_wrap=True)
            told = None if warned else collapse_warning(record.epoch, record.metrics)
            if told is not None:
                warn(told)
                warned = True
            if checkpoint is not None or (keeps_end and record.epoch == record.epochs):
                state = saved()
            if checkpoint is not None and state is not None:
                write_whole(checkpoint, state)
    line.clear()
    if not rows:
        console.print(f"{checkpoint} holds the end of this run: nothing was left to train")
    return rows, state


def _asked(path: Path, values: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the method, the dataset and the settings of an experiment file; `values` win over the file's."""
    from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
    from contrasweep.tuning.experiment import Experiment, flat_settings
    from contrasweep.tuning.planning.best_config import read_mapping

    if not path.exists() and path.name in DECLARED_METHODS:
        raise InputError(
            f"train takes the file of an experiment; {path} is a method, which "
            f"`{search_command(path.name)}` searches"
        )
    content = read_mapping(path)
    of_best = content.get("experiment")
    # The file of a best configuration holds its experiment.
    content = of_best if isinstance(of_best, dict) else content
    missing = [name for name in ("method", "dataset") if name not in content]
    if missing:
        raise InputError(f"{path}: {' and '.join(missing)} missing")
    method, dataset = str(content.pop("method")), str(content.pop("dataset"))
    hyperparameters = content.pop("hyperparameters", None) or {}
    if not isinstance(hyperparameters, dict):
        raise InputError(f"{path}: hyperparameters must be values by name, given {hyperparameters!r}")
    for name in map(str, hyperparameters):
        if "." in name or name in Experiment.model_fields:
            raise InputError(f"{path}: {name} is no hyperparameter: move it to the top level of the file")
        if name in content:
            raise InputError(f"{path}: {name} is given twice, at the top level and under hyperparameters")
    return method, dataset, {**flat_settings({**hyperparameters, **content}), **values}
