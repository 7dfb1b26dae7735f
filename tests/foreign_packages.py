"""Packages of a user with the names of ours, which fail when something imports them."""

from pathlib import Path


def write_foreign_packages(folder: Path) -> None:
    """Put `models/`, `losses/`, `search_spaces/`, `tuning/` and `data.py` into the folder of a user."""
    for name in ("models", "losses", "search_spaces", "tuning"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise RuntimeError('the wrong {name}')")
    (folder / "data.py").write_text("raise RuntimeError('the wrong data')")
