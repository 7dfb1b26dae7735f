"""The options of an evaluation as they are typed, draws of few images, and the encoders of a study."""

from pathlib import Path

import pytest
import torch

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.store import open_location
from contrasweep.tuning.store.layout import encoder_path
from contrasweep.tuning.transfer.encoders import read_encoders
from contrasweep.tuning.transfer.few_shot import shot_rows
from contrasweep.tuning.transfer.plan import split_datasets, split_shots
from contrasweep.tuning.transfer.sources import encoder_sources, one_encoder
from tests.studies import Run, WrittenStudy, make_final_record, make_record
from tests.transfer.final_encoders import FinalRun


@pytest.mark.parametrize(
    ("text", "datasets"),
    [
        ("digits", ("digits",)),
        ("digits,colour-digits", ("digits", "colour-digits")),
        ("image-folder:path=a/b,size=16,digits", ("image-folder:path=a/b,size=16", "digits")),
        ("digits,digits:images=20,test_images=10", ("digits", "digits:images=20,test_images=10")),
        ("digits:images=20, cifar10", ("digits:images=20", "cifar10")),
    ],
)
def test_a_comma_between_datasets_is_none_between_options(text: str, datasets: tuple[str, ...]) -> None:
    assert split_datasets(text) == datasets


def test_shots_are_numbers_or_all() -> None:
    assert split_shots("1, 5,all") == (1, 5, None)
    with pytest.raises(InputError, match="given '1e3'"):
        split_shots("1e3")


def test_draws_hold_each_class_equally_often_and_grow() -> None:
    labels = torch.arange(10).repeat(30)
    few, more = (shot_rows(labels, 10, shots, "digits", 0) for shots in (2, 5))
    assert labels[few].bincount().tolist() == [2] * 10
    assert set(few.tolist()) < set(more.tolist())
    assert not torch.equal(few, shot_rows(labels, 10, 2, "digits", 1))
    assert torch.equal(few, shot_rows(labels, 10, 2, "digits", 0))


@pytest.fixture
def results(tmp_path: Path, runs: list[FinalRun]) -> str:
    """A results folder with a search, its two final runs, and a run that failed."""
    place = str(tmp_path / "results")
    WrittenStudy(place, make_record("demo"))
    completed = [Run(3, run.seed, final={"test.accuracy": 0.5}, phase="final") for run in runs]
    failed = Run(3, 9, status="failed", phase="final")
    WrittenStudy(place, make_final_record()).write(*completed, failed)
    for run in runs:
        open_location(place).write(encoder_path("demo-final", 3, run.seed), run.file.read_bytes())
    return place


@pytest.mark.parametrize("name", ["demo", "demo-final"])
def test_a_study_stands_for_the_encoders_of_its_final_runs(name: str, results: str) -> None:
    found = read_encoders(encoder_sources([name], results))
    assert [(one.name, one.seed) for one in found] == [("demo-final, trial 3", 1), ("demo-final, trial 3", 2)]
    with pytest.raises(InputError, match="has 2 encoders: give the file of one"):
        one_encoder(name, results)


def test_a_search_without_final_runs_stands_for_the_encoders_it_has_kept(
    results: str, runs: list[FinalRun]
) -> None:
    WrittenStudy(results, make_record("searched")).write(Run(0), Run(1))
    path = encoder_path("searched", 1, 0)
    open_location(results).write(path, runs[0].file.read_bytes())
    assert one_encoder("searched", results).place == path
    assert one_encoder("searched", results).label == "searched, trial 1"


def test_a_study_without_encoders_is_refused(results: str) -> None:
    WrittenStudy(results, make_record("other"))
    with pytest.raises(InputError, match=r"`contrasweep run other --seeds 5 --results .*` trains"):
        encoder_sources(["other"], results)
    with pytest.raises(InputError, match=r"There is no study 'dem' in .* Did you mean 'demo'"):
        encoder_sources(["dem"], results)
    open_location(results).delete(encoder_path("demo-final", 3, 2))
    with pytest.raises(InputError, match="the encoder of trial 3, seed 2 of demo-final is gone"):
        encoder_sources(["demo"], results)
    with pytest.raises(InputError, match=r"encoder gone\.safetensors: there is no such file"):
        encoder_sources(["gone.safetensors"], results)
