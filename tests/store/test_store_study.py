import errno
import json
import math
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from contrasweep.tuning.limits import MOST
from contrasweep.tuning.store import (
    Location,
    ResultsStore,
    StoreError,
    WarmStartRecord,
    check_new_name,
    check_study_name,
    final_name,
    open_location,
    save_study,
    study_names,
)
from contrasweep.tuning.store import study as study_module
from contrasweep.tuning.store.filesystem import StoreRefuses
from contrasweep.tuning.store.study import load_study
from tests.studies import make_final_record

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["a", "fair-cclk@2".replace("@", "_"), "2024", "x.y-final", "A" * 100])
def test_names_that_a_study_can_have(name):
    assert check_study_name(name) == name


@pytest.mark.parametrize("name", ["", "_a", ".a", "-a", "a/b", "a b", "é", "a=b", "A" * 101, "a\n"])
def test_names_that_a_study_cannot_have(name, record):
    with pytest.raises(StoreError, match="study name"):
        check_study_name(name)
    with pytest.raises(ValidationError, match="study name"):
        type(record).model_validate(record.model_dump() | {"name": name})


@pytest.mark.parametrize("name", ["A" * 100, f"{'A' * 94}-final"])
def test_final_runs_of_a_search_of_any_name_have_a_name(location, name):
    final = final_name(check_new_name(name), MOST)
    save_study(location, make_final_record(final, search={"searched": name}))
    assert study_names(location) == [final]
    with pytest.raises(StoreError, match=f"has {len(final)} characters; at most 100 are allowed"):
        check_new_name(final)
    with pytest.raises(StoreError, match="has 128 characters; at most 121 are allowed"):
        check_study_name(f"{'A' * 122}-final")


def test_a_record_comes_back_as_it_was(location, record):
    assert load_study(location, "digits-1") == record
    assert ResultsStore(location).study("digits-1") == record


def test_names_in_a_command_that_are_not_utf8_are_spelled_out(location):
    save_study(location, make_final_record(command="contrasweep run caf\udce9.yaml"))
    assert load_study(location, "demo-final").command == r"contrasweep run caf\xe9.yaml"


def test_a_study_is_not_overwritten_by_accident(location, record):
    changed = record.model_copy(update={"command": "another"})
    with pytest.raises(StoreError, match="'digits-1' exists"):
        save_study(location, changed)
    assert load_study(location, "digits-1").command == record.command
    save_study(location, changed, replace=True)
    assert load_study(location, "digits-1").command == "another"


@pytest.mark.parametrize("has_links", [True, False])
def test_of_two_commands_that_create_a_study_at_the_same_moment_one_succeeds(
    location, record, monkeypatch, has_links
):
    def no_links(*_):
        raise OSError(errno.ENOTSUP, "no links")

    # What a command sees that looked before the other one wrote.
    monkeypatch.setattr(study_module, "study_names", lambda _: [])
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StoreError, match="'digits-1' exists"):
        save_study(location, record.model_copy(update={"command": "another"}))
    assert load_study(location, "digits-1").command == record.command
    save_study(location, record.model_copy(update={"name": "new"}))
    assert sorted(os.listdir(location.path("studies"))) == ["digits-1.json", "new.json"]


def test_a_study_file_that_may_not_be_read_is_named(location, record, monkeypatch):
    def refuse(_, path):
        raise StoreRefuses("no right")

    monkeypatch.setattr(Location, "read", refuse)
    with pytest.raises(StoreError, match=r"The study file .*digits-1\.json cannot be read: no right"):
        load_study(location, "digits-1")


def test_an_unknown_study_is_refused_with_the_nearest(location, record):
    with pytest.raises(StoreError, match=r"no study 'digit-1'.*Did you mean 'digits-1'\?"):
        ResultsStore(location).trials("digit-1")


def test_an_empty_folder_holds_no_studies(tmp_path):
    store = ResultsStore(tmp_path / "nothing")
    assert store.studies() == []
    with pytest.raises(StoreError, match="it holds no studies"):
        store.study("digits-1")


def test_a_damaged_record_is_named_and_the_others_are_listed(location, record, caplog):
    location.write("studies/broken.json", b'{"name": "brok')
    store = ResultsStore(location)
    with pytest.raises(StoreError, match=r"studies/broken\.json is damaged"):
        store.study("broken")
    for _ in range(2):
        assert [study.name for study in store.studies()] == ["digits-1"]
    assert caplog.text.count("Skipped the study broken") == 1


def test_a_record_of_a_later_version_is_refused_by_that_name(location, record):
    fields = json.loads(record.model_dump_json()) | {"schema_version": 2, "new": 1}
    location.write("studies/digits-1.json", json.dumps(fields).encode())
    with pytest.raises(StoreError, match="store version 2; this contrasweep reads up to 1"):
        load_study(location, "digits-1")


def test_heartbeats_are_not_studies(location, record):
    location.write("studies/digits-1.heartbeat", b"{}")
    assert study_names(location) == ["digits-1"]


def _changed(record, path: str, value: object) -> bytes:
    """Return the content of a study file with one field changed; the value DROP removes it."""
    content = where = json.loads(record.model_dump_json())
    *above, key = path.split("/")
    for part in above:
        where = where[part]
    if value is DROP:
        del where[key]
    else:
        where[key] = value
    return json.dumps(content).encode()


