"""Encoded images give the stored pixels; damaged images give an error."""

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from encoded_files import encoded, pixels
from PIL import Image
from torchvision.transforms.v2 import functional

from contrasweep.data import LabelledImages, decoding, load_test, read_image
from contrasweep.data.decoding import CorruptImage, decode_image, fit_square, read_header

LEVELS = pixels(0, 12, 10)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_lossless_files_give_back_their_levels(kind: str) -> None:
    image = decode_image(encoded(LEVELS, kind), channels=3)
    assert image.dtype == torch.uint8
    assert np.array_equal(image.permute(1, 2, 0).numpy(), LEVELS)


def test_jpeg_equals_another_decoder() -> None:
    smooth = np.add.outer(np.arange(32), np.arange(32)).astype(np.uint8)[:, :, None].repeat(3, axis=2) * 3
    file = encoded(smooth, "JPEG")
    other = np.array(Image.open(io.BytesIO(file)))
    # Two builds of one library may round differently.
    difference = decode_image(file, channels=3).permute(1, 2, 0).int() - torch.from_numpy(other).int()
    assert int(difference.abs().max()) <= 2
    assert decode_image(file, channels=1).shape == (1, 32, 32)


def test_grey_and_colour_are_converted() -> None:
    grey = encoded(LEVELS[..., 0])
    assert np.array_equal(decode_image(grey, channels=1)[0].numpy(), LEVELS[..., 0])
    assert np.array_equal(decode_image(grey, channels=3)[2].numpy(), LEVELS[..., 0])
    assert decode_image(encoded(LEVELS), channels=1).shape == (1, 12, 10)


def test_sixteen_bits_are_scaled_to_eight() -> None:
    levels = LEVELS[..., 0].clip(max=254)
    # Between two levels of eight bits, the lower one.
    deep = encoded(levels.astype(np.uint16) * 257 + 100)
    assert np.array_equal(decode_image(deep, channels=1)[0].numpy(), levels)
    assert decode_image(deep, channels=3).shape == (3, 12, 10)


def test_every_file_of_sixteen_bits_is_grey() -> None:
    levels = LEVELS[..., 0].astype(np.uint16) * 257
    portable = b"P5\n10 12\n65535\n" + levels.astype(">u2").tobytes()
    big_endian = io.BytesIO()
    Image.frombytes("I;16B", (10, 12), levels.astype(">u2").tobytes()).save(big_endian, "TIFF")
    for file in (portable, big_endian.getvalue(), encoded(levels, "TIFF"), encoded(levels)):
        assert read_header(file).channels == 1
        assert np.array_equal(decode_image(file, channels=1)[0].numpy(), LEVELS[..., 0])


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_images_are_not_turned_by_their_exif_data(kind: str) -> None:
    orientation = Image.Exif()
    orientation[0x0112] = 6
    file = io.BytesIO()
    Image.fromarray(LEVELS).save(file, kind, exif=orientation)
    header = read_header(file.getvalue())
    assert (header.height, header.width) == (12, 10)
    plain = decode_image(encoded(LEVELS, kind), channels=3)
    assert torch.equal(decode_image(file.getvalue(), channels=3), plain)


def test_jpeg_of_four_inks_equals_another_decoder() -> None:
    file = io.BytesIO()
    Image.fromarray(LEVELS).convert("CMYK").save(file, "JPEG")
    other = np.array(Image.open(file).convert("RGB")).astype(int)
    difference = decode_image(file.getvalue(), channels=3).permute(1, 2, 0).numpy() - other
    assert np.abs(difference).max() <= 2


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "TIFF"])
def test_of_several_images_in_a_file_the_first_counts(kind: str) -> None:
    file = io.BytesIO()
    shades = [Image.new("L", (10, 12), shade) for shade in (50, 100)]
    shades[0].save(file, kind, save_all=True, append_images=shades[1:], lossless=True)
    assert int((decode_image(file.getvalue(), channels=1).int() - 50).abs().max()) <= 1


def test_transparency_is_dropped_without_a_warning() -> None:
    """The colours below stay, of a palette too; an opaque background would change them."""
    colours = Image.fromarray(LEVELS).quantize(16)
    for image, alpha in ((colours, bytes(range(16))), (colours, 3), (Image.fromarray(LEVELS), None)):
        file = io.BytesIO()
        if alpha is None:
            image.putalpha(100)
            image.save(file, "PNG")
        else:
            image.save(file, "PNG", transparency=alpha)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            decoded = decode_image(file.getvalue(), channels=3)
        expected = LEVELS if alpha is None else np.array(colours.convert("RGB"))
        assert np.array_equal(decoded.permute(1, 2, 0).numpy(), expected)


def test_without_torchvision_s_decoder_pillow_reads_jpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    file = encoded(LEVELS, "JPEG")
    usual = decode_image(file, channels=3)
    monkeypatch.setattr(decoding, "_torchvision_decoder", lambda: None)
    assert int((decode_image(file, channels=3).int() - usual.int()).abs().max()) <= 2
    with pytest.raises(CorruptImage):
        decode_image(file[:-200], channels=3)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP"])
