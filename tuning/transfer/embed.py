"""`embed`: an encoder's features of images as a Parquet file, computed and written a part at a time."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from contrasweep.names import counted
from contrasweep.tuning.files import write_whole, written_whole
from contrasweep.tuning.objectives.prepared import stored_size
from contrasweep.tuning.reports.page import Section, render_page
from contrasweep.tuning.results.commands import results_folder
from contrasweep.tuning.training.devices import AUTO, device_for
from contrasweep.tuning.transfer.encoders import GivenEncoder, encoded_parts, read_encoders
from contrasweep.tuning.transfer.feature_map import MapPoints, feature_map
from contrasweep.tuning.transfer.images import ImageSet, dataset_images, folder_images
from contrasweep.tuning.transfer.request import PCA, EmbedRequest
from contrasweep.tuning.transfer.sources import EncoderSource, one_encoder
from contrasweep.tuning.transfer.tasks import centre_in_words
from contrasweep.version import __version__

METADATA: Final = b"contrasweep"
"""The key of the file's metadata: JSON with the encoder, its digest, and what was done to the images."""


@dataclass(frozen=True)
class Embedded:
    """What was written: how many images, the width of their features, and what was done to the images."""

    images: int
    width: int
    preprocessing: str


def embed(
    encoder: str | Path,
    source: str | Path,
    output: str | Path,
    *,
    split: str | None = None,
    page: str | Path | None = None,
    method: str = PCA,
    skip_corrupt: bool = False,
    results: str | Path | None = None,
    data_root: Path | None = None,
    device: str = AUTO,
    tell: Callable[[str], object] = lambda line: None,
) -> Embedded:
    """Write an encoder's features of the images of a folder or dataset to a Parquet file.

    The file has a row for each image: `image` (its file name, or its number in the dataset), `label` and
    `class` (null where they are not known), and `features`, a fixed-size list of float32. Its metadata says
    which encoder computed them and how. No more than a part of the images is in memory at a time.

    Args:
        encoder: an encoder file, or the name of a study with one final run.
        source: a folder with image files at any depth, or the name of a dataset of single images.
        output: the file; it appears whole or not at all.
        split: of a dataset: `train` or, by default, `test`.
        page: where to write a map of the features as a page; None: nowhere.
        method: how the map places them: `pca` or `umap`.
        skip_corrupt: leave out the images of a folder that cannot be decoded, with a warning that names them.
            Every image is then decoded twice.
        results: the results folder of studies; None: CONTRASWEEP_RESULTS, else `results`.
        data_root: the folder of the datasets.
        device: where to compute: `auto`, `cpu` or `cuda`.
        tell: called with a line after each part.

    Raises:
        InputError: see `EmbedRequest`, `one_encoder` and `read_encoders`; a folder holds no image, or the
            features are not finite.
        DatasetMissing: the files of the dataset are not in place.
        DatasetDamaged: an image cannot be decoded.
    """
    place = None if page is None else Path(page)
    request = EmbedRequest(str(source), Path(output), split, place, method, skip_corrupt)
    own = one_encoder(str(encoder), str(results_folder(results)))
    return run_request(request, own, data_root=data_root, device=device, tell=tell)


def run_request(
    request: EmbedRequest,
    source: EncoderSource,
    *,
    data_root: Path | None = None,
    device: str = AUTO,
    tell: Callable[[str], object] = lambda line: None,
) -> Embedded:
    """Do what a request says with the encoder of `source`; otherwise as `embed`."""
    (encoder,) = read_encoders([source])
    if request.is_dataset:
        images = dataset_images(request.source, request.split or "test", data_root)
    else:
        size, channels = _stored_size(encoder, data_root), encoder.takes.channels
        images = folder_images(request.source, channels, size, skip_corrupt=request.skip_corrupt)
    place = torch.device(device_for(device))
    points = None if request.page is None else MapPoints(len(images))
    done = _preprocessing(images, encoder)
    schema = _schema(encoder, images, done)
    start = 0
    with written_whole(request.output) as file, pq.ParquetWriter(file, schema) as writer:
        for inputs, features in encoded_parts(encoder, images, place):
            writer.write_table(_rows(images, start, features, schema))
            if points is not None:
                points.take(start, inputs, features)
            start += len(features)
            tell(f"{start:,} of {len(images):,} images")
    if points is not None and request.page is not None:
        write_whole(request.page, map_page(points, images, encoder, request.method))
    return Embedded(len(images), encoder.file.encoder.width, done)


def map_page(points: MapPoints, images: ImageSet, encoder: GivenEncoder, method: str) -> str:
    """Return the map of an encoder's features as one HTML page that opens offline.

    Raises:
        InputError: there are too few images for the method.
    """
    shown = images.subset(points.rows)
    drawn = feature_map(shown, points.pictures, {"Features": points.features}, method)
    some = f"{len(shown):,} of {len(images):,} images, drawn at random" if len(shown) < len(images) else ""
    section = Section("Map", some or counted(len(images), "image"), maps=[drawn])
    written = f"Written by contrasweep {__version__}; SHA-256 of the encoder {encoder.file.digest}"
    return render_page(f"Features of {images.source}", f"Encoder: {encoder.place}", [section], [written])


def _stored_size(encoder: GivenEncoder, data_root: Path | None) -> int:
    """Return the pixels a side that images of a folder get first: those of the images of the training."""
    experiment = encoder.experiment
    return stored_size(experiment, data_root) or round(encoder.takes.size / experiment.probes.centre)


def _preprocessing(images: ImageSet, encoder: GivenEncoder) -> str:
    takes, (channels, height, width) = encoder.takes, images.images.shape[1:]
    done = ["shorter side resized, centre square cut out"] if images.resized else []
    if (height, width) != (takes.size, takes.size):
        done.append(f"resized from {height} x {width}")
    if channels != takes.channels:
        done.append("grey repeated in 3 channels" if channels == 1 else "colours turned to grey")
    done += centre_in_words(encoder.experiment.probes.centre)
    return "; ".join([*done, f"{takes.size} x {takes.size} pixels, values in 0..1"])


def _schema(encoder: GivenEncoder, images: ImageSet, preprocessing: str) -> pa.Schema:
    content = {
        "version": __version__,
        "encoder": encoder.place,
        "sha256": encoder.file.digest,
        "method": encoder.experiment.method,
        "trained on": encoder.experiment.dataset,
        "images": images.source,
        "preprocessing": preprocessing,
    }
    features = pa.list_(pa.float32(), encoder.file.encoder.width)
    columns = [("image", pa.string()), ("label", pa.int64()), ("class", pa.string()), ("features", features)]
    return pa.schema(columns, metadata={METADATA: json.dumps(content).encode()})


def _rows(images: ImageSet, start: int, features: Tensor, schema: pa.Schema) -> pa.Table:
    here = slice(start, start + len(features))
    labels = images.labels[here]
    flat = pa.array(features.float().cpu().flatten().numpy())
    columns = [
        pa.array(images.names[here], pa.string()),
        pa.array(labels, pa.int64()),
        pa.array([None if label is None else images.classes[label] for label in labels], pa.string()),
        pa.FixedSizeListArray.from_arrays(flat, features.shape[1]),
    ]
    return pa.Table.from_arrays(columns, schema=schema)
