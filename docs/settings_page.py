"""Render docs/settings.md: every setting of every preset, with the place that it comes from.

    python -m docs.settings_page [FILE]

reads `search_spaces/presets/`; no value on the page was typed by hand.
"""

import sys
from collections import Counter
from pathlib import Path

from contrasweep.search_spaces import Preset, available_presets, preset
from contrasweep.tuning.tables.verdict_text import pipes

_PAGE = Path(__file__).parent / "settings.md"
_ORIGINS = ("paper", "released code", "ours")
_HEAD = """# The settings of the presets, and where each comes from

This page lists the settings of each preset, and the source of each setting. `contrasweep sweep METHOD --data
DATASET --preset` and `contrasweep train FILE --preset` start from these settings. A source is a place in a
paper, a file of its authors' released code, or our own choice with its reason. If a paper and its code
disagree, the source says which of them the preset follows. `python -m docs.settings_page` renders this page
from `search_spaces/presets/`.

"""


def settings_page() -> str:
    """Return the page as Markdown."""
    presets = {f"{method}@{data}": preset(method, data) for method, data in available_presets()}
    found = {name: one for name, one in presets.items() if one is not None}
    counts = [
        [f"[{name}](#{name.replace('@', '')})", str(len(one["settings"])), *_by_origin(one)]
        for name, one in found.items()
    ]
    summary = pipes(["preset", "settings", *(f"from the {one}" for one in _ORIGINS[:2]), "ours"], counts)
    return _HEAD + "\n\n".join([summary, *(_section(name, one) for name, one in found.items())]) + "\n"


def _by_origin(found: Preset) -> list[str]:
    counts = Counter(origin(source) for source in found["sources"].values())
    return [str(counts[one]) for one in _ORIGINS]


def origin(source: str) -> str:
    """Return what kind of source this is: paper, released code, or ours."""
    if source.startswith("ours: "):
        return "ours"
    return "released code" if "code," in source else "paper"


def _section(name: str, found: Preset) -> str:
    rows = []
    for source in dict.fromkeys(found["sources"].values()):
        own = [setting for setting, one in found["sources"].items() if one == source]
        rows.append([source, ", ".join(f"`{one}` {_value(found['settings'][one])}" for one in own)])
    return f"## {name}\n\n{' '.join(found['expect'].split())}\n\n{pipes(['source', 'settings'], rows)}"


def _value(value: object) -> str:
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, list) else str(value)


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else _PAGE).write_text(settings_page(), encoding="utf-8")
