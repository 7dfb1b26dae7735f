"""The names of the metrics that runs record, so that a study's columns are known before it starts."""

from collections.abc import Mapping
from types import MappingProxyType

FAST_METRIC: Mapping[str, str] = MappingProxyType(
    {"val.accuracy": "val.ridge_accuracy", "val.colour_mse": "val.ridge_colour_mse"}
)
"""What a search can maximise, and the cheap form of it that is known after every epoch.

A larger colour error means that less of the colour is kept, so all of them are maximised.
"""

TRAIN = ("train.loss", "train.dropped_fraction", "train.lr")


def search_metrics(has_colour: bool) -> tuple[str, ...]:
    """Return the metrics of a search trial: training, and scores on the validation split."""
    return (*TRAIN, *_scores("val.ridge_", has_colour), *_scores("val.", has_colour))


def final_metrics(has_colour: bool) -> tuple[str, ...]:
    """Return the metrics of a final run: training, and test scores of the trained and untrained encoder."""
    return (*TRAIN, *_scores("test.", has_colour), *_scores("test.untrained_", has_colour))


def _scores(prefix: str, has_colour: bool) -> tuple[str, ...]:
    names = ("accuracy", "colour_mse") if has_colour else ("accuracy",)
    return tuple(prefix + name for name in names)
