"""`--address ray://...`: the command that was typed runs in that cluster, and nothing of it here."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from tuning.cli.errors import reporting_errors
from tuning.errors import InputError

SCHEME = "ray://"
OPTION = "--address"
WRITTEN = ("output", "figure", "save")


def send(context: typer.Context, address: str | None) -> str | None:
    """Run the command in the cluster of a `ray://` address and exit with its code; return other addresses."""
    if address is not None and address.startswith(SCHEME) and not context.resilient_parsing:
        reporting_errors(_send)(context, address)
    return address


def _send(context: typer.Context, address: str) -> None:
    from tuning.ray.client import run_there

    arguments = sys.argv[1:]
    given = _given(context, arguments[1:])
    check_places(given)
    arguments, files = with_files(without_address(arguments), named_files(given))
    raise typer.Exit(run_there(address, arguments, files, _show))


def check_places(given: Mapping[str, Any]) -> None:
    """Refuse what the cluster's nodes would look for, or write, where they are and not here.

    Raises:
        InputError: a folder is relative to the one that this process is in, or a file is to be written.
    """
    for option, value in given.items():
        if value is None or not (isinstance(value, Path) or option == "results"):
            continue
        if option in WRITTEN:
            raise InputError(
                f"--{option} {value}: with {OPTION} {SCHEME}... the command runs in the cluster, and would "
                f"write it there; give --{option} to the same command here, with --no-run and no {OPTION}"
            )
        if "://" not in str(value) and not Path(value).is_absolute() and value not in named_files(given):
            raise InputError(
                f"--{option.replace('_', '-')} {value}: with {OPTION} {SCHEME}... the command runs in the "
                "cluster, in another folder; give a full path that its nodes see, or s3://"
            )


def named_files(given: Mapping[str, Any]) -> list[Path]:
    """Return the local files that a command reads, in the form that they were named in."""
    named = [value for value in given.values() if isinstance(value, Path)]
    named += [Path(source) for source in given.get("sources") or () if source.endswith((".yaml", ".yml"))]
    return [path for path in named if path.is_file()]


def without_address(arguments: Sequence[str]) -> list[str]:
    """Return the arguments less `--address VALUE`, or `--address=VALUE`."""
    kept, skip = [], False
    for argument in arguments:
        if skip or argument == OPTION:
            skip = not skip
        elif not argument.startswith(f"{OPTION}="):
            kept.append(argument)
    return kept


def with_files(arguments: Sequence[str], files: Sequence[Path]) -> tuple[list[str], list[Path]]:
    """Return the arguments with each of `files` under the name that it has there, and the files."""
    from tuning.ray.client import name_there

    there = {str(file): name_there(place, file) for place, file in enumerate(files)}
    changed = []
    for argument in arguments:
        option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        changed.append(f"{option}{equals}{there.get(value, value)}")
    return changed, list(files)


def _given(context: typer.Context, arguments: Sequence[str]) -> dict[str, Any]:
    parsed = context.command.make_context(context.info_name, list(arguments), resilient_parsing=True)
    return dict(parsed.params)


def _show(stream: str, text: bytes) -> None:
    out = sys.stdout if stream == "stdout" else sys.stderr
    out.buffer.write(text)
    out.buffer.flush()
