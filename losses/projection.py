"""HEX: logits without what a second set of logits can explain linearly.

Source: Wang et al. 2019, "Learning robust representations by projecting superficial statistics out" (ICLR),
https://openreview.net/forum?id=rJEjjoR9K7, Eq. 4.
"""

import torch
from torch import Tensor

from contrasweep.losses.scores import full_precision

RIDGE = 1e-6
"""What is added to the diagonal of the system, relative to its mean.

The released code inverts the system in float32, about as exactly, and gives NaN where the superficial logits
are linearly dependent. With the ridge, value and gradient stay finite at any rank.
"""


@full_precision
def project_out(logits: Tensor, superficial: Tensor) -> Tensor:
    """Return `(I - G (G'G)^-1 G') F` for the logits `F` (N, C) and `G = superficial` (N, K), in F's dtype.

    Every column of the result is orthogonal to all columns of G, over the N images. The gradient flows into
    both. The system is solved in float64, because it squares the condition of G.

    Errors: ValueError unless both are matrices with a row for each image, and N is above K: otherwise nothing
    would be left.
    """
    if logits.dim() != 2 or superficial.dim() != 2 or len(logits) != len(superficial):
        given = f"{tuple(logits.shape)} and {tuple(superficial.shape)}"
        raise ValueError(f"logits must be (N, C) and superficial (N, K), got {given}")
    images, width = superficial.shape
    if images <= width:
        raise ValueError(f"to project {width} columns out takes more than {width} images, given {images}")
    of, out = logits.double(), superficial.double()
    gram = out.T @ out
    ridge = RIDGE * gram.detach().diagonal().mean() + torch.finfo(torch.float64).tiny
    system = gram + ridge * torch.eye(width, dtype=gram.dtype, device=gram.device)
    # Not `solve`, which asks the device whether the system is singular: with the ridge it is not.
    explained = out @ torch.linalg.solve_ex(system, out.T @ of).result
    left: Tensor = (of - explained).to(logits.dtype)
    return left
