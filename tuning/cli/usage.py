"""Errors in a command line: what is wrong, in our words, and what the user most likely meant."""

import inspect
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from contrasweep.names import nearest, same_name, unknown
from contrasweep.tuning.cli.rendering import print_error, print_usage

UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])
"""What Typer raises for a wrong command line. Which package defines it depends on Typer's version."""

NUMBERS: Mapping[type, str] = {int: "a whole number", float: "a number"}


OF_ONE: Mapping[str, str] = {
    "methods": "contrasweep spaces",
    "studies": "contrasweep show",
    "datasets": "contrasweep datasets check",
}
"""By the command that lists things: the command that shows one of them."""


class Refused(typer.BadParameter):
    """A command line is refused; Typer shows this and ends the program with exit code 2."""

    def format_message(self) -> str:
        """Return what is wrong, without words of Typer's before it."""
        return self.message

    def show(self, file: object = None) -> None:
        """Print how the command is called, and what is wrong."""
        context: Any = self.ctx
        command, option = context.command_path, context.help_option_names[0]
        print_usage(f"{context.get_usage()}\nTry '{command} {option}' for help.\n")
        print_error(self.message)


class Command(TyperCommand):
    """A command that is refused in our words, and whose usage names its arguments plainly."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left, or raise Refused."""
        given = list(args)
        try:
            left = super().parse_args(ctx, args)
        except UsageError as error:
            raise Refused(_reason(self, error, ctx, given), ctx) from None
        if twice := _given_twice(self, ctx, given):
            raise Refused(f"{_name(twice)} is given twice, and takes one value: {twice.help}", ctx)
        return left

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line: `[OPTIONS]`, and the arguments."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        names = [_name(one) if one.required else f"[{_name(one)}]" for one in arguments]
        return ["[OPTIONS]", *names]


class Group(TyperGroup):
    """Commands; a name that none has is refused with the nearest."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left, or raise Refused."""
        if not args:
            return super().parse_args(ctx, args)
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            raise Refused(_reason(self, error, ctx, given), ctx) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called, or raise Refused with the nearest name."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise Refused(self._unknown(name, ctx), ctx)
        return super().resolve_command(ctx, args)

    def _unknown(self, name: str, ctx: Any) -> str:
        """Say that there is no such command; a group that lists things may be given one of them."""
        known = self.list_commands(ctx)
        one = _of_one(self, name) if nearest(name, known, "command") is None else ""
        return unknown("command", name, known) + one


def _reason(command: Any, error: Any, ctx: Any, given: Sequence[str]) -> str:
    """Say what is wrong with the words `given` to a command, for which Typer raised `error`."""
    if hasattr(error, "possibilities"):
        return _unknown_option(command, error.option_name, given, ctx)
    if hasattr(error, "option_name"):
        found = [one for one in command.params if error.option_name in (*one.opts, *one.secondary_opts)]
        if found:
            takes = "takes no value" if found[0].is_flag else f"needs a value: {found[0].help}"
            return f"{error.option_name} {takes}"
    parameter = getattr(error, "param", None)
    if parameter is not None and hasattr(error, "param_type"):
        return f"{_name(parameter)} is missing: {parameter.help}"
    if parameter is not None and (number := _number(command, parameter)) is not None:
        values, _, _ = command.make_parser(ctx).parse_args(args=list(given))
        return f"{_name(parameter)} must be {number}, given {values[parameter.name]!r}"
    _, extra, _ = command.make_parser(ctx).parse_args(args=list(given))
    return _too_many(command, extra) if extra else str(error.format_message())


def _too_many(command: Any, extra: Sequence[str]) -> str:
    """Say what a command takes, where it is given `extra` words besides."""
    arguments = " and ".join(_name(one) for one in command.params if one.param_type_name == "argument")
    takes = f"takes {arguments} alone" if arguments else "takes no argument"
    return f"unexpected {' '.join(map(repr, extra))}: `{command.name}` {takes}.{_of_one(command, extra[0])}"


