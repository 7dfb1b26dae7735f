"""Write an export into a folder, and send the folder to the Hugging Face hub."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from contrasweep.models.formats import Format, NotOffered
from contrasweep.models.formats.network import network_of
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.export.card import NAME, model_card
from contrasweep.tuning.export.checks import check_new_folder
from contrasweep.tuning.export.source import Source


def export(source: Source, form: Format, folder: Path) -> list[str]:
    """Write an encoder in a format, with its model card, into a new folder; return the files' names.

    A killed process leaves the whole folder or none; of a folder that was there, empty, a part at most
    without the card, which comes last.

    Raises:
        InputError: see `check_new_folder`; or the format cannot hold the network, or needs a package.
    """
    check_new_folder(folder)
    experiment = source.experiment
    try:
        network = network_of(source.file, 1.0 if experiment is None else experiment.probes.centre)
        package = form.write(network)
    except NotOffered as error:
        raise InputError(str(error)) from None
    card = model_card(source, network, form, package.example)
    files = {**package.files, NAME: card.encode()}
    target = folder.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    # A folder that is there stays: it may be where a shell or a mount is.
    beside = target if target.exists() else target.parent
    with TemporaryDirectory(dir=beside, prefix=f".{target.name}-") as unfinished:
        whole = Path(unfinished) / target.name
        whole.mkdir()
        for name, content in files.items():
            (whole / name).write_bytes(content)
        if target.exists():
            for name in sorted(files, key=lambda name: name == NAME):
                os.replace(whole / name, target / name)
        else:
            os.replace(whole, target)
    return sorted(files)


def push(folder: Path, repository: str) -> str:
    """Send a folder to a model repository of the hub, which is made if it is not there; return its address.

    The hub's own settings say who sends (`hf auth login`, or HF_TOKEN).

    Raises:
        SweepFailed: the hub refused; nothing of the folder is lost.
    """
    import huggingface_hub

    api: Any = huggingface_hub.HfApi()
    try:
        api.create_repo(repository, exist_ok=True)
        api.upload_folder(folder_path=str(folder), repo_id=repository)
    except (OSError, ValueError) as error:
        raise SweepFailed(f"the hub took nothing ({error}); the export is in {folder}") from error
    return f"https://huggingface.co/{repository}"
