"""The commands that messages and pages suggest."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

RESULTS: Final = "results"
"""The results folder that commands use where none is given."""


def results_option(results: str) -> str:
    """Return the `--results` option that a suggested command needs; empty for the default folder."""
    return "" if results == RESULTS else f" --results {shlex.quote(results)}"


def best_command(study: str, results: str, file: str = "best.yaml") -> str:
    """Return the command that writes a study's best configuration into a file."""
    return f"contrasweep best {shlex.quote(study)}{results_option(results)} -o {shlex.quote(file)}"


def show_command(study: str, results: str) -> str:
    """Return the command that shows the trials or runs of a study, and why the failed ones did."""
    return f"contrasweep show {shlex.quote(study)}{results_option(results)}"


def resume_command(
    methods: Sequence[str],
    name: str,
    results: str | Path,
    address: str | None = None,
    autoscales: bool = False,
    one_node: bool = False,
) -> str:
    """Return the command that goes on with a study, or with the studies of several methods.

    Args:
        methods: what is searched.
        name: of the study; of several, what their names begin with.
        results: the results folder.
        address: of the cluster on which it ran; None for this machine.
        autoscales: whether the cluster starts nodes for trials that wait.
        one_node: whether the workers of a trial must be on one node.
    """
    words = ["contrasweep", "sweep", *methods, "--name", name]
    after = ["--resume", *([] if address is None else ["--address", address])]
    after += [*["--autoscale"] * autoscales, *["--one-node"] * one_node]
    return f"{shlex.join(words)}{results_option(str(results))} {shlex.join(after)}"


def resume_call(name: str, results: str) -> str:
    """Return the call in Python that goes on with a study."""
    return f"contrasweep.resume_sweep({name!r}{'' if results == RESULTS else f', {results!r}'})"


def resume_hint(method: str, name: str, results: str, state: str) -> str:
    """Return a sentence with the command that goes on with an interrupted study; empty in other states."""
    if state != "interrupted":
        return ""
    return f"Study {name} was interrupted: `{resume_command([method], name, results)}` goes on."
