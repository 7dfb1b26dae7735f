"""Make plug-ins importable and discoverable for a test, without an installer."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

EXAMPLES = Path(__file__).parent


def write_metadata(folder: Path, name: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
    """Write what an installer leaves of a distribution: its name, version, and entry points by group."""
    info = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = []
    for group, targets in entry_points.items():
        lines += [f"[{group}]", *(f"{point} = {target}" for point, target in targets.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))


def install_example(folder: Path, name: str = "contrasweep-dcl") -> list[str]:
    """Return what a path needs for an example to be there, with the entry points of its pyproject."""
    project = tomllib.loads((EXAMPLES / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    write_metadata(folder, name, project["entry-points"])
    return [str(folder), str(EXAMPLES / name)]
