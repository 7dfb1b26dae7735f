"""The installed distributions that have plug-ins: their names, versions and code. Nothing is imported."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

KINDS = ("method", "encoder", "dataset", "sampler", "metric")

_CODE = (".py", ".yaml", ".yml")
"""The files of a package that decide what it does."""


def installed_plugins() -> dict[str, list[EntryPoint]]:
    """Return the entry points of each distribution that adds something of the `KINDS`, by its name."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entries_of_plugins():
        if entry.dist is not None:
            found.setdefault(entry.dist.name, []).append(entry)
    return found


def plugin_versions() -> dict[str, str]:
    """Return the version of every distribution that adds something of one of the `KINDS`."""
    return {name: version_of(entries) for name, entries in installed_plugins().items()}


def version_of(entries: Sequence[EntryPoint]) -> str:
    """Return the version of the distribution that has entry points which `installed_plugins` returned."""
    distribution = entries[0].dist
    assert distribution is not None, "installed_plugins leaves out entry points without one"
    return distribution.version


def things_added(entries: Iterable[EntryPoint]) -> list[str]:
    """Return what entry points add, each as its kind and its name, such as `method dcl`."""
    kinds = {group_of(kind): kind for kind in KINDS}
    return [f"{kinds[one.group]} {one.name}" for one in entries]


def source_digest(entries: Iterable[EntryPoint]) -> str:
    """Return a digest of the Python and YAML files of the packages that entry points name; import none."""
    return _digest(sorted({package_of(entry) for entry in entries}))


def distributions_of(names: Collection[str]) -> list[str]:
    """Return the distributions that add methods, encoders, datasets, samplers or metrics of these names."""
    return sorted(
        {entry.dist.name for entry in entries_of_plugins() if entry.dist is not None and entry.name in names}
    )


def distribution_of(kind: str, name: str) -> str | None:
    """Return the distribution that adds the object of one kind with this name; None if it is our own."""
    found = [entry for entry in entry_points(group=group_of(kind)) if entry.name == name]
    return distribution_name(found[0]) if found else None


def plugin_names(kind: str) -> list[str]:
    """Return the names of one kind that other distributions add, without importing them."""
    return sorted({entry.name for entry in entry_points(group=group_of(kind))})


def _digest(packages: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=4)
    for package in packages:
        folders, alone = code_of(package)
        files = [file for folder in folders for file in sorted(folder.rglob("*"))]
        for file in (*alone, *files):
            if file.suffix in _CODE and file.is_file():
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def code_of(package: str) -> tuple[list[Path], list[Path]]:
    """Return the folders of a package, or the file of a module that is alone; none if neither is there."""
    spec = find_spec(package) if package else None
    folders = [Path(one) for one in spec.submodule_search_locations or ()] if spec is not None else []
    return folders, [] if spec is None or folders or spec.origin is None else [Path(spec.origin)]


def entries_of_plugins() -> list[EntryPoint]:
    """Return the entry points of all `KINDS`."""
    # One look for all kinds: it reads a file of every installed distribution.
    found = entry_points()
    return [entry for kind in KINDS for entry in found.select(group=group_of(kind))]


def group_of(kind: str) -> str:
    """Return the group of the entry points of one of the `KINDS`."""
    return f"contrasweep.{kind}s"


def package_of(entry: EntryPoint) -> str:
    """Return the top package of what an entry point leads to, also where Python cannot parse the latter."""
    return entry.value.partition(":")[0].partition(".")[0].strip()


def distribution_name(entry: EntryPoint) -> str:
    """Return the distribution that has an entry point; where none is known, what the entry point leads to."""
    return entry.value if entry.dist is None else entry.dist.name
