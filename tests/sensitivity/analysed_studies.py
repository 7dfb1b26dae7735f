"""Sensitivity pages about studies with a known truth, without a store."""

from collections.abc import Sequence
from typing import Any

from contrasweep.tuning.sensitivity.analyse import Sensitivity
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.page import sensitivity_page
from contrasweep.tuning.sensitivity.sections import PARTS
from contrasweep.tuning.sensitivity.sections.part import Part
from contrasweep.tuning.store import StudyRecord
from tests.sensitivity.synthetic import observed, space_of
from tests.studies import make_record

SPACE = space_of(
    kernel={"choice": ["rbf", "cosine"], "default": "rbf"},
    sigma2={"log": [1.0, 100.0], "default": 10.0, "when": {"kernel": ["rbf"]}},
    lr={"log": [1e-3, 1.0], "default": 0.1},
)


def study(trials: int = 60, name: str = "one", seed: int = 0, dataset: str = "digits") -> Observations:
    return observed(
        SPACE,
        lambda x: x["lr"] + 0.5 * (x["kernel"] == 1),
        trials,
        noise=0.05,
        seed=seed,
        study=name,
        dataset=dataset,
    )


def record(one: Observations) -> StudyRecord:
    return make_record(one.study, method=one.method, dataset=one.dataset, search={"metric": one.metric})


def page_of(found: Sensitivity, parts: Sequence[Part[Any]] = PARTS) -> str:
    records = [record(one.observations) for one in found.studies]
    return sensitivity_page(found, records, "contrasweep sensitivity", parts=parts)
