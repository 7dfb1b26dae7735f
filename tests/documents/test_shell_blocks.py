"""The commands of the documents exist and take the options that stand there; the cheap ones run."""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from contrasweep.data import parse_dataset
from contrasweep.tuning.cli import app
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.transfer.plan import split_datasets
from tests.documents.blocks import DOCUMENTS, ROOT, Block, blocks_of

AWAY = re.compile(r"Error: dataset '.*' not found|Error: condition=.* is not there")
OTHERS = {"export", "git", "sbatch", "pip", "ray", "tensorboard", "optuna-dashboard", "printf", "echo"}
OTHERS |= {"nvidia-cuda-mps-control", "comm", "cp"}
"""Programs that are not ours; what the documents do with them is not tested here."""
READ = {"methods", "spaces", "metrics", "datasets", "tables", "studies", "clusters", "show", "best"}
"""The cheap commands, which run as they are. A sweep runs as `--dry-run`; the others are only parsed."""
NETWORK = ("--address", "s3://", "hf:")
EARLIER = ("--storage", "--resume", "--warm-start")
NOT_HERE = (*NETWORK, *EARLIER, "--workers", "--gpus-per-worker", "METHOD", "dcl", "class_separation")
"""What begins like this needs more than a test has: a network, cores, GPUs, earlier trials, a plug-in."""


def commands_in(block: Block) -> Iterator[list[str]]:
    """Return the command lines of a shell block as words, without comments, variables and `ray job`."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            del words[0]
        if words:
            yield words[4:] if words[:4] == ["ray", "job", "submit", "--"] else words


ALL = [
    pytest.param(words, id=f"{block.place}-{' '.join(words)[:60]}")
    for document in DOCUMENTS
    for block in blocks_of(document)
    if block.language == ""
    for words in commands_in(block)
]
OURS = [one for one in ALL if one.values[0][0] == "contrasweep"]


@pytest.mark.parametrize("words", ALL)
def test_the_program_exists(words: Any) -> None:
    match words:
        case ["contrasweep", *_]:
            pass
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        case ["python", "-m", module, *_]:
            assert find_spec(module)
        case ["python" | "pytest" | ".venv/bin/pytest", *arguments]:
            assert all((ROOT / file).exists() for file in arguments if "/" in file)
        case [program, *_]:
            assert program in OTHERS


@pytest.mark.parametrize("words", OURS)
def test_a_command_takes_its_options_and_the_cheap_ones_run(words: Any, there: Path) -> None:
    name, parsed = parse(words[1:])
    for method in [*parsed.get("methods", ()), *filter(None, [parsed.get("method")])]:
        assert method in METHODS or method in NOT_HERE
    for dataset in filter(None, split_datasets(parsed.get("data") or "")):
        parse_dataset(dataset)
    if any(word.startswith(NOT_HERE) for word in words):
        return
    if name in READ or name == "sweep":
        dry = ["--dry-run", "--json"] if name == "sweep" else []
        result = CliRunner().invoke(app, [*words[1:], *dry])
        # Names and values are checked before the data, and not all data is here.
        away = result.exit_code == 2 and AWAY.search(result.output)
        assert away or result.exit_code == 0, result.output


def parse(words: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the name of a command, and its arguments and options by name, without running it.

    Raises:
        Exception: of the command line library: no such command or option, or a value of another type.
    """
    command: Any = get_command(app)
    if words[0].startswith("-"):
        assert words[0] in {name for option in command.params for name in option.opts}
        return "", {}
    name = words[0]
    # Reading an address of Ray's client already sends the command there.
    words = [re.sub("^ray://", "", word) for word in words]
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    assert command.name == name or name == "datasets", f"no command {name}"
    return name, dict(command.make_context(name, list(words)).params)


def test_a_command_or_option_that_does_not_exist_is_found() -> None:
    assert parse(["sweep", "infonce", "--trials", "3"])[1]["trials"] == 3
    with pytest.raises(AssertionError, match="no command swep"):
        parse(["swep", "infonce"])
    with pytest.raises(Exception, match="--trails"):
        parse(["sweep", "infonce", "--trails", "3"])
    with pytest.raises(Exception, match=r"a whole number, given .many."):
        parse(["sweep", "infonce", "--trials", "many"])
