"""The lowest versions that `pyproject.toml` allows, as constraints: what CI also tests with.

python -m tests.architecture.lowest > constraints-lowest.txt
"""

import re
import sys
import tomllib
from collections.abc import Iterator

from tests.architecture.imports import ROOT

FILE = ROOT / "constraints-lowest.txt"
_FLOOR = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?>=([0-9.]+)(?:,<[0-9.]+)?$")


def floors() -> Iterator[tuple[str, str]]:
    """Return each package that users need, with their extras, and its lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *extras["plots"], *extras["timm"]]:
        found = _FLOOR.match(requirement)
        assert found is not None, f"{requirement} has no lowest version"
        yield found[1], found[2]


def constraints() -> str:
    """Return the content of the file."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(floors(), key=lambda f: f[0].lower()))


if __name__ == "__main__":
    sys.stdout.write(constraints())
