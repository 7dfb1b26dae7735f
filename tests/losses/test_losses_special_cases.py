"""The papers' statements about their losses, and variants that must agree in special cases."""

import math

import pytest
import references
import torch
from torch import Tensor
from torch.nn import functional

from contrasweep import losses
from contrasweep.losses.clinfonce import sample_partners
from contrasweep.losses.fairkl import _gaussian_kl
from contrasweep.losses.mmcl import descend, unbounded_multipliers
from contrasweep.losses.scores import normalised


def views(V: int, B: int = 8, D: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(V, B, D, generator=generator, dtype=torch.float64)


LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
BIAS = torch.tensor([0, 1, 1, 1, 0, 0, 0, 1])


def equal(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_eps_supcon_without_margin_is_supcon() -> None:
    equal(losses.EpsSupCon(0.2, 0.0)(views(2), LABELS), losses.SupCon(0.2)(views(2), LABELS))


def test_eps_infonce_is_eps_supinfonce_of_instances() -> None:
    instances = torch.arange(8)
    equal(losses.EpsInfoNCE(0.2, 0.3)(views(3)), losses.EpsSupInfoNCE(0.2, 0.3)(views(3), instances))


def test_two_views_without_margin_make_eps_infonce_nt_xent() -> None:
    equal(losses.EpsInfoNCE(0.2, 0.0)(views(2)), losses.InfoNCE(0.2, "all")(views(2)))


def test_one_positive_each_makes_all_variants_of_equation_17_agree_up_to_their_means() -> None:
    instances = torch.arange(8)
    a, c = (losses.EpsSupInfoNCE(0.2, 0.3, variant)(views(2), instances) for variant in ("a", "c"))
    b, d = (losses.EpsSupInfoNCE(0.2, 0.3, variant)(views(2), instances) for variant in ("b", "d"))
    equal(a, c)
    equal(b, d)


@pytest.mark.parametrize("variant", ["a", "b", "c", "d"])
def test_anchor_without_negative_is_worth_minus_epsilon(variant: str) -> None:
    one_class = torch.zeros(8, dtype=torch.long)
    terms = losses.EpsSupInfoNCE(0.2, 0.3, variant).terms(views(2), one_class)
    assert terms.valid.all()
    equal(terms.values, torch.full((16,), -0.3, dtype=torch.float64))


def test_cl_infonce_of_labels_is_supcon_and_of_instances_nt_xent() -> None:
    cl_info_nce = losses.ClInfoNCE(0.2)
    equal(cl_info_nce(views(2), LABELS), losses.SupCon(0.2)(views(2), LABELS))
    equal(cl_info_nce(views(2), torch.arange(8)), losses.InfoNCE(0.2, "all")(views(2)))


def test_sampled_cl_infonce_is_infonce_less_log_n() -> None:
    sampled = losses.ClInfoNCE(0.2, "sampled")(views(2), LABELS)
    equal(sampled, losses.InfoNCE(0.2)(views(2)) - math.log(8))


def test_partners_are_uniform_over_the_cluster() -> None:
    clusters = torch.tensor([5, 9, 5, 5, 7, 9])
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([sample_partners(clusters, generator) for _ in range(3000)])
    assert (clusters[drawn] == clusters).all()
    shares = torch.bincount(drawn[:, 0], minlength=6) / 3000
    torch.testing.assert_close(shares, torch.tensor([1, 0, 1, 1, 0, 0]) / 3, atol=0.04, rtol=0)


def test_herocon_multiclass_is_equation_6() -> None:
    features = views(1)[0]
    one_hot = torch.nn.functional.one_hot(LABELS)
    expected = references.herocon_multiclass(features, LABELS)
    equal(losses.HeroConSupervised()(features, LABELS), expected)
    equal(losses.HeroConSupervised()(features, one_hot), expected)
    equal(losses.HeroConSupervised("indicator")(features, one_hot), expected)


def test_herocon_binary_label_is_equation_6_of_its_positives() -> None:
    """With one binary label the hamming distance equals the indicator."""
    features, y = views(1)[0], (LABELS == 1).long()
    hamming = losses.HeroConSupervised("hamming")(features, y[:, None])
    equal(hamming, losses.HeroConSupervised("indicator")(features, y[:, None]))


def test_hamming_weighs_one_hot_negatives_twice() -> None:
    features, one_hot = views(1)[0], torch.nn.functional.one_hot(LABELS)
    hamming = losses.HeroConSupervised("hamming")(features, one_hot)
    equal(hamming, references.herocon_supervised(features, one_hot))
    assert hamming > losses.HeroConSupervised()(features, one_hot) + 0.1


def test_cacr_of_one_positive_has_no_attraction_weights() -> None:
    weighted, uniform = (losses.CACR(t_pos, 2.0)(views(2)) for t_pos in (0.1, 9.0))
    equal(weighted, uniform)
    equal(losses.CACR(1.0, 2.0, attraction=False)(views(2)), weighted)
    assert not torch.isclose(losses.CACR(0.1, 2.0)(views(3)), losses.CACR(9.0, 2.0)(views(3)))


def test_cacr_detached_weights_change_the_gradient_only() -> None:
    x = views(3).requires_grad_()
    attached, detached = (
        losses.CACR(1.0, 2.0, detach_positive_weights=detach)(x) for detach in (False, True)
    )
    equal(attached, detached)
    gradients = [torch.autograd.grad(value, x)[0] for value in (attached, detached)]
    assert (gradients[0] - gradients[1]).norm() > 1e-3


def test_cacr_gradients_stay_out_of_queue_and_keys() -> None:
    queue, keys = views(1, 5)[0].requires_grad_(), views(3, seed=2).requires_grad_()
    value = losses.CACR(1.0, 2.0)(views(3).requires_grad_(), queue, keys)
    assert torch.autograd.grad(value, (queue, keys), allow_unused=True) == (None, None)


def test_queue_infonce_gradients_stay_out_of_queue_and_keys() -> None:
    queries, keys, queue = (views(1, seed=seed)[0].requires_grad_() for seed in range(3))
    value = losses.QueueInfoNCE(0.3)(queries, keys, queue)
    assert torch.autograd.grad(value, (keys, queue), allow_unused=True) == (None, None)


def test_repulsion_entropy_is_that_of_the_weights() -> None:
    for negatives in ("cross", "same"):
        entropy = losses.repulsion_entropy(views(3), 1.5, negatives)
        equal(entropy, references.repulsion_entropy(views(3), 1.5, negatives))
    collapsed = losses.repulsion_entropy(torch.ones(2, 8, 5), 1.5)
    assert collapsed.item() == pytest.approx(math.log(7), rel=1e-5)


@pytest.mark.parametrize("form", ["kl", "jeffreys", "moments", "mean"])
def test_fairkl_of_a_distribution_with_itself_is_zero(form: str) -> None:
    """A similarity of 1/2 gives every pair the same share of both populations."""
    one = views(1, 4)
    half = torch.full((4, 4), 0.5, dtype=torch.float64)
    value = losses.FairKL(form)(one, LABELS[:4] % 2, bias_similarity=half)
    assert value.item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("form", ["kl", "jeffreys", "moments", "mean"])
def test_fairkl_of_equal_point_masses_is_zero(form: str) -> None:
    """All distances between orthogonal images are 2, so the four populations have no spread."""
    orthogonal = torch.eye(8, dtype=torch.float64)[None].requires_grad_()
    value = losses.FairKL(form)(orthogonal, LABELS, BIAS)
    assert value.item() == pytest.approx(0, abs=1e-12)
    assert torch.autograd.grad(value, orthogonal)[0].isfinite().all()


def test_fairkl_of_like_variances_keeps_its_digits_in_single_precision() -> None:
    """The variances differ by a permille, so the divergence is 2.5e-7, too small beside 1 for float32."""
    c = torch.tensor([0.01, 0.3, 2.0])
    a, gap = c * 1.001, torch.zeros(3)
    ratio = a.double() / c.double()
    exact = 0.5 * (ratio - ratio.log() - 1)
    torch.testing.assert_close(_gaussian_kl(gap, a, c).double(), exact, rtol=1e-3, atol=0)


@pytest.mark.parametrize("form", ["kl", "jeffreys"])
def test_fairkl_of_a_spread_and_a_point_mass_is_finite(form: str) -> None:
    """Aligned positives coincide and conflicting ones do not: the ratio of variances is lost in 1 + x."""
    x = views(1, 8, 5).float()
    x[0, :4] = x[0, 0]
    labels, bias = torch.tensor([0] * 7 + [1]), torch.tensor([0, 0, 0, 0, 1, 2, 3, 0])
    leaf = x.requires_grad_()
    value = losses.FairKL(form)(leaf, labels, bias)
    assert value.isfinite()
    assert value > 5
    assert torch.autograd.grad(value, leaf)[0].isfinite().all()


def test_fairkl_of_similarities_is_its_quarter() -> None:
    """With distances 2 - 2 cos, mean and moments are four times those of similarities; kl is the same."""
    z = torch.nn.functional.normalize(views(1)[0], dim=1)
    same_class, same_bias = LABELS[:, None] == LABELS, BIAS[:, None] == BIAS
    upper = torch.ones(8, 8).triu(1).bool()
    s = z @ z.T
    quarter = sum(
        (s[upper & c & same_bias].mean() - s[upper & c & ~same_bias].mean()) ** 2
        for c in (same_class, ~same_class)
    )
    equal(losses.FairKL("mean")(views(1), LABELS, BIAS), 4 * quarter)


def test_fairkl_population_with_one_pair_counts_nothing() -> None:
    """Class 0 has one aligned pair, so the positives' term is invalid; the negatives' is not."""
    labels, bias = torch.tensor([0, 0, 0, 1, 2, 3]), torch.tensor([0, 0, 1, 0, 1, 2])
    terms = losses.FairKL("kl").terms(views(1, 6), labels, bias)
    assert terms.valid.tolist() == [False, True]
    assert terms.dropped_fraction().item() == 0.5


def test_hard_negatives_without_weights_are_nt_xent() -> None:
    equal(losses.HardNegInfoNCE(0.3, 0.0)(views(2)), losses.InfoNCE(0.3, "all")(views(2)))


def test_debiasing_floor_holds_where_the_positive_outweighs_the_negatives() -> None:
    """Positives at cosine 1 and tau_plus 0.9 make the numerator negative, so Ng = n e^{-1/tau}."""
    x = views(1, 4).expand(2, -1, -1)
    value = losses.HardNegInfoNCE(0.5, 1.0, 0.9)(x)
    assert value.item() == pytest.approx(math.log(1 + 6 * math.exp(-2) / math.exp(2)), rel=1e-9)


def test_cclk_weights_of_unrelated_conditions_carry_no_signal() -> None:
    """Distinct z and a small lambda give W = I: the released M_i is 0 and every Fair term is 0 but valid."""
    z = torch.arange(8.0)[:, None] * 1e3
    terms = losses.FairCCLK("rbf", 1.0, lam=1e-3, temperature=0.5).terms(views(2), z)
    assert terms.valid.all()
    equal(terms.values, torch.zeros(16, dtype=torch.float64))


def test_cclk_paper_weights_drop_anchors_of_no_mass() -> None:
    """A zero row has cosine 0 with everything, itself included, so M_i = 0."""
    z = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1]])
    for loss in (losses.FairCCLK, losses.WeaklySupCCLK):
        terms = loss("cosine", lam=0.01, temperature=0.5, weights="paper").terms(views(2, 4), z)
        assert not terms.valid.view(2, 4)[:, 0].any()
        assert 0 < terms.dropped_fraction() < 1
        assert terms.mean().isfinite()


