import math
from pathlib import Path

import numpy as np
import pytest
import torch

from contrasweep.data import cluster_information

_GOLDEN = Path(__file__).parent.parent / "golden" / "cluster-information.npz"


def test_the_golden_values() -> None:
    with np.load(_GOLDEN) as golden:
        found = cluster_information(golden["clusters"], golden["labels"])
        expected = float(golden["mutual_information"]), float(golden["conditional_entropy"])
    assert found == pytest.approx(expected, rel=1e-12)


def test_hand_computed_values() -> None:
    # Z halves the four images, T tells only the last one apart: H(Z) = 1 bit,
    # H(Z|T) = 3/4 h(1/3) with h(1/3) = log2(3) - 2/3 bits.
    conditional = 0.75 * (math.log2(3) - 2 / 3)
    assert cluster_information([0, 0, 1, 1], [0, 0, 0, 1]) == pytest.approx((1 - conditional, conditional))


def test_the_two_arguments_have_their_roles() -> None:
    # Four clusters refine two labels: the label is known, and one bit of the cluster is left.
    assert cluster_information([0, 1, 2, 3], [0, 0, 1, 1]) == pytest.approx((1.0, 1.0))
    assert cluster_information([0, 0, 1, 1], [0, 1, 2, 3]) == pytest.approx((1.0, 0.0))


def test_independent_and_constant_clusters_carry_nothing() -> None:
    assert cluster_information([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx((0.0, 1.0))
    assert cluster_information([7, 7, 7], [0, 1, 2]) == (0.0, 0.0)


def test_rounding_never_makes_the_information_negative() -> None:
    # Independent by construction; summed as it comes, this table gives -3e-17 bits.
    counts = np.outer([3, 5], [1, 11, 48])
    clusters, labels = np.repeat(np.indices((2, 3)).reshape(2, 6), counts.ravel(), axis=1)
    assert cluster_information(clusters, labels)[0] == 0.0


def test_the_names_of_clusters_do_not_matter_and_tensors_work() -> None:
    clusters, labels = torch.tensor([5, -9, 5, 3]), torch.tensor([2, 2, 1, 1])
    assert cluster_information(clusters, labels) == cluster_information([0, 1, 0, 2], ["b", "b", "a", "a"])


def test_unequal_or_empty_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"both be \(N,\), got \(2,\) and \(3,\)"):
        cluster_information([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match=r"both be \(N,\)"):
        cluster_information([[0, 1]], [[0, 1]])
    with pytest.raises(ValueError, match="at least one image"):
        cluster_information([], [])
