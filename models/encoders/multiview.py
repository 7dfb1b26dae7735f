"""One encoder for each view of an object, for data whose views are measurements of different kinds."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.registry import build_encoder, build_vector_encoder


class MultiViewEncoder(Encoder):
    """One encoder per view, without shared weights; the features of all views are joined.

    Takes a sequence of views `(B, ...)`, one for each encoder, and returns `(B, width)`, where `width` is the
    sum of the encoders' widths.
    """

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        super().__init__(nn.ModuleList(encoders), width=sum(encoder.width for encoder in encoders))

    @property
    def encoders(self) -> list[Encoder]:
        """The encoder of each view."""
        return [encoder for encoder in self.body.children() if isinstance(encoder, Encoder)]

    def forward(self, views: Sequence[Tensor]) -> Tensor:  # type: ignore[override]
        """Return the joined features `(B, width)` of `views`."""
        return torch.cat(self.by_view(views), dim=1)

    def by_view(self, views: Sequence[Tensor]) -> list[Tensor]:
        """Return the features of each view separately.

        Raises:
            ValueError: the number of views is not the number of encoders.
        """
        if len(views) != len(self.encoders):
            raise ValueError(f"{len(self.encoders)} views are needed, got {len(views)}")
        return [encoder(view) for encoder, view in zip(self.encoders, views, strict=True)]


def build_multiview_encoder(name: str, views: Sequence[Sequence[int]]) -> MultiViewEncoder:
    """Build the encoder `name` once for each view, from the shape of one object in it.

    It is a name in `VECTOR_ENCODERS` for vectors, `(d,)`, in `ENCODERS` for square images, `(C, S, S)`.

    Raises:
        ValueError: no encoder of that kind has this name, or the encoder does not take images of that size.
    """
    encoders = [
        build_vector_encoder(name, shape[0]) if len(shape) == 1 else build_encoder(name, shape[0], shape[1])
        for shape in views
    ]
    return MultiViewEncoder(encoders)
