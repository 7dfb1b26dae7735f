"""One case for each loss and variant, with its inputs; tests of all losses run over these cases."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from contrasweep import losses

Inputs = dict[str, Tensor]


class LossCase(NamedTuple):
    """A loss with inputs; `embedded` names the embedding, `dim` gives the axis of images of each input."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[int, int, torch.Generator], Inputs]
    embedded: str
    dim: dict[str, int]


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def numbers(high: int, B: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, high, (B,), generator=generator)


def of_views(count: int, **extra: Callable[[int, torch.Generator], Tensor]) -> Callable[..., Inputs]:
    """Return a builder of inputs: `views` (count, B, D) and others, each made from (B, generator)."""

    def inputs(B: int, D: int, generator: torch.Generator) -> Inputs:
        views = normal(count, B, D, generator=generator)
        return {"views": views, **{name: make(B, generator) for name, make in extra.items()}}

    return inputs


def labels(B: int, g: torch.Generator) -> Tensor:
    return numbers(3, B, g)


def bias(B: int, g: torch.Generator) -> Tensor:
    return numbers(2, B, g)


def colours(B: int, g: torch.Generator) -> Tensor:
    return torch.rand(B, 3, generator=g, dtype=torch.float64) * 255


def attributes(B: int, g: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (B, 6), generator=g)


def encoder_features(B: int, g: torch.Generator) -> Tensor:
    return 5 * normal(2, B, 7, generator=g)


def encoder_rows(B: int, g: torch.Generator) -> Tensor:
    return normal(B, 7, generator=g)


def similarities(B: int, g: torch.Generator) -> Tensor:
    b = torch.rand(B, B, generator=g, dtype=torch.float64)
    return (b + b.T) / 2


def herocon_features(B: int, D: int, g: torch.Generator) -> Inputs:
    return {"features": normal(B, D, generator=g), "labels": torch.randint(0, 2, (B, 4), generator=g)}


def herocon_classes(B: int, D: int, g: torch.Generator) -> Inputs:
    return {"features": normal(B, D, generator=g), "labels": numbers(3, B, g)}


def classifier(B: int, D: int, g: torch.Generator) -> Inputs:
    return {"logits": normal(B, 4, generator=g), "labels": numbers(4, B, g), "bias": numbers(2, B, g)}


def branches(*names: str) -> Callable[..., Inputs]:
    """Return a builder of logits of two networks, by name, and labels."""

    def inputs(B: int, D: int, g: torch.Generator) -> Inputs:
        of_networks = {name: normal(B, 4, generator=g) for name in ("logits", *names)}
        return {**of_networks, "labels": numbers(4, B, g)}

    return inputs


def mixture(B: int, D: int, g: torch.Generator) -> Inputs:
    return {**branches("biased_logits")(B, D, g), "factor": torch.rand(B, generator=g, dtype=torch.float64)}


def two_features(B: int, D: int, g: torch.Generator) -> Inputs:
    features = normal(B, D, generator=g)
    return {"features": features, "biased_features": features[:, :2] + normal(B, 2, generator=g)}


def with_classifier(B: int, D: int, g: torch.Generator) -> Inputs:
    weight = normal(max(B, 4), D, generator=g)  # a class for each image, where a test asks for it
    return {"features": normal(B, D, generator=g), "weight": weight, "labels": numbers(4, B, g)}


def moco(B: int, D: int, g: torch.Generator) -> Inputs:
    return {name: normal(B, D, generator=g) for name in ("queries", "keys")} | {
        "queue": normal(9, D, generator=g)
    }


def several_keys(B: int, D: int, g: torch.Generator) -> Inputs:
    return moco(B, D, g) | {"keys": normal(B, 3, D, generator=g)}


def with_prototypes(B: int, D: int, g: torch.Generator) -> Inputs:
    phi = 0.2 + torch.rand(7, generator=g, dtype=torch.float64)
    queries, prototypes = normal(B, D, generator=g), normal(7, D, generator=g)
    return {
        "queries": queries,
        "prototypes": prototypes,
        "concentrations": phi,
        "clusters": numbers(7, B, g),
    }


def cacr_with_queue(B: int, D: int, g: torch.Generator) -> Inputs:
    views = normal(3, B, D, generator=g)
    return {"views": views, "queue": normal(5, D, generator=g), "keys": normal(3, B, D, generator=g)}


def with_memory(B: int, D: int, g: torch.Generator) -> Inputs:
    features, memory = normal(B, D, generator=g), normal(11, D, generator=g)
    return {"features": features, "memory": memory, "index": numbers(11, B, g)}


def features_alone(B: int, D: int, g: torch.Generator) -> Inputs:
    return {"features": normal(B, D, generator=g)}


def with_targets(B: int, D: int, g: torch.Generator) -> Inputs:
    return {"predictions": normal(2, B, D, generator=g), "targets": normal(2, B, D, generator=g)}


def with_teacher(B: int, D: int, g: torch.Generator) -> Inputs:
    outputs = {"student": normal(5, B, D, generator=g), "teacher": normal(2, B, D, generator=g)}
    return {**outputs, "centre": normal(D, generator=g)}


