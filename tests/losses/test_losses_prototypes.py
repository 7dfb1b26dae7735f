"""SwAV's assignments, PCL's prototypes, WCL's components, and the reported entropy of CACR's weights."""

import math

import pytest
import references
import references_clusters
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from contrasweep import losses
from contrasweep.losses.pcl import SMALLEST_SHARE


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("iterations", [1, 3])
def test_assignments_are_those_of_the_loops(iterations: int) -> None:
    scores = normal(7, 4).tanh()
    expected = references_clusters.sinkhorn(scores.clone(), 0.1, iterations)
    torch.testing.assert_close(losses.balanced_assignments(scores, 0.1, iterations), expected)


def test_assignments_sum_to_one_and_use_all_prototypes_alike() -> None:
    scores = normal(24, 6).tanh()
    scores[:, 2] += 0.5  # all images prefer this prototype
    assigned = losses.balanced_assignments(scores, 0.3, 200)
    torch.testing.assert_close(assigned.sum(1), torch.ones(24, dtype=torch.float64))
    torch.testing.assert_close(assigned.sum(0), torch.full((6,), 4.0, dtype=torch.float64))


def test_a_small_epsilon_does_not_overflow() -> None:
    scores = normal(12, 5).tanh()
    single = losses.balanced_assignments(scores.float(), 1e-3)
    assert single.isfinite().all()
    torch.testing.assert_close(
        single.double(), losses.balanced_assignments(scores, 1e-3), atol=1e-3, rtol=1e-3
    )


def test_a_target_has_no_gradient() -> None:
    views = normal(2, 6, 4)
    loss = losses.SwAV(4, 5).double()
    leaf = views.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf), leaf)
    fixed = views.clone().requires_grad_()
    scores = torch.nn.functional.normalize(fixed, dim=2) @ loss.prototypes.detach().T
    targets = [losses.balanced_assignments(one.detach(), 0.05) for one in scores]
    shares = [(one / 0.1).log_softmax(1) for one in scores]
    value = -(targets[1] * shares[0] + targets[0] * shares[1]).sum(1).mean() / 2
    expected = torch.autograd.grad(value, fixed)[0]
    # The prototypes are drawn and scaled in float32: their length is 1 to seven digits.
    torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=1e-4)


def test_prototypes_of_swav_have_length_one_again() -> None:
    loss = losses.SwAV(4, 5)
    torch.testing.assert_close(loss.prototypes.norm(dim=1), torch.ones(5))
    before = loss.prototypes.detach().clone()
    with torch.no_grad():
        loss.prototypes.mul_(3)
    loss.normalise_prototypes()
    torch.testing.assert_close(loss.prototypes.detach(), before)
    assert loss.prototypes.requires_grad


def test_shapes_of_crops_and_queue_are_checked() -> None:
    loss, views = losses.SwAV(4, 5), normal(2, 6, 4)
    with pytest.raises(ValueError, match=r"local must be \(L, 6, 4\), got \(3, 5, 4\)"):
        loss(views, normal(3, 5, 4))
    with pytest.raises(ValueError, match=r"queue must be \(2, Q, 4\), got \(1, 8, 4\)"):
        loss(views, queue=normal(1, 8, 4))
    with pytest.raises(ValueError, match="at least 2 views"):
        loss(views[:1])
    assert loss.terms(views[:1], normal(3, 6, 4)).values.shape == (3 * 6,)


@pytest.mark.parametrize("rows", [1, 2, 3, 17, 400])
def test_components_are_those_of_scipy(rows: int) -> None:
    """In three dimensions there are components of two rows and of dozens."""
    z = torch.nn.functional.normalize(normal(rows, 3, seed=rows), dim=1)
    nearest = (z @ z.T - 2 * torch.eye(rows)).argmax(dim=1)
    graph = csr_matrix((torch.ones(rows), (torch.arange(rows), nearest)), shape=(rows, rows))
    count, expected = connected_components(graph, directed=False)
    found = losses.neighbour_components(z)
    assert len(found.unique()) == count
    assert torch.equal(found[:, None] == found, torch.from_numpy(expected[:, None] == expected))


