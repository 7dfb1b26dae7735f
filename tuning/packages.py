"""Whether the five packages that make up contrasweep come from one place.

Their names are generic, and Python takes the first folder on its path that has them: a `models/` beside a
user's script would silently stand in for ours.
"""

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("losses", "models", "data", "search_spaces", "tuning")


class ShadowedPackage(ImportError):
    """Another package or module of the same name stands in the way of one of ours."""


def refuse_shadowed_packages() -> None:
    """Raise ShadowedPackage, naming the file in the way, unless all five packages share one root."""
    root = Path(__file__).resolve().parents[1]
    for name in PACKAGES:
        spec = find_spec(name)
        places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or [])]
        found = [Path(place).resolve() for place in places if place]
        if not any(path == root / name or path.parent == root / name for path in found):
            where = found[0] if found else "nowhere"
            raise ShadowedPackage(
                f"contrasweep's package {name!r} is hidden: Python finds {where} instead of {root / name}. "
                "Rename that file or folder, or run from another folder."
            )
