"""Losses without negatives: least values, the cost of collapse, extremes of a batch, stopped gradients."""

import pytest
import torch
from torch import Tensor, nn

from contrasweep import losses
from contrasweep.losses.terms import Loss


def views(B: int = 8, D: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, B, D, generator=generator, dtype=torch.float64)


SIGNS = torch.tensor([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], dtype=torch.float64).T
UNCORRELATED = SIGNS[:, 1:].expand(2, -1, -1)
"""Two equal views of four images: three uncorrelated features of mean 0 and population variance 1."""


def test_equal_views_with_uncorrelated_features_cost_nothing() -> None:
    assert losses.BarlowTwins()(UNCORRELATED).item() == pytest.approx(0, abs=1e-9)
    assert losses.VICReg()(UNCORRELATED).item() == 0


def test_barlow_twins_counts_every_off_diagonal_entry() -> None:
    """Three copies of one feature: six pairs of correlation 1 (but for the epsilon)."""
    copies = UNCORRELATED[:, :, :1].expand(-1, -1, 3)
    assert losses.BarlowTwins(0.25)(copies).item() == pytest.approx(6 * 0.25, rel=1e-4)
    opposite = torch.stack([copies[0], -copies[0]])
    assert losses.BarlowTwins(0.25)(opposite).item() == pytest.approx(3 * 4 + 6 * 0.25, rel=1e-4)


def test_barlow_twins_does_not_see_the_place_and_the_scale_of_a_feature() -> None:
    x = views()
    moved = 7 * x + torch.arange(5.0).double()
    torch.testing.assert_close(losses.BarlowTwins()(moved), losses.BarlowTwins()(x), rtol=1e-4, atol=0)


def test_each_part_of_vicreg_by_itself() -> None:
    """Worked by hand for two images; the second view is the first one, moved by 1."""
    first = torch.tensor([[0.0, 0.0], [0.2, 0.4]], dtype=torch.float64)
    x = torch.stack([first, first + 1])
    deviations = ((0.02 + 1e-4) ** 0.5, (0.08 + 1e-4) ** 0.5)  # unbiased: 2 * 0.1^2 / 1, 2 * 0.2^2 / 1
    missing = sum(1 - one for one in deviations) / 2
    covariance = 0.1 * 0.2 * 2
    wanted = {
        "released": (1.0, missing, 2 * covariance**2 * 2 / 2),
        "paper": (2.0, 2 * missing, 2 * covariance**2 * 2 / 2),
    }
    for form, parts in wanted.items():
        for place, part in enumerate(parts):
            weights = [float(place == other) for other in range(3)]
            assert losses.VICReg(*weights, form)(x).item() == pytest.approx(part, rel=1e-9)


def test_spread_beyond_one_is_neither_asked_for_nor_punished() -> None:
    x = 10 * UNCORRELATED
    assert losses.VICReg(0, 1, 0)(x).item() == 0
    assert losses.VICReg(0, 1, 0)(0.1 * UNCORRELATED).item() > 0.8


@pytest.mark.parametrize(
    ("loss", "collapsed"),
    [(losses.BarlowTwins(0.1), 5.0), (losses.VICReg(), 25 * (1 - 1e-2))],
    ids=["barlow-twins", "vicreg"],
)
def test_constant_embeddings_cost_most(loss: Loss, collapsed: float) -> None:
    """A collapse costs 1 for each feature (its correlation is 0), or the whole hinge."""
    constant = torch.full((2, 8, 5), 3.0).double().requires_grad_()
    value = loss(constant)
    assert value.item() == pytest.approx(collapsed, rel=1e-9)
    (gradient,) = torch.autograd.grad(value, constant)
    assert gradient.isfinite().all()
    assert loss(UNCORRELATED) < value


@pytest.mark.parametrize("loss", [losses.BarlowTwins(), losses.VICReg()], ids=["barlow-twins", "vicreg"])
def test_one_image_has_no_variance_and_two_have(loss: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"at least 2 images, got shape \(2, 1, 5\)"):
        loss(views(B=1))
    with pytest.raises(ValueError, match="exactly 2 views, got 3"):
        loss(views()[[0, 1, 1]])
    two = views(B=2).requires_grad_()
    value = loss(two)
    (gradient,) = torch.autograd.grad(value, two)
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_the_cosine_losses_are_one_up_to_scale() -> None:
    predictions, targets = views(), views(seed=1)
    simsiam, byol = losses.SimSiam()(predictions, targets), losses.BYOL()(predictions, targets)
    torch.testing.assert_close(byol, 4 + 4 * simsiam)


def test_a_prediction_meets_the_other_view_s_target() -> None:
    targets = views()
    assert losses.SimSiam()(5 * targets.flip(0), targets).item() == pytest.approx(-1)
    assert losses.BYOL()(5 * targets.flip(0), targets).item() == pytest.approx(0, abs=1e-12)
    assert losses.BYOL()(-targets.flip(0), targets).item() == pytest.approx(8)


@pytest.mark.parametrize("loss", [losses.BYOL(), losses.SimSiam()], ids=["byol", "simsiam"])
def test_targets_have_no_gradient_and_one_image_is_enough(loss: nn.Module) -> None:
    predictions, targets = views(B=1).requires_grad_(), views(B=1, seed=1).requires_grad_()
    loss(predictions, targets).backward()
    assert targets.grad is None
    assert predictions.grad is not None
    assert predictions.grad.norm() > 0
    with pytest.raises(ValueError, match=r"must have one shape, got \(2, 8, 5\) and \(2, 8, 4\)"):
        loss(views(), views(D=4))
    with pytest.raises(ValueError, match="exactly 2 views"):
        loss(views()[:1], views()[:1])


def test_dino_s_teacher_is_centred_and_sharpened() -> None:
    """Two outputs: the centre decides which of them the teacher names, the temperature how surely."""
    teacher = torch.tensor([2.0, 1.0]).double().expand(2, 3, 2)
    student = torch.tensor([0.0, 5.0]).double().expand(2, 3, 2)
    for centre, wanted in (([0.0, 0.0], 50.0), ([2.0, 0.0], 0.0)):
        value = losses.DINO(0.1, 0.01)(student, teacher, torch.tensor(centre).double())
        assert value.item() == pytest.approx(wanted, abs=1e-9)
    even = losses.DINO(0.1, 1e6)(student, teacher, torch.zeros(2).double())
    assert even.item() == pytest.approx(25, rel=1e-4)


def test_dino_s_centre_follows_the_mean_of_the_teacher_s_outputs() -> None:
    teacher = torch.arange(12.0).view(2, 3, 2)
    moved = losses.moved_centre(torch.tensor([1.0, 2.0]), teacher, 0.9)
    torch.testing.assert_close(moved, torch.tensor([0.9 + 0.5, 1.8 + 0.6]))


def test_dino_refuses_what_does_not_fit_and_gives_the_teacher_no_gradient() -> None:
    x, centre = views(), torch.zeros(5).double()
    teacher = views(seed=1).requires_grad_()
    losses.DINO()(x.requires_grad_(), teacher, centre).backward()
    assert teacher.grad is None
    assert x.grad is not None
    with pytest.raises(ValueError, match=r"teacher must be \(V, 8, 5\), V at most 2, got \(2, 8, 4\)"):
        losses.DINO()(x, views(D=4), centre)
    with pytest.raises(ValueError, match=r"centre must be \(5,\), got \(4,\)"):
        losses.DINO()(x, views(), centre[:4])
    with pytest.raises(ValueError, match="at least 2 views"):
        losses.DINO()(x[:1], views()[:1], centre)
