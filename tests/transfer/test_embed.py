"""Features as a Parquet file: those that are scored, with names and labels, written part by part; a map."""

import base64
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from contrasweep.data import DatasetDamaged, LabelledImages, load_test, read_image, whole_image
from contrasweep.models import build_encoder, encoder_bytes, load_encoder
from contrasweep.tuning.cli import app
from contrasweep.tuning.experiment import Experiment, ProbeSettings
from contrasweep.tuning.transfer.embed import METADATA, embed
from contrasweep.tuning.transfer.feature_map import MOST_POINTS, MapPoints
from tests.transfer.final_encoders import DATASET, FinalRun
from tests.transfer.map_content import map_content

COLOURS = {"red": (250, 0, 0), "green": (0, 250, 0), "blue": (0, 0, 250)}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Two classes of two images each, one image beside them, and a text."""
    folder = tmp_path / "pictures"
    for name, colour in {"b/1": "red", "b/deep/2": "green", "a/3": "blue", "4": "red"}.items():
        place = f"{name}.png"
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (24, 16), COLOURS[colour]).save(folder / place)
    (folder / "a" / "notes.txt").write_text("no image")
    return folder


def test_a_dataset_gives_the_features_of_its_split(
    runs: list[FinalRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.objectives.prepared.CHUNK", 32)
    file = tmp_path / "features.parquet"
    done = embed(runs[0].file, DATASET, file)
    test = load_test(DATASET)
    with torch.no_grad():
        expected = load_encoder(runs[0].file)(test.images.float() / 255)  # type: ignore[union-attr]
    for frame in (pd.read_parquet(file), pl.read_parquet(file).to_pandas()):
        np.testing.assert_allclose(np.stack(frame["features"]), expected.numpy(), atol=1e-5)
        assert frame["label"].tolist() == test.labels.tolist()  # type: ignore[union-attr]
        assert frame["class"].tolist() == [str(label) for label in frame["label"]]
    assert (done.images, done.width) == (100, 64)
    assert pq.ParquetFile(file).num_row_groups == 4, "32 images at a time"
    said = json.loads(pq.read_schema(file).metadata[METADATA])
    assert said["images"] == f"{DATASET}, test split"
    assert said["preprocessing"] == "8 x 8 pixels, values in 0..1"
    assert len(said["sha256"]) == 64


def test_a_folder_gives_names_and_classes(runs: list[FinalRun], pictures: Path, tmp_path: Path) -> None:
    embed(runs[0].file, pictures, tmp_path / "features.parquet")
    rows = pq.read_table(tmp_path / "features.parquet").to_pylist()
    found = {row["image"]: (row["label"], row["class"]) for row in rows}
    assert found == {
        "4.png": (None, None),
        "a/3.png": (0, "a"),
        "b/1.png": (1, "b"),
        "b/deep/2.png": (1, "b"),
    }
    by_name = {row["image"]: row["features"] for row in rows}
    assert by_name["4.png"] == by_name["b/1.png"], "the same colour"
    assert by_name["a/3.png"] != by_name["b/1.png"]
    said = json.loads(pq.read_schema(tmp_path / "features.parquet").metadata[METADATA])
    assert said["preprocessing"].startswith("shorter side resized, centre square cut out; 8 x 8 pixels")


@pytest.mark.parametrize("as_dataset", [False, True])
def test_names_that_are_not_utf8_are_escaped(runs: list[FinalRun], tmp_path: Path, as_dataset: bool) -> None:
    for number in range(20):
        file = tmp_path / "pictures" / os.fsdecode(b"caf\xe9" if number % 2 else b"b") / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(file)
    file.rename(file.with_name(os.fsdecode(b"\xff.png")))
    source = f"image-folder:path={tmp_path}/pictures,size=8" if as_dataset else tmp_path / "pictures"
    output, page = tmp_path / "features.parquet", tmp_path / "map.html"
    embed(runs[0].file, source, output, split="train" if as_dataset else None, page=page)
    rows = pq.read_table(output).to_pylist()
    assert {row["class"] for row in rows} == {r"caf\xe9", "b"}
    before = f"{tmp_path}/pictures/" if as_dataset else ""
    assert rf"{before}caf\xe9/\xff.png" in {row["image"] for row in rows}
    assert r"caf\\xe9" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("stored", [8, 12, 15])
def test_a_folder_has_the_features_of_its_dataset(tmp_path: Path, stored: int) -> None:
    """The encoder saw images of the size of the dataset, resized once more to that of the views."""
    for place in ("train/a/1", "train/b/2", "test/a/3", "test/b/4"):
        file = tmp_path / f"set/{place}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        levels = np.random.default_rng(len(place)).integers(0, 256, (40, 30, 3), dtype=np.uint8)
        Image.fromarray(levels).save(file)
    name = f"image-folder:path={tmp_path / 'set'},size={stored}"
    experiment = Experiment(method="infonce", dataset=name).model_dump_json()
    content = encoder_bytes(
        build_encoder("small-conv", 3, 8), name="small-conv", channels=3, image_size=8, experiment=experiment
    )
    (tmp_path / "a.safetensors").write_bytes(content)
    features = []
    for number, source in enumerate((name, tmp_path / "set/test")):
        file = tmp_path / f"{number}.parquet"
        embed(tmp_path / "a.safetensors", source, file)
        features.append(np.stack(pd.read_parquet(file)["features"].to_list()))
    np.testing.assert_array_equal(*features)


def test_where_a_dataset_is_not_known_the_centre_is_cut_out_of_a_larger_image(tmp_path: Path) -> None:
    levels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    (tmp_path / "set").mkdir()
    Image.fromarray(levels).save(tmp_path / "set/1.png")
    probes = ProbeSettings(centre=0.5)
    experiment = Experiment(method="infonce", dataset="of-a-plug-in", probes=probes).model_dump_json()
    network = build_encoder("small-conv", 3, 8)
    (tmp_path / "a.safetensors").write_bytes(
        encoder_bytes(network, name="small-conv", channels=3, image_size=8, experiment=experiment)
    )
    embed(tmp_path / "a.safetensors", tmp_path / "set", tmp_path / "features.parquet")
    with torch.no_grad():
        seen = whole_image(read_image(tmp_path / "set/1.png", 16)[None], 8, centre=0.5)
        expected = network.eval()(seen)[0].numpy()
    found = pd.read_parquet(tmp_path / "features.parquet")["features"][0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_where_a_dataset_has_one_size_a_folder_gets_it_first(tmp_path: Path) -> None:
    """Digits have 8 pixels: an encoder of 16 has seen no more detail."""
    levels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    (tmp_path / "set").mkdir()
    Image.fromarray(levels).save(tmp_path / "set/1.png")
    network = build_encoder("small-conv", 3, 16)
    experiment = Experiment(method="infonce", dataset="colour-digits").model_dump_json()
    content = encoder_bytes(network, name="small-conv", channels=3, image_size=16, experiment=experiment)
    (tmp_path / "a.safetensors").write_bytes(content)
    done = embed(tmp_path / "a.safetensors", tmp_path / "set", tmp_path / "features.parquet")
    assert "resized from 8 x 8" in done.preprocessing
    seen = whole_image(read_image(tmp_path / "set/1.png", 8)[None], 16)
    with torch.no_grad():
        expected = network.eval()(seen)[0].numpy()
    found = pd.read_parquet(tmp_path / "features.parquet")["features"][0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_file_that_breaks_off_is_not_there(runs: list[FinalRun], pictures: Path, tmp_path: Path) -> None:
    (pictures / "b" / "9.png").write_bytes(b"damaged")
    result = CliRunner().invoke(
        app, ["embed", str(runs[0].file), str(pictures), "-o", str(tmp_path / "f.parquet")]
    )
    assert result.exit_code == 2
    assert "9.png" in result.stderr
    assert "--skip-corrupt" in result.stderr
    assert not list(tmp_path.glob("*.parquet"))


def test_damaged_images_of_a_folder_can_be_left_out(
    runs: list[FinalRun], pictures: Path, tmp_path: Path
) -> None:
    whole, part = tmp_path / "whole.parquet", tmp_path / "part.parquet"
    embed(runs[0].file, pictures, whole)
    (pictures / "a" / "2.png").write_bytes(b"damaged")
    cut = (pictures / "b" / "1.png").read_bytes()[:40]
    (pictures / "b" / "9.png").write_bytes(cut)
    page = tmp_path / "map.html"
    words = ["embed", str(runs[0].file), str(pictures), "-o", str(part), "--map", str(page)]
    result = CliRunner().invoke(app, [*words, "--skip-corrupt"])
    assert result.exit_code == 0, result.output
    assert pq.read_table(part).equals(pq.read_table(whole))
    assert "Wrote" in result.stdout
    assert map_content(page.read_text(encoding="utf-8"))["names"] == [
        "4.png",
        "a/3.png",
        "b/1.png",
        "b/deep/2.png",
    ]


def test_a_folder_of_damaged_images_has_none_to_embed(runs: list[FinalRun], tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "1.png").write_bytes(b"damaged")
    with pytest.raises(DatasetDamaged, match="none of 1 images can be decoded"):
        embed(runs[0].file, tmp_path / "bad", tmp_path / "f.parquet", skip_corrupt=True)
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty", "-o", "f.parquet"], "empty holds no image"),
        (["digit", "-o", "f.parquet"], "'digit' is neither a folder nor a dataset. Did you mean 'digits'?"),
        (["scene", "-o", "f.parquet"], "dataset 'scene' has objects of several views"),
        (["digits", "-o", "f.csv"], "give a file that ends in .parquet"),
        (["digits", "-o", "f.parquet", "--split", "tset"], "unknown split 'tset'. Did you mean 'test'?"),
        (
            ["empty", "-o", "f.parquet", "--split", "test"],
            "--split test goes with a dataset; empty is a folder",
        ),
        (["digits", "-o", "f.parquet", "--map", "map.png"], "give a file that ends in .html"),
        (
            ["digits", "-o", "f.parquet", "--map", "m.html", "--map-method", "tsne"],
            "unknown map method 'tsne'",
        ),
        (["digits", "-o", "f.parquet", "--map-method", "pca"], "--map-method given; allowed: with --map"),
        (
            ["digits", "-o", "f.parquet", "--skip-corrupt"],
            "--skip-corrupt goes with a folder; digits is a dataset",
        ),
    ],
)
def test_wrong_input_is_refused(
    arguments: Sequence[str],
    message: str,
    runs: list[FinalRun],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    result = CliRunner().invoke(app, ["embed", str(runs[0].file), *arguments])
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert [one.name for one in tmp_path.iterdir()] == ["empty"]


def test_the_map_shows_every_image_and_needs_nothing_else(
    runs: list[FinalRun], pictures: Path, tmp_path: Path
) -> None:
    page = tmp_path / "map.html"
    (pictures / "a" / "<script>.png").write_bytes((pictures / "a" / "3.png").read_bytes())
    words = ["embed", str(runs[0].file), str(pictures), "-o", str(tmp_path / "f.parquet"), "--map", str(page)]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["files"] == [str(tmp_path / "f.parquet"), str(page)]
    text = page.read_text(encoding="utf-8")
    content = map_content(text)
    (colouring,) = content["colourings"]
    assert colouring["names"] == ["a", "b", "not known"]
    assert dict(zip(content["names"], colouring["values"], strict=True)) == {
        "4.png": 2,
        "a/3.png": 0,
        "a/<script>.png": 0,
        "b/1.png": 1,
        "b/deep/2.png": 1,
    }
    assert all(0 <= place <= 1000 for place in content["panels"][0])
    assert not re.search(r"https?://", text), "opens offline"
    assert "<script>.png" not in text
    assert base64.b64decode(content["sheet"].removeprefix("data:image/png;base64,"))[1:4] == b"PNG"


def test_a_map_of_a_dataset_can_be_coloured_by_its_background(runs: list[FinalRun], tmp_path: Path) -> None:
    embed(runs[0].file, DATASET, tmp_path / "features.parquet", page=tmp_path / "map.html")
    content = map_content((tmp_path / "map.html").read_text(encoding="utf-8"))
    by_class, by_colour = content["colourings"]
    assert (by_class["name"], by_colour["name"]) == ("class", "background colour")
    test = load_test(DATASET)
    assert isinstance(test, LabelledImages)
    assert test.condition is not None
    assert [by_class["names"][value] for value in by_class["values"]] == list(map(str, test.labels.tolist()))
    red, green, blue = test.condition[7].round().int().tolist()
    assert by_colour["colours"][by_colour["values"][7]] == f"#{red:02X}{green:02X}{blue:02X}"
    assert by_colour["names"] == []


def test_a_map_of_many_images_takes_some_of_them_and_the_right_ones() -> None:
    images = MOST_POINTS + 500
    points, features = MapPoints(images), torch.arange(images, dtype=torch.float32)[:, None].expand(-1, 3)
    for start in range(0, images, 700):
        part = features[start : start + 700]
        points.take(start, torch.zeros(len(part), 1, 40, 40), part)
    assert points.features[:, 0].long().tolist() == points.rows.tolist()
    assert (len(points.rows), points.pictures.shape[1:]) == (MOST_POINTS, (1, 32, 32))
    assert points.rows[-1] > MOST_POINTS, "not only the first"
