"""`contrasweep clusters` on a small file of attributes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contrasweep.tuning.cli import app

Run = Callable[..., Result]

# Attribute a separates the classes; b and c split them further, so I stays and H grows.
_TABLE = "image,kind,b,a,c,note\n" + "".join(
    f"{n}.png,{'xy'[n // 8]},{n % 2},{n // 8},{int(n % 8 in (0, 1, 2))},free text\n" for n in range(16)
)
_COLUMNS = ("--image-column", "image", "--label-column", "kind", "--ignore", "note")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONTRASWEEP_DATA", str(tmp_path / "no-data"))
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "a.csv").write_text(_TABLE)
    (tmp_path / "ready.csv").write_text(
        ",path,class,label_gran_3,label_gran_5,label_gran_9\n"
        + "".join(f"{n},{n}.png,{n // 4},{n // 8},{n // 4},{n}\n" for n in range(16))
        + "-1,count,4,2,4,16\n"
    )
    return lambda *arguments: CliRunner().invoke(app, ["clusters", *map(str, arguments)])


def test_attributes_are_ranked_and_compared(run: Run) -> None:
    found = json.loads(run("a.csv", *_COLUMNS, "--json").stdout)
    assert (found["dataset"], found["images"], found["classes"]) == ("a.csv", 16, 2)
    # b and a halve the images, and b comes first; c is rarer.
    assert found["attributes"] == ["b", "a", "c"]
    assert [row["k"] for row in found["curve"]] == [1, 2, 3]
    assert [row["clusters"] for row in found["curve"]] == [2, 4, 8]
    assert [row["information_bits"] for row in found["curve"]] == [0.0, 1.0, 1.0]
    assert [row["rescaled_information"] for row in found["curve"]] == [0.0, 1.0, 1.0]
    assert found["curve"][0]["conditional_entropy_bits"] == 1.0
    assert found["crossing"]["k"] == 2
    assert 1 < found["crossing"]["at"] <= 2


def test_the_table_ends_with_the_k_to_take_and_its_attributes(run: Run) -> None:
    output = " ".join(run("a.csv", *_COLUMNS).output.split())
    assert "a.csv: 16 images, 2 classes" in output
    assert "take k = 2 of the 3 compared." in output
    assert output.endswith("These attributes: b, a")


def test_ready_clusters_need_no_attributes(run: Run) -> None:
    found = json.loads(run("ready.csv", "--top-k", "3..9", "--json").stdout)
    assert found["images"] == 16
    assert [(row["k"], row["clusters"]) for row in found["curve"]] == [(3, 2), (5, 4), (9, 16)]
    assert [row["information_bits"] for row in found["curve"]] == [1.0, 2.0, 2.0]
    assert [row["rescaled_negative_entropy"] for row in found["curve"]] == [1.0, 1.0, 0.0]
    # I jumps at k = 5 and H after it: both are 1 there.
    assert found["crossing"] == {"at": 5.0, "k": 5}


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_curves_are_drawn(run: Run, tmp_path: Path, suffix: str) -> None:
    assert run("ready.csv", "-o", f"new/curve.{suffix}").exit_code == 0
    assert (tmp_path / "new" / f"curve.{suffix}").stat().st_size > 5_000


def test_one_k_has_no_crossing_but_a_row(run: Run) -> None:
    result = run("ready.csv", "--top-k", "5..5", "-o", "one.png")
    assert result.exit_code == 0, result.output
    assert "No crossing" in result.output
    assert json.loads(run("ready.csv", "--top-k", "5..5", "--json").stdout)["crossing"] is None


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["ut-zapos50k"], ["unknown set with clusters 'ut-zapos50k'", "'ut-zappos50k'"]),
        (["ut-zappos50k"], ["'ut-zappos50k' not found", "no-data", "--data-root"]),
        (["digits"], ["'digits' comes without attributes", ".csv"]),
        (["nowhere.csv"], ["nowhere.csv: there is no such file"]),
        (["ready.csv", "--ignore", "label_gran_3"], ["has ready clusters", "given 'label_gran_3'"]),
        (["ut-zappos50k", "--categorical", "kind"], ["go with a .csv file of attributes"]),
        (["ready.csv", "--top-k", "5..3"], ["1 <= LOW <= HIGH, given '5..3'"]),
        (["ready.csv", "--top-k", "0..3"], ["1 <= LOW <= HIGH, given '0..3'"]),
        (["ready.csv", "--top-k", "abc"], ["LOW..HIGH, for example 3..150, given 'abc'"]),
        (["ready.csv", "--top-k", "5"], ["LOW..HIGH", "given '5'"]),
        (["ready.csv", "--top-k", "3..10"], ["k must lie in 3..9", "given 3..10"]),
        (["ready.csv", "--top-k", "6..8"], ["no clusters for k in 6..8", "k = 3, 5, 9"]),
        (["a.csv", *_COLUMNS, "--top-k", "2..4"], ["1..3 (there are 3 attributes), given 2..4"]),
        (["a.csv"], ["unknown column 'class'", "image, kind, b, a, c", "--label-column"]),
        (["a.csv", *_COLUMNS[:4]], ["'note' is not binary", "'0.png' has 'free text'"]),
        (["nowhere.csv", "-o", "curve.jpg"], ["curve.jpg", ".png, .pdf, .svg"]),
    ],
)
def test_wrong_input_ends_with_a_sentence(run: Run, arguments: list[str], parts: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    text = " ".join(result.output.split())
    for part in parts:
        assert part in text, text