def test_hard_neg_cclk_without_condition_uses_detached_unit_embeddings() -> None:
    x = views(2).requires_grad_()
    z = torch.nn.functional.normalize(x.detach(), dim=-1)
    loss = losses.HardNegCCLK("rbf", 2.0, lam=1.0, temperature=0.5)
    (implied,) = torch.autograd.grad(loss(x), x)
    (given,) = torch.autograd.grad(loss(x, z), x)
    equal(implied, given)


def test_no_gradient_flows_into_the_condition() -> None:
    h = views(2, seed=4).requires_grad_()
    value = losses.HardNegCCLK("rbf", 2.0, lam=1.0, temperature=0.5)(views(2).requires_grad_(), h)
    assert torch.autograd.grad(value, h, allow_unused=True) == (None,)


def test_biascon_keeps_anchors_without_positives_as_zeros() -> None:
    terms = losses.BiasCon(0.3).terms(views(2), LABELS, torch.zeros_like(LABELS))
    assert terms.valid.all()
    equal(terms.values, torch.zeros(16, dtype=torch.float64))


def test_biasbal_of_a_uniform_prior_is_cross_entropy() -> None:
    logits = views(1, 8, 4)[0]
    prior = torch.full((2, 4), 0.25, dtype=torch.float64).log()
    labels = LABELS % 4
    expected = torch.nn.functional.cross_entropy(logits, labels)
    equal(losses.BiasBal(prior)(logits, labels, BIAS), expected)