def _of_one(command: Any, word: str) -> str:
    """Return the command about one of the things that `command` lists; empty where there is none."""
    shows = OF_ONE.get(command.name)
    return f" For one of them: `{shows} {shlex.quote(word)}`." if shows else ""


def _given_twice(command: Any, ctx: Any, given: Sequence[str]) -> Any:
    """Return the first option that has several values and takes one; None if there is none.

    Typer would take the last one and drop the others.
    """
    _, _, found = command.make_parser(ctx).parse_args(args=list(given))
    single = [one for one in found if one.param_type_name == "option" and not (one.multiple or one.is_flag)]
    return next((one for one in single if single.count(one) > 1), None)


def _name(parameter: Any) -> str:
    """Return what a user calls a parameter: `--option`, `ARGUMENT` or `ARGUMENT...`."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    name = str(parameter.metavar or parameter.name.upper())
    return name if parameter.nargs == 1 or name.endswith("...") else f"{name}..."


def _number(command: Any, parameter: Any) -> str | None:
    """Return which number a parameter takes, in words; None for one that takes another thing."""
    kind = get_type_hints(inspect.unwrap(command.callback)).get(parameter.name)
    return next((NUMBERS[one] for one in (kind, *get_args(kind)) if one in NUMBERS), None)


def _unknown_option(command: Any, option: str, given: Sequence[str], ctx: Any) -> str:
    """Say what may be meant by an option that a command has not: a setting, or another option."""
    options = [one for own in command.params if own.param_type_name == "option" for one in own.opts]
    name, value = option.lstrip("-"), _value_of(option, given)
    plain = {one.lstrip("-"): one for one in options}
    told = f"unknown option {option}."
    sets = "--set" in options
    if sets and (hint := _of_settings(name, value, given)):
        return f"{told} {hint}"
    if option in _options_of_sweep(ctx):
        return f"{told} `contrasweep sweep` has it, and `{command.name}` has none.{_takes(command)}"
    near = nearest(name, plain, "option")
    if near is not None:
        return f"{told} Did you mean {plain[near]}?"
    if sets:
        return f"{told} A setting or hyperparameter is given as --set PATH=VALUE."
    return f"{told} Known: {', '.join(options)}."


def _options_of_sweep(ctx: Any) -> Sequence[str]:
    """Return the options of `sweep`: a newcomer gives them to commands that go on from it."""
    root = ctx.find_root()
    sweep = root.command.get_command(root, "sweep") if hasattr(root.command, "get_command") else None
    return [] if sweep is None else [one for own in sweep.params for one in own.opts]


def _takes(command: Any) -> str:
    """Return what a command takes, if that is another thing than a method."""
    takes = {"train": "the file of an experiment, which names the method and the dataset"}
    return f" `{command.name}` takes {takes[command.name]}." if command.name in takes else ""


def _value_of(option: str, given: Sequence[str]) -> str:
    """Return what was given to an option; `VALUE` where nothing was."""
    for place, word in enumerate(given):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and place + 1 < len(given) and not given[place + 1].startswith("--"):
            return given[place + 1]
    return "VALUE"


def _of_settings(name: str, value: str, given: Sequence[str]) -> str:
    """Return how the setting of that name is given to one of the methods `given`; empty if there is none."""
    from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
    from contrasweep.tuning.planning.spaces import known_settings

    usable = dict(DECLARED_METHODS.items())
    named = [word for word in given if word in usable]
    for method in named or usable:
        found = same_name(name, known_settings(method), "setting")
        if found is not None:
            return f"It is a setting: give `--set {shlex.quote(f'{found}={value}')}`."
    having = [method for method, one in usable.items() if same_name(name, one.hyperparameters)]
    if not having:
        return ""
    return f"It is a hyperparameter of {', '.join(having)}, not of {' or '.join(named)}."