@pytest.mark.parametrize("keep", [0, 3, 40, -200])
def test_a_truncated_image_is_an_error(kind: str, keep: int) -> None:
    with pytest.raises(CorruptImage, match="bytes"):
        decode_image(encoded(pixels(1, 40, 40), kind)[:keep], channels=3)


def test_a_png_with_a_wrong_checksum_is_an_error_and_no_crash() -> None:
    damaged = bytearray(encoded(pixels(1, 40, 40)))
    damaged[200] ^= 255
    with pytest.raises(CorruptImage):
        decode_image(bytes(damaged), channels=3)


def test_a_header_that_claims_too_much_is_an_error() -> None:
    claims = bytearray(encoded(LEVELS, "BMP"))
    claims[18:22] = claims[22:26] = (1 << 20).to_bytes(4, "little")
    for use in (read_header, lambda file: decode_image(file, channels=3)):
        with pytest.raises(CorruptImage, match="exceeds limit"):
            use(bytes(claims))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF"])
@pytest.mark.parametrize(
    ("height", "width", "allowed"),
    [(1, 60_000, "one side up to 100 times"), (8193, 8192, "at most 67,108,864")],
)
def test_a_bomb_is_refused_by_its_header(kind: str, height: int, width: int, allowed: str) -> None:
    bomb = io.BytesIO()
    Image.new("L", (width, height)).save(bomb, kind)
    # Without its pixels, it would be an error of another kind.
    for use in (read_header, lambda file: decode_image(file, channels=3)):
        with pytest.raises(CorruptImage, match=f"{height:,} x {width:,} pixels; allowed: {allowed}"):
            use(bomb.getvalue()[:700])


def test_a_jpeg_with_bytes_before_its_markers_has_a_shape() -> None:
    file = encoded(LEVELS, "JPEG")
    padded = file[:2] + b"\xff" * 3 + file[2:]
    assert torch.equal(decode_image(padded, channels=3), decode_image(file, channels=3))


def test_an_image_that_is_huge_once_resized_is_refused() -> None:
    with pytest.raises(CorruptImage, match="resized to 1,000 x 100,000 pixels; allowed: at most 67,108,864"):
        fit_square(torch.zeros(3, 1, 100, dtype=torch.uint8), 1000)


def test_the_header_says_size_and_colour_without_the_pixels() -> None:
    header = read_header(encoded(LEVELS)[:60])
    assert (header.height, header.width, header.channels) == (12, 10, 3)
    assert read_header(encoded(LEVELS[..., 0])).channels == 1
    assert read_header(encoded(LEVELS[..., :2])).channels == 1, "grey with transparency"
    with pytest.raises(CorruptImage):
        read_header(b"no image")


def test_the_shorter_side_is_resized_and_the_centre_cut_out() -> None:
    image = torch.zeros(3, 20, 40, dtype=torch.uint8)
    image[:, :, 10:30] = 200
    # At half the size, the bright part is exactly the central square.
    assert fit_square(image, 10).shape == (3, 10, 10)
    assert int(fit_square(image, 10)[:, :, 2:-2].min()) == 200
    assert torch.equal(fit_square(image, 20), image[:, :, 10:30])
    assert fit_square(image, 50).shape == (3, 50, 50)


def test_a_side_is_rounded_down_as_by_torchvision() -> None:
    for height, width, size in ((7, 5, 3), (8, 5, 3), (24, 50, 16), (50, 23, 7)):
        image = torch.from_numpy(pixels(0, height, width)).permute(2, 0, 1)
        resized = functional.resize(image, [size], antialias=True)
        assert torch.equal(fit_square(image, size), functional.center_crop(resized, [size, size]))


@pytest.mark.parametrize(
    "levels", [np.linspace(0, 1, 64, dtype=np.float32), np.arange(64, dtype=np.int32) * 900]
)
def test_thirty_two_bits_are_refused_by_the_header(levels: np.ndarray) -> None:
    file = encoded(levels.reshape(8, 8), "TIFF")
    for read in (read_header, lambda content: decode_image(content, channels=1)):
        with pytest.raises(CorruptImage, match="its pixels have 32 bits; allowed: 8 or 16"):
            read(file)


@pytest.mark.parametrize(("shape", "kind"), [((40, 30), "uint8"), ((24, 50), "uint16"), ((16, 16), "uint8")])
def test_an_image_is_read_as_a_folder_holds_it(tmp_path: Path, shape: tuple[int, int], kind: str) -> None:
    """Wide, tall, square, and of 16 bits, which Pillow's `convert` would cut off."""
    levels = np.random.default_rng(0).integers(0, np.iinfo(kind).max, shape, dtype=kind)
    for split in ("train", "test"):
        for name in ("a", "b"):
            file = tmp_path / f"set/{split}/{name}/0.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(encoded(levels))
    test = load_test(f"image-folder:path={tmp_path / 'set'},size=16")
    assert isinstance(test, LabelledImages)
    assert torch.equal(read_image(file, 16, channels=1), test.pixels[0])
    assert torch.equal(read_image(str(file), 16), test.pixels[0].expand(3, -1, -1))
    with pytest.raises(FileNotFoundError):
        read_image(tmp_path / "none.png", 16)
