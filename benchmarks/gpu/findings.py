"""What a part of the acceptance finds: figures, the limits that they are held to, and the record as JSON."""

import json
import operator
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

PACKAGES = ("torch", "torchvision", "numpy", "scikit-learn", "pydantic", "ray", "optuna")
FAULT_LINES = 6
"""Lines of a traceback that a record keeps: the end says what went wrong."""


class NotRun(Exception):
    """A part cannot run here, for a reason that is no fault of the code: the message says why."""


@dataclass(frozen=True)
class Place:
    """Where a part runs, and how large it is.

    Attributes:
        device: `cuda` or `cpu`.
        small: sizes are cut, and limits of speed are not judged.
        out: the folder for the files that a part writes.
    """

    device: str
    small: bool
    out: Path

    @property
    def on_gpu(self) -> bool:
        """Whether the part runs on a GPU."""
        return self.device == "cuda"

    @property
    def dry_run(self) -> bool:
        """Whether the figures say nothing about a GPU at work."""
        return self.small or not self.on_gpu

    def sized(self, full: int, small: int) -> int:
        """Return the size of something: `full`, or `small` where sizes are cut."""
        return small if self.small else full


@dataclass(frozen=True)
class Limit:
    """A bound that a figure keeps; where `judged` is false, a miss is shown and is no failure."""

    figure: str
    rule: Literal["at most", "at least"]
    bound: float
    judged: bool = True

    def holds(self, figures: Mapping[str, Any]) -> bool:
        """Return whether the figure is there and keeps the bound."""
        compare = operator.le if self.rule == "at most" else operator.ge
        value = figures.get(self.figure)
        return value is not None and compare(value, self.bound)


@dataclass
class Findings:
    """The figures of a part by name (numbers, words, or lists of them), its limits, and one line to show."""

    headline: str
    figures: dict[str, Any]
    limits: list[Limit] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every limit that is judged holds."""
        return all(limit.holds(self.figures) for limit in self.limits if limit.judged)


Run = Callable[[Place], Findings]


def recorded(part: str, load: Callable[[], Run], place: Place) -> dict[str, Any]:
    """Load a part, run it in this process and return its record.

    `ok` is true or false, or null where the part could not run; `error` says why it failed or did not run.
    """
    started = time.perf_counter()
    try:
        findings = load()(place)
    except NotRun as reason:
        found = outcome(None, f"not run: {reason}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith(("contrasweep", "benchmarks")):
            found = outcome(False, _end_of_traceback())
        else:
            found = outcome(None, f"not run: {missing.name} is not installed")
    except Exception:  # noqa: BLE001 - whatever goes wrong in a part is its result
        found = outcome(False, _end_of_traceback())
    else:
        found = {**outcome(findings.ok, None), **_told(findings)}
    seconds = time.perf_counter() - started
    return {"part": part, **found, **surroundings(place), "seconds": round(seconds, 2)}


def outcome(ok: bool | None, error: str | None) -> dict[str, Any]:
    """Return the fields of a record without figures."""
    return {"ok": ok, "error": error, "headline": "", "figures": {}, "limits": []}


def write_record(record: Mapping[str, Any], folder: Path) -> None:
    """Write a record as `PART.json`."""
    text = json.dumps(record, indent=1, default=float)
    (folder / f"{record['part']}.json").write_text(text + "\n", encoding="utf-8")


def surroundings(place: Place) -> dict[str, Any]:
    """Return the device and the versions that a record names."""
    return {"device": device_name(place.device), "dry_run": place.dry_run, "versions": _versions()}


@cache
def device_name(device: str) -> str:
    """Return the name of the GPU, or the kind of processor."""
    if device != "cuda":
        return f"cpu ({platform.machine()})"
    try:
        import torch
    except ImportError:
        return "cuda, without torch"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU that torch can use"


def is_h100(place: Place) -> bool:
    """Whether the part runs on an H100, for which the floor of the speed was set."""
    return place.on_gpu and "H100" in device_name(place.device)


def _told(findings: Findings) -> dict[str, Any]:
    limits = [{**vars(limit), "holds": limit.holds(findings.figures)} for limit in findings.limits]
    return {"headline": findings.headline, "figures": findings.figures, "limits": limits}


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    torch = sys.modules.get("torch")
    if torch is not None:
        found |= {"cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}
    return found


def _end_of_traceback() -> str:
    return "\n".join(traceback.format_exc().strip().splitlines()[-FAULT_LINES:])