def with_crops_and_queue(B: int, D: int, g: torch.Generator) -> Inputs:
    views, local = normal(2, B, D, generator=g), normal(3, B, D, generator=g)
    return {"views": views, "local": local, "queue": normal(2, 7, D, generator=g)}


def learned(build: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """Return a loss with the same weights every time, without changing the global generator."""

    def seeded() -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(7)
            return build().double()

    return seeded


VIEWS, PER_IMAGE = {"views": 1}, {"labels": 0, "bias": 0, "clusters": 0, "condition": 0}


def _view_cases() -> list[LossCase]:
    fair = {"lam": 0.1, "temperature": 0.3}

    def case(name: str, build: Callable[[], nn.Module], inputs: Callable[..., Inputs]) -> LossCase:
        return LossCase(name, build, inputs, "views", VIEWS | PER_IMAGE)

    cases = [
        case("infonce-cross", lambda: losses.InfoNCE(0.3), of_views(2)),
        case("infonce-all", lambda: losses.InfoNCE(0.3, "all"), of_views(2)),
        case("infonce-all-3-views", lambda: losses.InfoNCE(0.3, "all"), of_views(3)),
        case("infonce-cross-3-views", lambda: losses.InfoNCE(0.3), of_views(3)),
        case("supcon-out", lambda: losses.SupCon(0.3), of_views(2, labels=labels)),
        case("supcon-in", lambda: losses.SupCon(0.3, "in"), of_views(1, labels=labels)),
        case("eps-infonce", lambda: losses.EpsInfoNCE(0.3, 0.4), of_views(2)),
        case("eps-supcon", lambda: losses.EpsSupCon(0.3, 0.4), of_views(2, labels=labels)),
        case("clinfonce", lambda: losses.ClInfoNCE(0.3), of_views(2, clusters=labels)),
        case("clinfonce-sampled", lambda: losses.ClInfoNCE(0.3, "sampled"), of_views(2, clusters=labels)),
        case("hardneg", lambda: losses.HardNegInfoNCE(0.3, 1.0), of_views(2)),
        case("hardneg-debiased", lambda: losses.HardNegInfoNCE(0.5, 0.5, 0.02), of_views(2)),
        case("align-uniform", lambda: losses.AlignUniform(2.0, 1.0, 0.7), of_views(2)),
        case("end", lambda: losses.EnD(0.7, 1.3), of_views(2, labels=labels, bias=bias)),
        case("biascon", lambda: losses.BiasCon(0.3), of_views(2, labels=labels, bias=bias)),
        case("softcon", lambda: losses.SoftCon(0.3), of_views(2, labels=labels, condition=encoder_rows)),
        case("mmcl-inv", lambda: losses.MMCL(2.0, 0.5), of_views(2)),
        case("mmcl-pgd", lambda: losses.MMCL(2.0, 0.5, solver="pgd"), of_views(2)),
        case("cacr-cross", lambda: losses.CACR(1.0, 2.0), of_views(3)),
        case("cacr-rbf", lambda: losses.CACR(1.0, 2.0, cost="rbf"), of_views(2)),
        case(
            "cclk-weaksup", lambda: losses.WeaklySupCCLK("rbf", 9e3, **fair), of_views(2, condition=colours)
        ),
        case("cclk-fair", lambda: losses.FairCCLK("laplacian", 80.0, **fair), of_views(2, condition=colours)),
        case(
            "cclk-fair-paper",
            lambda: losses.FairCCLK("cosine", weights="paper", **fair),
            of_views(2, condition=attributes),
        ),
        case(
            "cclk-weaksup-low-rank",
            lambda: losses.WeaklySupCCLK("linear", 2.0, **fair),
            of_views(2, condition=attributes),
        ),
        case("cclk-hardneg", lambda: losses.HardNegCCLK("rbf", 2.0, **fair), of_views(2)),
        case("herocon-unsup", learned(lambda: losses.HeroConUnsupervised(5)), of_views(2)),
        case("herocon-unsup-cross", learned(lambda: losses.HeroConUnsupervised(5, "cross")), of_views(2)),
    ]
    for variant in ("a", "b", "c", "d"):
        build = lambda variant=variant: losses.EpsSupInfoNCE(0.3, 0.4, variant)  # noqa: E731
        cases.append(case(f"eps-supinfonce-{variant}", build, of_views(2, labels=labels)))
    for form in ("kl", "jeffreys", "moments", "mean", "released"):
        build = lambda form=form: losses.FairKL(form)  # noqa: E731
        cases.append(case(f"fairkl-{form}", build, of_views(2, labels=labels, bias=bias)))
    return cases


LOSS_CASES = [
    *_view_cases(),
    LossCase(
        "fairkl-continuous",
        lambda: losses.FairKL("moments"),
        of_views(2, labels=labels, bias_similarity=similarities),
        "views",
        VIEWS | PER_IMAGE,
    ),
    LossCase(
        "cclk-hardneg-features",
        lambda: losses.HardNegCCLK("rbf", 300.0, lam=0.1, temperature=0.3),
        of_views(2, condition=encoder_features),
        "views",
        {"views": 1, "condition": 1},
    ),
    LossCase(
        "cacr-queue",
        lambda: losses.CACR(1.0, 2.0, negatives="same", detach_positive_weights=True),
        cacr_with_queue,
        "views",
        {"views": 1, "keys": 1},
    ),
    LossCase(
        "herocon-sup", losses.HeroConSupervised, herocon_features, "features", {"features": 0, "labels": 0}
    ),
    LossCase(
        "herocon-sup-classes",
        losses.HeroConSupervised,
        herocon_classes,
        "features",
        {"features": 0, "labels": 0},
    ),
    LossCase(
        "biasbal",
        lambda: losses.BiasBal(torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]).double().log()),
        classifier,
        "logits",
        {"logits": 0, "labels": 0, "bias": 0},
    ),
    LossCase(
        "l-softmax",
        lambda: losses.LargeMarginSoftmax(3),
        with_classifier,
        "features",
        {"features": 0, "labels": 0},
    ),
    *(
        LossCase(name, build, inputs, "queries", {"queries": 0, "keys": 0})
        for name, build, inputs in (
            ("queue-infonce", lambda: losses.QueueInfoNCE(0.3), moco),
            ("queue-infonce-several-keys", lambda: losses.QueueInfoNCE(0.3), several_keys),
            ("queue-align-uniform", lambda: losses.QueueAlignUniform(2.0, 3.0, 0.7), moco),
            ("queue-hardneg", lambda: losses.QueueHardNegInfoNCE(0.3, 1.0), moco),
            ("queue-hardneg-debiased", lambda: losses.QueueHardNegInfoNCE(0.5, 0.5, 0.02), moco),
        )
    ),
    LossCase(
        "gce", lambda: losses.GeneralizedCrossEntropy(0.6), branches(), "logits", {"logits": 0, "labels": 0}
    ),
    LossCase(
        "gce-released",
        lambda: losses.GeneralizedCrossEntropy(0.6, "released"),
        branches(),
        "logits",
        {"logits": 0, "labels": 0},
    ),
    LossCase(
        "hsic",
        lambda: losses.HSIC(2.0, 1.5),
        two_features,
        "features",
        {"features": 0, "biased_features": 0},
    ),
    LossCase(
        "rubi",
        lambda: losses.RUBi(0.7),
        branches("mask", "answer"),
        "logits",
        {"logits": 0, "mask": 0, "answer": 0, "labels": 0},
    ),
    LossCase(
        "learned-mixin",
        lambda: losses.LearnedMixin(0.4),
        mixture,
        "logits",
        {"logits": 0, "biased_logits": 0, "factor": 0, "labels": 0},
    ),
    LossCase("swav", learned(lambda: losses.SwAV(5, 6, 0.3, 0.2)), of_views(2), "views", VIEWS),
    LossCase(
        "swav-crops-queue",
        learned(lambda: losses.SwAV(5, 6, 0.3, 0.2)),
        with_crops_and_queue,
        "views",
        {"views": 1, "local": 1},
    ),
    LossCase("wcl", lambda: losses.WCL(0.3), of_views(2), "views", VIEWS),
    LossCase("wcl-released", lambda: losses.WCL(0.3, "released"), of_views(2), "views", VIEWS),
    LossCase(
        "instance-discrimination",
        lambda: losses.InstanceDiscrimination(0.3),
        with_memory,
        "features",
        {"features": 0, "index": 0},
    ),
    LossCase(
        "decorrelation", lambda: losses.FeatureDecorrelation(0.5), features_alone, "features", {"features": 0}
    ),
    LossCase("barlow-twins", lambda: losses.BarlowTwins(0.3), of_views(2), "views", VIEWS),
    LossCase("vicreg", lambda: losses.VICReg(0.7, 1.3, 0.4), of_views(2), "views", VIEWS),
    LossCase("vicreg-paper", lambda: losses.VICReg(0.7, 1.3, 0.4, "paper"), of_views(2), "views", VIEWS),
    *(
        LossCase(name, build, with_targets, "predictions", {"predictions": 1, "targets": 1})
        for name, build in (("byol", losses.BYOL), ("simsiam", losses.SimSiam))
    ),
    LossCase("dino", lambda: losses.DINO(0.3, 0.2), with_teacher, "student", {"student": 1, "teacher": 1}),
    LossCase("prototype-nce", losses.PrototypeNCE, with_prototypes, "queries", {"queries": 0, "clusters": 0}),
]
CASE_NAMES = [case.name for case in LOSS_CASES]


def seeded_inputs(case: LossCase, B: int = 8, D: int = 5, seed: int = 0) -> Inputs:
    return case.inputs(B, D, torch.Generator().manual_seed(seed))


def value_and_gradient(case: LossCase, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Return the loss and its gradient in the embedding."""
    leaf = inputs[case.embedded].detach().clone().requires_grad_()
    value = case.build()(**{**inputs, case.embedded: leaf})
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient
