"""Trained encoders in the formats of other libraries."""

from collections.abc import Mapping

from contrasweep.models.formats.as_onnx import ONNX
from contrasweep.models.formats.as_timm import TIMM
from contrasweep.models.formats.as_torchvision import TORCHVISION
from contrasweep.models.formats.as_transformers import TRANSFORMERS
from contrasweep.models.formats.network import Network, NotOffered, network_of
from contrasweep.models.formats.package import Format, Package

FORMATS: Mapping[str, Format] = {one.name: one for one in (TORCHVISION, TIMM, TRANSFORMERS, ONNX)}

__all__ = ["FORMATS", "Format", "Network", "NotOffered", "Package", "network_of"]
