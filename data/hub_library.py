"""Datasets by the optional library `datasets` of Hugging Face: of its hub, or in a folder.

The library downloads a dataset once and writes it as Arrow files into its own cache (`HF_HOME`). Which files
these are is kept in our cache, so that the hub is asked once on a machine and not by each process: a dataset
stays the same until another `revision` is asked for. The library runs no code of a dataset.
"""

import json
import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from contrasweep.data.cache import kept_folder, while_unchanged
from contrasweep.data.fingerprint import state_below
from contrasweep.data.own_folders import is_saved
from contrasweep.data.root import DatasetMissing
from contrasweep.libraries import DATASETS, require
from contrasweep.names import unknown

log = logging.getLogger(__name__)

OLDEST = 4
"""The first major version of the library that never runs a dataset's own code."""

_RECORD = "splits.json"
_SIGN_IN = "sign in with `hf auth login`, or set HF_TOKEN"


@dataclass(frozen=True)
class HubSplits:
    """The Arrow files of a dataset.

    Attributes:
        files: the paths of the files of each split.
        licence: as its card says it; empty where it says none.
        commit: of the hub; empty for a folder.
    """

    files: Mapping[str, tuple[str, ...]]
    licence: str
    commit: str = ""


def hub_splits(name: str, config: str, revision: str) -> HubSplits:
    """Return the files of a dataset of the hub, after downloading it unless that was done before.

    Args:
        name: OWNER/NAME.
        config: the configuration; "" for the only one, or the default one.
        revision: branch, tag or commit; "" for the main branch.

    Raises:
        DatasetMissing: it is not there, or cannot be had; the message says why, and what to do.
    """
    key = sha256("\n".join([name, config, revision]).encode()).hexdigest()[:24]
    write = partial(_write_record, name=name, config=config, revision=revision)
    found = _read_record(kept_folder("hub", key, write))
    if not all(Path(file).is_file() for files in found.files.values() for file in files):
        # The library's cache was cleared.
        shutil.rmtree(kept_folder("hub", key, write), ignore_errors=True)
        found = _read_record(kept_folder("hub", key, write))
    return found


@while_unchanged(16, state_below)
def folder_splits(folder: Path, config: str) -> HubSplits:
    """Return the files of a dataset in a folder: one that `save_to_disk` wrote, or that `load_dataset` reads.

    Raises:
        DatasetMissing: the library cannot read it.
    """
    what, saved = f"the folder {folder}", is_saved(folder)
    if saved and config:
        raise DatasetMissing(
            f"config={config}: {what} is what save_to_disk wrote, which has one configuration"
        )
    with _library() as datasets:
        try:
            if saved:
                return _splits_of(datasets.load_from_disk(str(folder), keep_in_memory=False))
            builder = datasets.load_dataset_builder(str(folder), config or None)
            builder.download_and_prepare()
            return _splits_of(builder.as_dataset(in_memory=False))
        # Readers of any file format raise their own errors.
        except Exception as error:
            raise _refusal(what, config, error) from error


def _write_record(folder: Path, name: str, config: str, revision: str) -> None:
    what = f"{name} of the Hugging Face hub"
    if Path(name).is_dir():
        raise DatasetMissing(
            f"{what}: the working directory has a folder {name}, which the library would read instead. "
            "Start from another directory; or, for the folder, give hf:path="
        )
    with _library() as datasets:
        try:
            builder = datasets.load_dataset_builder(name, config or None, revision=revision or None)
            _refuse_other_commit(builder, what, revision)
            if not Path(builder.cache_dir).is_dir():
                log.warning("downloading %s into %s, once", what, builder.cache_dir)
            builder.download_and_prepare()
            found = _splits_of(builder.as_dataset(in_memory=False), str(builder.hash))
        except DatasetMissing:
            raise
        # Readers of any file format, and clients of the hub, raise their own errors.
        except Exception as error:
            raise _refusal(what, config, error) from error
    (folder / _RECORD).write_text(json.dumps(asdict(found)), encoding="utf-8")


