"""`--address ray://...`: send the typed command to that cluster and run nothing on this machine."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from contrasweep.tuning.cli.command_line import TYPED, command_line
from contrasweep.tuning.cli.errors import reporting_errors
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.results.commands import YAML

OPTION = "--address"
WRITTEN = ("output", "figure", "save")


def send(context: typer.Context, address: str | None) -> str | None:
    """Run the command in the cluster of a `ray://` address and exit with its code; return other addresses."""
    if address is None:
        return None
    from contrasweep.tuning.planning.resources import CLIENT_SCHEME

    if address.startswith(CLIENT_SCHEME) and not context.resilient_parsing:
        reporting_errors(_send)(context, address)
    return address


def _send(context: typer.Context, address: str) -> None:
    from contrasweep.tuning.ray.client import name_there, run_there

    typed = sys.argv[1:]
    given = context.command.make_context(context.info_name, typed[1:], resilient_parsing=True).params
    check_places(given)
    files = named_files(given)
    names = {file: name_there(place, file) for place, file in enumerate(files)}
    arguments = with_files(without_address(typed), names, given)
    environment = {
        TYPED: command_line(),
        "COLUMNS": str(shutil.get_terminal_size().columns),
    }
    raise typer.Exit(run_there(address, arguments, files, environment, _show))


def check_places(given: Mapping[str, Any]) -> None:
    """Refuse options whose folders or files the cluster would look for, or write, on its own machines.

    Raises:
        InputError: a folder is relative to this process's working folder, or a file is to be written.
    """
    from contrasweep.tuning.planning.resources import CLIENT_SCHEME

    files = named_files(given)
    for name, value in given.items():
        if name in WRITTEN and value is not None:
            raise InputError(
                f"--{name} {value}: with {OPTION} {CLIENT_SCHEME}... the command runs in the cluster, and "
                f"would write it there; give --{name} to the same command here, with --no-run and no {OPTION}"
            )
        if value is not None and value not in files and _is_relative_place(name, value):
            raise InputError(
                f"{_flag(name)} {value}: with {OPTION} {CLIENT_SCHEME}... the command runs in the cluster, "
                "in another folder; give a full path that its nodes see, or s3://"
            )


def named_files(given: Mapping[str, Any]) -> list[Path]:
    """Return the local files that a command reads."""
    named = [value for value in given.values() if isinstance(value, Path)]
    named += [Path(source) for source in given.get("sources") or () if source.endswith(YAML)]
    return [path for path in dict.fromkeys(named) if path.is_file()]


def without_address(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without `--address VALUE` or `--address=VALUE`."""
    kept, skip = [], False
    for argument in arguments:
        if skip or argument == OPTION:
            skip = not skip
        elif not argument.startswith(f"{OPTION}="):
            kept.append(argument)
    return kept


def with_files(arguments: Sequence[str], names: Mapping[Path, str], given: Mapping[str, Any]) -> list[str]:
    """Return the arguments with the path in the cluster for each file; the same word elsewhere stays."""
    reads = {_flag(name) for name, value in given.items() if isinstance(value, Path)}
    takes_value = {_flag(name) for name, value in given.items() if not isinstance(value, bool)}
    changed, before = [], ""
    for argument in arguments:
        option, equals, value = (
            argument.partition("=") if argument.startswith("--") else (before, "", argument)
        )
        read = option in reads or (option not in takes_value and value.endswith(YAML))
        name = names.get(Path(value)) if read else None
        changed.append(argument if name is None else f"{option}={name}" if equals else name)
        before = argument
    return changed


def _is_relative_place(name: str, value: Any) -> bool:
    if name == "storage":
        return str(value).startswith("sqlite:///") and not str(value).startswith("sqlite:////")
    if not (isinstance(value, Path) or name == "results"):
        return False
    return "://" not in str(value) and not Path(value).is_absolute()


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _show(stream: str, text: bytes) -> None:
    out = sys.stdout if stream == "stdout" else sys.stderr
    out.buffer.write(text)
    out.buffer.flush()
