"""The commands that messages and pages suggest."""

import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from contrasweep.search_spaces import Space
    from contrasweep.tuning.store import StudyRecord

RESULTS: Final = "results"
"""The results folder that commands use where none is given."""

RESULTS_VARIABLE: Final = "CONTRASWEEP_RESULTS"
"""The variable that names another one for all commands of a shell."""

YAML: Final = (".yaml", ".yml")
"""How the name of a file ends that may be given in place of a study."""

_OTHERWISE_CALLED: Final[Mapping[str, str]] = {
    "given": "--set",
    "cpus": "--cpus-per-trial",
    "gpus": "--gpus-per-worker",
}
"""The options that are not called like their fields of a search."""

FINAL_SEEDS: Final = 5
"""How many fresh seeds final runs take by default, and a suggested command asks for."""

RESUMABLE: Final = "The same search goes on with --resume (its command without --preset and --enqueue)"
"""What is said where a study of the name exists."""

NOT_WRITTEN: Final[Mapping[str, str]] = {
    "rung_metric": "follows from the metric",
    "not_begun": "the trials that began are written",
    "mode": "has one value",
    "enqueued": "a file holds them: a study that has some has no command",
    "stop_from": "an extension sets it",
    "data_root": "a path of the machine where the study ran",
    "validation_images": "follows from the dataset",
}
"""The fields of a search that `sweep_command` does not write, and why."""

_ALWAYS: Final = ("trials", "metric", "sampler", "scheduler", "seeds", "concurrency", "keep_weights")
"""The fields that are written whatever they are: without them a command takes what is usual elsewhere."""


def option_of(field: str) -> str:
    """Return the option of `contrasweep sweep` for a field of a search."""
    return _OTHERWISE_CALLED.get(field, f"--{field.replace('_', '-')}")


def sweep_command(record: "StudyRecord", own: "Space") -> str | None:
    """Return the command that starts the same sweep; None if it had a space or configurations of its own.

    Args:
        record: the study.
        own: the space that the command would search without a file, with the given settings pinned.
    """
    search = record.require_search()
    if search.enqueued or own.difference(record.space):
        return None
    usual = type(search)(trials=search.trials, metric=search.metric, asha_metric=search.metrics[0])
    words = ["sweep", record.method, "--data", record.dataset]
    for name in (one for one in type(search).model_fields if one not in NOT_WRITTEN):
        value = getattr(search, name)
        if name in _ALWAYS or value not in (None, getattr(usual, name)):
            words += _option(name, value)
    return _command(*words)


def _option(name: str, value: Any) -> Iterator[str]:
    """Yield the words that give a field of a search its value."""
    option = option_of(name)
    match name:
        case "given":
            for path, setting in value.items():
                text = _yaml(setting)
                yield from ("--epochs", text) if path == "epochs" else (option, f"{path}={text}")
        case "keep":
            for one in value:
                yield from (option, str(one).replace(" ", ""))
        case "warm_start":
            yield from (option, ",".join(value.studies))
        case "budget":
            yield from (option, f"{value:f}".rstrip("0").rstrip(".") + "s")
        case _:
            yield from (option, str(value))


def _yaml(value: Any) -> str:
    plain = list(value) if isinstance(value, tuple) else value
    # YAML ends a single value with three dots on a line of their own.
    text: str = yaml.safe_dump(plain, default_flow_style=True, width=math.inf).partition("\n...")[0]
    return text.strip()


def results_folder(given: str | Path | None) -> str | Path:
    """Return the results folder of a function: the given one, else that of the commands of this shell."""
    return given or os.environ.get(RESULTS_VARIABLE) or RESULTS


def results_option(results: str) -> str:
    """Return the `--results` option that a suggested command needs; empty for the default folder."""
    usual = results == RESULTS and RESULTS_VARIABLE not in os.environ
    return "" if usual else f" --results {shlex.quote(results)}"


def _command(*words: str, results: str | Path | None = None, after: Sequence[str] = ()) -> str:
    """Return a command line; `after` stands behind the results folder, where the command takes one."""
    where = "" if results is None else results_option(str(results))
    return " ".join(filter(None, [shlex.join(["contrasweep", *words]) + where, shlex.join(after)]))


