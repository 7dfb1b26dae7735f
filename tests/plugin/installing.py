"""The plug-in of the documentation, and any other, as if it were installed: nothing is."""

import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent / "contrasweep-dcl"


def write_metadata(folder: Path, name: str, entry_points: dict[str, str]) -> None:
    """Write what an installer leaves of a distribution: its name, its version, its methods."""
    info = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = [f"{method} = {target}" for method, target in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[contrasweep.methods]", *lines]))


def install_example(folder: Path) -> list[str]:
    """Return what a path needs for `contrasweep-dcl` to be there, with the methods of its pyproject."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    write_metadata(folder, project["name"], project["entry-points"]["contrasweep.methods"])
    return [str(folder), str(PROJECT)]
