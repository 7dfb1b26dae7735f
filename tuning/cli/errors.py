"""Exit codes: 0 done, 1 no usable result, 2 wrong input, 70 our own fault, 128 + N after signal N.

An unexpected error is a bug in contrasweep (70), unless it passed through the code of a plug-in: then the
plug-in is at fault, and the exit code is 1.
"""

import errno
import shlex
import signal
import traceback
from bdb import BdbQuit
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import typer
from rich.markup import escape

from contrasweep.plugin_places import plugin_fault, raised_by_plugin
from contrasweep.tuning.cli.command_line import command_line
from contrasweep.tuning.cli.rendering import plain_console, print_error, remark, telling_logs
from contrasweep.tuning.cli.usage import Command
from contrasweep.tuning.errors import (
    InputError,
    NotRepeatable,
    SweepFailed,
    SweepStopped,
    TrainingDiverged,
    WrongReturn,
)
from contrasweep.tuning.ray.signals import Stopped, stopping_on_signals

FAILED, WRONG_INPUT, FAULT, BY_SIGNAL = 1, 2, 70, 128

OF_THE_MACHINE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})
"""Errors of a disk that is full, read-only or broken: nothing that a change of contrasweep would mend."""

P = ParamSpec("P")


def add_command(app: typer.Typer, command: Callable[..., None]) -> None:
    """Add a command, with `reporting_errors`; the list of commands shows the first line of what it does."""
    app.command(cls=Command, short_help=first_line(command))(reporting_errors(command))


def first_line(command: Callable[..., None]) -> str:
    """Return what a command does, for a list of commands: given as it is, the line is wrapped, else cut."""
    return str(command.__doc__).partition("\n")[0]


def reporting_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command: print errors that a user can act on without a traceback, and exit with their code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with stopping_on_signals(), telling_logs():
                command(*args, **kwargs)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise  # Typer exits as they say; without a word, where the reader of our output left, as `head`.
        except BdbQuit:
            raise  # The user has left a debugger that a `breakpoint()` of a plug-in began.
        except BaseException as error:  # the last handler of the program
            if not isinstance(error, Exception | KeyboardInterrupt) and not raised_by_plugin(error):
                raise
            go_on = _how_to_go_on(command.__name__, kwargs, error)
            code = _code_of(error)
            of_plugin = plugin_fault(error) if code == FAULT else None
            code = FAILED if of_plugin else code
            # A terminal that was closed takes no text.
            with suppress(OSError):
                _tell(error, code, go_on, of_plugin)
            raise SystemExit(code) from None

    return run


def _tell(error: BaseException, code: int, go_on: str, of_plugin: str | None) -> None:
    if code > BY_SIGNAL:
        remark(f"Interrupted. {go_on}")
    elif code == FAULT or of_plugin:
        console = plain_console(stderr=True)
        console.print(escape("".join(traceback.format_exception(error))), soft_wrap=True)
        if of_plugin:
            print_error(of_plugin)
        else:
            console.print("[bold red]This is a fault of contrasweep.[/] Please report the lines above.")
    else:
        print_error(f"{error}. {go_on}" if go_on else str(error))


def _how_to_go_on(command: str, options: Mapping[str, Any], error: BaseException) -> str:
    """Return a sentence with the command that goes on; empty if nothing was begun, or none goes on."""
    # A folder in place of a file is an OSError too, but to be put right first.
    if isinstance(error, InputError) or not isinstance(error, KeyboardInterrupt | SweepStopped | OSError):
        return ""
    if command in ("run", "table"):
        return f"What was finished is in the store; `{command_line()}` goes on."
    if command == "train":
        return _how_training_goes_on(options.get("experiment"), options.get("checkpoint"))
    notes: list[str] = getattr(error, "__notes__", [])
    # The last note is of the outermost work: of all studies, where several are searched.
    return notes[-1] if notes else ""


def _how_training_goes_on(experiment: Path | None, checkpoint: Path | None) -> str:
    if checkpoint is None:
        kept = shlex.quote(f"{'run' if experiment is None else experiment.stem}.pt")
        with_it = f"`{command_line()} --checkpoint {kept}`"
        return f"Nothing was kept; with --checkpoint FILE, the same command goes on: {with_it}."
    if not Path(checkpoint).exists():
        return f"Nothing was kept yet; `{command_line()}` begins again."
    return f"`{command_line()}` goes on."


def _code_of(error: BaseException) -> int:
    """Return the exit code of an error."""
    if isinstance(error, KeyboardInterrupt):
        return BY_SIGNAL + (error.number if isinstance(error, Stopped) else signal.SIGINT)
    if isinstance(error, SweepFailed | TrainingDiverged | WrongReturn | NotRepeatable):
        return FAILED
    if isinstance(error, InputError):
        return WRONG_INPUT
    # Imported here because a mistyped name needs neither; the store imports pyarrow.
    from contrasweep.data.cache import CacheUnusable
    from contrasweep.data.root import DatasetMissing
    from contrasweep.plugins import PluginError
    from contrasweep.search_spaces import SpaceError

    if isinstance(error, PluginError | SpaceError | DatasetMissing):
        return WRONG_INPUT
    from contrasweep.tuning.store import StoreUnavailable, TrialOvertaken

    if isinstance(error, StoreUnavailable | TrialOvertaken | CacheUnusable):
        return FAILED
    return FAILED if isinstance(error, OSError) and error.errno in OF_THE_MACHINE else FAULT