def test_biasbal_adds_the_prior_of_the_given_bias() -> None:
    logits = views(1, 8, 3)[0]
    prior = losses.log_class_prior(LABELS, BIAS, classes=3, biases=3)
    assert prior.exp()[0].tolist() == pytest.approx([0.5, 0.25, 0.25])
    assert prior.exp()[2].tolist() == pytest.approx([1 / 3] * 3)
    expected = torch.nn.functional.cross_entropy(logits + prior.double()[BIAS], LABELS)
    torch.testing.assert_close(losses.BiasBal(prior)(logits, LABELS, BIAS), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16])
def test_the_prior_is_the_same_of_labels_in_small_integers(kind: torch.dtype) -> None:
    """40 biases of 10 classes are more cells than eight bits number."""
    labels, bias = torch.arange(1200) % 10, torch.arange(1200) % 37
    expected = losses.log_class_prior(labels, bias, classes=10, biases=40)
    assert torch.equal(losses.log_class_prior(labels.to(kind), bias.to(kind), 10, 40), expected)


def test_end_is_one_half_for_orthogonal_conflicting_pairs() -> None:
    x = torch.eye(4, dtype=torch.float64)[None]
    value = losses.EnD(1.0, 1.0)(x, torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1]))
    assert value.item() == pytest.approx(0.5)


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_released_margins_differ_from_ours_by_their_added_constant_alone(epsilon: float) -> None:
    """The released code subtracts the largest score (the anchor's own 1 / tau) and adds 1e-6 in its log."""
    from test_losses_golden import load

    for name, reference in (
        (f"released-eps-supinfonce-eps{epsilon}", references.eps_sup_info_nce),
        (f"released-eps-supcon-eps{epsilon}", references.eps_sup_con),
    ):
        arrays, _ = load(name)
        x, y = torch.as_tensor(arrays["views"]).requires_grad_(), torch.as_tensor(arrays["labels"])
        value = reference(x, y, 0.1, epsilon, added=1e-6)
        equal(value.detach(), torch.as_tensor(arrays["expected"]))
        (gradient,) = torch.autograd.grad(value, x)
        torch.testing.assert_close(gradient, torch.as_tensor(arrays["grad_views"]), rtol=1e-8, atol=1e-11)


