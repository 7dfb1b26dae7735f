"""A command line that no command takes is refused in our words; usage lines; lines on a terminal."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.columns import wrapped

GROUP: Any = typer.main.get_group(app)
SWEEP = ("sweep", "infonce")


def _commands(group: Any = GROUP, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        yield from _commands(command, (*path, name)) if hasattr(command, "commands") else ()


COMMANDS = dict(_commands())


def _refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2, result.output
    assert not result.stdout
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*SWEEP, "--lr", "0.1"], "unknown option --lr. It is a setting: give `--set optimizer.lr=0.1`."),
        ([*SWEEP, "--batch-size=64"], "give `--set batch_size=64`."),
        ([*SWEEP, "--temperature", "0.5"], "give `--set temperature=0.5`."),
        (["sweep", "eps-supcon", "--epsilon", "0.1"], "give `--set epsilon=0.1`."),
        ([*SWEEP, "--epsilon", "0.1"], "It is a hyperparameter of eps-infonce, eps-supcon,"),
        ([*SWEEP, "--learning-rate", "-1"], "give `--set optimizer.lr=-1`."),
        ([*SWEEP, "--min-crop", "--dry-run"], "give `--set views.min_crop=VALUE`."),
        ([*SWEEP, "--mean", "[0.5, 0.5]"], "give `--set 'encoder.mean=[0.5, 0.5]'`."),
        (["train", "a.yaml", "--epsilon", "0.1"], "give `--set epsilon=0.1`."),
        (
            [*SWEEP, "--gpus-per-trial", "0.1"],
            "unknown option --gpus-per-trial. Did you mean --gpus-per-worker?",
        ),
        ([*SWEEP, "--trails", "3"], "unknown option --trails. Did you mean --trials?"),
        (
            [*SWEEP, "--qqq"],
            "unknown option --qqq. A setting or hyperparameter is given as --set PATH=VALUE.",
        ),
        (["run", "study", "--lr", "3"], "unknown option --lr. Known: --seeds, --epochs, --top,"),
        (
            ["train", "my-loss", "--data", "digits"],
            "unknown option --data. `contrasweep sweep` has it, and `train` has none. `train` takes the "
            "file of an experiment",
        ),
        (
            ["run", "study", "--dry-run"],
            "unknown option --dry-run. `contrasweep sweep` has it, and `run` has none.",
        ),
        (
            ["embed", "a.safetensors", "photos"],
            "--output is missing: Parquet file to write, such as features.",
        ),
        (["--versoin"], "unknown option --versoin. Did you mean --version?"),
        (["sweeep"], "unknown command 'sweeep'. Did you mean 'sweep'? There are"),
        (["datasets", "chekc"], "unknown command 'chekc'. Did you mean 'check'?"),
        ([*SWEEP, "--trials", "four"], "--trials must be a whole number, given 'four'"),
        ([*SWEEP, "--trial-timeout", "1h"], "--trial-timeout must be a number, given '1h'"),
        ([*SWEEP, "--trials"], "--trials needs a value: Configurations to try"),
        ([*SWEEP, "--resume=yes"], "--resume takes no value"),
        (
            ["sweep", "--data", "digits"],
            "METHOD... is missing: the methods to search; `contrasweep methods` lists",
        ),
        ([*SWEEP, "--extend", "0", "--name", "x"], "extend must be at least 1, given 0"),
        (["show", "study", "--top", "0"], "top must be at least 1, given 0"),
        (["best", "study", "other"], "unexpected 'other': `best` takes STUDY alone."),
        (
            ["methods", "fair-cclk"],
            "unexpected 'fair-cclk': `methods` takes no argument. "
            "For one of them: `contrasweep spaces fair-cclk`.",
        ),
        (
            ["datasets", "digits"],
            "unknown command 'digits'. Known: check. For one of them: `contrasweep datasets check digits`.",
        ),
        (["help"], "unknown command 'help'. It is not offered. There are"),
        ([*SWEEP, "--num-samples", "9"], "unknown option --num-samples. Did you mean --trials?"),
        ([*SWEEP, "--n-jobs", "2"], "unknown option --n-jobs. Did you mean --concurrency?"),
        ([*SWEEP, "--config", "a"], "unknown option --config. Did you mean --set?"),
        ([*SWEEP, "--quiet"], "unknown option --quiet. A setting or hyperparameter is given as"),
        ([*SWEEP, "--no-preset"], "unknown option --no-preset. Did you mean --preset?"),
        ([*SWEEP, "--metric", "accuracy", "--metric=loss"], "--metric is given twice, and takes one value"),
        ([*SWEEP, "--name", "a", "--trials", "3", "--name", "a"], "--name is given twice"),
        (["best", "a", "-o", "a.yaml", "--output", "b.yaml"], "--output is given twice"),
    ],
)
def test_what_is_wrong_and_what_is_meant(arguments: list[str], told: str) -> None:
    assert told in _refused(*arguments)


def test_the_usage_comes_before_the_error() -> None:
    lines = CliRunner().invoke(app, [*SWEEP, "--nonsense"]).stderr.splitlines()
    assert lines[0].endswith(" sweep [OPTIONS] [METHOD...]")
    assert lines[1].startswith("Try '")
    assert lines[-1].startswith("Error: unknown option --nonsense.")


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_number_that_is_none_is_refused_in_our_words(path: tuple[str, ...]) -> None:
    callback = COMMANDS[path].callback
    for parameter in COMMANDS[path].params:
        hint = callback.__annotations__.get(parameter.name)
        kinds = {*get_args(hint), *(inner for one in get_args(hint) for inner in get_args(one))} & {
            int,
            float,
        }
        if kinds:
            number = "a whole number" if kinds == {int} else "a number"
            option = max(parameter.opts, key=len)
            assert _refused(*path, option, "four") == f"Error: {option} must be {number}, given 'four'"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_usage_names_arguments_plainly(path: tuple[str, ...]) -> None:
    usage = re.sub(r"\s+", " ", CliRunner().invoke(app, [*path, "--help"]).stdout.partition("\n\n")[0])
    usage = usage.partition("[OPTIONS]")[2]
    assert re.fullmatch(r"( COMMAND \[ARGS\]\.\.\.| \[?[A-Z][A-Za-z.|]*\]?)*", usage), usage


def test_a_terminal_gets_lines_that_end_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*SWEEP, "--data", "digits", "--set", "encoder.name=nowhere"]
    whole = _refused(*words)
    assert len(whole) > 200
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    shown = CliRunner().invoke(app, words).stderr
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert " ".join(lines) == whole
    assert max(map(len, lines)) <= 60


def test_what_one_copies_stays_whole() -> None:
    command = "`contrasweep show my-study --results /a/long/path/to/results`"
    assert wrapped(f"Some failed: {command} says why.", 30) == ["Some failed:", command, "says why."]
    assert wrapped("a ` b c", 3) == ["a `", "b c"]


def test_text_is_printed_as_it_is() -> None:
    """A path with `:100:` or `:a:` is no picture."""
    assert "res:100:a" in CliRunner().invoke(app, ["studies", "--results", "res:100:a"]).output
