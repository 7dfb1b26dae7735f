"""The encoders of experiments, and their files. Both follow from the facts of a dataset, without its data."""

from contrasweep.data import DatasetFacts, DatasetSpec
from contrasweep.models import Encoder, build_encoder, encoder_bytes
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.models.encoders.weights import load_weights, read_weights
from contrasweep.models.export import multiview_encoder_bytes
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import EncoderSettings, Experiment


def build_encoder_for(spec: DatasetFacts, settings: EncoderSettings) -> Encoder:
    """Return a new encoder of a dataset's images, or of the views of its objects.

    It has the weights of its file if it starts from one.

    Args:
        spec: the facts of the dataset, with the size of view of the run.
        settings: of the encoder.

    Raises:
        ValueError: it does not take such images or views, or the file does not fit it.
        InputError: the file is not the one that the experiment began with.
    """
    if not isinstance(spec, DatasetSpec):
        return build_multiview_encoder(settings.name, spec.views)
    encoder = build_encoder(settings.name, spec.channels, spec.view_size, settings.mean, settings.std)
    return starting_from_file(encoder, settings)


def starting_from_file(encoder: Encoder, settings: EncoderSettings) -> Encoder:
    """Return the encoder with the weights of the file that it starts from, if the settings name one.

    Raises:
        ValueError: the file cannot be read, or does not fit the encoder.
        InputError: the file is not the one that the experiment began with.
    """
    if settings.weights is not None:
        stored = read_weights(settings.weights)
        if settings.weights_sha256 not in (None, stored.digest):
            raise InputError(f"encoder.weights: {settings.weights} is another file than before")
        load_weights(encoder, stored)
    return encoder


def encoder_file(spec: DatasetFacts, encoder: Encoder, experiment: Experiment) -> bytes:
    """Return the content of a file (safetensors) of a trained encoder, with its experiment."""
    settings, content = experiment.encoder, experiment.model_dump_json()
    if not isinstance(spec, DatasetSpec):
        return multiview_encoder_bytes(encoder, name=settings.name, views=spec.views, experiment=content)
    return encoder_bytes(
        encoder,
        name=settings.name,
        channels=spec.channels,
        image_size=spec.view_size,
        mean=settings.mean,
        std=settings.std,
        experiment=content,
    )
