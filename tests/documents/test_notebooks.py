"""The notebooks are executed, hold nothing of the machine that did it, and their code runs with this code."""

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from torch.optim import LBFGS

from tests.documents.blocks import ROOT
from tests.ray.in_process import without_ray
from tests.studies import STUDY, PlannedStudy, scored, small_plan

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 200_000
PARAMETERS = "parameters"
SMALLEST: Mapping[str, Mapping[str, object]] = {
    "sweep": {"TRIALS": 1, "EPOCHS": 1, "SEEDS": 1},
    "own-data-and-encoder": {"ENCODER": "timm:test_resnet", "TRIALS": 1, "EPOCHS": 1, "SEEDS": 1},
    "reading-results": {"STUDY": STUDY, "STORED": "../small", "TRIALS": 1, "EPOCHS": 1, "SEEDS": 1},
}
"""By notebook, the parameters with which a test runs it."""

# Folders of a machine: of a user, of what is temporary, of installed packages.
MACHINE = re.compile(r"/(home|root|Users|tmp|work|opt|usr|var)/|site-packages|[A-Z]:\\\\")


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


def assigned(cell: Mapping[str, Any]) -> set[str]:
    """Return the names that a cell of constants gives values."""
    lines = ast.parse("".join(cell["source"])).body
    assert all(isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant) for one in lines)
    return {str(target.id) for one in lines for target in one.targets}  # type: ignore[attr-defined]


def run(source: str, place: str, names: dict[str, Any]) -> None:
    """Run a cell as a kernel does: an expression at its end is shown, unless a semicolon follows."""
    lines = ast.parse(source).body
    last = lines[-1]
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        exec(compile(source, place, "exec"), names)
        return
    exec(compile(ast.Module(lines[:-1], []), place, "exec"), names)
    value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    shown = getattr(value, "_repr_html_", value.__repr__)()
    assert shown


def few_steps(parameters: Any, **options: Any) -> LBFGS:
    """Return the optimizer of a logistic probe that stops after a few steps."""
    return LBFGS(parameters, **{**options, "max_iter": 3, "max_eval": 6})


def test_there_are_notebooks_and_each_has_its_smallest_parameters() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(SMALLEST)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_executed_from_top_to_bottom_without_an_error(path: Path) -> None:
    code = code_cells(path)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        assert {"stream", "display_data", "execute_result"} >= {one["output_type"] for one in cell["outputs"]}
        assert not [one for one in cell["outputs"] if one.get("name") == "stderr"]
        last = ast.parse("".join(cell["source"])).body[-1]
        shows = isinstance(last, ast.Expr)
        assert not shows or cell["outputs"], f"nothing was shown: {cell['source']}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_holds_nothing_of_a_machine(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    whole = json.loads(path.read_text(encoding="utf-8"))
    assert set(whole["metadata"]) == {"kernelspec", "language_info"}
    assert whole["metadata"]["language_info"] == {"name": "python"}
    assert all(set(cell["metadata"]) <= {"tags"} for cell in whole["cells"])
    texts = [
        "".join(text)
        for cell in whole["cells"]
        for one in [{"data": {"source": cell["source"]}}, *cell.get("outputs", [])]
        for kind, text in {**one.get("data", {}), "stream": one.get("text", "")}.items()
        if kind != "image/png"
    ]
    assert [found[0] for text in texts if (found := MACHINE.search(text))] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_a_notebook_lead_somewhere(path: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "markdown")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert links
    assert [link for link in links if not (FOLDER / link).exists()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "notebooks"
    here.mkdir()
    small = PlannedStudy(small_plan(tmp_path / "small"))
    small.write(*(scored((0.5, 0.6, 0.7 + trial / 10)) for trial in range(2)))
    # Most of the time would go into probes.
    monkeypatch.setattr("contrasweep.models.probes.linear.LBFGS", few_steps)
    monkeypatch.chdir(here)
    parameters, *rest = code_cells(path)
    smallest = SMALLEST[path.stem]
    assert parameters["metadata"]["tags"] == [PARAMETERS]
    assert smallest.keys() <= assigned(parameters)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("".join(parameters["source"]), names)
    names |= smallest
    backend = matplotlib.get_backend()
    matplotlib.use("agg")
    try:
        with without_ray():
            for number, cell in enumerate(rest, 2):
                run("".join(cell["source"]), f"{path.name}, cell {number}", names)
    finally:
        matplotlib.pyplot.close("all")
        matplotlib.use(backend)
