"""The learning rate as a pure function of the step: nothing to save, nothing to restore."""

import math

from contrasweep.tuning.experiment import ScheduleSettings


def learning_rate(
    base: float, step: int, *, steps_per_epoch: int, epochs: int, schedule: ScheduleSettings
) -> float:
    """Return the rate for global step `step` (from 0) of a run of `epochs` epochs.

    A linear ramp over `warmup_epochs` (the first step already moves), then, for `cosine`, half a cosine from
    `base` to `base * final_fraction` at the last step; for `constant`, `base`; for `step`, `base` times
    `factor` for every milestone that the run has passed.
    """
    warmup = round(schedule.warmup_epochs * steps_per_epoch)
    if step < warmup:
        return base * (step + 1) / warmup
    if schedule.name == "constant":
        return base
    if schedule.name == "step":
        passed = sum(step >= round(share * epochs * steps_per_epoch) for share in schedule.milestones)
        return base * schedule.factor**passed
    remaining = max(1, epochs * steps_per_epoch - 1 - warmup)
    progress = min(1.0, (step - warmup) / remaining)
    low = base * schedule.final_fraction
    return low + (base - low) * 0.5 * (1 + math.cos(math.pi * progress))
