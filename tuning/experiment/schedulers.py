"""The names of schedulers, and which rules for stopping a trial each contains."""

from typing import Final, Literal, get_args

from contrasweep.tuning.errors import unknown_name

Scheduler = Literal["asha", "curves", "asha+curves", "none"]
SCHEDULERS: Final[tuple[Scheduler, ...]] = get_args(Scheduler)
USUAL_SCHEDULER: Final = "asha"


def check_scheduler(name: str) -> Scheduler:
    """Return the scheduler of a name.

    Raises:
        InputError: there is none; the message gives the nearest name.
    """
    found = next((one for one in SCHEDULERS if one == name), None)
    if found is None:
        raise unknown_name("scheduler", name, SCHEDULERS)
    return found


def stops_by_rank(scheduler: Scheduler) -> bool:
    """Whether a scheduler stops trials that rank low after some epochs, as ASHA does."""
    return scheduler in ("asha", "asha+curves")


def stops_by_curves(scheduler: Scheduler) -> bool:
    """Whether a scheduler stops trials that a new one is expected to beat, by the model of curves."""
    return scheduler in ("curves", "asha+curves")
