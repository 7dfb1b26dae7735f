"""The encoder files that a user names: by path, or by a study. Nothing here imports torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from contrasweep.given_files import check_given, read_given
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.export.checks import is_encoder_file
from contrasweep.tuning.results.encoders import runs_with_encoders, stored_encoders
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.store.layout import encoder_path

_SHOWN: Final = 3
"""Files that a message names."""


@dataclass(frozen=True)
class EncoderSource:
    """An encoder file.

    Attributes:
        place: its path, or its path below the results folder.
        read: returns its content.
        label: the study and the trial that it is of; None for a file that is given by its path.
    """

    place: str
    read: Callable[[], bytes]
    label: str | None = None


def encoder_sources(given: Sequence[str], results: str) -> list[EncoderSource]:
    """Return the encoder files that are given by path, or by the name of a study.

    A study gives those of its final runs, or, where there are none, those that its search has kept.

    Raises:
        InputError: there is no such file, or the study has no encoder.
        StoreError: there is no such study (with the nearest name).
    """
    if not given:
        raise InputError("no encoder was given: give encoder files, or the name of a study")
    found = (_file(one) if is_encoder_file(one) else _of_study(one, results) for one in given)
    return [source for sources in found for source in sources]


def one_encoder(given: str, results: str) -> EncoderSource:
    """Return the one encoder file that is given by path, or by a study that has one.

    Raises:
        InputError: see `encoder_sources`; or the study has several.
        StoreError: there is no such study (with the nearest name).
    """
    found = encoder_sources([given], results)
    if len(found) > 1:
        shown = ", ".join(f"{results.rstrip('/')}/{source.place}" for source in found[:_SHOWN])
        raise InputError(f"study {given} has {len(found)} encoders: give the file of one, such as {shown}")
    return found[0]


def _file(given: str) -> list[EncoderSource]:
    with told_to_user("encoder "):
        check_given(given)
    return [EncoderSource(given, partial(read_given, Path(given)))]


def _of_study(given: str, results: str) -> list[EncoderSource]:
    store = ResultsStore(results)
    study, rows = runs_with_encoders(store, given)
    there = stored_encoders(store.location, study)
    found = []
    for trial, seed in sorted(rows):
        path = encoder_path(study, trial, seed)
        if path not in there:
            raise InputError(f"the encoder of trial {trial}, seed {seed} of {study} is gone: {path}")
        found.append(EncoderSource(path, partial(store.location.read, path), f"{study}, trial {trial}"))
    return found
