"""The end of a final run, and the commands for exported encoders, on the CPU and on the stand-in device."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import safetensors.torch
import torch

from contrasweep.data import StreamedImages
from contrasweep.tuning.objectives.prepared import PreparedData, prepare_data
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.final_scores import scores_of_final_run
from contrasweep.tuning.training.pretrain import pretrain
from contrasweep.tuning.transfer.embed import embed
from contrasweep.tuning.transfer.evaluate import evaluate
from contrasweep.tuning.transfer.plan import FineTuning
from tests.devices.method_runs import CPU, lloyd_everywhere
from tests.devices.standin import install
from tests.in_memory import InMemory

DATASET = "colour-digits:images=100,test_images=50"
SETTINGS = {
    "epochs": 1,
    "batch_size": 50,
    "validation.fraction": 0.0,
    "probes.classifier": "moco",
    "probes.views": "crops",
    "probes.kmeans_starts": 1,
    "probes.label_free_views": 2,
}


def transfer_runs() -> dict[str, tuple[Any, Any]]:
    """Return what each part gives on the CPU and on the device."""
    with TemporaryDirectory() as folder, lloyd_everywhere():
        here, there = (_all_parts(device, Path(folder)) for device in (CPU, install()))
    return {name: (here[name], there[name]) for name in here}


def _all_parts(device: torch.device, folder: Path) -> dict[str, Any]:
    experiment = resolve("supcon", DATASET, SETTINGS)
    data = prepare_data(experiment, None, device)
    assert isinstance(data, PreparedData)
    streamed = StreamedImages(InMemory(data.train.images.cpu()), device=device)
    streaming = replace(data, train=replace(data.train, images=streamed))
    *_, last = pretrain(experiment, data=streaming, device=device)
    # Both devices write the same file.
    file = folder / "encoder.safetensors"
    scores = scores_of_final_run(last)
    file.write_bytes(last.encoder_file())
    # The order of the names in a file's header differs from time to time.
    weights = {name: value.tolist() for name, value in safetensors.torch.load_file(file).items()}
    return {"final scores": scores, "encoder": weights, **_commands(file, device)}


def _commands(file: Path, device: torch.device) -> dict[str, Any]:
    """Return what `embed` and `evaluate` give of an encoder's file."""
    table, page = (file.with_name(name) for name in ("features.parquet", "map.html"))
    # The commands know `cpu` and `cuda`.
    package = "contrasweep.tuning.transfer"
    embeds, evaluates = (
        patch(f"{package}.{name}.device_for", lambda _: str(device)) for name in ("embed", "evaluate")
    )
    with embeds, evaluates:
        embed(file, DATASET, table, page=page)
        found = evaluate(
            file, DATASET, probes=("knn",), shots=(1,), fine_tuning=FineTuning(epochs=1), detail=True
        )
    rows = pq.read_table(table).to_pylist()
    assert page.stat().st_size
    content = found.content()
    return {"features": rows, "evaluation": [content["rows"], content["clusters"]]}
