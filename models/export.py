"""Encoders as files: weights as safetensors, with what is needed to rebuild the network in the header."""

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from models.encoders import Encoder, build_encoder

FORMAT = "contrasweep-encoder-1"


def encoder_bytes(
    encoder: Encoder, *, name: str, channels: int, image_size: int, experiment: str = ""
) -> bytes:
    """Return the content of an encoder file (safetensors); `load_encoder` reads it back.

    Args:
        encoder: built by `build_encoder(name, channels, image_size)`.
        name: the encoder's registered name.
        channels: image channels.
        image_size: pixels a side.
        experiment: the experiment that trained it, as JSON, kept in the header for the reader's eyes.
    """
    header = {"name": name, "channels": channels, "image_size": image_size}
    tensors = {key: value.detach().cpu().contiguous() for key, value in encoder.state_dict().items()}
    return save(tensors, metadata={"format": FORMAT, "encoder": json.dumps(header), "experiment": experiment})


def load_encoder(path: str | Path) -> Encoder:
    """Return the encoder saved at `path`, on the CPU, in evaluation mode.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not an encoder of this program.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no encoder file at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is not an encoder of contrasweep: {error}") from None
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} is not an encoder of contrasweep (format {metadata.get('format')!r})")
    header = json.loads(metadata["encoder"])
    encoder = build_encoder(header["name"], header["channels"], header["image_size"])
    encoder.load_state_dict(load_file(path))
    return encoder.eval()
