"""Checks of an export that need no torch: the name of the format, the folder, the repository of the hub."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from contrasweep.given_files import check_given
from contrasweep.tuning.errors import InputError, told_to_user, unknown_name
from contrasweep.tuning.files import check_folder
from contrasweep.tuning.store import ResultsStore

SUFFIX: Final = ".safetensors"
"""What the name of an encoder file ends in."""

FORMAT_NAMES: Final = ("torchvision", "timm", "hf", "onnx")
"""The names of `models.formats.FORMATS`; a test holds them equal."""

HUB: Final = "huggingface_hub"


def check_format(name: str) -> None:
    """Raise InputError unless there is a format of this name; the message has the nearest name."""
    if name not in FORMAT_NAMES:
        raise unknown_name("format", name, FORMAT_NAMES)


def is_encoder_file(given: str) -> bool:
    """Return whether what is given names a file, not a study."""
    return given.endswith(SUFFIX) or os.path.isfile(given)


def check_source(given: str, results: str) -> None:
    """Raise InputError unless the study or encoder file is there."""
    if is_encoder_file(given):
        with told_to_user():
            check_given(given)
    else:
        ResultsStore(results).study(given)


def check_new_folder(folder: Path) -> None:
    """Raise InputError if an export cannot be written to `folder`, or if something is in it."""
    check_folder(folder, "-o")
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"-o {folder} has files in it: name a folder that is empty or not there")


def check_hub(repository: str) -> None:
    """Raise InputError unless `repository` is OWNER/NAME and the package that talks to the hub is there."""
    owner, _, name = repository.partition("/")
    if not owner or not name or "/" in name:
        raise InputError(f"--push takes OWNER/NAME, given {repository!r}")
    if find_spec(HUB) is None:
        raise InputError(f"--push needs {HUB}: pip install 'contrasweep[hub]'")
