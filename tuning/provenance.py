"""The origin of a result: package versions, the revision of the code, the host."""

import platform
import socket
import subprocess
from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from contrasweep.plugin_packages import (
    distributions_of,
    installed_plugins,
    plugin_versions,
    source_digest,
    things_added,
    version_of,
)
from contrasweep.version import __version__

_SOURCE = " source"
"""Follows the name of a plug-in in the key of its digest."""

_ADDS, _BETWEEN = " adds", ", "
"""The former follows the name of a plug-in in the key of what it adds, the latter is between these."""

PACKAGES = ("torch", "torchvision", "ray", "optuna", "pyarrow", "scikit-learn", "numpy", "timm")


def origin_of_results() -> dict[str, Any]:
    """Return the fields of a study's record that say where its results come from."""
    return {"versions": package_versions(), "git_revision": git_revision(), "host": socket.gethostname()}


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can change a result, if they are installed.

    Distributions with plug-ins are among them, with what they add, and digests of their code: while it is
    written, it changes without a new version.
    """
    versions = {"python": platform.python_version(), "contrasweep": __version__, **_of_plugins()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def changed_plugins(versions: Mapping[str, str], names: Collection[str]) -> list[str]:
    """Return the plug-ins with other code or another version than when a study began.

    Args:
        versions: those of the study's record; what it does not state is not compared.
        names: the methods, encoders, datasets, metrics and samplers that the study uses.
    """
    used = distributions_of(names)
    now = _of_plugins() if used else {}
    return [
        one
        for one in used
        if any(key in versions and versions[key] != now[key] for key in (one, f"{one}{_SOURCE}"))
    ]


def plugins_by_addition(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the plug-in with its version that added a thing, such as `method dcl`, when a study began.

    Args:
        versions: those of the study's record. Records of earlier versions do not state what a plug-in adds.
    """
    return {
        thing: f"{name} {versions.get(name, '')}".rstrip()
        for key, things in versions.items()
        if (name := key.removesuffix(_ADDS)) != key
        for thing in things.split(_BETWEEN)
    }


def absent_plugins(versions: Mapping[str, str]) -> list[str]:
    """Return the plug-ins that a study's record states, with their versions, and that are not installed."""
    stated = [key.removesuffix(_SOURCE) for key in versions if key.endswith(_SOURCE)]
    there = plugin_versions()
    return [f"{name} {versions.get(name, '')}".rstrip() for name in stated if name not in there]


def _of_plugins() -> dict[str, str]:
    installed = installed_plugins()
    versions = {name: version_of(own) for name, own in installed.items()}
    sources = {f"{name}{_SOURCE}": source_digest(own) for name, own in installed.items()}
    adds = {f"{name}{_ADDS}": _BETWEEN.join(things_added(own)) for name, own in installed.items()}
    return {**versions, **sources, **adds}


def git_revision() -> str | None:
    """Return the git revision of our code, with `+changes` if files differ; None outside a checkout."""
    here = Path(__file__).resolve()
    root = here.parents[1]
    revision = _git(root, "rev-parse", "--short=12", "HEAD")
    # An installed copy can lie inside a checkout of another project; its revision would mean nothing.
    if revision is None or _git(root, "ls-files", "--error-unmatch", str(here)) is None:
        return None
    return revision + ("+changes" if _git(root, "status", "--porcelain") else "")


def same_series(one: str, other: str) -> bool:
    """Whether two versions read each other's files: all versions 1.x do; before 1.0 only those of one 0.x."""
    (own, *rest), (others, *their_rest) = one.split("."), other.split(".")
    return own == others and (own != "0" or rest[:1] == their_rest[:1])


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
