"""The sensitivity page while a sweep runs: it is rewritten until the sweep has ended."""

from pathlib import Path

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.sensitivity.page import write_sensitivity
from contrasweep.tuning.store import Heartbeat
from tests.studies import WrittenStudy, make_record, scored


@pytest.fixture
def study(tmp_path: Path) -> WrittenStudy:
    return WrittenStudy(tmp_path / "results", make_record())


def test_watching_ends_with_the_sweep(study: WrittenStudy, tmp_path: Path) -> None:
    study.write(scored(), scored(status="running"))
    page, seen = tmp_path / "demo.html", []
    driver = Heartbeat(study.location, "demo", interval=3600)
    driver.__enter__()

    def wait(seconds: float) -> None:
        seen.append((seconds, page.read_text()))
        study.write(scored(trial=1 + len(seen)))
        if len(seen) == 2:
            driver.__exit__(None, None, None)

    found = write_sensitivity(study.store, ["demo"], page, "contrasweep sensitivity demo", watch=7, wait=wait)
    assert [seconds for seconds, _ in seen] == [7, 7]
    assert all('http-equiv="refresh" content="7"' in html for _, html in seen)
    assert ["2 trials of fair-cclk" in html for _, html in seen] == [True, False]
    last = page.read_text()
    assert "4 trials of fair-cclk" in last
    assert 'http-equiv="refresh"' not in last
    assert found.studies[0].observations.trial.tolist() == [0, 1, 2, 3]


def test_ctrl_c_leaves_a_page_that_stands_still(study: WrittenStudy, tmp_path: Path) -> None:
    study.write(scored(status="running"))
    page = tmp_path / "demo.html"

    def interrupt(_: float) -> None:
        assert 'http-equiv="refresh"' in page.read_text()
        raise KeyboardInterrupt

    with Heartbeat(study.location, "demo", interval=3600), pytest.raises(KeyboardInterrupt):
        write_sensitivity(study.store, ["demo"], page, "", watch=7, wait=interrupt)
    assert 'http-equiv="refresh"' not in page.read_text()


def test_too_short_a_watch(study: WrittenStudy, tmp_path: Path) -> None:
    study.write(scored())
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="--watch takes 1 to 86,400 seconds"):
            write_sensitivity(study.store, ["demo"], tmp_path / "demo.html", "", watch=seconds)
    assert not (tmp_path / "demo.html").exists()
