"""Texture clusters of the test images of 9-class ImageNet, for its unbiased accuracy.

Layout: `clusters/9class_imagenet_val.csv` of ReBias's released code (github.com/clovaai/rebias, MIT licence),
where it was checked: columns `path` (`WNID/ILSVRC2012_val_NNNNNNNN.JPEG`), `category` and `cluster1` to
`cluster3`, a row for each of the 2,100 images. The clusters come from three runs of k-means with 9 clusters,
on Gram matrices of VGG-16's features.

Source: Bahng et al., "Learning De-biased Representations with Biased Representations" (ICML 2020), 4.3.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing
from contrasweep.data.text_table import column_of, read_text_table

CLUSTERINGS = 3
CLUSTERS = 9
"""The number of clusters in each clustering, numbered 0..8."""

SOURCE = "https://github.com/clovaai/rebias (clusters/9class_imagenet_val.csv)"


def read_texture_clusters(file: Path, images: Sequence[Path]) -> Tensor:
    """Return the clusters of some test images in each clustering, int64 ``(N, 3)``.

    Args:
        file: the table.
        images: the paths of the images, which end in `WNID/NAME` as in the table.

    Raises:
        DatasetMissing: there is no such file.
        DatasetDamaged: the file does not have the published form, or lacks an image.
    """
    if not file.is_file():
        raise DatasetMissing(
            f"clusters of textures: {file} is not there, or no file. Get it from {SOURCE}; textures= is "
            f"absolute, or under the data root (--data-root DIR or {ROOT_VARIABLE})."
        )
    try:
        table = read_text_table(file)
        names = [f"cluster{number}" for number in range(1, CLUSTERINGS + 1)]
        columns = [column_of(table, name, file) for name in names]
        row_of = {path: row for row, path in enumerate(column_of(table, "path", file).texts())}
        clusters = torch.tensor([_numbers(column.texts(), file) for column in columns]).T
    except ValueError as error:
        raise DatasetDamaged(str(error)) from None
    wanted = [f"{image.parent.name}/{image.name}" for image in images]
    lost = [path for path in wanted if path not in row_of]
    if lost:
        raise DatasetDamaged(
            f"{file} lacks {len(lost):,} of the {len(wanted):,} test images, the first is {lost[0]}; as "
            f"published it has them all: {SOURCE}"
        )
    return clusters[[row_of[path] for path in wanted]].contiguous()


def _numbers(texts: Sequence[str], file: Path) -> list[int]:
    wrong = next((text for text in texts if not (text.isdecimal() and int(text) < CLUSTERS)), None)
    if wrong is not None:
        raise ValueError(f"{file}: a cluster is a number from 0 to {CLUSTERS - 1}, not {wrong!r}")
    return [int(text) for text in texts]
