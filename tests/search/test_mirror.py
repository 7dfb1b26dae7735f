"""The copy of a search in a database: the same trials, read by the real optuna-dashboard."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from wsgiref.simple_server import WSGIRequestHandler, make_server

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy.exc import OperationalError

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.search import Mirror, PastTrial, SearchStudy, checked_storage
from contrasweep.tuning.search.mirror import open_storage

SPACE = Space.parse(
    {
        "crop": {"uniform": [0.0, 1.0], "default": 0.1},
        "kernel": {"choice": ["rbf", "cosine"], "default": "cosine"},
        "sigma2": {"log": [1.0, 9.0], "default": 2.0, "when": {"kernel": ["rbf"]}},
    }
)
EARLIER = [PastTrial(0, {"crop": 0.5, "kernel": "cosine"}, "completed", {3: 0.8}, 0.9)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'watch.db'}"


def mirrored(url: str, **options: Any) -> SearchStudy:
    return SearchStudy(SPACE, seed=1, mirror=partial(Mirror, url, "watched", ["val.accuracy"]), **options)


def run(study: SearchStudy) -> None:
    for number in range(8):
        study.ask()
        study.report(number, 1, 0.1 * number)
        if number == 6:
            study.fail(number)
        elif number % 2:
            study.prune(number)
        elif number < 6:
            study.complete(number, 0.2 * number)


def assert_same(url: str, study: SearchStudy) -> None:
    copied = optuna.load_study(study_name="watched", storage=url).trials
    held = study.optuna_study.trials
    assert len(copied) == len(held)
    for copy, trial in zip(copied, held, strict=True):
        for part in ("number", "state", "params", "values", "intermediate_values", "distributions"):
            assert getattr(copy, part) == getattr(trial, part), (trial.number, part)


def test_the_copy_holds_the_same_trials(url: str) -> None:
    study = mirrored(url, earlier=EARLIER)
    run(study)
    study.ask()
    assert_same(url, study)
    states = [trial.state for trial in study.trials]
    assert {*states} == {TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING}


def test_a_resumed_search_replaces_its_copy_and_fills_its_gaps(url: str) -> None:
    run(mirrored(url))
    again = mirrored(url)
    again.restore([PastTrial(2, SPACE.defaults(), "completed", {1: 0.4}, 0.5)])
    again.ask()
    again.complete(0, 0.3)
    again.ask()
    assert_same(url, again)


def test_several_values_are_copied(url: str) -> None:
    study = SearchStudy(SPACE, objectives=2, mirror=partial(Mirror, url, "watched", ["a", "b"]))
    study.ask()
    study.report(0, 1, 0.5)
    study.complete(0, [1.0, 2.0])
    assert_same(url, study)


def test_a_database_that_fails_takes_no_search_with_it(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    study = mirrored(url)
    study.ask()

    def locked(*arguments: object) -> None:
        raise OperationalError("UPDATE", {}, Exception("database is locked"))

    monkeypatch.setattr("optuna.storages.RDBStorage.set_trial_state_values", locked)
    assert study.complete(0, 0.5) == TrialState.COMPLETE
    study.ask()
    assert study.complete(1, 0.5) == TrialState.COMPLETE
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "given up, the search goes on" in caplog.text
    assert "database is locked" in caplog.text


def test_a_url_without_a_database_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="allowed: sqlite:///FILE"):
        checked_storage("watch.db", "new")
    with pytest.raises(InputError, match="cannot be opened"):
        checked_storage(f"sqlite:///{tmp_path / 'nowhere' / 'watch.db'}", "new")
    mirrored(url)
    with pytest.raises(InputError, match="holds a study 'watched'"):
        checked_storage(url, "watched")


def test_a_relative_file_is_found_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert checked_storage("sqlite:///watch.db", "new") == f"sqlite:///{tmp_path / 'watch.db'}"


class _Silent(WSGIRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@contextmanager
def dashboard(url: str) -> Iterator[str]:
    """Run the real optuna-dashboard on a free port of this machine."""
    from optuna_dashboard import wsgi

    with make_server("127.0.0.1", 0, wsgi(open_storage(url)), handler_class=_Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.skipif(find_spec("optuna_dashboard") is None, reason="optuna-dashboard is not installed")
def test_the_dashboard_watches_a_search_as_it_runs(url: str) -> None:
    study = mirrored(url)
    run(study)
    with dashboard(url) as address:
        (summary,) = json.load(urlopen(f"{address}/api/studies"))["study_summaries"]
        assert summary["study_name"] == "watched"
        first = json.load(urlopen(f"{address}/api/studies/{summary['study_id']}"))
    assert [trial["state"] for trial in first["trials"]] == [t.state.name.title() for t in study.trials]
    assert first["objective_names"] == ["val.accuracy"]
    study.complete(study.ask().number, 0.5)
    with dashboard(url) as address:  # a new one: it reads its database every ten seconds
        later = json.load(urlopen(f"{address}/api/studies/{summary['study_id']}"))
    assert [trial["state"] for trial in later["trials"]][8:] == ["Complete"]
