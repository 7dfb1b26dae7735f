"""`contrasweep train`: one run of an experiment file, without Ray."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tuning.cli.options import AsJson, DataRoot, Set, parse_settings
from tuning.cli.rendering import print_json, text
from tuning.errors import InputError, unknown_name

DEVICES = ("cpu", "cuda")

if TYPE_CHECKING:
    from tuning.config import Experiment


def train(
    experiment: Annotated[Path, typer.Argument(help="Experiment (YAML): method, dataset, settings.")],
    set_: Set = None,
    cpus: Annotated[int, typer.Option(help="Threads.", min=1)] = 1,
    device: Annotated[str, typer.Option(help="Where to train: cpu, or cuda where there is a GPU.")] = "cpu",
    data_root: DataRoot = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the run's state in this file; go on from it if it exists.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Train one experiment and print its scores after every epoch.

    Example: contrasweep train experiment.yaml --set epochs=20
    """
    import torch

    from tuning.facts import check_files
    from tuning.training.pretrain import pretrain

    if device not in DEVICES:
        raise unknown_name("device", device, DEVICES)
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda was asked for, and torch finds no GPU here")
    torch.set_num_threads(cpus)
    resolved = _experiment(experiment, parse_settings(set_), data_root)
    check_files(resolved.dataset, data_root)
    state = None
    if checkpoint is not None:
        if not checkpoint.absolute().parent.is_dir():
            raise InputError(f"--checkpoint: there is no folder {checkpoint.parent}")
        state = checkpoint.read_bytes() if checkpoint.is_file() else None
    console = Console(highlight=False, stderr=json)
    console.print(f"{resolved.method} on {resolved.dataset}, seed {resolved.seed}")
    rows = []
    for record in pretrain(resolved, state, data_root=data_root, device=device):
        rows.append({"epoch": record.epoch, **record.metrics})
        scores = "  ".join(f"{name} {text(value)}" for name, value in record.metrics.items())
        console.print(f"epoch {record.epoch}/{record.epochs}  {scores}", soft_wrap=True)
        if checkpoint is not None:
            unfinished = checkpoint.with_name(f"_{checkpoint.name}")
            unfinished.write_bytes(record.checkpoint())
            unfinished.replace(checkpoint)
    if not rows:
        console.print(f"{checkpoint} holds the end of this run: nothing was left to train")
    if json:
        print_json({"experiment": resolved.model_dump(mode="json"), "epochs": rows})


def _experiment(path: Path, values: dict[str, Any], data_root: Path | None) -> "Experiment":
    """Read an experiment file: settings at any depth, over the defaults of its method and dataset."""
    from tuning.best import read_mapping
    from tuning.config import flat_settings
    from tuning.resolve import resolve

    content = read_mapping(path)
    missing = [name for name in ("method", "dataset") if name not in content]
    if missing:
        raise InputError(f"{path}: {' and '.join(missing)} missing")
    method, dataset = str(content.pop("method")), str(content.pop("dataset"))
    hyperparameters = content.pop("hyperparameters", None) or {}
    if not isinstance(hyperparameters, dict):
        raise InputError(f"{path}: hyperparameters must be values by name, given {hyperparameters!r}")
    settings = flat_settings({**hyperparameters, **content})
    return resolve(method, dataset, {**settings, **values}, data_root=data_root)