def _read_record(folder: Path) -> HubSplits:
    content = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    files = {split: tuple(paths) for split, paths in content["files"].items()}
    return HubSplits(files, content["licence"], content["commit"])


def _splits_of(loaded: Any, commit: str = "") -> HubSplits:
    splits = loaded if isinstance(loaded, dict) else {"train": loaded}
    for name, split in splits.items():
        if split.num_rows != split.data.num_rows:
            raise DatasetMissing(f"the split {name} is a selection of rows: save it again with save_to_disk")
    files = {
        str(name): tuple(file["filename"] for file in split.cache_files) for name, split in splits.items()
    }
    licences = {str(split.info.license) for split in splits.values() if split.info.license}
    return HubSplits(files, ", ".join(sorted(licences)), commit)


def _refuse_other_commit(builder: Any, what: str, revision: str) -> None:
    """Refuse what the library offers instead where it cannot ask the hub: the last version that it has."""
    if revision and type(builder).__module__.endswith(".cache.cache") and builder.hash != revision:
        raise DatasetMissing(
            f"{what}: revision={revision} cannot be looked up, because the hub is not reached; the cache has "
            f"revision={builder.hash}"
        )


@contextmanager
def _library() -> Iterator[Any]:
    """Give the library, without its progress bars and its log.

    Raises:
        LibraryMissing: it is not installed.
        DatasetMissing: it is too old.
    """
    require(DATASETS, "dataset hf")
    import datasets
    from huggingface_hub import utils as hub

    if int(datasets.__version__.partition(".")[0]) < OLDEST:
        raise DatasetMissing(
            f"dataset hf needs datasets {OLDEST} or later, which runs no code of a dataset; "
            f"{datasets.__version__} is installed: pip install -U datasets"
        )
    places = (datasets.utils, datasets.logging), (hub, hub.logging)
    shown = [bars for bars, _ in places if not bars.are_progress_bars_disabled()]
    before = [(logs, logs.get_verbosity()) for _, logs in places]
    for bars, logs in places:
        bars.disable_progress_bars()
        logs.set_verbosity(logging.CRITICAL)
    try:
        yield datasets
    finally:
        for logs, level in before:
            logs.set_verbosity(level)
        for bars in shown:
            bars.enable_progress_bars()


def _refusal(what: str, config: str, error: Exception) -> DatasetMissing:
    """Return the error for a dataset that the library cannot load: the cause, and what to do."""
    import datasets

    told, listed = " ".join(str(error).split()), re.search(r"vailable(?: configs)?: \[(.*?)\]", str(error))
    names = re.findall(r"'([^']+)'", listed[1]) if listed else []
    if isinstance(error, ValueError) and names:
        if config:
            return DatasetMissing(unknown(f"configuration of {what}", config, names))
        return DatasetMissing(f"{what} has several configurations: give config=, one of {', '.join(names)}")
    if "gated" in told.lower():
        return DatasetMissing(f"{what} is gated: ask for access on its page there, then {_SIGN_IN}")
    if isinstance(error, datasets.exceptions.DatasetNotFoundError) and told.startswith("Revision"):
        return DatasetMissing(f"{what} has no such revision: give revision= a commit, a tag or a branch")
    if isinstance(error, datasets.exceptions.DatasetNotFoundError):
        return DatasetMissing(
            f"{what} is not there, or private: check its name; if it is private, {_SIGN_IN}"
        )
    if isinstance(error, ConnectionError):
        off = "HF_HUB_OFFLINE is set" if datasets.config.HF_HUB_OFFLINE else "the hub is not reached"
        return DatasetMissing(
            f"{what} is not in the cache, and {off}. Load it once where there is a network, and "
            f"copy or share the cache ({datasets.config.HF_CACHE_HOME}, or HF_HOME)"
        )
    cause = " ".join(str(error.__cause__ or "").split())
    return DatasetMissing(f"{what} cannot be loaded: {told}{f' ({cause})' if cause else ''}"[:_MOST_TOLD])


_MOST_TOLD = 500
"""How many letters of the library's own words are passed on."""
