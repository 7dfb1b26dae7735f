import math

import pytest
import torch

from contrasweep.data import InformationCurve, cluster_information, information_curve, top_k_clusterings


def _curve(information: list[float], entropy: list[float], ks: list[int] | None = None) -> InformationCurve:
    ks = ks or list(range(1, len(information) + 1))
    return InformationCurve(tuple(ks), tuple(ks), tuple(information), tuple(entropy))


def test_every_k_has_its_information() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(2, (300, 6), generator=generator)
    labels = torch.randint(4, (300,), generator=generator)
    found = list(top_k_clusterings(values, [1, 2, 4, 6]))
    curve = information_curve(found, labels)
    assert curve.ks == (1, 2, 4, 6)
    assert curve.clusters == (2, 4, 16, len(values.unique(dim=0)))
    for index, (_, clusters) in enumerate(found):
        both = curve.information[index], curve.conditional_entropy[index]
        assert both == cluster_information(clusters, labels)


def test_numbers_with_gaps_count_as_clusters_once() -> None:
    curve = information_curve([(3, torch.tensor([0, 5, 5, 7]))], [0, 1, 1, 0])
    assert curve.clusters == (3,)
    assert curve.information == (1.0,)


def test_rescaling_brings_both_to_the_unit_interval() -> None:
    curve = _curve([1.0, 1.5, 3.0], [2.0, 4.0, 10.0])
    assert curve.rescaled_information == (0.0, 0.25, 1.0)
    assert curve.rescaled_negative_entropy == (1.0, 0.75, 0.0)


def test_the_crossing_lies_where_the_lines_meet() -> None:
    # Gaps -1, -0.5, 1: the lines meet a third of the way from k = 2 to k = 16, over log k at 2 * 8 ** (1/3).
    curve = _curve([1.0, 1.5, 3.0], [2.0, 4.0, 10.0], [1, 2, 16])
    assert curve.crossing is not None
    assert curve.crossing.at == pytest.approx(2 * 8 ** (1 / 3))
    assert curve.crossing.k == 2


@pytest.mark.parametrize(
    ("values", "k"),
    [
        ([0.0, 0.3, 0.8, 1.0], 2),  # gaps -0.4 and 0.6 around the crossing
        ([0.0, 0.2, 0.6, 1.0], 3),  # gaps -0.6 and 0.2
        ([0.0, 0.9, 1.0], 2),  # gaps -1 and 0.8
    ],
)
def test_of_two_neighbours_the_one_with_the_smaller_gap_is_taken(values: list[float], k: int) -> None:
    crossing = _curve(values, values).crossing
    assert crossing is not None
    assert crossing.k == k


def test_a_k_on_the_crossing_is_taken() -> None:
    crossing = _curve([0.0, 0.5, 1.0], [0.0, 0.5, 1.0]).crossing
    assert crossing is not None
    assert (crossing.at, crossing.k) == (2.0, 2)
    # Halfway between two k both are as near, and the smaller is taken.
    crossing = _curve([0.0, 1.0], [0.0, 1.0], [4, 9]).crossing
    assert crossing is not None
    assert (crossing.at, crossing.k) == (6.0, 4)


def test_without_a_change_there_is_no_crossing() -> None:
    single = _curve([1.0], [2.0])
    assert single.rescaled_information is None
    assert single.rescaled_negative_entropy is None
    assert single.crossing is None
    assert _curve([1.0, 1.0], [2.0, 3.0]).crossing is None
    assert _curve([1.0, 2.0], [3.0, 3.0]).crossing is None
    # I falls while H grows: I is above -H from the start.
    assert _curve([2.0, 1.0], [1.0, 2.0]).crossing is None


def test_clusterings_out_of_order_are_refused() -> None:
    clusters = torch.tensor([0, 1])
    for ks in ([], [2, 1], [2, 2], [0, 1]):
        with pytest.raises(ValueError, match="ascending k from 1"):
            information_curve([(k, clusters) for k in ks], clusters)
    with pytest.raises(ValueError, match=r"got \(2,\) and \(3,\)"):
        information_curve([(1, clusters)], torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match=r"must both be \(N,\)"):
        information_curve([(1, torch.zeros(2, 2, dtype=torch.int64))], clusters)


def test_counting_and_sorting_agree() -> None:
    """Small whole numbers are counted; large, negative or fractional ones are sorted."""
    generator = torch.Generator().manual_seed(0)
    clusters = torch.randint(9, (200,), generator=generator)
    labels = torch.randint(3, (200,), generator=generator)
    expected = cluster_information(clusters, labels)
    for other in (clusters * 1000, clusters - 4, clusters / 2, clusters.to(torch.uint8)):
        assert cluster_information(other, labels) == pytest.approx(expected, rel=1e-12)
    assert math.fsum(expected) > 1
