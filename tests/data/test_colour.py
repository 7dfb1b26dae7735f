import numpy as np
import pytest
import torch

from contrasweep.data import LabelledImages, dataset_spec, load_training, numpy_generator
from contrasweep.data.colour import (
    BASE_COLOURS,
    colour_backgrounds,
    draw_palette_colours,
    draw_uniform_colours,
    white_on_colour,
)


def _strokes(values: list[int]) -> LabelledImages:
    images = torch.tensor(values, dtype=torch.uint8).view(-1, 1, 1, 1)
    return LabelledImages(images, torch.zeros(len(values), dtype=torch.int64))


def test_paper_takes_the_colour_and_the_stroke_is_black() -> None:
    colours = torch.tensor([[10.4, 99.6, 255.0]]).repeat(3, 1)
    painted = colour_backgrounds(_strokes([0, 255, 51]), colours)
    assert painted.images.flatten(1).tolist() == [[10, 100, 255], [0, 0, 0], [8, 80, 204]]
    assert painted.condition is colours


def test_more_images_than_a_chunk_are_painted_alike() -> None:
    generator = np.random.default_rng(0)
    strokes = LabelledImages(
        torch.from_numpy(generator.integers(0, 256, (4100, 1, 2, 2), dtype=np.uint8)),
        torch.zeros(4100, dtype=torch.int64),
    )
    colours = draw_palette_colours(4100, generator)
    painted = colour_backgrounds(strokes, colours)
    last = (255 - strokes.images[-1].double()) / 255 * colours[-1].double().view(3, 1, 1)
    assert float((painted.images[-1].double() - last).abs().max()) <= 0.5


def test_colours_follow_the_palette_and_the_noise() -> None:
    colours = draw_palette_colours(200_000, numpy_generator("test")).double()
    assert float(colours.min()) == 0.0
    assert float(colours.max()) == 255.0
    draws = np.random.default_rng(1).normal(size=(10, 100_000))
    for channel in range(3):
        base = np.array(BASE_COLOURS)[:, channel, None]
        expected = (base + 40.0 * draws).clip(0, 255)
        assert float(colours[:, channel].mean()) == pytest.approx(expected.mean(), abs=0.6)
        assert float(colours[:, channel].std()) == pytest.approx(expected.std(), abs=0.6)


def test_each_colour_is_near_a_base_colour_of_the_ten() -> None:
    colours = draw_palette_colours(5_000, numpy_generator("test"))
    nearest = torch.cdist(colours, torch.tensor(BASE_COLOURS, dtype=torch.float32)).argmin(dim=1)
    assert nearest.unique().tolist() == list(range(10))


def test_the_colour_says_nothing_about_the_label() -> None:
    train = load_training("colour-digits").train
    assert train.condition is not None
    means = torch.stack([train.condition[train.labels == label].mean(dim=0) for label in range(10)])
    # About 144 images a class and a standard deviation near 80: a mean strays by some 7 levels.
    assert float((means - train.condition.mean(dim=0)).abs().max()) < 28.0


def test_splits_and_datasets_draw_their_own_colours() -> None:
    colours = {
        (name, split): draw_palette_colours(4, numpy_generator("background colour", name, split)).sum().item()
        for name in ("colour-digits", "colormnist")
        for split in ("train", "test")
    }
    assert len(set(colours.values())) == 4


def test_bad_input_of_colours_is_refused() -> None:
    rgb = LabelledImages(torch.zeros(1, 3, 2, 2, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64))
    with pytest.raises(ValueError, match="got 3 channels"):
        colour_backgrounds(rgb, torch.zeros(1, 3))
    with pytest.raises(ValueError, match="one RGB colour per image"):
        colour_backgrounds(_strokes([0, 0]), torch.zeros(1, 3))
    for bad in (256.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=r"colours must be in 0\.\.255"):
            colour_backgrounds(_strokes([0]), torch.tensor([[bad, 1.0, 1.0]]))


def test_uniform_colours_fill_the_cube_evenly() -> None:
    colours = draw_uniform_colours(100_000, numpy_generator("test")).double()
    assert colours.shape == (100_000, 3)
    assert float(colours.min()) >= 0.0
    assert float(colours.max()) <= 255.0
    for channel in range(3):
        assert float(colours[:, channel].mean()) == pytest.approx(127.5, abs=1.0)
        assert float(colours[:, channel].std()) == pytest.approx(255 / 12**0.5, abs=0.5)
    assert abs(float(torch.corrcoef(colours.T)[0, 1])) < 0.02


def test_the_law_of_the_colours_is_an_option() -> None:
    palette, uniform = (load_training(f"colour-digits:colours={law}").train for law in ("palette", "uniform"))
    plain = load_training("colour-digits").train
    assert torch.equal(palette.pixels, plain.pixels)
    assert palette.condition is not None
    assert uniform.condition is not None
    assert not torch.equal(uniform.condition, palette.condition)
    assert torch.equal(uniform.labels, plain.labels)
    # Even over 0..255: a noisy base colour is clipped to the ends of the scale far more often.
    assert float((uniform.condition == 255).double().mean()) < 0.001
    assert float((palette.condition == 255).double().mean()) > 0.02
    assert dataset_spec("colour-digits:colours=uniform").name == "colour-digits:colours=uniform"
    assert dataset_spec("colormnist:colours=palette").name == "colormnist"
    with pytest.raises(ValueError, match="Did you mean 'uniform'"):
        dataset_spec("colormnist:colours=unifrom")


def test_white_strokes_have_no_shades() -> None:
    painted = white_on_colour(
        _strokes([0, 127, 128, 255]), torch.tensor([[9.6, 0.0, 255.0]]).repeat(4, 1), 128
    )
    assert painted.pixels.flatten(1).tolist() == [[10, 0, 255]] * 2 + [[255] * 3] * 2
    with pytest.raises(ValueError, match="one RGB colour per image"):
        white_on_colour(_strokes([0, 0]), torch.zeros(1, 3), 1)
