"""Every loss against its paper's loops, over shapes that Hypothesis draws: the value and the gradient."""

from collections.abc import Callable
from typing import Any

import pytest
import references
import references_bias
import references_clusters
import references_codes
import references_networks
import torch
from checks_predicting import PREDICTING
from drawn import Drawn, Pair
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from contrasweep import losses

Reference = Callable[[Tensor, Tensor, Tensor], Tensor]


def info_nce(d: Drawn, negatives: str) -> Pair:
    module = losses.InfoNCE(0.4, negatives)
    return module, lambda v: references.info_nce(v, 0.4, negatives), d.views(max(d.V, 2))


def against_queue(module: nn.Module, reference: Reference, several: bool = False) -> Callable[[Drawn], Pair]:
    """Return a check of a loss of queries, keys (several of each with `several`) and a queue."""

    def check(d: Drawn) -> Pair:
        keys = d.normal(d.B, d.V, d.D) if several else d.normal(d.B, d.D)
        queue = d.normal(4, d.D)
        return (
            lambda q: module(q, keys, queue),
            lambda q: reference(q, keys if several else keys[:, None], queue),
            d.normal(d.B, d.D),
        )

    return check


def sup_con(d: Drawn, form: str) -> Pair:
    y, module = d.numbers(3), losses.SupCon(0.4, form)
    return lambda v: module(v, y), lambda v: references.sup_con(v, y, 0.4, form), d.views()


def eps_sup_info_nce(d: Drawn, variant: str) -> Pair:
    y, module = d.numbers(3), losses.EpsSupInfoNCE(0.4, 0.3, variant)
    return (
        lambda v: module(v, y),
        lambda v: references.eps_sup_info_nce(v, y, 0.4, 0.3, variant),
        d.views(),
    )


def eps_sup_con(d: Drawn) -> Pair:
    y, module = d.numbers(3), losses.EpsSupCon(0.4, 0.3)
    return lambda v: module(v, y), lambda v: references.eps_sup_con(v, y, 0.4, 0.3), d.views()


def eps_info_nce(d: Drawn) -> Pair:
    module, y = losses.EpsInfoNCE(0.4, 0.3), torch.arange(d.B)
    return module, lambda v: references.eps_sup_info_nce(v, y, 0.4, 0.3), d.views(max(d.V, 2))


def hard_neg(d: Drawn, tau_plus: float) -> Pair:
    module = losses.HardNegInfoNCE(0.5, 0.8, tau_plus)
    return module, lambda v: references.hard_neg_info_nce(v, 0.5, 0.8, tau_plus), d.views(2)


def align_uniform(d: Drawn) -> Pair:
    module = losses.AlignUniform(2.0, 1.0, 0.7)
    return module, lambda v: references.align_uniform(v, 2.0, 1.0, 0.7), d.views(max(d.V, 2))


def cl_info_nce_sampled(d: Drawn) -> Pair:
    module, z = losses.ClInfoNCE(0.4, "sampled"), d.numbers(2)
    log_n = torch.tensor(float(d.B)).double().log()
    return lambda v: module(v, z), lambda v: references.info_nce(v, 0.4, "cross") - log_n, d.views(2)


def cclk(d: Drawn, kernel: str, weights: str, kind: str) -> Pair:
    sigma2 = {"rbf": 2.0, "laplacian": 1.0, "linear": 3.0, "polynomial": 4.0, "cosine": 1.0}[kernel]
    z = d.normal(d.B, 2)
    build = losses.WeaklySupCCLK if kind == "weakly-sup" else losses.FairCCLK
    module = build(kernel, sigma2, lam=0.1, temperature=0.4, weights=weights)
    W = references.conditional_weights(z, kernel, sigma2, 0.1).expand(2, -1, -1)
    return lambda v: module(v, z), lambda v: references.cclk(v, W, 0.4, weights, kind), d.views(2)


def hard_neg_cclk(d: Drawn) -> Pair:
    h = d.normal(2, d.B, 3)
    module = losses.HardNegCCLK("rbf", 4.0, lam=0.1, temperature=0.4)
    W = torch.stack([references.conditional_weights(z, "rbf", 4.0, 0.1) for z in h])
    return lambda v: module(v, h), lambda v: references.cclk(v, W, 0.4, "released", "fair"), d.views(2)


