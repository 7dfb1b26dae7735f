import pytest
import torch

from contrasweep.data import LabelledImages


def _split(count: int = 5) -> LabelledImages:
    images = torch.arange(count * 3 * 2 * 2, dtype=torch.uint8).view(count, 3, 2, 2)
    return LabelledImages(images, torch.arange(count), torch.rand(count, 4))


def test_a_subset_keeps_rows_together_in_the_order_given() -> None:
    split = _split()
    part = split.subset([3, 0])
    assert len(part) == 2
    assert torch.equal(part.images, split.images[[3, 0]])
    assert part.labels.tolist() == [3, 0]
    assert part.condition is not None
    assert split.condition is not None
    assert torch.equal(part.condition, split.condition[[3, 0]])
    assert len(split.subset([])) == 0


def test_a_split_without_condition_stays_without() -> None:
    split = LabelledImages(_split().images, _split().labels)
    assert split.subset([1]).condition is None
    assert split.to("cpu").condition is None


def test_moving_takes_every_tensor_along() -> None:
    moved = _split().to("meta")
    assert {moved.images.device.type, moved.labels.device.type} == {"meta"}
    assert moved.condition is not None
    assert moved.condition.device.type == "meta"


@pytest.mark.parametrize("index", [[5], [-1], [0.5], [[0]], [True, False, True, False, True]])
def test_a_subset_of_rows_that_are_not_there_is_refused(index: list[int]) -> None:
    with pytest.raises(ValueError, match="index must be"):
        _split().subset(index)


def test_wrong_tensors_are_refused_by_name() -> None:
    good = _split()
    with pytest.raises(ValueError, match=r"images must be torch.uint8 \(N, C, H, W\), got torch.float32"):
        LabelledImages(good.images.float(), good.labels)
    with pytest.raises(ValueError, match="images must be"):
        LabelledImages(good.images[:, 0], good.labels)
    with pytest.raises(ValueError, match="labels must be"):
        LabelledImages(good.images, good.labels.int())
    with pytest.raises(ValueError, match="condition must be"):
        LabelledImages(good.images, good.labels, torch.rand(5))
    with pytest.raises(ValueError, match="5 images, 4 labels"):
        LabelledImages(good.images, good.labels[:4])
    with pytest.raises(ValueError, match="5 images, 5 labels, 6 condition"):
        LabelledImages(good.images, good.labels, torch.rand(6, 3))
    with pytest.raises(ValueError, match="labels on meta"):
        LabelledImages(good.images, good.labels.to("meta"))
