"""`contrasweep train`: train one experiment file; only several workers need Ray."""

import sys
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
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.files import check_file, write_whole
from contrasweep.tuning.progress.display import Shown

if TYPE_CHECKING:
    from contrasweep.tuning.planning.train_plan import TrainPlan
    from contrasweep.tuning.ray.one_run import Records


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
    from contrasweep.tuning.planning.experiment_file import checked_values, read_experiment
    from contrasweep.tuning.planning.resources import AskedResources

    # All that is known to be wrong is refused here, before torch is imported.
    on = AskedResources(1, cpus, workers, gpus_per_worker, device)
    given = parse_settings(set_)
    found = read_experiment(experiment)
    values = checked_values(experiment, found, given, use_preset=preset)
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
    alone = on.in_one_process
    remark("Loading torch ..." if alone else "Loading torch and Ray ...")
    from contrasweep.tuning.planning.train_plan import plan_training
    from contrasweep.tuning.progress.tracker import TrainingTracker
    from contrasweep.tuning.ray.one_run import records_of
    from contrasweep.tuning.training.trained_encoder import encoder_file_of
    from contrasweep.tuning.trials.gpu_errors import gpu_errors_in_words
    from contrasweep.tuning.trials.worker_warnings import warning_once

    method, dataset = found.method, found.dataset
    plan = plan_training(method, dataset, values, on, use_preset=preset, state=state, data_root=data_root)
    for warning in plan.warnings:
        warn(warning)
    with progress_line() as line:
        tracker = TrainingTracker(plan.experiment.epochs)

        def show_step(epoch: int, step: int, steps: int) -> None:
            line.training(tracker.progress(epoch, step, steps))

        kept = checkpoint is not None or output is not None
        records = records_of(plan, on_step=show_step, keeps_states=kept)
        file = sys.stderr if json else sys.stdout
        with gpu_errors_in_words(plan.experiment), warning_once() if alone else nullcontext():
            rows, end = _show(plan, records, checkpoint, output is not None, file, line)
    if output is not None:
        write_whole(output, encoder_file_of(end or state or b"", plan.experiment, data_root))
        remark(f"Wrote {output}: the trained encoder")
    if json:
        print_json({"experiment": plan.experiment.model_dump(mode="json"), "epochs": rows})


def _show(
    plan: "TrainPlan",
    records: "Records",
    checkpoint: Path | None,
    keeps_end: bool,
    file: IO[str],
    line: Shown,
) -> tuple[list[dict[str, Any]], bytes | None]:
    """Print each record as it comes, and save the state after it.

    Return the scores of all epochs, and the last state that was saved: that of the end if `keeps_end`.
    """
    from contrasweep.tuning.progress.tracker import SCORING, STARTING_RAY
    from contrasweep.tuning.results.collapse import collapse_warning

    experiment, console = plan.experiment, plain_console(file=file)
    console.print(
        f"{experiment.method} on {experiment.dataset}, seed {experiment.seed}: {plan.setup}", soft_wrap=True
    )
    rows: list[dict[str, Any]] = []
    here = SCORING if plan.state is None else "going on from the checkpoint"
    line.stage(here if plan.asked.in_one_process else f"{STARTING_RAY} and its workers")
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
