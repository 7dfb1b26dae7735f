"""What tests know of the final runs whose encoders they use."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DATASET = "colour-digits:images=200,test_images=100"
"""What the encoders were trained on."""


@dataclass(frozen=True)
class FinalRun:
    """A final run: its seed, its encoder's file, and the test scores that it reported."""

    seed: int
    file: Path
    scores: Mapping[str, float]
