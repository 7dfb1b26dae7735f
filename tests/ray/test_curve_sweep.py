"""A sweep by the model of learning curves: who is asked, what is stopped, what is refused."""

from pathlib import Path

import pytest
from in_process import without_ray
from studies import QUICK, TINY

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.search import SearchStudy
from contrasweep.tuning.store import ResultsStore

EPOCHS = 5


def test_trials_are_stopped_where_the_model_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first driver ends early, and the second asks as if there had been one."""
    asked: list[tuple[int, int]] = []

    def odd_ones_stop(study: SearchStudy, number: int, epoch: int, value: float) -> bool:
        asked.append((number, epoch))
        assert 0 <= value <= 1
        return number % 2 == 0 or epoch < 2

    monkeypatch.setattr(SearchStudy, "goes_on", odd_ones_stop)
    plan = plan_sweep(
        "infonce",
        TINY,
        trials=6,
        epochs=EPOCHS,
        sampler="curves",
        scheduler="curves",
        concurrency=1,
        results=tmp_path,
        name="curves",
        values=QUICK,
    )
    assert plan.rungs == (1, 2, 4)

    def stop(progress: object) -> None:
        if len(asked) > 6:
            raise KeyboardInterrupt

    with without_ray(), pytest.raises(KeyboardInterrupt):
        run_sweep(plan, stop)
    with without_ray():
        done = resume_sweep("curves", tmp_path)
    assert done.counts == {"completed": 3, "stopped": 3}
    rows = ResultsStore(tmp_path).trials("curves").to_pylist()
    ends = {row["trial"]: (row["status"], row["epoch"], row["rung"]) for row in rows}
    assert ends == {
        trial: ("stopped", 2, 2) if trial % 2 else ("completed", EPOCHS, None) for trial in range(6)
    }
    assert set(asked) == {
        (trial, epoch) for trial in range(6) for epoch in ((1, 2) if trial % 2 else (1, 2, 4))
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"metric": "accuracy,colour_mse"}, "--scheduler curves takes one metric"),
        ({"asha_metric": "accuracy"}, "--asha-metric accuracy goes with --scheduler asha"),
    ],
)
def test_what_the_model_cannot_do_is_refused(options: dict[str, str], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        plan_sweep("fair-cclk", TINY, scheduler="curves", results=tmp_path, values=QUICK, **options)  # type: ignore[arg-type]
