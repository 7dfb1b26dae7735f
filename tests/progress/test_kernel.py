"""Progress and Ctrl-C in a real Jupyter kernel. Skipped without one: the extra `docs` has it."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.store import ResultsStore
from tests.architecture.imports import ROOT
from tests.search_path import search_path

manager = pytest.importorskip("jupyter_client.manager", reason="needs jupyter_client and ipykernel")
pytest.importorskip("ipykernel", reason="needs ipykernel")

DEADLINE = 120
SWEEP = """
from contrasweep import resume_sweep, sweep
from tests.ray.in_process import without_ray
with without_ray():
    study = sweep(
        "infonce", "colour-digits", trials=1, epochs=5, concurrency=1,
        scheduler="none", name="one", results="there", values={"batch_size": 512}
    )
"""
RESUME = """
with without_ray():
    study = resume_sweep("one", "there")
study
"""


@dataclass
class Outputs:
    """What a cell shows: each output that is left, by the id of its display, and how it ended."""

    left: dict[str, dict[str, str]] = field(default_factory=dict)
    messages: int = 0
    error: dict[str, Any] = field(default_factory=dict)


class Kernel:
    """Runs cells."""

    def __init__(self, folder: Path) -> None:
        env = {**os.environ, "PYTHONPATH": search_path(ROOT / "src", ROOT)}
        self._manager, self._client = manager.start_new_kernel(cwd=str(folder), env=env)

    def run(self, cell: str, seen: Callable[[str], bool] = lambda text: False) -> Outputs:
        """Run a cell, and interrupt it when an output has been `seen`."""
        found, interrupted = Outputs(), False
        sent = self._client.execute(cell)
        while True:
            message = self._client.get_iopub_msg(timeout=DEADLINE)
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind in ("display_data", "update_display_data", "execute_result", "stream"):
                shown = content.get("data") or {"text/plain": content["text"]}
                identity = content.get("transient", {}).get("display_id") or f"output {found.messages}"
                found.left[identity], found.messages = shown, found.messages + 1
                if not interrupted and seen(shown["text/plain"]):
                    interrupted = True
                    self._manager.interrupt_kernel()
            elif kind == "error":
                found.error = content
            elif kind == "status" and content["execution_state"] == "idle":
                return found

    def end(self) -> None:
        """Stop the kernel."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    found = Kernel(tmp_path)
    yield found
    found.end()


def test_ctrl_c_leaves_a_line_and_a_study_that_goes_on(kernel: Kernel, tmp_path: Path) -> None:
    stopped = kernel.run(SWEEP, seen=lambda text: text.endswith(" left"))
    assert stopped.error["ename"] == "KeyboardInterrupt"
    kept = "Interrupted. What was finished is kept; contrasweep.resume_sweep('one', 'there') goes on."
    assert stopped.error["traceback"] == [kept]
    assert stopped.messages > len(stopped.left) == 1
    assert read_study(ResultsStore(tmp_path / "there"), "one").state == "interrupted"

    went_on = kernel.run(RESUME)
    assert went_on.error == {}
    progress, study = went_on.left.values()
    assert progress["text/plain"].startswith("1/1 trials (1 completed) \u00b7 best final val.accuracy")
    assert "<progress" not in progress["text/html"]
    assert "<table>" in study["text/html"]