def herocon_unsupervised(d: Drawn, negatives: str) -> Pair:
    module = losses.HeroConUnsupervised(d.D, negatives).double()
    return (
        module,
        lambda v: references.herocon_unsupervised(v, torch.sigmoid(module.weight_net(v)), negatives),
        d.views(2),
    )


def herocon_supervised(d: Drawn) -> Pair:
    Y = (d.uniform(d.B, 4) < 0.5).long()
    module = losses.HeroConSupervised("hamming")
    return (
        lambda x: module(x, Y),
        lambda x: references.herocon_supervised(x, Y),
        d.normal(d.B, d.D),
    )


def fair_kl(d: Drawn, form: str) -> Pair:
    y, b, module = d.numbers(2), d.numbers(2), losses.FairKL(form)
    return lambda v: module(v, y, b), lambda v: references_bias.fair_kl(v, y, b, form), d.views()


def fair_kl_released(d: Drawn) -> Pair:
    d.B = max(d.B, 2)  # the code takes an unbiased standard deviation of B * B numbers
    y, b, module = d.numbers(2), d.numbers(2), losses.FairKL("released")
    return lambda v: module(v, y, b), lambda v: references_bias.fair_kl_released(v, y, b), d.views()


def fair_kl_continuous(d: Drawn, form: str) -> Pair:
    y, b, module = d.numbers(2), d.uniform(d.B, d.B), losses.FairKL(form)
    return (
        lambda v: module(v, y, bias_similarity=b),
        lambda v: references_bias.fair_kl_continuous(v, y, b, form),
        d.views(),
    )


def end(d: Drawn) -> Pair:
    y, b, module = d.numbers(3), d.numbers(2), losses.EnD(0.7, 1.3)
    return lambda v: module(v, y, b), lambda v: references_bias.end(v, y, b, 0.7, 1.3), d.views()


def bias_con(d: Drawn) -> Pair:
    y, b, module = d.numbers(3), d.numbers(2), losses.BiasCon(0.4)
    return lambda v: module(v, y, b), lambda v: references_bias.bias_con(v, y, b, 0.4), d.views()


def soft_con(d: Drawn) -> Pair:
    y, b, module = d.numbers(3), d.normal(d.B, 4), losses.SoftCon(0.4)
    return lambda v: module(v, y, b), lambda v: references_bias.soft_con(v, y, b, 0.4), d.views()


def max_margin(d: Drawn) -> Pair:
    module = losses.MMCL(2.0, 0.8)
    return module, lambda v: references.max_margin(v, 2.0, 0.8, 0.1), d.normal(2, max(d.B, 2), d.D)


def cacr(d: Drawn, **options: Any) -> Pair:
    module = losses.CACR(0.8, 1.7, **options)
    return module, lambda v: references.cacr(v, 0.8, 1.7, **options), d.views(max(d.V, 2))


def cacr_queue(d: Drawn, **options: Any) -> Pair:
    V = max(d.V, 2)
    queue, keys = d.normal(3, d.D), d.normal(V, d.B, d.D)
    module = losses.CACR(0.8, 1.7, **options)
    return (
        lambda v: module(v, queue, keys),
        lambda v: references.cacr(v, 0.8, 1.7, queue=queue, keys=keys, **options),
        d.views(V),
    )


def swav(d: Drawn) -> Pair:
    module = losses.SwAV(d.D, 3, 0.4, 0.3, 2).double()
    reference = references_clusters.swapped_prediction
    return module, lambda v: reference(v, module.prototypes.detach(), 0.4, 0.3, 2), d.views(max(d.V, 2))


def swav_with_crops_and_queue(d: Drawn) -> Pair:
    module = losses.SwAV(d.D, 3, 0.4, 0.3, 2).double()
    local, queue = d.normal(2, d.B, d.D), d.normal(d.V, 4, d.D)
    reference = references_clusters.swapped_prediction
    prototypes = module.prototypes.detach()
    return (
        lambda v: module(v, local, queue),
        lambda v: reference(v, prototypes, 0.4, 0.3, 2, local, queue),
        d.views(d.V),
    )


