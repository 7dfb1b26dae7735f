"""Any image dataset of the Hugging Face hub, or in a folder, as the library `datasets` reads it.

`hf:OWNER/NAME` is a dataset of the hub, `hf:path=FOLDER` one in a folder: what `save_to_disk` wrote, or files
that `load_dataset` reads (images in folders, Parquet). The columns are those of other tables.
Images stay encoded, in Arrow files that the library keeps in its cache.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

from contrasweep.data.arrow import ArrowImages, ArrowPart
from contrasweep.data.hub_library import HubSplits, folder_splits, hub_splits
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.own_folders import HUB, HUB_NAME, TEST_NAMES, where_missing
from contrasweep.data.root import ROOT_VARIABLE, DatasetMissing, path_below
from contrasweep.data.sources.table_facts import AUTO, TableFacts, checked_labels
from contrasweep.data.sources.tables import Tables, family_of_tables
from contrasweep.given_files import MIB
from contrasweep.libraries import DATASETS
from contrasweep.names import unknown

HASHED_BYTES = 64 * MIB
"""How much of the encoded images of a split goes into its fingerprint: images at even distances, or all."""


def _find(root: Path, options: Options) -> Tables[ArrowPart]:
    name, path = str(options["name"]), str(options["path"])
    found = _in_folder(root, options) if path else _on_hub(options)
    train, test = _named_splits(found, options)
    at = f" at {found.commit}" if found.commit else ""
    return Tables(
        name=HF.full_name(options),
        train=_parts(found, train),
        test=_parts(found, test) if test else (),
        images=ArrowImages,
        summary=f"images of {name or path} by the library {DATASETS}",
        folder=path or name,
        source="your own files" if path else f"huggingface.co/datasets/{name}{at}",
        licence=found.licence or ("that of the images" if path else "see the dataset's card"),
        drawn_as=f"hf {name or Path(path).name}",
        fingerprint=_fingerprint,
    )


def _on_hub(options: Options) -> HubSplits:
    """Return the files of a dataset of the hub.

    Raises:
        DatasetMissing: nothing on the hub can have that name, or see `hub_splits`.
    """
    name = str(options["name"])
    if not HUB_NAME.fullmatch(name):
        raise DatasetMissing(
            f"dataset hf: {name!r} is no name on the hub, which is OWNER/NAME, as in hf:uoft-cs/cifar10. "
            "A configuration is config=NAME, another version revision=COMMIT; a folder is hf:path=FOLDER"
        )
    return hub_splits(name, str(options["config"]), str(options["revision"]))


def _in_folder(root: Path, options: Options) -> HubSplits:
    """Return the files of a dataset in a folder, which is absolute or under the root.

    Raises:
        DatasetMissing: there is no such folder, the options name a revision, or see `folder_splits`.
    """
    if options["revision"]:
        raise DatasetMissing(
            f"dataset hf: revision={options['revision']} is for datasets of the hub; leave it out"
        )
    path = str(options["path"])
    place = path_below(root, path).absolute()
    if not place.is_dir():
        raise DatasetMissing(
            f"dataset 'hf' not found: {where_missing(root, path)}. path= is absolute, or under the data root "
            f"(--data-root DIR or {ROOT_VARIABLE}); a dataset of the hub is hf:OWNER/NAME"
        )
    return folder_splits(place, str(options["config"]))


def _named_splits(found: HubSplits, options: Options) -> tuple[str, str | None]:
    """Return the names of the training and of the test split; None for one that is cut off the former.

    Raises:
        DatasetMissing: there is no such split, or both are the same one.
    """
    train, test, there = str(options["train"]), str(options["test"]), tuple(found.files)
    for option, name in (("train", train), ("test", test)):
        if name not in there and (option, name) != ("test", AUTO):
            what = f"split of {HF.full_name(options)}"
            raise DatasetMissing(f"{unknown(what, name, there)} Give {option}=, one of them")
    if train == test:
        raise DatasetMissing(f"dataset {HF.full_name(options)} trains and tests on the same split, {train}")
    if test != AUTO or AUTO in there:
        return train, test
    return train, next((name for name in TEST_NAMES if name in there and name != train), None)


def _parts(found: HubSplits, split: str) -> tuple[ArrowPart, ...]:
    states = ((file, Path(file).stat()) for file in found.files[split])
    return tuple(ArrowPart(file, state.st_size, state.st_mtime_ns) for file, state in states)


@lru_cache(maxsize=16)
def _fingerprint(train: tuple[ArrowPart, ...], test: tuple[ArrowPart, ...], facts: TableFacts) -> str:
    """Return the hash of all labels, of the sizes of all encoded images and of `HASHED_BYTES` of images.

    It is the same wherever the files lie, and for a later commit of the hub that changes texts alone.

    Raises:
        DatasetDamaged: see `checked_labels`; or the file of an image is missing.
    """
    digest = hashlib.blake2b("\n".join(facts.class_names).encode(), digest_size=8)
    for split, parts in (("train", train), ("test", test)):
        place = f"{split} split, {parts[0].place}" if parts else split
        labels = checked_labels(parts, facts, place, test=split == "test")
        digest.update(f"\n{split} {len(labels)}\n".encode())
        digest.update(labels.numpy().tobytes())
        images = ArrowImages(parts, facts.image)
        sizes = images.sizes()
        digest.update(sizes.tobytes())
        step = 1 + int(sizes.clip(0).sum()) // HASHED_BYTES
        for row in range(0, len(images), step):
            digest.update(images.read([row])[0])
    return digest.hexdigest()


HF = family_of_tables(
    name=HUB,
    summary="any images of the Hugging Face hub, or of a folder that its library reads, labels or none",
    options={
        "name": DatasetOption("OWNER/NAME on the hub", str, None, bare=True, instead="path"),
        "path": DatasetOption("folder in place of the hub: absolute, or under the data root", str, ""),
        "config": DatasetOption("configuration, where there are several", str, ""),
        "revision": DatasetOption("commit, tag or branch of the hub", str, ""),
        "train": DatasetOption("which split is for training", str, "train"),
        "test": DatasetOption(f"which split is the test; auto: {', '.join(TEST_NAMES)}", str, AUTO),
    },
    find=_find,
    library=DATASETS,
)
