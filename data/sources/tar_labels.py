"""Labels and bias labels of the samples of tar files, from `NAME.cls` and `NAME.json` beside an image."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from contrasweep.data.bias_table import NO_BIAS, BiasLabels, check_bias
from contrasweep.data.cache import while_unchanged
from contrasweep.data.options import DatasetOption
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.tar_members import MOST_LABEL_BYTES, Member, read_members, samples_in
from contrasweep.names import unknown

TAR_BIAS_OPTION: Mapping[str, DatasetOption] = {
    "bias": DatasetOption("key of NAME.json with the bias label of each image; none", str, NO_BIAS)
}
"""The option of images in tar files."""


def in_order(labels: set[str]) -> tuple[str, ...]:
    """Return the names of classes: numbers by their size, words by the alphabet."""
    if all(label.isdecimal() for label in labels):
        return tuple(sorted(labels, key=int))
    return tuple(sorted(labels))


@while_unchanged(4096)
def labels_in(file: Path) -> tuple[str | None, ...]:
    """Return the labels of the samples of a tar file, as texts; None for a sample without one.

    A label that stands alone, in `NAME.cls`, comes before the one in `NAME.json`.

    Raises:
        DatasetDamaged: a label is neither a whole number nor a word.
    """
    samples = samples_in(file)
    alone = _contents(file, [one.label for one in samples])
    facts = _contents(file, [one.facts if one.label is None else None for one in samples])
    return tuple(
        _label(text, held, f"{one.name} in {file}")
        for one, text, held in zip(samples, alone, facts, strict=True)
    )


def bias_in(train: Sequence[Path], test: Sequence[Path], key: str) -> BiasLabels:
    """Return the bias labels of all samples, from the value of `key` in the `NAME.json` of each.

    Args:
        train, test: the tar files of each split; no test file where a test split is cut off.
        key: the key.

    Raises:
        DatasetDamaged: a sample has no `NAME.json` with the key, or it holds something else than a whole
            number, a word, true or false; or see `check_bias`.
    """
    splits = [[text for file in files for text in _biases_in(file, key)] for files in (train, test) if files]
    values = in_order({text for own in splits for text in own})
    numbers = {text: number for number, text in enumerate(values)}
    labels = [torch.tensor([numbers[text] for text in own], dtype=torch.int64) for own in splits]
    check_bias(f"bias={key}: {train[0].parent}", labels[0], len(values))
    return BiasLabels(values, labels)


@while_unchanged(4096)
def _biases_in(file: Path, key: str) -> tuple[str, ...]:
    samples = samples_in(file)
    contents = _contents(file, [one.facts for one in samples])
    return tuple(
        _bias(content, key, f"{one.name} in {file}") for one, content in zip(samples, contents, strict=True)
    )


def _contents(file: Path, members: Sequence[Member | None]) -> list[bytes | None]:
    """Return what each member holds; None for one that is not there."""
    there = iter(read_members(file, [one for one in members if one is not None], MOST_LABEL_BYTES))
    return [None if one is None else next(there) for one in members]


def _label(text: bytes | None, facts: bytes | None, sample: str) -> str | None:
    """Return a label as a text; None for one that stands for no label (null, -1 or nothing)."""
    found: object = None
    if text is not None:
        try:
            found = text.decode("utf-8-sig").strip()
        except ValueError as error:
            raise DatasetDamaged(f"the label of {sample} cannot be read: {error}") from error
    elif facts is not None:
        held = _loaded(facts, "label", sample)
        found = held.get("label") if isinstance(held, dict) else held
    if found is None or found == "" or str(found) == "-1":
        return None
    if isinstance(found, bool) or not isinstance(found, int | str):
        raise DatasetDamaged(f"the label of {sample} is {found!r}: give a whole number or a word")
    return str(found)


def _bias(facts: bytes | None, key: str, sample: str) -> str:
    if facts is None:
        raise DatasetDamaged(f"bias={key}: {sample} has no .json member beside the image")
    held = _loaded(facts, "bias label", sample)
    if not isinstance(held, dict) or key not in held:
        keys = held if isinstance(held, dict) else ()
        raise DatasetDamaged(f"bias={key}: {unknown(f'key of {sample}', key, keys)}")
    found = held[key]
    if isinstance(found, bool):
        return str(found).lower()
    if not isinstance(found, int | str) or found == "":
        raise DatasetDamaged(
            f"the bias label of {sample}, {key}, is {found!r}: give a whole number, a word, true or false"
        )
    return str(found)


def _loaded(facts: bytes, what: str, sample: str) -> object:
    try:
        held: object = json.loads(facts)
    except (ValueError, RecursionError) as error:
        raise DatasetDamaged(f"the {what} of {sample} cannot be read: {error}") from error
    return held
