"""Settings that are lists go through a plan, its record and a resumed study."""

from typing import Any

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import plan_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference
from contrasweep.tuning.store import StudyRecord


def test_a_setting_may_be_a_list() -> None:
    values: Any = {"encoder.mean": [0.5], "encoder.std": [0.25]}
    plan = plan_sweep("infonce", "digits", values=values)
    stored = StudyRecord.model_validate_json(plan.record().model_dump_json())
    assert plan_of(stored, "results").search.given == {"encoder.mean": (0.5,), "encoder.std": (0.25,)}
    assert stored.experiment.encoder.mean == (0.5,)
    refuse_difference(plan, stored, Expected(values=values))
    other: Any = {"encoder.mean": [0.4]}
    with pytest.raises(InputError, match=r"encoder\.mean was \(0\.5,\), is \[0\.4\]"):
        refuse_difference(plan, stored, Expected(values=other))