def instance_discrimination(d: Drawn) -> Pair:
    fixed = d.normal(6, d.D), d.numbers(6)
    module = losses.InstanceDiscrimination(0.5)
    return (
        lambda f: module(f, *fixed),
        lambda f: references_clusters.instance_discrimination(f, *fixed, 0.5),
        d.normal(d.B, d.D),
    )


def decorrelation(d: Drawn) -> Pair:
    module = losses.FeatureDecorrelation(0.5)
    return module, lambda f: references_clusters.decorrelation(f, 0.5), d.normal(d.B, d.D)


def wcl(d: Drawn) -> Pair:
    return losses.WCL(0.4), lambda v: references_clusters.weak_labels(v, 0.4), d.views(2)


def prototype_nce(d: Drawn) -> Pair:
    fixed = d.normal(4, d.D), 0.2 + d.uniform(4), d.numbers(4)
    module = losses.PrototypeNCE()
    return (
        lambda q: module(q, *fixed),
        lambda q: references_clusters.prototype_nce(q, *fixed),
        d.normal(d.B, d.D),
    )


def jensen_shannon(d: Drawn) -> Pair:
    module = losses.JensenShannon(d.D, 3).double()
    return module, lambda v: references_codes.jensen_shannon(v, module.net), d.views(2)


def symmetric_kl(d: Drawn, form: str) -> Pair:
    given = 0.3 + d.uniform(2, d.B, d.D), d.normal(2, d.B, d.D)
    module = losses.SymmetricKL(form)
    return (
        lambda m: module(m, *given),
        lambda m: references_codes.symmetric_kl(m, *given, form),
        d.views(2),
    )


def canonical_correlation(d: Drawn) -> Pair:
    codes, module = d.normal(d.B, d.D), losses.CanonicalCorrelation(0.7)
    return (
        lambda x: module(x, codes),
        lambda x: references_codes.canonical_correlation(x, codes, 0.7),
        d.normal(d.B, d.D),
    )


def label_ranking(d: Drawn) -> Pair:
    labels, module = (d.uniform(d.B, 4) < 0.5).long(), losses.LabelRanking(2.0)
    return (
        lambda s: module(s, labels),
        lambda s: references_codes.label_ranking(s, labels, 2.0),
        d.normal(d.B, 4),
    )


def generalized_cross_entropy(d: Drawn) -> Pair:
    y, module = d.numbers(d.D), losses.GeneralizedCrossEntropy(0.6)
    reference = references_networks.generalized_cross_entropy
    return lambda x: module(x, y), lambda x: reference(x, y, 0.6), d.normal(d.B, d.D)


def hsic(d: Drawn) -> Pair:
    biased, module = d.normal(d.B + 3, 2), losses.HSIC(1.7, 0.9)
    reference = references_networks.hsic
    return lambda x: module(x, biased), lambda x: reference(x, biased, 1.7, 0.9), d.normal(d.B + 3, d.D)


def rubi(d: Drawn) -> Pair:
    others, module = (d.normal(d.B, d.D), d.normal(d.B, d.D), d.numbers(d.D)), losses.RUBi(0.7)
    return (
        lambda x: module(x, *others),
        lambda x: references_networks.rubi(x, *others, 0.7),
        d.normal(d.B, d.D),
    )


def learned_mixin(d: Drawn) -> Pair:
    others, module = (d.normal(d.B, d.D), d.uniform(d.B), d.numbers(d.D)), losses.LearnedMixin(0.4)
    return (
        lambda x: module(x, *others),
        lambda x: references_networks.learned_mixin(x, *others, 0.4),
        d.normal(d.B, d.D),
    )


def with_options(make: Callable[..., Pair], *args: Any, **options: Any) -> Callable[[Drawn], Pair]:
    return lambda d: make(d, *args, **options)


