"""A tensor in the place of images on disk, for tests of what streams them."""

from collections.abc import Sequence

from torch import Tensor


class InMemory:
    """Images in the form in which a disk gives them: see `ImageRows` of `contrasweep.data.streaming`."""

    def __init__(self, images: Tensor) -> None:
        self.images = images

    @property
    def shape(self) -> tuple[int, int, int]:
        channels, height, width = self.images.shape[1:]
        return channels, height, width

    def __len__(self) -> int:
        return len(self.images)

    def prepare_random_access(self) -> None:
        """Any row is at hand."""

    def decode(self, rows: Sequence[int], out: Tensor) -> None:
        out.copy_(self.images[list(rows)])