DROP = object()
DAMAGES = [
    ("created", "2026-01-02T12:00:00", "created: Input should have timezone info"),
    ("created", 5, "created: Input should be a valid datetime"),
    ("created", "9999-12-31T23:59:59-14:00", "created: .*allowed: a date from 1970 on"),
    ("schema_version", DROP, None),
    ("schema_version", 0, "schema_version: Input should be greater than or equal to 1"),
    ("method", "infonce", "method: given 'infonce'; its experiment says 'fair-cclk'"),
    ("experiment", {"epochs": 2}, r"experiment.method: it is missing"),
    ("experiment/epochs", 0, "experiment.epochs: Input should be greater than or equal to 1, given 0"),
    ("experiment/epoch", 3, "experiment.epoch: there is no such field"),
    ("space/sigma2/log", [1, "x"], "space: the space of study digits-1: sigma2: log: given 'x'"),
    ("space/sigma2/log", [1, 10**400], "space: the space of study digits-1: sigma2: "),
    ("space/optimizer.lx", 0.1, "columns.hyperparameters.optimizer.lx: given nothing; the space says float"),
    ("search/trials", DROP, "search.trials: it is missing"),
    ("search/trials", "4", "search.trials: Input should be a valid integer, given '4'"),
    ("search/trials", 0, "search.trials: Input should be greater than or equal to 1"),
    ("search/cpus", True, "search.cpus: Input should be a valid integer"),
    ("search/gpus", float("inf"), "search.gpus: Input should be a finite number"),
    ("search/data_root", "a\0b", "search.data_root: .*allowed: the path of a folder"),
    ("search/metric", "val.recall", "search.metric: given 'val.recall'; columns.metrics has loss"),
    ("search/metric", "loss,loss", "search.metric: given loss,loss; allowed: each metric once"),
    ("search/rung_metric", "x", "search.rung_metric: given 'x'"),
    ("search/given", {"a": {}}, "search.given.a: allowed: true or false, a number, text"),
    ("search/given", {"a": [[1]]}, "search.given.a: allowed: true or false, a number, text"),
    ("search/given", {"a": 2**63}, "search.given.a: given a whole number of more than 64 bits"),
    ("search", {"metric": "loss"}, "search.trials: it is missing; only final runs, named NAME-final"),
    ("columns/hyperparameters/layers", "float", "columns.hyperparameters.layers: given float; .* says int"),
    ("columns/hyperparameters/x", "float", "columns.hyperparameters.x: given float; the space says nothing"),
    ("columns/metrics", [], "search.metric: given 'val.accuracy'; columns.metrics has none"),
    ("name", "other", "name: given 'other'; allowed: the name of the file"),
    ("versions", {"contrasweep": 1}, "versions.contrasweep: Input should be a valid string"),
    ("host", DROP, "host: it is missing"),
]


@pytest.mark.parametrize(("path", "value", "reason"), DAMAGES)
def test_a_damage_is_told_in_one_line_with_file_and_field(location, record, path, value, reason):
    location.write("studies/digits-1.json", _changed(record, path, value))
    if reason is None:
        assert load_study(location, "digits-1") == record
        return
    with pytest.raises(StoreError, match=rf"studies/digits-1\.json is damaged: {reason}") as told:
        load_study(location, "digits-1")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[]", b"null", b'{"a":' * 10_000, b'{"name": "\\ud800"}']
)
def test_what_is_no_record_is_told_in_one_line(location, record, content):
    location.write("studies/digits-1.json", content)
    with pytest.raises(StoreError, match=r"digits-1\.json is damaged: [^\n]{5,400}$"):
        load_study(location, "digits-1")


def test_the_damage_names_another_version_that_wrote_the_file(location, record):
    content = json.loads(record.model_dump_json())
    content["versions"]["contrasweep"] = "7.0.0"
    content["experiment"]["optimizer"]["warmth"] = 1
    location.write("studies/digits-1.json", json.dumps(content).encode())
    told = r"experiment.optimizer.warmth: there is no such field \(contrasweep 7\.0\.0 wrote it, this is "
    with pytest.raises(StoreError, match=told):
        load_study(location, "digits-1")


def test_a_study_of_an_earlier_version_is_read_with_what_held_then():
    record = load_study(open_location(ROOT / "docs/sensitivity"), "colormnist-100")
    stored = json.loads((ROOT / "docs/sensitivity/studies/colormnist-100.json").read_text())
    assert "workers" not in stored["search"]
    assert "padding" not in stored["experiment"]["views"]
    assert record.require_search().workers == 1
    assert record.experiment.views.padding == 0


def test_a_warm_start_comes_back_with_scores_that_are_no_numbers(location, record):
    trial = {"values": {"layers": 2}, "state": "completed", "epochs": {3: math.nan}, "value": (0.5, None)}
    warm = WarmStartRecord.model_validate({"studies": ("older",), "trials": (trial,)})
    save_study(location, record.with_search(warm_start=warm), replace=True)
    (read,) = load_study(location, "digits-1").require_search().warm_start.trials
    assert math.isnan(read.epochs[3])
    assert (read.values, read.value) == ({"layers": 2}, (0.5, None))