def test_projected_descent_solves_the_duals_of_the_support_vector_machines() -> None:
    """A multiplier inside its bounds has no slope; at 0 the slope goes up, at the bound down."""
    x = normalised(views(1, 16, seed=4)[0])
    kernel, reg, bound = ((x @ x.T - 1) * 2 / 0.7).exp(), 0.1, 0.2
    start = unbounded_multipliers(kernel, reg).clamp(0, bound)
    found = descend(start, kernel, reg, bound, iterations=2000)
    for t in range(16):
        others = [j for j in range(16) if j != t]
        column = kernel[others, t]
        system = 1 + kernel[others][:, others] - column[:, None] - column + reg * torch.eye(15)
        multipliers = found[t, others]
        slope = system @ multipliers - 2
        assert slope[multipliers <= 0].ge(-1e-6).all()
        assert slope[multipliers >= bound].le(1e-6).all()
        assert slope[(multipliers > 0) & (multipliers < bound)].abs().le(1e-6).all()
    kinds = (found == 0).sum() - 16, (found == bound).sum(), ((found > 0) & (found < bound)).sum()
    assert min(kinds) > 0


def test_mmcl_descends_from_the_inverse_in_its_own_number_of_steps() -> None:
    x = views(2, 16, seed=4)
    few, many, more = (losses.MMCL(0.7, 0.2, solver="pgd", iterations=n)(x) for n in (1, 400, 800))
    assert abs(many - more) < 1e-6 < abs(few - many)


def test_softcon_of_one_hot_features_is_biascon() -> None:
    soft = losses.SoftCon(0.3)(views(2), LABELS, functional.one_hot(BIAS).double())
    equal(soft, losses.BiasCon(0.3)(views(2), LABELS, BIAS))


def test_a_margin_of_one_is_cross_entropy_and_lambda_moves_towards_it() -> None:
    features, weight = views(1)[0], views(1, B=3, seed=1)[0]
    plain = functional.cross_entropy(features @ weight.T, LABELS)
    equal(losses.LargeMarginSoftmax(1)(features, weight, LABELS), plain)
    far, near, there = (
        losses.LargeMarginSoftmax(3)(features, weight, LABELS, lam=lam) for lam in (0.0, 100.0, 1e15)
    )
    assert plain < near < far
    equal(there, plain)


def test_the_released_gce_has_q_times_the_gradient_of_the_paper_s() -> None:
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.arange(6) % 4
    gradients = []
    for form in ("paper", "released"):
        leaf = logits.clone().requires_grad_()
        gradients += torch.autograd.grad(losses.GeneralizedCrossEntropy(0.7, form)(leaf, labels), leaf)
    torch.testing.assert_close(gradients[1], 0.7 * gradients[0])
