"""A bad argument raises a ValueError with the given value, the allowed values and the nearest name."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from contrasweep import losses

BAD_ARGUMENTS: dict[str, tuple[Callable[[], object], str]] = {
    "a word for a truth": (
        lambda: losses.CACR(attraction="False"),  # type: ignore[arg-type]
        r"attraction must be True or False, given 'False'",
    ),
    "a temperature with a gradient": (
        lambda: setattr(losses.InfoNCE(0.1), "temperature", torch.nn.Parameter(torch.tensor(0.1))),
        r"temperature must be a finite number, given Parameter",
    ),
    "a temperature set later": (
        lambda: setattr(losses.InfoNCE(0.1), "temperature", -1),
        r"temperature must be above 0, given -1",
    ),
    "views as a tuple": (
        lambda: losses.InfoNCE(0.1)((torch.ones(3, 2), torch.ones(3, 2))),
        r"views must be a tensor, such as torch.stack\(\[first, second\]\), got tuple",
    ),
    "labels as a list": (
        lambda: losses.SupCon(0.1)(torch.ones(2, 3, 2), [0, 1, 0]),
        r"labels must be a tensor, got list",
    ),
    "a condition of numpy": (
        lambda: losses.FairCCLK("rbf", lam=0.1, temperature=0.1)(torch.ones(2, 3, 2), np.ones(3)),
        r"condition must be a tensor, got ndarray",
    ),
    "no queue": (
        lambda: losses.QueueInfoNCE(0.1)(torch.ones(3, 2), queue=None, keys=torch.ones(3, 2)),
        r"queue must be a tensor, got NoneType",
    ),
    "partners of columns": (
        lambda: losses.sample_partners(torch.ones(3, 1).long(), torch.Generator()),
        r"clusters must have shape \(3,\), one value per image, got \(3, 1\)",
    ),
    "clusters with a point": (
        lambda: losses.cluster_prototypes(torch.ones(3, 2), torch.tensor([0.0, 0.5, 1.0])),
        r"clusters must be integers, got torch.float32",
    ),
    "an unlabelled image": (
        lambda: losses.BiasBal(torch.zeros(2, 3))(
            torch.ones(2, 3), torch.tensor([0, -1]), torch.zeros(2).long()
        ),
        r"labels must lie in 0\.\.2, got -1\.\.0",
    ),
    "an image that the memory has not": (
        lambda: losses.InstanceDiscrimination()(torch.ones(2, 3), torch.ones(5, 3), torch.tensor([0, 5])),
        r"index must lie in 0\.\.4, got 0\.\.5",
    ),
    "a cluster that has no prototype": (
        lambda: losses.PrototypeNCE()(
            torch.ones(2, 3), torch.ones(2, 3), torch.ones(2), torch.tensor([0, 2])
        ),
        r"clusters must lie in 0\.\.1, got 0\.\.2",
    ),
    "another bias": (
        lambda: losses.log_class_prior(torch.tensor([0, 1]), torch.tensor([0, 2]), classes=2, biases=2),
        r"bias must lie in 0\.\.1, got 0\.\.2",
    ),
    "a label beyond the classes": (
        lambda: losses.log_class_prior(torch.tensor([0, 3]), torch.tensor([0, 0]), classes=3, biases=2),
        r"labels must lie in 0\.\.2, got 0\.\.3",
    ),
    "cosines as similarities": (
        lambda: losses.FairKL("mean")(
            torch.ones(1, 3, 2), torch.tensor([0, 0, 1]), bias_similarity=-torch.ones(3, 3)
        ),
        r"bias_similarity must lie in \[0, 1\], got -1\.\.-1; of cosines c, \(1 \+ c\) / 2 does",
    ),
    "a distance of one row": (lambda: losses.median_distance(torch.ones(1, 3)), r"B >= 2, got \(1, 3\)"),
    "the entropy's negatives": (
        lambda: losses.repulsion_entropy(torch.ones(2, 3, 2), 2.0, "crss"),
        r"value of negatives: 'crss'\. Did you mean 'cross'",
    ),
    "no assignment": (
        lambda: losses.balanced_assignments(torch.ones(3, 2), 0.0),
        r"epsilon must be above 0, given 0",
    ),
    "types of a queue": (
        lambda: losses.QueueInfoNCE(0.1)(torch.ones(3, 2), torch.ones(3, 2), torch.ones(5, 2).double()),
        r"of one type, got torch.float32, torch.float32, torch.float64",
    ),
    "zero temperature": (lambda: losses.InfoNCE(0.0), r"temperature must be above 0, given 0"),
    "negative temperature": (lambda: losses.SupCon(-0.1), r"temperature .* given -0.1"),
    "nan temperature": (
        lambda: losses.EpsInfoNCE(float("nan"), 0.1),
        r"temperature must be a finite number, given nan",
    ),
    "negatives": (
        lambda: losses.InfoNCE(0.1, "crss"),
        r"unknown value of negatives: 'crss'\. Did you mean 'cross'\? Known: cross, all\.",
    ),
    "form": (lambda: losses.SupCon(0.1, "outer"), r"value of form: 'outer'\. Did you mean 'out'"),
    "unlike any": (lambda: losses.FairKL("zzz"), r"value of form: 'zzz'\. Known: "),
    "negative epsilon": (lambda: losses.EpsSupInfoNCE(0.1, -1.0), r"epsilon must be at least 0, given -1"),
    "variant": (lambda: losses.EpsSupInfoNCE(0.1, 0.5, "e"), r"value of variant: 'e'"),
    "solver": (lambda: losses.MMCL(1.0, solver="pgdd"), r"value of solver: 'pgdd'\. Did you mean 'pgd'"),
    "margin": (lambda: losses.LargeMarginSoftmax(0), r"margin must be at least 1, given 0"),
    "bias features": (
        lambda: losses.SoftCon()(torch.ones(1, 3, 2), torch.ones(3), torch.ones(2, 4)),
        r"condition must be \(3, Z\), one row per image, got \(2, 4\)",
    ),
    "one image": (lambda: losses.MMCL(1.0)(torch.ones(2, 1, 3)), r"at least 2 images, got shape"),
    "lam of Barlow Twins": (lambda: losses.BarlowTwins(-0.1), r"lam must be at least 0, given -0.1"),
    "form of VICReg": (lambda: losses.VICReg(form="papr"), r"value of form: 'papr'\. Did you mean 'paper'"),
    "kernel": (
        lambda: losses.FairCCLK("laplace", lam=0.1, temperature=0.1),
        r"value of kernel: 'laplace'\. Did you mean 'laplacian'\? Known: rbf,",
    ),
    "lam": (lambda: losses.FairCCLK("rbf", lam=0, temperature=0.1), r"lam must be above 0, given 0"),
    "sigma2": (lambda: losses.HardNegCCLK("rbf", 0, lam=0.1, temperature=0.1), r"sigma2 must be above 0"),
    "weights": (
        lambda: losses.WeaklySupCCLK("rbf", lam=1, temperature=0.1, weights="papr"),
        r"value of weights: .* Did you mean 'paper'",
    ),
    "beta": (lambda: losses.HardNegInfoNCE(0.1, -1), r"beta must be at least 0, given -1"),
    "tau_plus": (lambda: losses.HardNegInfoNCE(0.1, 1, 1.0), r"tau_plus must be below 1, given 1.0"),
    "t": (lambda: losses.AlignUniform(0.0), r"t must be above 0"),
    "t_neg": (lambda: losses.CACR(1.0, 0.0), r"t_neg must be above 0"),
    "cost": (lambda: losses.CACR(cost="euclid"), r"cost: .* Did you mean 'euclidean'"),
    "pairing": (lambda: losses.ClInfoNCE(0.1, "sample"), r"pairing: .* Did you mean 'sampled'"),
    "dim": (lambda: losses.HeroConUnsupervised(0), r"dim must be at least 1, given 0"),
    "log_prior": (lambda: losses.BiasBal(torch.zeros(3)), r"log_prior must be .* \(3,\)"),
    "epsilon of SwAV": (lambda: losses.SwAV(4, 5, epsilon=0.0), r"epsilon must be above 0, given 0"),
    "prototypes of SwAV": (lambda: losses.SwAV(4, 0), r"prototypes must be at least 2, given 0"),
    "iterations of SwAV": (
        lambda: losses.SwAV(4, 5, iterations=0),
        r"iterations must be at least 1, given 0",
    ),
    "half an iteration": (
        lambda: losses.SwAV(4, 5, iterations=1.5),  # type: ignore[arg-type]
        r"iterations must be a whole number, given 1.5",
    ),
    "a word for a number": (
        lambda: losses.InfoNCE("0.1"),  # type: ignore[arg-type]
        r"temperature must be a finite number, given '0.1'",
    ),
    "q": (lambda: losses.GeneralizedCrossEntropy(0.0), r"q must be above 0, given 0"),
    "form of GCE": (
        lambda: losses.GeneralizedCrossEntropy(0.7, "code"),
        r"value of form: 'code'.*Known: paper, released",
    ),
    "sigma": (lambda: losses.HSIC(0.0), r"sigma must be above 0, given 0"),
    "end": (lambda: losses.EnD(-1, 1), r"alpha must be at least 0, given -1"),
}

x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
y, longer = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1, 2])
kernel = {"lam": 0.1, "temperature": 0.1}

BAD_INPUTS: dict[str, tuple[Callable[[], object], str]] = {
    "flat views": (lambda: losses.InfoNCE(0.1)(x[0]), r"\(V views, B images, D features\).* \(4, 3\)"),
    "integer views": (lambda: losses.InfoNCE(0.1)(x.long()), r"floating point .* got torch.int64"),
    "no images": (lambda: losses.SupCon(0.1)(x[:, :0], y[:0]), r"none of them 0.* \(2, 0, 3\)"),
    "one view": (lambda: losses.InfoNCE(0.1)(x[:1]), r"at least 2 views, got shape \(1, 4, 3\)"),
    "one view for eps-InfoNCE": (lambda: losses.EpsInfoNCE(0.1, 0.1)(x[:1]), r"at least 2 views"),
    "one view for CACR": (lambda: losses.CACR()(x[:1]), r"at least 2 views"),
    "three views": (
        lambda: losses.HardNegInfoNCE(0.1, 1)(x[[0, 1, 1]]),
        r"exactly 2 views, got 3 ",
    ),
    "labels": (lambda: losses.SupCon(0.1)(x, longer), r"labels must have shape \(4,\).* \(5,\)"),
    "clusters": (lambda: losses.ClInfoNCE(0.1, "sampled")(x, longer), r"clusters must have shape \(4,\)"),
    "bias": (lambda: losses.FairKL()(x, y, longer), r"bias must have shape \(4,\)"),
    "bias of EnD": (lambda: losses.EnD(1, 1)(x, y, longer), r"bias must have shape \(4,\)"),
    "bias of BiasCon": (lambda: losses.BiasCon()(x, y, longer), r"bias must have shape \(4,\)"),
    "neither bias": (lambda: losses.FairKL()(x, y), r"either bias.* or bias_similarity"),
    "both biases": (lambda: losses.FairKL()(x, y, y, torch.ones(4, 4)), r"either bias.* or bias_similarity"),
    "similarity": (
        lambda: losses.FairKL()(x, y, bias_similarity=torch.ones(4, 3)),
        r"bias_similarity must have shape \(4, 4\), got \(4, 3\)",
    ),
    "released similarity": (
        lambda: losses.FairKL("released")(x, y, bias_similarity=torch.ones(4, 4)),
        r"released.* bias labels only",
    ),
    "condition": (lambda: losses.FairCCLK("rbf", **kernel)(x, x[0, :3]), r"\(4,\) or \(4, Z\), got \(3, 3\)"),
    "condition of each view": (
        lambda: losses.HardNegCCLK("rbf", **kernel)(x, x[0]),
        r"condition must be \(2, 4, Z\), got \(4, 3\)",
    ),
    "queue": (lambda: losses.CACR()(x, x[0, :, :2]), r"queue must have shape \(Q, 3\), got \(4, 2\)"),
    "keys": (lambda: losses.CACR()(x, None, x[:, :3]), r"keys must have the shape of views"),
    "queries and keys": (lambda: losses.QueueInfoNCE(0.1)(x[0], x[0, :3], x[0]), r"queries .* \(3, 3\)"),
    "prototypes' width": (lambda: losses.SwAV(4, 5)(x), r"prototypes must be \(K, 3\), got \(5, 4\)"),
    "one view for SwAV": (lambda: losses.SwAV(3, 5)(x[:1]), r"at least 2 views"),
    "queries and prototypes": (
        lambda: losses.PrototypeNCE()(x[0], x[0, :, :2], y, y),
        r"prototypes \(K, D\), got \(4, 3\) and \(4, 2\)",
    ),
    "concentrations": (
        lambda: losses.PrototypeNCE()(x[0], x[0], x[0, 0], y),
        r"concentrations must have shape \(4,\), got \(3,\)",
    ),
    "clusters of embeddings": (
        lambda: losses.cluster_prototypes(x[0], longer),
        r"clusters must have shape \(4,\)",
    ),
    "label matrix": (lambda: losses.HeroConSupervised()(x[0], torch.full((4, 2), 2)), r"0 and 1 only"),
    "label rows": (lambda: losses.HeroConSupervised()(x[0], longer), r"features must be \(n, D\)"),
    "width": (lambda: losses.HeroConUnsupervised(7)(x), r"views must have width 7, got shape \(2, 4, 3\)"),
    "logits of GCE": (
        lambda: losses.GeneralizedCrossEntropy()(x, y),
        r"logits must be a floating point tensor of shape \(B, C\), got torch.float32 of shape \(2, 4, 3\)",
    ),
    "three images": (lambda: losses.HSIC()(x[0, :3], x[0, :3]), r"at least 4 images, got 3"),
    "other images": (lambda: losses.HSIC()(x[0], x[0, :3]), r"biased_features \(B, E\), got .* \(3, 3\)"),
    "mask": (
        lambda: losses.RUBi()(x[0], x[0, :, :2], x[0], y),
        r"mask must have the shape of logits, got \(4, 2\) and \(4, 3\)",
    ),
    "factor": (lambda: losses.LearnedMixin()(x[0], x[0], x[0], y), r"factor must have shape \(4,\)"),
    "negative factor": (
        lambda: losses.LearnedMixin()(x[0], x[0], x[0, :, 0] * 0 - 1, y),
        r"factor must be at least 0, got -1",
    ),
    "concentration of 0": (
        lambda: losses.PrototypeNCE()(x[0], x[0], torch.arange(4.0), y),
        r"concentrations must be above 0, got 0",
    ),
    "deviation of 0": (
        lambda: losses.SymmetricKL()(x, x.abs() * 0, x),
        r"deviations must be above 0, got 0",
    ),
    "lam": (lambda: losses.LargeMarginSoftmax(2)(x[0], x[0], y, lam=-1), r"lam must be at least 0"),
    "labels with a point": (
        lambda: losses.GeneralizedCrossEntropy()(x[0], y + 0.9),
        r"labels must be integers, got torch.float32",
    ),
    "classes": (lambda: losses.BiasBal(torch.zeros(2, 5))(x[0], y, y), r"\(4, 3\) and \(2, 5\)"),
}


@pytest.mark.parametrize("name", [*BAD_ARGUMENTS, *BAD_INPUTS])
def test_bad_value_is_refused(name: str) -> None:
    attempt, message = {**BAD_ARGUMENTS, **BAD_INPUTS}[name]
    with pytest.raises(ValueError, match=message):
        attempt()


def test_numbers_of_numpy_are_numbers() -> None:
    loss = losses.InfoNCE(np.float32(0.5))
    assert type(loss.temperature) is float
    loss.temperature = np.float32(0.25)
    assert type(loss.temperature) is float
    assert losses.CACR(attraction=np.bool_(False)).attraction is False
    assert losses.HeroConUnsupervised(np.int64(8)).weight_net.in_features == 8
    with pytest.raises(ValueError, match="must be a whole number"):
        losses.HeroConUnsupervised(np.float64(8))  # type: ignore[arg-type]


def test_a_loss_shows_its_hyperparameters() -> None:
    assert repr(losses.InfoNCE(0.07, "all")) == "InfoNCE(temperature=0.07, negatives='all')"
    assert "attraction=False" in repr(losses.CACR(attraction=False))
    assert repr(losses.SwAV(3, 5)) == "SwAV(temperature=0.1, epsilon=0.05, iterations=3)"


@pytest.mark.parametrize(("name", "value"), [("temperature", -1), ("epsilon", math.nan), ("iterations", 0)])
def test_a_bad_value_is_refused_after_construction_too(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        setattr(losses.SwAV(3, 5), name, value)


def test_the_distance_of_nan_is_nan() -> None:
    assert math.isnan(losses.median_distance(torch.full((3, 2), float("nan"))))
    assert losses.median_distance(torch.ones(3, 2)) == 1e-6


def test_a_loss_whose_annotations_only_type_checkers_know_is_not_checked() -> None:
    class OwnLoss(losses.Loss):
        def terms(self, views: "KnownToTypeCheckers") -> losses.LossTerms:  # type: ignore[name-defined]  # noqa: F821
            return losses.LossTerms.all_valid(views.sum((0, 2)))

    assert OwnLoss()(torch.ones(2, 3, 2)) == 4
