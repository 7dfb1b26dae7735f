"""A command reads the rows of a study once, and combines the rows of each trial once."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.sweep_report import report_sweep
from contrasweep.tuning.ray.result import SweepResult
from tests.studies import STUDY, PlannedStudy, scored, small_plan

TRIALS = 4


@pytest.fixture
def study(tmp_path: Path) -> PlannedStudy:
    """Two completed trials, one that stopped and one that failed, on the way to a colour error of 200."""
    study = PlannedStudy(small_plan(tmp_path, trials=TRIALS, keep=("colour_mse>=200",)))
    completed = (scored((0.5, 0.6, score), colour=colour) for score, colour in ((0.7, 300.0), (0.9, 100.0)))
    study.write(*completed, scored((0.5, 0.55), "stopped"), scored((0.5,), "failed", error="no room"))
    return study


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[object]:
    """Count the readings of trials and epochs, the times added up, and by number each trial's outcomes."""
    found: Counter[object] = Counter()

    def counted(place: str, what: Callable[..., object]) -> None:
        module, _, name = place.rpartition(".")
        original = getattr(__import__(module, fromlist=[name]), name)

        def called(*args: Any, **options: Any) -> Any:
            found[what(*args)] += 1
            return original(*args, **options)

        monkeypatch.setattr(place, called)

    counted("contrasweep.tuning.store.reader.read_parts", lambda location, kind, record: kind)
    counted("contrasweep.tuning.results.trials._result", lambda record, rows: rows[0]["trial"])
    counted("contrasweep.tuning.results.trials._spans_of_epochs", lambda epochs: "spans")
    return found


@pytest.mark.parametrize("words", ["best", "best --trial 0", "show", "report -o page.html"])
def test_a_command_reads_a_study_once(
    words: str, study: PlannedStudy, seen: Counter[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command, *options = words.split()
    done = CliRunner().invoke(app, [command, STUDY, *options, "--results", study.store.location.uri])
    assert done.exit_code == 0, done.output
    spans = {"spans": 1} if command == "report" else {}
    assert seen == {"trials": 1, "epochs": 1, **spans, **dict.fromkeys(range(TRIALS), 1)}


@pytest.mark.parametrize("as_json", [True, False])
def test_the_end_of_a_sweep_reads_its_study_once(
    study: PlannedStudy, seen: Counter[object], as_json: bool
) -> None:
    report_sweep(SweepResult(study.plan, {"completed": 2, "failed": 1}), as_json)
    assert seen == {"trials": 1, "epochs": 1, **dict.fromkeys(range(TRIALS), 1)}
