"""Encoders of real but tiny final runs, which take half a second together."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from contrasweep.tuning.objectives.prepared import prepare_data
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.final_scores import scores_of_final_run
from contrasweep.tuning.training.pretrain import pretrain
from tests.threads import torch_threads
from tests.transfer.final_encoders import DATASET, FinalRun

SEEDS = (1, 2)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Compute with one thread, as final runs do."""
    with torch_threads(1):
        yield


def final_run(folder: Path, name: str, values: Mapping[str, Any], dataset: str = DATASET) -> FinalRun:
    """Return a final run of two epochs whose probe has settings of its own."""
    usual = {
        "epochs": 2,
        "batch_size": 64,
        "probes.penalty": 1e-3,
        "probes.standardise": False,
        "validation.fraction": 0.0,
    }
    experiment = resolve("supcon", dataset, {**usual, **values})
    data = prepare_data(experiment, None, torch.device("cpu"))
    file = folder / f"{name}.safetensors"
    *_, last = pretrain(experiment, data=data)
    file.write_bytes(last.encoder_file())
    return FinalRun(experiment.seed, file, scores_of_final_run(last))


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[FinalRun]:
    """Two final runs of one experiment. Their probe is not the default, nor are its settings."""
    folder = tmp_path_factory.mktemp("encoders")
    with torch_threads(1):
        return [final_run(folder, str(seed), {"seed": seed}) for seed in SEEDS]


@pytest.fixture(scope="session")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> list[FinalRun]:
    """Two runs on unequal classes: the probes of the first learn from all training images."""
    folder = tmp_path_factory.mktemp("uncut")
    return [
        final_run(folder, images, {"epochs": 1, "probes.images": images}, "digits:imbalance=linear")
        for images in ("uncut", "training")
    ]


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> FinalRun:
    """A run that holds a fifth of its training images out, as the trials of a search do."""
    return final_run(tmp_path_factory.mktemp("searched"), "kept", {"epochs": 1, "validation.fraction": 0.2})


@pytest.fixture
def continued(runs: list[FinalRun], tmp_path: Path) -> FinalRun:
    """A final run that started from the first one's encoder."""
    return final_run(tmp_path, "continued", {"seed": 5, "encoder.weights": str(runs[0].file)})
