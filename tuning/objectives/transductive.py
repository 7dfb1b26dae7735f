"""Transductive runs: they train on few labelled objects of several views and on the unlabelled test set."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from contrasweep.data import DatasetFacts, MultiView, TransductiveData, TransductiveSpec, load_transductive
from contrasweep.models import Encoder
from contrasweep.models.encoders.multiview import MultiViewEncoder, build_multiview_encoder
from contrasweep.models.export import multiview_encoder_bytes
from contrasweep.tuning.experiment import EncoderSettings, Experiment

CHUNK = 4096
"""Objects that are classified at once: bounds memory, does not change the result."""


@dataclass(frozen=True)
class PreparedTransductive:
    """One fold of a transductive dataset on a device; `untrained` is as in `PreparedData`."""

    spec: TransductiveSpec
    data: TransductiveData
    device: torch.device
    untrained: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def validation(self) -> MultiView | None:
        """The labelled objects that are held out."""
        return self.data.validation

    @property
    def probe_rows(self) -> None:
        """No probe is fitted."""
        return None

    @property
    def probed(self) -> None:
        """No probe is fitted."""
        return None

    def inputs(self, held_out: MultiView) -> Iterator[tuple[Tensor, ...]]:
        """Yield the views of the objects, one tensor `(B, ...)` for each view."""
        return zip(*(torch.split(view, CHUNK) for view in held_out.views), strict=True)

    def test_data(self, loaded: Tensor) -> MultiView:
        """Return the test objects with their labels."""
        # The test objects come first among the unlabelled ones, in the order of their labels.
        views = tuple(view[: len(loaded)] for view in self.data.unlabelled.views)
        return MultiView(views, loaded.to(self.device))

    def build_encoder(self, settings: EncoderSettings) -> MultiViewEncoder:
        """Return a new encoder for each view; raise ValueError where one does not take the view."""
        return build_multiview_encoder(settings.name, self.spec.views)

    def encoder_file(self, encoder: Encoder, experiment: Experiment) -> bytes:
        """Return the content of the encoder's file."""
        name, content = experiment.encoder.name, experiment.model_dump_json()
        return multiview_encoder_bytes(encoder, name=name, views=self.spec.views, experiment=content)


@dataclass(frozen=True)
class TransductiveBatch:
    """One step's data: `labelled` objects with their labels, and `unlabelled` ones."""

    labelled: MultiView
    unlabelled: MultiView


def prepare_transductive(
    experiment: Experiment, spec: TransductiveSpec, data_root: Path | None, device: torch.device
) -> PreparedTransductive:
    """Load the fold that belongs to the experiment, with its validation part held out.

    Raises:
        ValueError: see `data.load_transductive`: the files are not in place, for example.
    """
    fold, part = fold_and_part(experiment, spec)
    share = experiment.validation.fraction
    loaded = load_transductive(experiment.dataset, data_root, fold, share, part)
    validation = None if loaded.validation is None else loaded.validation.to(device)
    here = replace(
        loaded,
        labelled=loaded.labelled.to(device),
        unlabelled=loaded.unlabelled.to(device),
        validation=validation,
    )
    return PreparedTransductive(spec, here, device)


def fold_and_part(experiment: Experiment, spec: DatasetFacts) -> tuple[int, int]:
    """Return the fold of labelled objects of a run, and which part of them it holds out.

    Seeds take the folds in turn, so each has its own while there are folds. With `validation.split` folds
    they take the parts of one fold in turn: the seeds of a trial hold each labelled object out once.
    """
    held_out = experiment.validation
    if held_out.fraction and held_out.split == "folds":
        return held_out.seed % spec.folds, experiment.seed
    return experiment.seed % spec.folds, held_out.seed
