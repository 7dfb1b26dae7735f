"""The map of a study's features: held-out images, as its encoder sees them, and as it did before training."""

from collections.abc import Sequence
from pathlib import Path

import torch

from contrasweep.names import counted
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.export.source import Run, source_of_study
from contrasweep.tuning.reports.page import Section
from contrasweep.tuning.results.selection import data_root_of
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.store.layout import encoder_path
from contrasweep.tuning.training.devices import AUTO, device_for
from contrasweep.tuning.transfer.encoders import GivenEncoder, encoded_parts, given_encoder
from contrasweep.tuning.transfer.feature_map import feature_map, pictures_of, rows_on_map
from contrasweep.tuning.transfer.images import ImageSet, dataset_images, validation_images
from contrasweep.tuning.transfer.request import PCA, check_map_method

TITLE = "Map of the features"


def feature_maps(
    store: ResultsStore,
    studies: Sequence[str],
    *,
    method: str = PCA,
    data_root: Path | None = None,
    device: str = AUTO,
) -> dict[str, Section]:
    """Return for each study the section of a report with the map of its features.

    The encoder is that of the final runs of the best trial that has any, with the first seed, shown with test
    images, which these runs have read; or else the one that the search kept of its best trial
    (`--keep-weights`), shown with the images that its validation split holds out. Beside it stands the same
    network before training. Of a study without an encoder, or whose data are not in place, the section has no
    map, and its text says why.

    Args:
        store: the store that has the studies.
        studies: their names.
        method: how features are placed: `pca` or `umap`.
        data_root: the folder of the datasets; by default that of each study, if this machine has it.
        device: where to compute: `auto`, `cpu` or `cuda`.

    Raises:
        InputError: there is no such method, or its package is not installed.
        StoreError: there is no such study.
    """
    check_map_method(method)
    place = torch.device(device_for(device))
    return {study: _section(store, study, method, data_root, place) for study in studies}


def _section(
    store: ResultsStore, study: str, method: str, data_root: Path | None, device: torch.device
) -> Section:
    searched = store.study(study).require_search().data_root
    root = data_root_of(data_root, None if searched is None else Path(searched))
    try:
        source = source_of_study(store, study)
        assert source.run is not None, "of a study"
        run = source.run
        encoder = given_encoder(source.file, encoder_path(run.study, run.trial, run.seed))
        images = _held_out(encoder, run, root)
        shown = images.subset(rows_on_map(len(images)))
        inputs, trained = zip(*encoded_parts(encoder, shown, device), strict=True)
        untrained = [features for _, features in encoded_parts(encoder, shown, device, trained=False)]
        drawn = feature_map(
            shown,
            pictures_of(torch.cat(inputs)),
            {"Trained": torch.cat(trained).cpu(), "Before training": torch.cat(untrained).cpu()},
            method,
        )
    except InputError as error:
        return Section(TITLE, f"No map was drawn: {error}.".replace("..", "."))
    return Section(TITLE, _said(encoder, run, images, len(shown)), maps=[drawn])


def _held_out(encoder: GivenEncoder, run: Run, data_root: Path | None) -> ImageSet:
    if run.final:
        return dataset_images(encoder.experiment.dataset, "test", data_root)
    return validation_images(encoder.experiment, data_root)


def _said(encoder: GivenEncoder, run: Run, images: ImageSet, shown: int) -> str:
    some = (
        f"{shown:,} of {len(images):,} images, drawn at random"
        if shown < len(images)
        else counted(shown, "image")
    )
    kind = "final run of trial" if run.final else "search's own run of trial"
    control = encoder.experiment.encoder.control
    said = (
        f"Encoder of the {kind} {run.trial}, seed {run.seed} (`{encoder.place}`), beside the same network "
        f"before training, on images that it was not trained on: {images.source}, {some}."
    )
    caution = (
        f"Two directions of {encoder.file.encoder.width}: what is mixed here may be apart in the others. "
        "The scores of this page read all of them."
    )
    return " ".join(filter(None, [said, control])) + "\n\n" + caution