def best_command(study: str, results: str, file: str = "best.yaml") -> str:
    """Return the command that writes a study's best configuration into a file."""
    return _command("best", study, results=results, after=["-o", file])


def show_command(study: str, results: str) -> str:
    """Return the command that shows the trials or runs of a study, and why the failed ones did."""
    return _command("show", study, results=results)


def studies_command(results: str) -> str:
    """Return the command that lists the studies of a results folder."""
    return _command("studies", results=results)


def report_command(study: str, results: str, watch: int | None = None) -> str:
    """Return the command that writes a study's report, anew every `watch` seconds."""
    after = [] if watch is None else ["--watch", str(watch)]
    return _command("report", study, results=results, after=after)


def sensitivity_command(study: str, results: str) -> str:
    """Return the command that tells which of a study's hyperparameters matter."""
    return _command("sensitivity", study, results=results)


def compact_command(study: str, results: str) -> str:
    """Return the command that merges a study's files."""
    return _command("compact", study, results=results)


def delete_command(study: str, results: str) -> str:
    """Return the command that removes a study."""
    return _command("delete", study, results=results)


def final_runs_command(selected: Sequence[str], results: str | None, epochs: int | None = None) -> str:
    """Return the command that trains configurations on fresh seeds.

    Args:
        selected: names of studies, for the best trial of each, or files of configurations.
        results: the results folder; None where the reader may have another one.
        epochs: how long each run trains; None for as long as in the search.
    """
    longer = [] if epochs is None else ["--epochs", str(epochs)]
    return _command("run", *selected, "--seeds", str(FINAL_SEEDS), *longer, results=results)


def search_command(method: str) -> str:
    """Return the command that searches a method."""
    return _command("sweep", method)


def spaces_command(method: str) -> str:
    """Return the command that shows the search space of a method."""
    return _command("spaces", method)


def train_command(file: Path) -> str:
    """Return the command that trains the experiment of a file."""
    return _command("train", str(file))


def verify_command(claims: str | Path, runs: str | Path) -> str:
    """Return the command that judges the claims of a file by the runs of another."""
    return _command("verify", str(claims), str(runs))


def table_command(table: str, scale: str, tuned: bool, trials: int | None, seeds: int | None) -> str:
    """Return the command that runs a table of a paper; None leaves out `--trials` or `--seeds`."""
    words = [] if scale == "paper" else ["--scale", scale]
    words += ["--tune"] * tuned
    words += [] if trials is None else ["--trials", str(trials)]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    return _command("table", table, *words)


def pool_command(
    method: str,
    dataset: str,
    name: str,
    file: Path,
    trials: int,
    settings: Sequence[str] = (),
    data_root: Path | None = None,
) -> str:
    """Return the command that runs the configurations of a file, in a form that `stability` reads.

    Args:
        method: what they are configurations of.
        dataset: its name and options.
        name: of the study.
        file: it holds the configurations.
        trials: how many run, the defaults among them.
        settings: what is fixed, each as `PATH=VALUE`.
        data_root: the folder of the datasets, if it is not the usual one.
    """
    words = ["--data", dataset, "--trials", str(trials), "--enqueue", str(file)]
    words += ["--sampler", "random", "--scheduler", "none"]
    words += [word for one in settings for word in ("--set", one)]
    words += [] if data_root is None else ["--data-root", str(data_root)]
    return _command("sweep", method, *words, "--keep-weights", "0", "--name", name)


def stability_command(studies: Sequence[str]) -> str:
    """Return the command that tells how many trials claims about the methods of some studies need."""
    return _command("stability", *studies)


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
    after = ["--resume", *([] if address is None else ["--address", address])]
    after += [*["--autoscale"] * autoscales, *["--one-node"] * one_node]
    return _command("sweep", *methods, "--name", name, results=results, after=after)


def resume_call(name: str, results: str) -> str:
    """Return the call in Python that goes on with a study."""
    usual = results == str(results_folder(None))
    return f"contrasweep.resume_sweep({name!r}{'' if usual else f', {results!r}'})"


def resume_hint(method: str, name: str, results: str, state: str) -> str:
    """Return a sentence with the command that goes on with an interrupted study; empty in other states."""
    if state != "interrupted":
        return ""
    return f"Study {name} was interrupted: `{resume_command([method], name, results)}` goes on."
