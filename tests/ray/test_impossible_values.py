"""Values that each are allowed, and do not go together: a search leaves them out, a grid goes past them."""

from pathlib import Path
from typing import Any

import pytest
from in_process import without_ray

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.store import ResultsStore

CROPS = Space.parse(
    {
        "views.min_crop": {"uniform": [0.1, 0.9], "default": 0.2},
        "views.max_crop": {"uniform": [0.3, 1.0], "default": 1.0},
    },
    "crops.yaml",
)
LEVELS = Space.parse(
    {
        "views.min_crop": {"choice": [0.2, 0.8], "default": 0.2},
        "views.max_crop": {"choice": [0.5, 1.0], "default": 1.0},
    },
    "levels.yaml",
)


def plan(results: Path, space: Space, **more: Any) -> SweepPlan:
    return plan_sweep(
        "infonce",
        "digits:images=100,test_images=50",
        epochs=1,
        space=space,
        values={"probes.max_steps": 5, "batch_size": 32},
        scheduler="none",
        results=results,
        name="crops",
        **more,
    )


def test_a_search_proposes_none(tmp_path: Path) -> None:
    proposed = plan(tmp_path, CROPS, sampler="random", trials=40).new_study()
    for _ in range(40):
        values = proposed.ask().values
        assert values["views.min_crop"] <= values["views.max_crop"]


def test_a_grid_records_one_as_failed_and_goes_on(tmp_path: Path) -> None:
    with without_ray():
        result = run_sweep(plan(tmp_path, LEVELS, sampler="grid", seeds=2), False)
        assert result.counts == {"completed": 3, "failed": 1}
        again = resume_sweep("crops", tmp_path, progress=False)
    assert again.counts == {"completed": 3, "failed": 1}
    rows = ResultsStore(tmp_path).trials("crops").to_pylist()
    (first, second) = [row for row in rows if row["status"] == "failed"]
    assert first["error"] == "its values do not go together: views.min_crop 0.8 is above views.max_crop 0.5"
    assert (first["hp.views.min_crop"], first["hp.views.max_crop"]) == (0.8, 0.5)
    assert {first["seed"], second["seed"]} == {0, 1}


def test_one_that_is_to_run_first_is_refused_before_any_work(tmp_path: Path) -> None:
    first = [{"views.min_crop": 0.5}, {"views.min_crop": 0.5, "views.max_crop": 0.4}]
    with pytest.raises(InputError, match=r"configuration 2 of --enqueue: views\.min_crop 0\.5 is above"):
        plan(tmp_path, CROPS, enqueue=first, trials=4)


def test_what_no_trial_could_do_ends_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = plan(tmp_path, CROPS, trials=2)

    def refuse(*_: Any) -> None:
        raise InputError("the files of the dataset are gone")

    monkeypatch.setattr("contrasweep.tuning.planning.resolve.check_experiment", refuse)
    with without_ray(), pytest.raises(InputError, match="files of the dataset are gone"):
        run_sweep(asked, False)
