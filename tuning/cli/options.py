"""Options that several commands share, and the parsing of their text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.tuning.cli.completion import complete_metrics
from contrasweep.tuning.cli.remote_command import send
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.results.commands import RESULTS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contrasweep.tuning.planning.resources import Machine
    from contrasweep.tuning.store import ResultsStore

Results = Annotated[
    str,
    typer.Option(envvar=RESULTS_VARIABLE, help="Results folder, or any URI that pyarrow opens (s3://...)."),
]
DataRoot = Annotated[
    Path | None,
    typer.Option(help="Folder of the datasets; default: $CONTRASWEEP_DATA, then the user's cache."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Set a hyperparameter or another setting, such as optimizer.lr=0.1.",
    ),
]
Preset = Annotated[
    bool, typer.Option("--preset", help="Start from the papers' settings for this method and dataset.")
]
Workers = Annotated[
    int | None,
    typer.Option(help="Processes that train one run together, each on a part of every batch; default: 1."),
]
GpusPerWorker = Annotated[
    float | None,
    typer.Option(
        help="GPUs per worker, 0 to 1; default: 1 if there are GPUs. With 0.5, two workers share a GPU."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="auto|HOST:PORT|ray://HOST:PORT",
        callback=send,
        help="Run on this Ray cluster (docs/cluster.md); default: on this machine.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(metavar="auto|cpu|cuda", help="Device to use; default: auto, a GPU if there is one."),
]
MapMethod = Annotated[
    str | None,
    typer.Option(
        metavar="pca|umap", help="Projection of the map; default: pca. umap needs contrasweep[umap]."
    ),
]
Concurrency = Annotated[
    int | None, typer.Option(help="Trials or runs in parallel; default: as many as the cores or GPUs allow.")
]
Cpus = Annotated[
    int | None,
    typer.Option(
        "--cpus-per-trial",
        "--cpus-per-run",
        help="Cores (and threads) of each trial or run, or of each of its workers; default: 1.",
    ),
]
Autoscale = Annotated[
    bool,
    typer.Option(
        "--autoscale",
        help="The cluster at --address starts nodes on demand: --concurrency may exceed its present size.",
    ),
]
OneNode = Annotated[
    bool,
    typer.Option(
        "--one-node",
        help="Place all workers of a trial or run on one node; default: on as few nodes as possible.",
    ),
]


Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC>=NUMBER",
        help="Only trials that keep this condition, such as accuracy>=0.9 (or with <=, >, <).",
        autocompletion=complete_metrics,
    ),
]


def check_cluster(address: str | None, autoscale: bool, one_node: bool) -> None:
    """Refuse options for clusters where trials run on this machine.

    Raises:
        InputError: one is given.
    """
    if autoscale and address is None:
        raise InputError("--autoscale goes with --address: only a cluster starts nodes (docs/cluster.md)")
    if one_node and address is None:
        raise InputError("--one-node goes with --address: a machine is always one node (docs/many-gpus.md)")


def machine_at(address: str | None, autoscale: bool, one_node: bool) -> "Machine | None":
    """Return the cores and GPUs of the cluster at `--address`; None if trials run on this machine."""
    if address is None:
        return None
    from contrasweep.tuning.ray.cluster import cluster_at

    return cluster_at(address, autoscales=autoscale, one_node=one_node)


def store_with(studies: "Iterable[str]", results: str) -> "ResultsStore":
    """Return the store; a study that it does not have is refused before what takes seconds is imported.

    Raises:
        StoreError: the folder cannot be opened, or has no such study.
    """
    from contrasweep.tuning.store import ResultsStore

    store = ResultsStore(results)
    for one in studies:
        store.study(one)
    return store


def place_in(results: str, relative: str) -> str:
    """Return the path or URI of a file in a results folder, in the form in which the folder was given."""
    folder, mark, query = results.partition("?") if "://" in results else (results, "", "")
    return f"{folder.rstrip('/')}/{relative}{mark}{query}"


def parse_settings(assignments: "Sequence[str] | None", option: str = "--set") -> dict[str, Any]:
    """Return `PATH=VALUE` texts as a mapping; values are read as YAML (`1e-3` is a number, `[0.5]` a list).

    Raises:
        InputError: a text has no `=`, a value is neither plain nor a list, or a path is given twice.
        SpaceError: a value is not YAML.
    """
    values: dict[str, Any] = {}
    for text in assignments or []:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise InputError(f"{option} takes PATH=VALUE, given {text!r}")
        if path in values:
            raise InputError(f"{option} {path} is given twice")
        values[path] = _value(f"{option} {path}", value)
    return values


def _value(what: str, text: str) -> Any:
    from contrasweep.search_spaces import parse_yaml

    value = parse_yaml(text, what)
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, bool | int | float | str):
            raise InputError(f"{what}: {text!r} is not a number, a word, true, false or a list of them")
    return value
