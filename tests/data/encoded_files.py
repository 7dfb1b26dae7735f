"""Small encoded images in the layouts that the sources read."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image


def pixels(seed: int, height: int = 8, width: int = 8) -> np.ndarray:
    """Random RGB levels, (H, W, 3)."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def encoded(levels: np.ndarray, kind: str = "PNG") -> bytes:
    """Encode the levels; PNG keeps them exactly."""
    file = io.BytesIO()
    Image.fromarray(levels).save(file, kind)
    return file.getvalue()


def write_parquet(
    file: Path,
    images: Sequence[bytes | None],
    labels: Sequence[int | None],
    *,
    columns: tuple[str, str] = ("img", "label"),
    metadata: dict[str, str] | None = None,
    row_group: int = 4,
    statistics: bool = True,
) -> None:
    """Write images and labels in the form of the hub."""
    cells = [{"bytes": image, "path": f"{row}.png"} for row, image in enumerate(images)]
    struct = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    table = pa.table({columns[0]: pa.array(cells, struct), columns[1]: pa.array(labels, pa.int64())})
    file.parent.mkdir(parents=True, exist_ok=True)
    table = table.replace_schema_metadata(metadata)
    pq.write_table(table, file, row_group_size=row_group, write_statistics=statistics)


def images_of(*seeds: int) -> torch.Tensor:
    """The images of these seeds as `load_training` gives them: `(N, C, H, W)`."""
    return torch.stack([torch.from_numpy(pixels(seed)).permute(2, 0, 1) for seed in seeds])
