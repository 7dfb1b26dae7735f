"""Where the Python of a child process looks for modules."""

import os
from pathlib import Path

CHILD_PROCESSES = Path(__file__).parent / "child_processes"


def search_path(*folders: str | Path) -> str:
    """Return `PYTHONPATH` for a child process that looks in `folders`, and for `sitecustomize` in ours."""
    return os.pathsep.join(map(str, (*folders, CHILD_PROCESSES)))
