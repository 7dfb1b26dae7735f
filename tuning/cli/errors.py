"""Exit codes: 0 done, 1 no usable result, 2 wrong input, 130 interrupted."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from rich.console import Console
from rich.markup import escape

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130

GO_ON = {
    "sweep": "What was finished is in the store; the same command with --name STUDY --resume goes on, "
    "without --extend.",
    "run": "What was finished is in the store; the same command goes on.",
    "table": "What was finished is in the store; the same command goes on.",
    "train": "With --checkpoint, the same command goes on.",
}

P = ParamSpec("P")


def reporting_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command: print errors that a user can act on without a traceback, and exit with their code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        console = Console(stderr=True, highlight=False)
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            console.print(f"Interrupted. {GO_ON.get(command.__name__, '')}")
            raise SystemExit(INTERRUPTED) from None
        except Exception as error:
            code = _code_of(error)
            if code is None:
                raise
            console.print(f"[bold red]Error:[/] {escape(str(error))}", soft_wrap=True)
            raise SystemExit(code) from None

    return run


def _code_of(error: Exception) -> int | None:
    """Return the exit code of an error that a user can act on; None for a fault of the program."""
    # Imported here because they import torch, which `contrasweep --help` does not need.
    from contrasweep.data import DatasetMissing
    from contrasweep.plugins import PluginError
    from contrasweep.search_spaces import SpaceError
    from contrasweep.tuning.errors import InputError, SweepFailed, TrainingDiverged
    from contrasweep.tuning.store import StoreError, StoreUnavailable, TrialOvertaken

    if isinstance(error, SweepFailed | TrainingDiverged | StoreUnavailable | TrialOvertaken):
        return FAILED
    if isinstance(error, InputError | PluginError | SpaceError | StoreError | DatasetMissing):
        return WRONG_INPUT
    return None
