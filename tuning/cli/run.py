"""`contrasweep run`: a selected configuration on fresh seeds, scored on the test split."""

import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tuning.cli.options import (
    RESULTS,
    AsJson,
    Concurrency,
    DataRoot,
    Results,
    command_line,
    results_option,
)
from tuning.cli.progress import duration, progress_line
from tuning.cli.rendering import mean_and_std, print_json, print_rows, say, warn

if TYPE_CHECKING:
    from tuning.analysis.summary import Summary
    from tuning.best import BestConfig
    from tuning.ray.final import FinalRuns


def run(
    source: Annotated[str, typer.Argument(help="A best.yaml, or the name of a study.")],
    seeds: Annotated[int, typer.Option(help="Fresh seeds of each configuration.")] = 5,
    top: Annotated[int, typer.Option(help="With a study: how many of its best configurations.")] = 1,
    concurrency: Concurrency = None,
    cpus_per_run: Annotated[int, typer.Option(help="Cores, and threads, of a run.")] = 1,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Train the best configuration on fresh seeds and all training images, and test each run once.

    Example: contrasweep run best.yaml --seeds 5
    """
    from tuning.ray.final import final_runs

    logging.getLogger("ray").setLevel(logging.CRITICAL)
    configs = _configs(source, top, results, data_root)
    with progress_line() as line:
        done = final_runs(
            configs,
            seeds=seeds,
            results=results,
            data_root=data_root,
            concurrency=concurrency,
            cpus_per_run=cpus_per_run,
            command=command_line(),
            show=lambda ended, of: line.show(f"{ended}/{of} final runs · {duration(line.elapsed)} spent"),
        )
    _report(done, results, json)


def _configs(source: str, top: int, results: str, data_root: Path | None) -> "list[BestConfig]":
    from tuning.analysis.selection import best_trials
    from tuning.best import config_of, load_best
    from tuning.errors import InputError
    from tuning.store import ResultsStore

    if top < 1:
        raise InputError(f"--top must be at least 1, given {top}")
    if Path(source).suffix in (".yaml", ".yml"):
        if top > 1:
            raise InputError(f"--top goes with a study; {source} holds one configuration")
        return [load_best(Path(source), data_root)]
    return [config_of(trial) for trial in best_trials(ResultsStore(results), source, top)]


def _report(done: "FinalRuns", results: str, as_json: bool) -> None:
    from tuning.analysis.final import summarise_runs

    summaries = summarise_runs(done.rows)
    if as_json:
        print_json({"study": done.study, "failed": done.failed, "rows": [asdict(row) for row in summaries]})
        return
    names = list(dict.fromkeys(name for row in summaries for name in row.scores))
    rows: list[dict[str, Any]] = [
        {"encoder": row.encoder, **{_column(name): _cell(row.scores.get(name), name) for name in names}}
        for row in summaries
    ]
    print_rows(
        f"{done.study}: mean ± sample standard deviation over fresh seeds",
        rows,
        footer="Test split, read once by each run; the untrained encoder has the same seeds.",
    )
    if done.failed:
        warn(f"{done.failed} runs failed; `contrasweep show {done.study}{results_option(results)}` says why.")
    *trained, untrained = summaries
    if max(row.accuracy.mean for row in trained) <= untrained.accuracy.mean:
        warn("training did not beat the untrained encoder.")
    say(f"Encoders: {results}/exports/{done.study}/*/encoder.safetensors")


def _column(score: str) -> str:
    words = score.replace("_", " ").replace("mse", "MSE")
    return f"test {words}, %" if score.endswith("accuracy") else words


def _cell(summary: "Summary | None", score: str) -> str | None:
    if summary is None:
        return None
    scale = 100 if score.endswith("accuracy") else 1
    return mean_and_std(summary.mean, summary.std, summary.n, scale=scale)