CHECKS: dict[str, Callable[[Drawn], Pair]] = {
    **PREDICTING,
    "gce": generalized_cross_entropy,
    "hsic": hsic,
    "rubi": rubi,
    "learned-mixin": learned_mixin,
    **{f"infonce-{negatives}": with_options(info_nce, negatives) for negatives in ("cross", "all")},
    **{
        f"queue-infonce-{several}": against_queue(
            losses.QueueInfoNCE(0.4), lambda *given: references.queue_info_nce(*given, 0.4), several
        )
        for several in (False, True)
    },
    **{
        f"queue-align-uniform-{intra}": against_queue(
            losses.QueueAlignUniform(2.0, 3.0, 0.7, intra),
            lambda *given, intra=intra: references.queue_align_uniform(*given, 2.0, 3.0, 0.7, intra),
        )
        for intra in (False, True)
    },
    **{
        f"queue-hardneg-{tau_plus}": against_queue(
            losses.QueueHardNegInfoNCE(0.5, 0.8, tau_plus),
            lambda *given, tau_plus=tau_plus: references.queue_hard_neg(*given, 0.5, 0.8, tau_plus),
        )
        for tau_plus in (0.0, 0.4)
    },
    **{f"supcon-{form}": with_options(sup_con, form) for form in ("out", "in")},
    **{f"eps-supinfonce-{v}": with_options(eps_sup_info_nce, v) for v in ("a", "b", "c", "d")},
    "eps-supcon": eps_sup_con,
    "eps-infonce": eps_info_nce,
    **{f"hardneg-{tau_plus}": with_options(hard_neg, tau_plus) for tau_plus in (0.0, 0.05, 0.4)},
    "align-uniform": align_uniform,
    "clinfonce-sampled": cl_info_nce_sampled,
    **{
        f"cclk-{kind}-{kernel}-{weights}": with_options(cclk, kernel, weights, kind)
        for kind in ("weakly-sup", "fair")
        for kernel, weights in [
            ("rbf", "released"),
            ("laplacian", "paper"),
            ("linear", "paper"),
            ("polynomial", "released"),
            ("cosine", "released"),
        ]
    },
    "cclk-hardneg": hard_neg_cclk,
    **{f"herocon-unsup-{n}": with_options(herocon_unsupervised, n) for n in ("both", "cross")},
    "herocon-sup": herocon_supervised,
    **{f"fairkl-{form}": with_options(fair_kl, form) for form in ("kl", "jeffreys", "moments", "mean")},
    "fairkl-released": fair_kl_released,
    **{f"fairkl-continuous-{form}": with_options(fair_kl_continuous, form) for form in ("kl", "mean")},
    "end": end,
    "biascon": bias_con,
    "softcon": soft_con,
    "mmcl": max_margin,
    "cacr-cross": with_options(cacr),
    "cacr-same-rbf": with_options(cacr, negatives="same", cost="rbf"),
    "cacr-uniform": with_options(cacr, attraction=False, repulsion=False),
    "cacr-queue": with_options(cacr_queue, negatives="same"),
    "cacr-queue-only": with_options(cacr_queue, intra_batch=False),
    "jensen-shannon": jensen_shannon,
    **{f"symmetric-kl-{form}": with_options(symmetric_kl, form) for form in ("sampled", "exact")},
    "canonical-correlation": canonical_correlation,
    "label-ranking": label_ranking,
    "swav": swav,
    "swav-crops-queue": swav_with_crops_and_queue,
    "instance-discrimination": instance_discrimination,
    "decorrelation": decorrelation,
    "wcl": wcl,
    "prototype-nce": prototype_nce,
}


@pytest.mark.parametrize("name", CHECKS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(V=st.integers(1, 3), B=st.integers(1, 5), D=st.integers(2, 4), seed=st.integers(0, 999))
def test_loss_equals_its_equation(name: str, V: int, B: int, D: int, seed: int) -> None:
    loss, reference, embedding = CHECKS[name](Drawn(V, B, D, seed))
    ours, theirs = embedding.clone().requires_grad_(), embedding.clone().requires_grad_()
    value, expected = loss(ours), reference(theirs)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-10)
    (gradient,) = torch.autograd.grad(value, ours)
    wanted = torch.zeros_like(theirs)
    if expected.requires_grad:
        (wanted,) = torch.autograd.grad(expected, theirs)
    torch.testing.assert_close(gradient, wanted, rtol=1e-7, atol=1e-9)
