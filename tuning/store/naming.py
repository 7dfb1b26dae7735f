"""The names of studies: which are allowed, and those of final runs."""

import hashlib
import re
from typing import Final

from contrasweep.tuning.limits import MOST
from contrasweep.tuning.store.filesystem import StoreError

MAX_NAME_LENGTH: Final = 100
"""Of a search. The name of its final runs (`final_name`) is longer."""
FINAL_SUFFIX: Final = "-final"
"""The final runs of a study are a study of their own; its name ends so (`final_name`)."""
FILES: Final = (".yaml", ".yml", ".parquet", ".safetensors")
"""The ends of files that commands take in place of a study."""
_LONGEST_END: Final = len(f"-{MOST}-epochs{FINAL_SUFFIX}")
_EPOCHS: Final = r"-[1-9]\d*-epochs"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def final_name(searched: str, epochs: int | None = None) -> str:
    """Return the name of the study of a search's final runs; `epochs` if not those of the search."""
    return f"{searched}{'' if epochs is None else f'-{epochs}-epochs'}{FINAL_SUFFIX}"


def is_final_name(name: str, searched: str) -> bool:
    """Whether `final_name` gives this name to final runs of a search."""
    rest = name.removeprefix(searched)
    return rest != name and re.fullmatch(rf"({_EPOCHS})?{FINAL_SUFFIX}", rest) is not None


def name_before_final(name: str) -> str:
    """Return a study's name, so short that `FINAL_SUFFIX` fits behind it: a longer one ends in its hash."""
    most = MAX_NAME_LENGTH - len(FINAL_SUFFIX)
    if len(name) <= most:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{name[: most - len(digest) - 1]}-{digest}"


def shown_name(final: str) -> str:
    """Return what tables call final runs: by their search, or by their own name if it says more."""
    bare = final.removesuffix(FINAL_SUFFIX)
    return final if re.search(rf"{_EPOCHS}$", bare) else bare


def is_study_name(name: str) -> bool:
    """Whether a study can have this name."""
    return len(name) <= _most_characters(name) and _NAME.fullmatch(name) is not None


def check_study_name(name: str) -> str:
    """Return ``name`` if a study can have it.

    Raises:
        StoreError: it is too long, or has characters that a path or a partition name cannot carry.
    """
    _refuse_longer(name, _most_characters(name))
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"The study name {name!r} is not allowed: use letters, digits, '.', '-' and '_', "
            "and begin with a letter or digit."
        )
    return name


def check_new_name(name: str) -> str:
    """Return ``name`` if a new search can have it, and so its final runs a name of theirs.

    Raises:
        StoreError: see `check_study_name`; or commands would take it for a file.
    """
    _refuse_longer(check_study_name(name), MAX_NAME_LENGTH)
    if name.endswith(FILES):
        ends = ", ".join(FILES)
        raise StoreError(
            f"The study name {name!r} is not allowed: what ends in {ends} is a file to commands."
        )
    return name


def _most_characters(name: str) -> int:
    return MAX_NAME_LENGTH + (_LONGEST_END if name.endswith(FINAL_SUFFIX) else 0)


def _refuse_longer(name: str, most: int) -> None:
    if len(name) > most:
        raise StoreError(f"The study name {name!r} has {len(name)} characters; at most {most} are allowed.")
