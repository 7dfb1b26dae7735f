"""Processes of their own for what would disturb the part that starts them."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment, in which Python finds the packages of this checkout."""
    before = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    path = [one for one in (str(ROOT / "src"), str(ROOT)) if one not in before]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*path, *before]), **changes}


def command(module: str, *arguments: object) -> list[str]:
    """Return the command line of a module under `benchmarks`."""
    return [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]


def finished(
    module: str, *arguments: object, seconds: float, changes: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a module to its end and return what it said.

    Raises:
        subprocess.TimeoutExpired: it took longer; it has been killed.
    """
    return subprocess.run(
        command(module, *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env=environment(**(changes or {})),
        cwd=ROOT,
    )


def last_line(text: str) -> str:
    """Return the last line that is not empty; of a traceback, the error."""
    lines: Sequence[str] = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
