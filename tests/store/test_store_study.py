import json

import pytest
from pydantic import ValidationError

from contrasweep.tuning.store import ResultsStore, StoreError, check_study_name, save_study, study_names
from contrasweep.tuning.store.study import load_study


@pytest.mark.parametrize("name", ["a", "fair-cclk@2".replace("@", "_"), "2024", "x.y-final", "A" * 100])
def test_names_that_a_study_can_have(name):
    assert check_study_name(name) == name


@pytest.mark.parametrize("name", ["", "_a", ".a", "-a", "a/b", "a b", "é", "a=b", "A" * 101, "a\n"])
def test_names_that_a_study_cannot_have(name, record):
    with pytest.raises(StoreError, match="study name"):
        check_study_name(name)
    with pytest.raises(ValidationError, match="study name"):
        type(record).model_validate(record.model_dump() | {"name": name})


def test_a_record_comes_back_as_it_was(location, record):
    assert load_study(location, "digits-1") == record
    assert ResultsStore(location).study("digits-1") == record


def test_a_study_is_not_overwritten_by_accident(location, record):
    changed = record.model_copy(update={"command": "another"})
    with pytest.raises(StoreError, match="'digits-1' exists"):
        save_study(location, changed)
    assert load_study(location, "digits-1").command == record.command
    save_study(location, changed, replace=True)
    assert load_study(location, "digits-1").command == "another"


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
    assert [study.name for study in store.studies()] == ["digits-1"]
    assert "broken.json" in caplog.text


def test_a_record_of_a_later_version_is_refused_by_that_name(location, record):
    fields = json.loads(record.model_dump_json()) | {"schema_version": 2, "new": 1}
    location.write("studies/digits-1.json", json.dumps(fields).encode())
    with pytest.raises(StoreError, match="store version 2; this contrasweep reads up to 1"):
        load_study(location, "digits-1")


def test_heartbeats_are_not_studies(location, record):
    location.write("studies/digits-1.heartbeat", b"{}")
    assert study_names(location) == ["digits-1"]
