"""Where a results folder keeps what belongs to a study, as paths below the folder."""

import os
import re
from typing import Final, Literal

Kind = Literal["trials", "epochs"]

STUDIES: Final = "studies"
"""The folder with a record and a heartbeat for each study."""

ENCODER: Final = "encoder.safetensors"
"""The file of the encoder that a run has trained."""


def record_path(study: str) -> str:
    """Return the file that says that there is a study, and what it is."""
    return f"{STUDIES}/{study}.json"


def heartbeat_path(study: str) -> str:
    """Return the file in which the study's driver shows that it is alive."""
    # The extension keeps heartbeats apart from study records of any name.
    return f"{STUDIES}/{study}.heartbeat"


def rows_folder(kind: Kind, study: str) -> str:
    """Return the folder of the study's Parquet files, in the hive layout that dataset readers understand."""
    return f"{kind}/study={study}"


def checkpoint_path(study: str, trial: int, seed: int) -> str:
    """Return the file of a run's state while it runs."""
    return f"{_checkpoints(study)}/{_run(trial, seed)}.pt"


def encoders_folder(study: str) -> str:
    """Return the folder of the trained encoders, with a folder for each run."""
    return f"exports/{study}"


def encoder_path(study: str, trial: int, seed: int) -> str:
    """Return the file of the encoder that a run trained."""
    return f"{encoders_folder(study)}/{_run(trial, seed)}/{ENCODER}"


def snapshot_path(study: str, trial: int, seed: int, epoch: int) -> str:
    """Return the file of the encoder that a run had after an epoch."""
    return f"{encoders_folder(study)}/{_run(trial, seed)}/epoch-{epoch:05d}.safetensors"


def snapshot_epoch(path: str) -> int | None:
    """Return the epoch of a snapshot's file (`snapshot_path`); None of any other file."""
    found = re.fullmatch(r"epoch-(\d+)\.safetensors", os.path.basename(path))
    return None if found is None else int(found[1])


def trial_of(run: str) -> int | None:
    """Return the trial of a run's folder, by its name; None of any other folder."""
    found = re.match(r"(\d+)-", run)
    return None if found is None else int(found[1])


def events_folder(study: str) -> str:
    """Return the folder of the study's TensorBoard files."""
    return f"tensorboard/{study}"


def run_events_folder(study: str, trial: int, seed: int) -> str:
    """Return the folder of a run's TensorBoard files."""
    return f"{events_folder(study)}/{_run(trial, seed)}"


def folders_of(study: str) -> list[str]:
    """Return every folder that belongs to a study alone: all that it has but its record and heartbeat.

    The rows of trials come first, then what belongs to trials that have such rows.
    """
    rows = [rows_folder("trials", study), rows_folder("epochs", study)]
    return [*rows, _checkpoints(study), encoders_folder(study), events_folder(study)]


def _checkpoints(study: str) -> str:
    return f"checkpoints/{study}"


def _run(trial: int, seed: int) -> str:
    """Return the name of a run's files and folders, which is that of its trial first."""
    return f"{trial:05d}-{seed}"
