"""Every command with options that make no sense, read from the program itself: new options are included."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from contrasweep.tuning.cli import app
from tests.fuzz.harness import fuzz, random_of

CASES = 8
"""The cases of each command."""

JUNK = (
    *(
        "",
        " ",
        "-",
        "--",
        "-1",
        "0",
        "1",
        "3",
        "0.5",
        "-0.0",
        "1e400",
        "-1e-400",
        "nan",
        "inf",
        "-inf",
        "1_000",
    ),
    *(
        "9" * 30,
        "9" * 5000,
        str(2**63),
        str(-(2**63)),
        "0x10",
        "٣",
        "½",
        "1,2",
        "true",
        "null",
        "None",
        "~",
        "*",
    ),
    *(
        "a/b",
        "../x",
        "/",
        ".",
        "..",
        "/dev/null",
        "/dev/zero",
        "/proc/self/mem",
        "nowhere.yaml",
        "nowhere.csv",
    ),
    *(
        "ünï✓",
        "\u202eabc",
        "\x1b[31mred",
        "a\nb",
        "a\tb",
        "\udcff",
        "\ufeff",
        "[bold]x[/]",
        "[/]",
        "\\",
        "%s%n",
    ),
    *(
        "{",
        "{0}",
        "[1]",
        "'",
        '"',
        "a=b",
        "a,b",
        "a,a",
        "=",
        ",",
        "$(id)",
        "`id`",
        "x" * 300,
        "x" * 300 + ".yaml",
    ),
)
"""Values for any option: numbers, texts and paths, few of which are allowed anywhere."""

PLAUSIBLE = {
    "methods": ("fair-cclk", "infonce", "herocon", "idfd"),
    "method": ("fair-cclk", "infonce", "herocon"),
    "dataset": ("ut-zappos50k", "colour-digits", "rows.csv", "pipe.csv"),
    "studies": ("study", "study-final"),
    "study": ("study", "study-final"),
    "sources": ("study", "empty.yaml", "list.yaml", "pipe.yaml"),
    "experiment": ("empty.yaml", "list.yaml", "pipe.yaml", "folder"),
    "claims": ("empty.yaml", "list.yaml", "pipe.yaml"),
    "runs": ("rows.csv", "pipe.csv", "folder.parquet"),
    "table": ("cclk-t3", "cacr-fig3"),
    "name": (
        "study",
        "colour-digits:x=1",
        "image-folder:path=folder,size=8",
        "image-folder:path=folder",
        "digits",
    ),
    "data": ("colour-digits", "digits", "two-view-digits", "image-folder:path=folder,size=8", "digits:rho=1"),
    "space": ("empty.yaml", "list.yaml", "pipe.yaml", "folder"),
    "set_": (
        "lam=1",
        "lam=x",
        "epochs=9",
        "seed=-1",
        "optimizer.lr=.inf",
        "kernel=rbf",
        "views=1",
        "batch_size=7",
    ),
    "sampler": ("tpe", "gp", "cmaes", "random", "grid"),
    "scheduler": ("asha", "none"),
    "metric": ("val.accuracy", "val.accuracy,val.colour_mse", "val.accuracy,val.accuracy"),
    "results": ("results", "rows.csv", "folder", "file:///nowhere", "gopher://x"),
    "scale": ("paper", "quick", "released"),
    "format_": ("markdown", "latex", "csv"),
    "column": ("cifar10", "colormnist"),
    "where": ("val.accuracy>=0", "val.accuracy>", "accuracy"),
    "device": ("cpu", "cuda", "auto"),
    "storage": ("sqlite:///x.db", "sqlite://", "mysql://x"),
    "trials": ("2", "1000001"),
    "epochs": ("1", "1000001"),
}
"""Values by the name of a parameter that reach further into a command."""

NEVER = {"address": ("auto", "1", "3"), "results": ("s3://x",)}
"""Values by the name of a parameter that would reach for the network."""

NEVER_WAITS = {"sweep": ["--dry-run"] * 2, "table": ["--dry-run"] * 2}
"""Options that come last, so that a valid case ends without training; twice, as an option may take the first
for its value."""


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command of the program: its words and its parameters."""
    yield words, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*words, name))


COMMANDS = {
    " ".join(words): (words, command) for words, command in commands(typer.main.get_command(app)) if words
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files that commands can be given."""
    place = tmp_path_factory.mktemp("commands")
    (place / "empty.yaml").write_text("")
    (place / "list.yaml").write_text("[1, 2]")
    (place / "rows.csv").write_text("path,class,a\nx,1,0\n")
    os.mkfifo(place / "pipe.yaml")
    os.mkfifo(place / "pipe.csv")
    (place / "folder" / "train" / "cat").mkdir(parents=True)
    (place / "folder.parquet").mkdir()
    return place


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Stay in the folder; whatever would train or look for a cluster is a failure."""

    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("a case began to train")

    monkeypatch.chdir(folder)
    monkeypatch.setenv("CONTRASWEEP_DATA", str(folder / "data"))
    # Two tables, because listing all of them takes seconds.
    monkeypatch.setattr("contrasweep.search_spaces.tables.available_tables", lambda: ("cclk-t3", "cacr-fig3"))
    monkeypatch.setattr("contrasweep.tuning.ray.cluster.start_ray", started)
    monkeypatch.setattr("contrasweep.tuning.ray.one_run.pretrain", started)


def value_of(parameter: Any, draw: random.Random) -> str:
    """Return a value for a parameter."""
    pool = JUNK if draw.random() < 0.5 else PLAUSIBLE.get(parameter.name, JUNK)
    return draw.choice([value for value in pool if value not in NEVER.get(parameter.name, ())])


def arguments(words: tuple[str, ...], command: Any, draw: random.Random) -> list[str]:
    """Return a command line: mostly its arguments, and a few options, some twice or without a value."""
    given: list[str] = []
    options = [one for one in command.params if one.opts[0].startswith("-") and one.name != "help"]
    for one in draw.sample(options, min(len(options), draw.choice([0, 1, 1, 2, 3, 5]))):
        for _ in range(draw.choice([1, 1, 1, 2])):
            given.append(draw.choice([*one.opts, *one.secondary_opts]))
            if not one.is_flag and draw.random() < 0.95:
                given.append(value_of(one, draw))
    for one in command.params:
        if not one.opts[0].startswith("-") and draw.random() < 0.9:
            given += [value_of(one, draw) for _ in range(draw.choice([1, 1, 2]) if one.nargs == -1 else 1)]
    if draw.random() < 0.1:
        given.append(draw.choice(["--nonsense", "--", "-z", *JUNK]))
    return [*words, *given, *NEVER_WAITS.get(words[0], [])]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(name: str, times: int) -> None:
    words, command = COMMANDS[name]
    for case in range(CASES * times):
        fuzz(*arguments(words, command, random_of(name, case)), case=f"{name} {case}")
