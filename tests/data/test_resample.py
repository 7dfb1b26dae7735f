import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as vision

from contrasweep.data import RandomViews, ViewParameters, torch_generator, whole_image

BICUBIC = InterpolationMode.BICUBIC


def _images(count: int, channels: int, height: int, width: int) -> Tensor:
    shape = (count, channels, height, width)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch_generator("resample", *shape))


def _one_by_one(images: Tensor, parameters: ViewParameters, size: int) -> Tensor:
    """Bicubic views by torchvision's functions, image by image, clamped like its 8-bit images."""
    views = []
    for image, box, flip in zip(
        images.float() / 255, parameters.boxes.tolist(), parameters.flip, strict=True
    ):
        view = vision.resized_crop(image, *box, [size, size], interpolation=BICUBIC, antialias=True)
        views.append(vision.horizontal_flip(view) if flip else view)
    return torch.stack(views).clamp(0, 1)


@settings(max_examples=25, deadline=None)
@given(
    channels=st.sampled_from([1, 3]),
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    size=st.integers(1, 40),
    min_crop=st.floats(0.01, 1.0),
)
def test_bicubic_views_equal_torchvision_for_the_drawn_parameters(
    channels: int, height: int, width: int, size: int, min_crop: float
) -> None:
    images = _images(6, channels, height, width)
    views = RandomViews(size, min_crop, interpolation="bicubic")
    parameters = views.draw(6, (height, width), torch_generator("bicubic", height, width, size))
    made = views.apply(images, parameters)
    torch.testing.assert_close(made, _one_by_one(images, parameters, size), rtol=0, atol=5e-5)


def test_bicubic_views_overshoot_and_are_clamped() -> None:
    images = _images(32, 3, 16, 16).gt(127).to(torch.uint8) * 255
    views = RandomViews(32, 0.2, interpolation="bicubic")
    made = views.apply(images, views.draw(32, 16, torch_generator("overshoot")))
    assert float(made.min()) == 0.0
    assert float(made.max()) == 1.0


@pytest.mark.parametrize(("height", "width", "size"), [(28, 28, 32), (8, 8, 8), (40, 30, 16), (1, 5, 4)])
def test_whole_bicubic_images_equal_torchvision_s_resize(height: int, width: int, size: int) -> None:
    images = _images(7, 3, height, width)
    expected = vision.resize(images.float() / 255, [size, size], interpolation=BICUBIC, antialias=True)
    torch.testing.assert_close(whole_image(images, size, "bicubic"), expected.clamp(0, 1), rtol=0, atol=1e-5)


def test_an_unknown_interpolation_is_refused_with_the_nearest_name() -> None:
    images = _images(1, 3, 8, 8)
    expected = "unknown interpolation 'bicubik'. Did you mean 'bicubic'"
    with pytest.raises(ValueError, match=expected):
        RandomViews(8, 0.5, interpolation="bicubik")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=expected):
        whole_image(images, 8, "bicubik")  # type: ignore[arg-type]


@pytest.mark.parametrize(("height", "width"), [(28, 28), (24, 30), (100, 99)])
def test_a_smallest_crop_of_one_takes_the_whole_image(height: int, width: int) -> None:
    images = _images(40, 3, height, width)
    views = RandomViews(20, 1.0, flip=0.0)
    drawn = views.draw(40, (height, width), torch_generator("whole"))
    assert drawn.boxes.tolist() == [[0, 0, height, width]] * 40
    made = views.apply(images, drawn)
    torch.testing.assert_close(made, whole_image(images, 20), rtol=0, atol=1e-6)


def test_a_whole_image_is_cut_to_an_allowed_aspect() -> None:
    drawn = RandomViews(20, 1.0, min_aspect=1.0, max_aspect=1.0).draw(3, (10, 30), torch_generator("cut"))
    assert drawn.boxes.tolist() == [[0, 10, 10, 10]] * 3


def test_images_that_do_not_lie_in_one_piece_are_taken() -> None:
    """`pil_to_tensor` gives such a view of a photo."""
    photo = torch.randint(0, 256, (1, 20, 30, 3), dtype=torch.uint8)
    channels_first = photo.permute(0, 3, 1, 2)
    assert not channels_first.is_contiguous()
    assert torch.equal(whole_image(channels_first, 8), whole_image(channels_first.contiguous(), 8))
