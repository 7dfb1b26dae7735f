"""The smallest pool that can be analysed; the command `pool` checks it before numpy is imported."""

from typing import Final

from contrasweep.tuning.errors import InputError

LEAST: Final = 8


def refuse_few(count: int, told: str) -> None:
    """Raise InputError, with `told` as what there is, unless anything is said from so many configurations."""
    if count < LEAST:
        raise InputError(f"{told}, and {LEAST} are needed")
