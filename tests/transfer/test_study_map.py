"""The map of a study: whose features it shows, of which images, and what is said where there is none."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from contrasweep import feature_maps, write_report
from contrasweep.data import DatasetMissing, load_test, load_training
from contrasweep.models import load_encoder
from contrasweep.tuning.cli import app
from contrasweep.tuning.reports.page import Section
from contrasweep.tuning.store import ResultsStore, open_location
from contrasweep.tuning.store.layout import encoder_path
from contrasweep.tuning.transfer.projections import projected
from tests.studies import Run, WrittenStudy, make_final_record, make_record, scored
from tests.transfer.final_encoders import DATASET, FinalRun
from tests.transfer.map_content import map_content

WriteStudy = Callable[..., ResultsStore]


@pytest.fixture
def write_study(tmp_path: Path) -> WriteStudy:
    """Write the study `demo` with the encoder that it kept and that of a final run, where given."""

    def write(kept: FinalRun | None = None, final: FinalRun | None = None) -> ResultsStore:
        location = open_location(tmp_path / "results", writable=True)
        WrittenStudy(location, make_record(dataset=DATASET, method="supcon")).write(scored(), scored())
        if final is not None:
            record = make_final_record("demo-final", dataset=DATASET, method="supcon")
            WrittenStudy(location, record).write(Run(0, 1, final={"test.accuracy": 0.9}, phase="final"))
        for path, run in ((encoder_path("demo", 1, 0), kept), (encoder_path("demo-final", 0, 1), final)):
            if run is not None:
                place = tmp_path / "results" / path
                place.parent.mkdir(parents=True)
                place.write_bytes(run.file.read_bytes())
        return ResultsStore(location)

    return write


def section_of(store: ResultsStore) -> Section:
    return feature_maps(store, ["demo"])["demo"]


def test_a_search_shows_the_images_that_it_holds_out_and_no_test_image(
    write_study: WriteStudy, searched: FinalRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a search reads no test image")

    monkeypatch.setattr("contrasweep.tuning.transfer.tasks.load_test", refuse)
    section = section_of(write_study(kept=searched))
    (drawn,) = section.maps
    held_out = load_training(DATASET, None, 0.2, 0).validation
    assert held_out is not None
    assert drawn.names[0] == "validation/0"
    assert drawn.colourings[0].values == held_out.labels.tolist()
    assert [panel.title for panel in drawn.panels] == ["Trained", "Before training"]
    with torch.no_grad():
        features = load_encoder(searched.file)(held_out.pixels.float() / 255)
    expected = projected(features, "pca").points
    torch.testing.assert_close(torch.tensor(drawn.panels[0].points).double(), expected, atol=1e-4, rtol=0)
    assert drawn.panels[0].points != drawn.panels[1].points
    assert "search's own run of trial 1, seed 0" in section.text


def test_final_runs_show_the_test_images_that_they_have_read(
    write_study: WriteStudy, searched: FinalRun, runs: list[FinalRun]
) -> None:
    section = section_of(write_study(kept=searched, final=runs[0]))
    (drawn,) = section.maps
    test = load_test(DATASET)
    assert drawn.names[0] == "test/0"
    assert drawn.colourings[0].values == test.labels.tolist()  # type: ignore[union-attr]
    assert "final run of trial 0, seed 1" in section.text


def test_a_study_without_an_encoder_says_so(write_study: WriteStudy) -> None:
    section = section_of(write_study())
    assert not section.maps
    assert section.text.startswith("No map was drawn: study demo has no encoder")


def test_without_the_data_the_report_is_written_without_the_map(
    write_study: WriteStudy, searched: FinalRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise DatasetMissing("the files of colour-digits are not there")

    write_study(kept=searched)
    monkeypatch.setattr("contrasweep.tuning.transfer.images.check_available", missing)
    words = [
        "report",
        "demo",
        "--map",
        "--results",
        str(tmp_path / "results"),
        "-o",
        str(tmp_path / "demo.html"),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "No map was drawn: the files of colour-digits are not there." in " ".join(done.stderr.split())
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert "No map was drawn: the files of colour-digits are not there." in page
    assert '<figure class="map"' not in page


def test_the_command_draws_what_python_draws(
    write_study: WriteStudy, searched: FinalRun, tmp_path: Path
) -> None:
    store = write_study(kept=searched)
    by_command, by_python = tmp_path / "command.html", tmp_path / "python.html"
    words = [
        "report",
        "demo",
        "--map",
        "--results",
        str(tmp_path / "results"),
        "-o",
        str(by_command),
        "--json",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["maps"] == ["demo"]
    write_report(store, ["demo"], by_python, maps=feature_maps(store, ["demo"]))
    pages = [page.read_text(encoding="utf-8") for page in (by_command, by_python)]
    assert map_content(pages[0]) == map_content(pages[1])
    assert "for the map from the encoder&#39;s file and the dataset" in pages[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--map-method", "umap"], "--map-method given; allowed: with --map"),
        (["--map", "--map-method", "uma"], "unknown map method 'uma'. Did you mean 'umap'?"),
        (["--map", "--watch", "5"], "--map given with --watch"),
    ],
)
def test_what_goes_not_together_is_refused(
    write_study: WriteStudy, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_study()
    page = tmp_path / "demo.html"
    words = ["report", "demo", "--results", str(tmp_path / "results"), "-o", str(page), *arguments]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert not page.exists()
