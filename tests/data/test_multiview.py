import pytest
import torch

from contrasweep.data import MultiView


def _set(count: int = 5) -> MultiView:
    images = torch.arange(count * 4, dtype=torch.uint8).view(count, 1, 2, 2)
    return MultiView((torch.rand(count, 3), images), torch.arange(count))


def test_a_subset_keeps_the_views_and_labels_of_an_object_together() -> None:
    whole = _set()
    part = whole.subset([3, 0])
    assert len(part) == 2
    for view, all_of_it in zip(part.views, whole.views, strict=True):
        assert torch.equal(view, all_of_it[[3, 0]])
    assert part.labels is not None
    assert part.labels.tolist() == [3, 0]
    assert len(whole.subset([])) == 0


def test_a_set_without_labels_stays_without() -> None:
    bare = _set().without_labels()
    assert bare.labels is None
    assert bare.subset([1]).labels is None
    assert bare.to("cpu").labels is None
    assert len(bare) == 5


def test_moving_takes_every_tensor_along() -> None:
    multi = MultiView((torch.rand(2, 3),), torch.tensor([[0, 1], [1, 1]]))
    for moved in (_set().to("meta"), multi.to("meta")):
        assert moved.labels is not None
        assert {view.device.type for view in moved.views} | {moved.labels.device.type} == {"meta"}


@pytest.mark.parametrize("index", [[5], [-1], [0.5], [[0]], [True, False, True, False, True]])
def test_a_subset_of_rows_that_are_not_there_is_refused(index: list[int]) -> None:
    with pytest.raises(ValueError, match="index must be"):
        _set().subset(index)


def test_wrong_tensors_are_refused_by_name() -> None:
    features = torch.rand(5, 3)
    with pytest.raises(ValueError, match="at least one view"):
        MultiView(())
    with pytest.raises(
        ValueError, match=r"view 2 must be float32 \(N, \.\.\.\) or uint8 .*got torch.float64"
    ):
        MultiView((features, features.double()))
    for bad in (features[:, 0], torch.zeros(5, 3, dtype=torch.uint8)):
        with pytest.raises(ValueError, match="view 1 must be"):
            MultiView((bad,))
    with pytest.raises(ValueError, match="5 of view 1, 4 of view 2"):
        MultiView((features, features[:4]))
    with pytest.raises(ValueError, match="5 of view 1, 3 of labels"):
        MultiView((features,), torch.arange(3))
    with pytest.raises(ValueError, match="labels must be int64"):
        MultiView((features,), torch.arange(5).int())
    with pytest.raises(ValueError, match=r"columns of labels must hold 0 and 1, got 0\.\.2"):
        MultiView((features,), torch.tensor([[0, 2]] * 5))
    with pytest.raises(ValueError, match="labels on meta"):
        MultiView((features,), torch.arange(5).to("meta"))
