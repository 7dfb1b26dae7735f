"""Pages of the site about the command line: one for each command, from the help that the program itself has.

`conf.py` writes them when it builds the site; no name, default or sentence on them was typed by hand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer.main import get_command

from contrasweep.tuning.cli import app
from contrasweep.tuning.tables.verdict_text import pipes

_EXAMPLE = "Example: "
_HEAD = """# Commands

Each page is the help of one command: `contrasweep COMMAND --help` prints the same in a terminal.

"""


@dataclass(frozen=True)
class Command:
    """One command of the program.

    Attributes:
        words: what a user types, such as `("contrasweep", "datasets", "check")`.
        help: its help, with lines that begin with `Example: `.
        parameters: its arguments and options, as the command line library describes them.
        context: in which the library describes them.
    """

    words: tuple[str, ...]
    help: str
    parameters: tuple[Any, ...]
    context: Any

    @property
    def page(self) -> str:
        """The name of the command's page, without an ending."""
        return "-".join(self.words[1:])

    @property
    def summary(self) -> str:
        """The first paragraph of the help."""
        return " ".join(self.help.split("\n\n")[0].split())


def commands() -> Iterator[Command]:
    """Return all commands of the program, those of a group after the group itself."""
    root: Any = get_command(app)
    for name, command in root.commands.items():
        yield from _commands(command, ("contrasweep", name))


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[Command]:
    context = command.context_class(command, info_name=" ".join(words))
    yield Command(words, command.help or "", tuple(command.params), context)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*words, name))


def command_pages() -> dict[str, str]:
    """Return the pages as Markdown, by file name; `index` lists them."""
    found = list(commands())
    return {"index.md": _index(found), **{f"{one.page}.md": _page(one) for one in found}}


def _index(found: list[Command]) -> str:
    rows = [[f"[{' '.join(one.words)}]({one.page}.md)", one.summary] for one in found]
    pages = "\n".join(one.page for one in found)
    return f"{_HEAD}{pipes(['command', 'what it does'], rows)}\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def _page(command: Command) -> str:
    paragraphs = [" ".join(part.split()) for part in command.help.split("\n\n")]
    examples = [part.removeprefix(_EXAMPLE) for part in paragraphs if part.startswith(_EXAMPLE)]
    text = [part for part in paragraphs if not part.startswith(_EXAMPLE)]
    usage = " ".join(command.context.command.collect_usage_pieces(command.context))
    blocks = [f"# {' '.join(command.words)}", *text, _code([f"{' '.join(command.words)} {usage}"])]
    if examples:
        blocks += [f"## Example{'s' if examples[1:] else ''}", _code(examples)]
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        if rows := [_row(one, command.context) for one in command.parameters if one.param_type_name == kind]:
            blocks += [f"## {title}", pipes([kind, "meaning"], rows)]
    return "\n\n".join(blocks) + "\n"


def _code(lines: list[str]) -> str:
    return "\n".join(["```console", *(f"$ {line}" for line in lines), "```"])


def _row(parameter: Any, context: Any) -> list[str]:
    names, meaning = parameter.get_help_record(context)
    return [f"`{names}`", meaning]
