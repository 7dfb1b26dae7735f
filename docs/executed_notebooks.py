"""Executes the notebooks of `docs/notebooks` anew and writes them with their outputs.

    python -m docs.executed_notebooks [NAME...]

They run as somebody has them who opens them in a clone: beside the folder `sensitivity`, in a folder of their
own that is gone afterwards. What differs from machine to machine (times of execution, versions of the kernel)
is not written.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

_DOCS = Path(__file__).parent
FOLDER = _DOCS / "notebooks"
MOST_BYTES = 200_000
"""The largest notebook; a larger one has a figure or a table that is too large to read."""

_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def write_executed(path: Path) -> None:
    """Execute a notebook from its first cell to its last, and write it with its outputs.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed; the file stays as it was.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "sensitivity").symlink_to(_DOCS / "sensitivity")
        here = Path(scratch) / "notebooks"
        here.mkdir()
        where = {"metadata": {"path": here}}
        client = NotebookClient(
            notebook, timeout=None, kernel_name="python3", record_timing=False, resources=where
        )
        client.execute()
    path.write_text(nbformat.writes(_cleaned(notebook)) + "\n", encoding="utf-8")


def _cleaned(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    notebook.metadata = nbformat.from_dict(_METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({"tags": cell.metadata.tags} if "tags" in cell.metadata else {})
    return notebook


if __name__ == "__main__":
    named = [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]]
    for one in named or sorted(FOLDER.glob("*.ipynb")):
        write_executed(one)
