"""The corruptions: the values of the released code, and what they do to plain images."""

from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage, stats

from contrasweep.data import DatasetDamaged, DatasetMissing
from contrasweep.data.corruptions import CORRUPTIONS, LEVELS, check_frost_pictures, frost_pictures, weather
from contrasweep.data.corruptions.filters import to_hsv, to_rgb, zoom_matrix
from contrasweep.data.corruptions.spatter import distance_to

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "corruptions.npz")

NEAR = {"Elastic": 0.05, "Defocus Blur": 0.25, "Zoom Blur": 0.03}
"""Corruptions that differ by one level where rounding meets the cut to whole levels: the largest share."""


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = (
        np.random.RandomState(10 + number).randint(0, 256, (203 + number, 198 - number, 3))
        for number in range(5)
    )
    kept = tuple(picture[2::5, 2::5].astype(np.uint8) for picture in drawn)
    monkeypatch.setattr(weather, "frost_pictures", lambda: kept)


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("name", [name for name in GOLDEN.files if name != "image"])
def test_images_are_those_of_the_released_code(name: str) -> None:
    for level in range(1, LEVELS):
        stream = np.random.default_rng(7) if name == "Impulse Noise" else np.random.RandomState(7)
        draws = CORRUPTIONS[name].draw(stream, 32)  # type: ignore[arg-type]
        made = CORRUPTIONS[name](GOLDEN["image"][None], level, tuple(one[None] for one in draws))
        gap = np.abs(made[0, ::2, 1::2].astype(int) - GOLDEN[name][level - 1])
        assert gap.max() <= (name in NEAR)
        assert (gap > 0).mean() <= NEAR.get(name, 0.0)


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_batch_is_its_images_one_by_one(name: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    pixels[1] = 255
    pixels[2] //= 4
    drawn = [CORRUPTIONS[name].draw(np.random.default_rng(row), 32) for row in range(3)]
    draws = tuple(np.stack(one) for one in zip(*drawn, strict=True))
    for level in (1, 4):
        together = CORRUPTIONS[name](pixels, level, draws)
        assert together.dtype == np.uint8
        apart = [
            CORRUPTIONS[name](pixels[row : row + 1], level, tuple(one[row : row + 1] for one in draws))
            for row in range(3)
        ]
        assert np.array_equal(together, np.concatenate(apart))


def test_photons_follow_poissons_law() -> None:
    pixels = np.full((1, 32, 32, 3), 102, dtype=np.uint8)
    draws = CORRUPTIONS["Shot Noise"].draw(np.random.default_rng(0), 32)
    photons = 50
    made = CORRUPTIONS["Shot Noise"](pixels, 4, tuple(one[None] for one in draws))
    counted = np.rint(made.ravel() / 255 * photons)
    mean = photons * 102 / 255
    assert stats.kstest(counted + 0.5, stats.poisson(mean).cdf).statistic < 0.12
    assert counted.mean() == pytest.approx(mean, rel=0.02)
    assert counted.var() == pytest.approx(mean, rel=0.1)


def test_colours_return_from_hue_saturation_and_value() -> None:
    colours = np.concatenate(
        [np.random.default_rng(0).random((1, 40, 3)), np.eye(3)[None], np.zeros((1, 2, 3))], 1
    )
    assert to_rgb(to_hsv(colours)) == pytest.approx(colours, abs=1e-12)


def test_the_enlarged_centre_is_scipys() -> None:
    line = np.random.default_rng(0).random(32)
    for factor in (1.0, 1.25, 1.75, 2.25, 1.06):
        centre = int(np.ceil(32 / factor))
        top = (32 - centre) // 2
        larger = ndimage.zoom(line[top : top + centre], factor, order=1)
        cut = (len(larger) - 32) // 2
        assert zoom_matrix(32, factor) @ line == pytest.approx(larger[cut : cut + 32], abs=1e-9)


def test_distances_are_those_of_steps_and_knights_moves() -> None:
    marked = np.zeros((2, 12, 12), dtype=bool)
    marked[0, 3, 4] = True
    distance = distance_to(marked)
    assert distance[0, 3, 4] == 0
    for (y, x), expected in {
        (3, 9): 5.0,
        (8, 9): 7.0,
        (4, 6): 2.1969,
        (6, 10): 3 * 2.1969,
        (0, 0): 4.9969,
    }.items():
        assert distance[0, y, x] == pytest.approx(expected)
    assert np.isinf(distance[1]).all()


def test_frost_is_refused_without_its_pictures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(frost_pictures, "find_spec", lambda name: None)
    with pytest.raises(DatasetMissing, match="pip install --no-deps imagecorruptions"):
        check_frost_pictures()
    monkeypatch.setattr(frost_pictures, "_folder", lambda: tmp_path)
    with pytest.raises(DatasetMissing, match=r"frost1\.png does not exist"):
        check_frost_pictures()
    (tmp_path / "frost1.png").write_bytes(b"another picture")
    with pytest.raises(DatasetDamaged, match=r"frost1\.png is not the published picture"):
        check_frost_pictures()
