"""Losses without negatives as their papers' released codes write them, in loops over scalars, in float64.

See `references.py`.
"""

import torch
from references import cos, mean
from torch import Tensor


def barlow_twins(views: Tensor, lam: float) -> Tensor:
    """Zbontar et al. 2021, Eq. 1 and 2, as in main.py of facebookresearch/barlowtwins.

    The traps: `nn.BatchNorm1d(affine=False)` divides by the root of the *biased* variance + 1e-5; the
    correlations are divided by the size of the batch, not by B - 1; each view has its own mean; the
    off-diagonal terms are summed, not averaged; and every pair (i, j) counts twice.
    """
    _, B, D = views.shape

    def standardised(view: Tensor, feature: int) -> list[Tensor]:
        values = list(view[:, feature])
        middle = sum(values) / B
        variance = sum((value - middle) ** 2 for value in values) / B
        return [(value - middle) / (variance + 1e-5).sqrt() for value in values]

    x, y = ([standardised(view, feature) for feature in range(D)] for view in views)
    total = torch.zeros((), dtype=torch.float64)
    for i in range(D):
        for j in range(D):
            correlation = sum(x[i][b] * y[j][b] for b in range(B)) / B
            total = total + ((correlation - 1) ** 2 if i == j else lam * correlation**2)
    return total


def vicreg(views: Tensor, weights: tuple[float, float, float], form: str) -> Tensor:
    """Bardes et al. 2022: `released` as in main_vicreg.py of facebookresearch/vicreg, `paper` as Eq. 1-6.

    The traps: `Tensor.var` is unbiased (B - 1), and so are the covariances; 1e-4 is added inside the root;
    covariances are divided by D, not by D(D - 1). `F.mse_loss` averages over images and features where Eq. 5
    sums the features, and the released code halves the variance term of each view.
    """
    _, B, D = views.shape
    squares = [(views[0, b, d] - views[1, b, d]) ** 2 for b in range(B) for d in range(D)]
    invariance = sum(squares) / (B * D if form == "released" else B)
    variance = covariance = torch.zeros((), dtype=torch.float64)
    for view in views:
        middle = [sum(view[:, d]) / B for d in range(D)]
        for i in range(D):
            for j in range(D):
                products = [(view[b, i] - middle[i]) * (view[b, j] - middle[j]) for b in range(B)]
                entry = sum(products) / (B - 1)
                if i != j:
                    covariance = covariance + entry**2 / D
                elif (deviation := (entry + 1e-4).sqrt()) < 1:
                    variance = variance + (1 - deviation) / D
    if form == "released":
        variance = variance / 2
    return weights[0] * invariance + weights[1] * variance + weights[2] * covariance


def byol(predictions: Tensor, targets: Tensor) -> Tensor:
    """Grill et al. 2020, Eq. 2 and its symmetric sum, as in byol_experiment.py of deepmind-research.

    The traps: both directions are *added*, then averaged over images; each vector is divided by its length;
    the target has no gradient.
    """
    values = []
    for p_x, p_y, z_x, z_y in zip(*predictions, *targets.detach(), strict=True):
        one = (p_x / p_x.norm() - z_y / z_y.norm()).square().sum()
        other = (p_y / p_y.norm() - z_x / z_x.norm()).square().sum()
        values.append(one + other)
    return mean(values)


def simsiam(predictions: Tensor, targets: Tensor) -> Tensor:
    """Chen and He 2021, Eq. 1 and 2, as in main_simsiam.py of facebookresearch/simsiam.

    The traps: both directions are *averaged*; a view's prediction meets the other view's target.
    """
    values = []
    for p_x, p_y, z_x, z_y in zip(*predictions, *targets.detach(), strict=True):
        values.append(-(cos(p_x, z_y) + cos(p_y, z_x)) / 2)
    return mean(values)


def dino(
    student: Tensor, teacher: Tensor, centre: Tensor, temperature: float, teacher_temperature: float
) -> Tensor:
    """Caron et al. 2021, Eq. 1-3, as DINOLoss in main_dino.py of facebookresearch/dino.

    The traps: the centre is taken off before the division by the teacher's temperature; the teacher has no
    gradient; a crop never meets the teacher's output of itself; and pairs are averaged where Eq. 3 sums.
    """
    values = []
    for b, of_teacher in enumerate(teacher.detach()):
        for a, of_student in enumerate(student):
            if a == b:
                continue
            for t, s in zip(of_teacher, of_student, strict=True):
                wanted = [((t[k] - centre[k]) / teacher_temperature).exp() for k in range(len(t))]
                given = [(s[k] / temperature).exp() for k in range(len(s))]
                shares = zip(wanted, given, strict=True)
                values.append(-sum(w / sum(wanted) * (g / sum(given)).log() for w, g in shares))
    return mean(values)
