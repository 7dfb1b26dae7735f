"""Write `declared.json`: what our own methods, datasets, encoders and samplers declare.

    python -m contrasweep.tuning.catalogue.writing

A test fails if the file and the code disagree.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from contrasweep.data import DATASETS, DatasetMissing
from contrasweep.data.options import DatasetOption
from contrasweep.models import ENCODERS, VECTOR_ENCODERS
from contrasweep.plugin_packages import plugin_names
from contrasweep.tuning.catalogue.declared import FILE
from contrasweep.tuning.files import write_whole
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.declaration import Declaration
from contrasweep.tuning.search import SAMPLERS

NOWHERE = Path("/nowhere")
"""A data root without files: facts that are known there are known everywhere."""


def catalogue() -> dict[str, Any]:
    """Return the content of `declared.json`, without what plug-ins add."""
    return {
        "methods": {name: _method(METHODS[name]) for name in _own("method", METHODS)},
        "datasets": {name: _dataset(name) for name in _own("dataset", DATASETS)},
        "encoders": {
            name: {"takes": "images" if name in ENCODERS else "vectors"}
            for name in _own("encoder", {**ENCODERS, **VECTOR_ENCODERS})
        },
        "samplers": {name: {"exhaustive": SAMPLERS[name].exhaustive} for name in _own("sampler", SAMPLERS)},
    }


def text_of(content: Mapping[str, Any]) -> str:
    """Return the content as the text of the file, an entry a line."""
    kinds = []
    for kind, entries in content.items():
        lines = (f"    {json.dumps(name)}: {json.dumps(one)}" for name, one in entries.items())
        kinds.append(f"  {json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


def _own(kind: str, registered: Mapping[str, Any]) -> list[str]:
    others = plugin_names(kind)
    return [name for name in registered if name not in others]


def _method(method: Declaration) -> dict[str, Any]:
    settings: dict[str, dict[str, Any]] = {}
    for name, one in method.hyperparameters.items():
        settings[name] = {"summary": one.summary, "rule": _changed(one.rule)}
        if one.needs:
            settings[name]["needs"] = dict(one.needs)
        if one.counts_columns:
            settings[name]["counts_columns"] = True
    declared = {one.name for one in fields(Declaration)} - {"name", "hyperparameters"}
    return {**_changed(method, declared), "hyperparameters": settings}


def _dataset(name: str) -> dict[str, Any]:
    family = DATASETS[name]
    options = {one: _option(own) for one, own in family.options.items()}
    content: dict[str, Any] = {"options": options} | ({"library": family.library} if family.library else {})
    if family.needs_options:
        return content
    try:
        return {**content, "facts": _changed(family.describe(NOWHERE, family.parse("")))}
    except DatasetMissing:
        return content


def _option(option: DatasetOption) -> dict[str, Any]:
    return {**_changed(option), "kind": option.kind.__name__}


def _changed(item: Any, names: Collection[str] | None = None) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, as JSON knows them."""
    content = {}
    for one in fields(item):
        value = getattr(item, one.name)
        if (names is None or one.name in names) and (one.default is MISSING or value != one.default):
            content[one.name] = sorted(value) if isinstance(value, frozenset) else value
    return content


if __name__ == "__main__":
    write_whole(Path(__file__).parent / FILE, text_of(catalogue()))
