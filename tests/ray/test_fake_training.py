"""The benchmarks' training of a fixed length: sweeps take it for a real one."""

from pathlib import Path

from benchmarks.fake_training import DATASET, fake_training
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.ray.sweep import run_sweep
from contrasweep.tuning.store import ResultsStore
from tests.ray.in_process import without_ray


def test_a_sweep_completes_with_training_of_a_fixed_length(tmp_path: Path) -> None:
    plan = plan_sweep(
        "fair-cclk", DATASET, trials=2, epochs=2, concurrency=1, scheduler="none", results=tmp_path, name="a"
    )
    with fake_training(0.0), without_ray():
        result = run_sweep(plan, progress=False)
    assert result.counts == {"completed": 2}
    assert ResultsStore(tmp_path).epochs("a").num_rows == 2 * 3
    assert list(tmp_path.glob("exports/a/*/encoder.safetensors")), "the best trial keeps its encoder"
