"""Checks of the file of initial weights before a run: it has not changed, and it fits the network."""

import hashlib
import os
from functools import cache, lru_cache

from contrasweep.data import DatasetFacts
from contrasweep.given_files import check_given
from contrasweep.models import build_encoder
from contrasweep.models.encoders.meta_device import on_meta_device
from contrasweep.models.encoders.weights import fitting, network_of, read_weights
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.experiment import EncoderSettings, Experiment

_Stat = tuple[int, int]


def with_digest(experiment: Experiment) -> Experiment:
    """Return the experiment with the digest of its file of weights, if it starts from one that has none.

    Raises:
        InputError: the file cannot be read.
    """
    settings = experiment.encoder
    if settings.weights is None or settings.weights_sha256 is not None:
        return experiment
    with told_to_user("encoder.weights: "):
        check_given(settings.weights)
    return experiment.with_values(
        {"encoder.weights_sha256": _digest(settings.weights, _stat(settings.weights))}
    )


def refuse_other_file(settings: EncoderSettings) -> None:
    """Raise InputError unless the file of weights is there, with the content that it had at first."""
    if settings.weights is None:
        return
    with told_to_user("encoder.weights: "):
        check_given(settings.weights)
    found = _digest(settings.weights, _stat(settings.weights))
    if settings.weights_sha256 not in (None, found):
        raise InputError(
            f"encoder.weights: {settings.weights} is another file than before: its SHA-256 was "
            f"{settings.weights_sha256}, is {found}. Put the file back, or start anew"
        )


def check_weights(settings: EncoderSettings, data: DatasetFacts) -> None:
    """Raise InputError unless an encoder can start from its file of weights on this data."""
    if settings.weights is None:
        return
    if "images" not in data.offers:
        raise InputError(f"encoder.weights is for images; {data.name} has views of its own")
    refuse_other_file(settings)
    _remarks(settings, data)


def weights_in_words(settings: EncoderSettings, data: DatasetFacts) -> str | None:
    """Return which weights an encoder starts from, and what that makes of the control; None for none."""
    if settings.weights is None:
        return None
    remarks = _remarks(settings, data)
    told = f" ({', '.join(remarks)})" if remarks else ""
    return f"starts from {settings.weights}{told}, so `untrained` is the encoder as loaded"


def _remarks(settings: EncoderSettings, data: DatasetFacts) -> tuple[str, ...]:
    assert settings.weights is not None
    with told_to_user(f"encoder.weights with encoder {settings.name}: "):
        return _fitted(settings, data.channels, data.view_size, _stat(settings.weights))


@lru_cache(maxsize=32)
def _fitted(settings: EncoderSettings, channels: int, size: int, _: _Stat) -> tuple[str, ...]:
    """Return what must be done to fit the file into the network, which is built without memory."""
    stored = read_weights(str(settings.weights))
    network = network_of(on_meta_device(lambda: build_encoder(settings.name, channels, size)))
    try:
        remarks = fitting(stored, network).remarks
    except ValueError as error:
        name = stored.header.get("name", settings.name)
        hint = "" if name == settings.name else f"; it is of encoder.name={name}"
        raise ValueError(f"{error}{hint}") from error
    there = tuple(tuple(stored.header.get(key, ())) for key in ("mean", "std"))
    if stored.header and there != (settings.mean, settings.std):
        remarks += (f"it was trained with encoder.mean {list(there[0])} and encoder.std {list(there[1])}",)
    return remarks


@cache
def _digest(path: str, _: _Stat) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stat(path: str) -> _Stat:
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns
