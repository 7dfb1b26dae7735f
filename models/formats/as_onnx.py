"""An ONNX graph of the whole encoder, normalisation included, for batches of any size."""

import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

import torch

from contrasweep.models.formats.network import Network, NotOffered
from contrasweep.models.formats.package import CONFIG, Format, Package, json_file

GRAPH = "model.onnx"
NEEDED = ("onnx", "onnxscript")
EXTRA = "pip install 'contrasweep[onnx]'"

_EXAMPLE = f"""\
import onnxruntime

session = onnxruntime.InferenceSession("{GRAPH}")
(features,) = session.run(None, {{"images": images.numpy()}})
"""


def _write(network: Network) -> Package:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise NotOffered(f"an ONNX file is written by {' and '.join(missing)}: {EXTRA}")
    content = {
        "model": network.name,
        "num_features": network.encoder.width,
        "input": {"name": "images", "channels": network.channels, "size": network.size, "range": [0.0, 1.0]},
        "output": {"name": "features"},
    }
    return Package({GRAPH: _graph(network), CONFIG: json_file(content)}, _EXAMPLE)


def _graph(network: Network) -> bytes:
    example = torch.zeros(2, network.channels, network.size, network.size)
    # `body` has no check of its input, which is Python and not part of a graph.
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / GRAPH
        torch.onnx.export(
            network.encoder.body,
            (example,),
            file,
            input_names=["images"],
            output_names=["features"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        return file.read_bytes()


ONNX = Format("onnx", "onnx", "onnxruntime.InferenceSession", _write)
