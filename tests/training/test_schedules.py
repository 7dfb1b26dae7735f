import math
from typing import Any

import pytest

from contrasweep.tuning.experiment import ScheduleSettings
from contrasweep.tuning.training.optimizers import learning_rate


def _rates(steps_per_epoch: int, epochs: int, base: float = 2.0, **schedule: object) -> list[float]:
    settings = ScheduleSettings.model_validate(schedule)
    return [
        learning_rate(base, step, steps_per_epoch=steps_per_epoch, epochs=epochs, schedule=settings)
        for step in range(steps_per_epoch * epochs)
    ]


def test_half_a_cosine_from_the_base_to_nothing() -> None:
    # Five steps: 2 * (1 + cos(pi * 0, 1/4, 1/2, 3/4, 1)) / 2.
    assert _rates(5, 1) == pytest.approx([2, 1 + math.sqrt(0.5), 1, 1 - math.sqrt(0.5), 0])


def test_the_cosine_ends_at_the_final_fraction() -> None:
    assert _rates(1, 3, final_fraction=0.1) == pytest.approx([2, 1.1, 0.2])


def test_a_linear_ramp_that_moves_from_the_first_step() -> None:
    # 1.5 epochs of two steps are a ramp of three; a cosine takes the other five.
    assert _rates(2, 4, warmup_epochs=1.5, base=3.0) == pytest.approx(
        [1, 2, 3, 3, 3 * (1 + math.cos(math.pi / 4)) / 2, 1.5, 3 * (1 - math.cos(math.pi / 4)) / 2, 0]
    )


def test_a_ramp_longer_than_the_run_never_reaches_its_peak() -> None:
    assert _rates(2, 2, warmup_epochs=10) == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_constant_is_flat_after_its_ramp() -> None:
    assert _rates(2, 3, name="constant", warmup_epochs=1) == pytest.approx([1, 2, 2, 2, 2, 2])


def test_runs_of_one_step_train_at_the_base() -> None:
    assert _rates(1, 1) == [2.0]
    assert _rates(1, 1, warmup_epochs=1) == [2.0]


def test_steps_multiply_at_their_shares_of_the_run() -> None:
    schedule = ScheduleSettings(name="step", milestones=(0.5, 0.75), factor=0.1)
    rates = [learning_rate(2.0, step, steps_per_epoch=2, epochs=4, schedule=schedule) for step in range(8)]
    assert rates == pytest.approx([2.0] * 4 + [0.2] * 2 + [0.02] * 2)


def test_the_smaller_of_cosine_and_ramp_as_released() -> None:
    # CCL-K's scheduler.py over 5 epochs at base 1.5: ramp, ramp, ramp, cosine, cosine; one rate an epoch.
    released = {"name": "cosine-min-ramp", "warmup_epochs": 10}
    rates = _rates(2, 5, base=1.5, **released)
    assert rates[::2] == rates[1::2]
    assert rates[::2] == pytest.approx([0.15, 0.30, 0.45, 0.518237, 0.143237], abs=1e-6)
    # The released command: over 1,000 epochs the cosine takes over from epoch 9 on.
    long = _rates(1, 1000, base=1e-3, **released)
    assert long[:10] == pytest.approx([*(1e-4 * e for e in range(1, 10)), 0.99980e-3], abs=1e-9)
    assert long[500] == pytest.approx(5e-4)
    assert long[-1] == pytest.approx(2.4674e-9, rel=1e-4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "step"}, "needs schedule.milestones"),
        ({"name": "step", "milestones": (0.7, 0.3)}, "must rise"),
        ({"name": "step", "milestones": (1.5,)}, "less than or equal to 1"),
        ({"name": "cosine-min-ramp"}, "needs schedule.warmup_epochs"),
    ],
)
def test_what_a_schedule_needs_is_there(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScheduleSettings(**values)
