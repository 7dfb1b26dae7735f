"""Small datasets as the library `datasets` keeps them: saved to a folder, or in its cache of the hub."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest
from encoded_files import encoded, pixels

CLASSES = ["ant", "bee", "cat"]


def table(
    seeds: Sequence[int],
    labels: Sequence[Any] | None = None,
    kind: Any = None,
    columns: tuple[str, str] = ("picture", "kind"),
) -> datasets.Dataset:
    """A table with an image for each seed and, if they are given, labels: of `kind`, or else of classes."""
    features: dict[str, Any] = {columns[0]: datasets.Image()}
    content: dict[str, Any] = {columns[0]: [{"bytes": encoded(pixels(seed)), "path": None} for seed in seeds]}
    if labels is not None:
        features[columns[1]] = kind or datasets.ClassLabel(names=CLASSES)
        content[columns[1]] = list(labels)
    return datasets.Dataset.from_dict(content, features=datasets.Features(features))


def save(folder: Path, splits: Mapping[str, datasets.Dataset]) -> Path:
    """Write splits with `save_to_disk`, without its progress bars; return the folder."""
    bars = datasets.utils.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        datasets.DatasetDict(splits).save_to_disk(str(folder))
    finally:
        if not bars:
            datasets.enable_progress_bars()
    return folder


@pytest.fixture
def library_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the library and us empty caches, and no network; return the library's."""
    import huggingface_hub.constants

    home = tmp_path / "hf-home"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", home)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CONTRASWEEP_PLACEMENT", raising=False)
    return home


COMMIT = "c" * 40


def cache_of_hub(home: Path, sources: Path, splits: Mapping[str, datasets.Dataset]) -> str:
    """Lay splits into the library's cache, as if they had been downloaded; return their name on the hub."""
    folder = sources / "letters"
    folder.mkdir(parents=True, exist_ok=True)
    for name, split in splits.items():
        split.to_parquet(str(folder / f"{name}-00000-of-00001.parquet"))
    builder = datasets.load_dataset_builder(str(folder), cache_dir=str(home))
    builder.download_and_prepare()
    (home / "letters").rename(home / "someone___letters")
    place = next((home / "someone___letters/default/0.0.0").glob("*/")).parent
    next(place.glob("[0-9a-f]*/")).rename(place / COMMIT)
    return "someone/letters"