def test_a_long_chain_of_neighbours_is_one_component() -> None:
    """Each row's nearest neighbour is the next row: the first one is 15 steps from the circle at the end."""
    angles = torch.cumsum(0.85 ** torch.arange(17, dtype=torch.float64) / 3, 0)
    rows = torch.stack([angles.cos(), angles.sin()], dim=1)
    assert len(losses.neighbour_components(rows).unique()) == 1


def test_equal_rows_are_one_component() -> None:
    """Ties can lead to a circle of more than two rows; here each row's nearest are all the others."""
    assert losses.neighbour_components(torch.ones(9, 2)).tolist() == [0] * 9


CLUSTERS = torch.tensor([0, 1, 2, 0, 1, 0, 3, 1, 2, 0, 2, 2])


def test_prototypes_are_the_means_of_directions() -> None:
    embeddings = normal(12, 3)
    prototypes = losses.cluster_prototypes(embeddings, CLUSTERS)
    for k in range(4):
        mean = torch.stack([references.unit(z) for z in embeddings[k == CLUSTERS]]).mean(0)
        torch.testing.assert_close(prototypes[k], mean)


def test_concentrations_are_those_of_the_loops() -> None:
    embeddings = normal(12, 3)  # cluster 3 has one image and gets the largest value of the others
    prototypes = losses.cluster_prototypes(embeddings, CLUSTERS)
    found = losses.cluster_concentrations(embeddings, CLUSTERS, prototypes, 0.2)
    torch.testing.assert_close(found, references_clusters.concentrations(embeddings, CLUSTERS, 0.2))
    assert found.mean().item() == pytest.approx(0.2)
    assert found[3] == found.max()


def test_clusters_of_equal_points_keep_a_temperature() -> None:
    points = normal(4, 3)
    points[0] = torch.tensor([1.0, 0.0, 0.0])
    collapsed = points[CLUSTERS]
    prototypes = losses.cluster_prototypes(collapsed, CLUSTERS)
    exact = torch.full((4,), 0.2, dtype=torch.float64)
    torch.testing.assert_close(
        losses.cluster_concentrations(collapsed[:1], CLUSTERS[:1], prototypes[:1], 0.2), exact[:1]
    )
    assert (losses.cluster_concentrations(collapsed, CLUSTERS, prototypes, 0.2) > 0).all()
    wide = torch.cat([collapsed, normal(6, 3, seed=1)])
    clusters = torch.cat([CLUSTERS, torch.full((6,), 4)])
    found = losses.cluster_concentrations(wide, clusters, losses.cluster_prototypes(wide, clusters), 0.2)
    assert found.min().item() >= 0.2 * SMALLEST_SHARE * 0.999


def test_prototypes_and_concentrations_learn_nothing() -> None:
    queries, prototypes = normal(6, 3).requires_grad_(), normal(4, 3, seed=1).requires_grad_()
    phi = torch.full((4,), 0.3, dtype=torch.float64, requires_grad=True)
    losses.PrototypeNCE()(queries, prototypes, phi, CLUSTERS[:6]).backward()
    assert prototypes.grad is None
    assert phi.grad is None
    assert queries.grad is not None
    assert bool(queries.grad.any())


def test_cacr_reports_the_entropy_of_its_own_weights() -> None:
    views, queue = normal(3, 5, 4), normal(6, 4, seed=1)
    for negatives in ("cross", "same"):
        found = losses.CACR(t_neg=1.7, negatives=negatives).repulsion_entropy(views)
        torch.testing.assert_close(found, references.repulsion_entropy(views, 1.7, negatives))
    uniform = losses.CACR(repulsion=False)
    assert uniform.repulsion_entropy(views).item() == pytest.approx(math.log(4))
    assert uniform.repulsion_entropy(views, queue).item() == pytest.approx(math.log(10))
    alone = losses.CACR(repulsion=False, intra_batch=False)
    assert alone.repulsion_entropy(views, queue).item() == pytest.approx(math.log(6))
    near = losses.CACR(t_neg=50.0).repulsion_entropy(views, queue)
    assert 0 <= near.item() < 1
    assert not losses.CACR().repulsion_entropy(views.requires_grad_()).requires_grad
