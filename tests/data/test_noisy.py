import math

import numpy as np
import pytest
import torch
from real_data import real_root

from contrasweep.data import dataset_spec, load_test, load_transductive
from contrasweep.data.seeds import numpy_generator
from contrasweep.data.sources.digits import read_mnist, read_mnist_pixels
from contrasweep.data.sources.noisy import MNIST_MEAN, MNIST_STD, add_noise

UNIFORM, GAUSSIAN = ({"noise": law, "level": 1.0} for law in ("uniform", "gaussian"))
GREY = torch.full((300, 1, 8, 8), 100, dtype=torch.uint8)


def test_uniform_noise_is_added_in_0_to_1_and_clipped() -> None:
    noisy = add_noise(torch.zeros_like(GREY), UNIFORM, "x").double()
    assert (float(noisy.min()), float(noisy.max())) == (0.0, 255.0)
    assert float(noisy.mean()) == pytest.approx(127.5, abs=2.0)
    assert float(noisy.std()) == pytest.approx(255 / 12**0.5, abs=1.5)
    added = add_noise(GREY, UNIFORM, "x").double()
    assert torch.equal(added, (noisy + 100).clamp(max=255.0))


def test_gaussian_noise_has_the_mean_and_the_standard_deviation() -> None:
    noisy = add_noise(GREY, GAUSSIAN, "x", mean=0.1, std=0.05).double()
    assert float(noisy.mean()) == pytest.approx(100 + 25.5, abs=0.4)
    assert float(noisy.std()) == pytest.approx(12.75, abs=0.3)


def test_released_noise_has_the_variance_for_its_deviation_and_falls_where_it_is_below_the_level() -> None:
    """`normal(mean, var)` where the draw is below 0.1, clipped, and cut to whole levels (load_mnist)."""
    options = {"noise": "released", "level": 0.1}
    draws = numpy_generator("noise", "released", "x").normal(MNIST_MEAN, MNIST_STD**2, (256, 1, 8, 8))
    expected = 100 / 255 + np.where(draws < 0.1, draws, 0.0)
    noisy = add_noise(GREY, options, "x")
    assert (noisy[:256].numpy() == np.floor(np.clip(expected, 0, 1) * 255 + 1e-9)).all()
    changed = (noisy != 100).double().mean()
    assert float(changed) == pytest.approx(
        0.5 * (1 + math.erf((0.1 - MNIST_MEAN) / MNIST_STD**2 / 2**0.5)), abs=0.02
    )
    assert int(noisy.max()) <= 125


def test_the_released_draws_are_consecutive_images_of_the_test_files() -> None:
    root = real_root("noisy-mnist")
    name = "noisy-mnist-2v:noise=released,level=0.1,labelled=consecutive,unlabelled=100"
    files = read_mnist(root, "test")
    labelled = load_transductive(name, root, 3).labelled
    assert torch.equal(labelled.labels, files.labels[600:800])
    whole = add_noise(files.pixels, {"noise": "released", "level": 0.1}, "mnist", "test", 2)
    assert torch.equal(labelled.views[1], whole[600:800])


@pytest.mark.parametrize("law", ["uniform", "gaussian"])
def test_the_level_is_the_share_of_the_pixels_and_a_higher_one_only_adds(law: str) -> None:
    clean, whole = (add_noise(GREY, {"noise": law, "level": level}, "x") for level in (0.0, 1.0))
    assert torch.equal(clean, GREY)
    reached = torch.zeros_like(GREY, dtype=torch.bool)
    for level in (0.25, 0.5, 0.75):
        noisy = add_noise(GREY, {"noise": law, "level": level}, "x")
        falls = noisy != GREY
        # Noise that rounds to no change hides a pixel: below 1 %.
        assert float(falls.double().mean()) == pytest.approx(level, abs=0.02)
        assert torch.equal(noisy[falls], whole[falls])
        assert bool(falls[reached].all())
        reached = falls


def test_noise_depends_on_its_name_alone_and_not_on_how_many_images_there_are() -> None:
    half = {**GAUSSIAN, "level": 0.5}
    first = add_noise(GREY, half, "x", 1)
    torch.manual_seed(5)
    assert torch.equal(first, add_noise(GREY, half, "x", 1))
    assert not torch.equal(first, add_noise(GREY, half, "x", 2))
    # 300 images are two chunks.
    assert torch.equal(first[:280], add_noise(GREY[:280], half, "x", 1))
    assert len({image.numpy().tobytes() for image in first}) == len(first)


@pytest.mark.parametrize("level", [-0.1, 1.5, float("nan")])
def test_a_level_outside_0_to_1_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match=f"level of dataset noisy-mnist must be 0 to 1, given {level}"):
        dataset_spec(f"noisy-mnist:level={level}")


def test_an_unknown_law_is_refused() -> None:
    with pytest.raises(ValueError, match="Did you mean 'gaussian'"):
        dataset_spec("noisy-mnist:noise=gausian")


def test_real_noisy_mnist_is_mnist_with_that_noise() -> None:
    root = real_root("noisy-mnist")
    pixels = read_mnist_pixels(root, "train").numpy()
    assert pixels.mean() / 255 == pytest.approx(MNIST_MEAN, abs=1e-12)
    assert pixels.std() / 255 == pytest.approx(MNIST_STD, abs=1e-9)
    clean, noisy = load_test("mnist", root), load_test("noisy-mnist:noise=gaussian,level=0.25", root)
    assert torch.equal(noisy.labels, clean.labels)
    assert torch.equal(noisy.pixels, add_noise(clean.pixels, {**GAUSSIAN, "level": 0.25}, "mnist", "test", 1))
    changed = (noisy.pixels != clean.pixels)[clean.pixels == 0].double().mean()
    # Of the quarter that gets noise, what is negative is clipped away on the black paper.
    positive = 0.5 * (1 + math.erf((MNIST_MEAN - 0.5 / 255) / MNIST_STD / 2**0.5))
    assert float(changed) == pytest.approx(0.25 * positive, abs=1e-3)
