"""Optional libraries that what a user asks for may need, and networks of libraries, named LIBRARY:MODEL.

Nothing here imports torch or a library.
"""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Final

from contrasweep.names import unknown

LIBRARIES: Final[Mapping[str, str]] = {"torchvision": "contrasweep", "timm": "contrasweep[timm]"}
"""The libraries whose networks are offered, and what to install for each."""


DATASETS: Final = "datasets"
"""The library of Hugging Face that reads datasets of its hub."""

_EXTRAS: Final[Mapping[str, str]] = {**LIBRARIES, DATASETS: "contrasweep[hf]"}


class LibraryMissing(ValueError):
    """What a user asks for needs a library that is not installed; the message says how to install it."""


def require(library: str, what: str) -> None:
    """Raise LibraryMissing unless a library is installed; the message says `what` needs it."""
    if find_spec(library) is None:
        raise LibraryMissing(f"{what} needs {library}: pip install '{_EXTRAS[library]}'")


def of_library(name: str) -> bool:
    """Whether a user means a network of a library by an encoder's name."""
    return ":" in name


def library_and_model(name: str) -> tuple[str, str]:
    """Return both parts of LIBRARY:MODEL; whether the library has the model is not checked.

    Raises:
        LibraryMissing: the library is not installed.
        ValueError: it is another library, or no model is named.
    """
    library, _, model = name.partition(":")
    if library not in LIBRARIES:
        raise ValueError(f"encoder {name!r}: {unknown('library', library, LIBRARIES)}")
    if not model:
        raise ValueError(f"encoder {name!r} names no model; as in {library}:NAME")
    require(library, f"encoder {name!r}")
    return library, model


def unknown_encoder(given: str, known: Iterable[str]) -> str:
    """Return the message for an encoder that is neither ours nor a plug-in's; it names the libraries too."""
    forms = [f"{library}:MODEL" for library in LIBRARIES]
    return unknown("encoder", given, [*known, *forms], f" as a network of ours; give {' or '.join(forms)}")
