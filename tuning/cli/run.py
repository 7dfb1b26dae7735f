"""`contrasweep run`: train selected configurations on fresh seeds and score them on the test split."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.tuning.cli.options import (
    RESULTS,
    Address,
    AsJson,
    Concurrency,
    DataRoot,
    Device,
    GpusPerWorker,
    Results,
    Where,
    Workers,
    command_line,
    machine_at,
    place_in,
    results_option,
)
from contrasweep.tuning.cli.rendering import print_json, print_rows, progress_line, say, warn
from contrasweep.tuning.errors import InputError

if TYPE_CHECKING:
    from contrasweep.tuning.planning.best_config import BestConfig
    from contrasweep.tuning.results.final_runs import FinalRuns, FinalSummary
    from contrasweep.tuning.statistics import Comparison, Summary


def run(
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE...", help="Files such as best.yaml, or names of studies.")
    ],
    seeds: Annotated[int, typer.Option(help="Fresh seeds of each configuration.")] = 5,
    top: Annotated[int, typer.Option(help="Of a study: how many of its best configurations to run.")] = 1,
    where: Where = None,
    concurrency: Concurrency = None,
    cpus_per_run: Annotated[int, typer.Option(help="Cores (and threads) per run, or per worker.")] = 1,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    device: Device = None,
    address: Address = None,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Train the best configuration on fresh seeds and all training images, and test each run once.

    Several sources, and the --top of a study, run on the same seeds and are compared with the first.

    Example: contrasweep run best.yaml --seeds 5

    Example: contrasweep run fair-cclk-study infonce-study --top 2 --where 'colour_mse>=2000'
    """
    from contrasweep.tuning.planning.final_plan import fresh_seed
    from contrasweep.tuning.planning.resources import AUTO, gpus_for
    from contrasweep.tuning.ray.final import final_runs
    from contrasweep.tuning.store import open_location

    by_study = _by_study(
        [config for one in sources for config in _configs(one, top, where or (), results, data_root)]
    )
    first = fresh_seed([config for own in by_study.values() for config in own], open_location(results))
    done, machine = [], machine_at(address)
    gpus = gpus_for(device or AUTO, gpus_per_worker, machine)
    with progress_line() as line:
        for configs in by_study.values():
            one = final_runs(
                configs,
                seeds=seeds,
                first_seed=first,
                results=results,
                data_root=data_root,
                concurrency=concurrency,
                cpus_per_run=cpus_per_run,
                workers=1 if workers is None else workers,
                gpus_per_worker=gpus,
                machine=machine,
                command=command_line(),
                show=line.show_runs,
            )
            done.append(one)
    _report(done, results, json)


def _by_study(configs: "list[BestConfig]") -> "dict[str, list[BestConfig]]":
    """Return the configurations by study; all must be comparable.

    Raises:
        InputError: the configurations have different datasets, or one is given twice.
    """
    datasets = sorted({config.experiment.dataset for config in configs})
    if len(datasets) > 1:
        raise InputError(f"final runs are compared on one dataset, given {', '.join(datasets)}")
    found: dict[str, list[BestConfig]] = {}
    for config in configs:
        own = found.setdefault(config.study, [])
        if config.trial in [other.trial for other in own]:
            raise InputError(f"trial {config.trial} of study {config.study} is given twice")
        own.append(config)
    return found


def _configs(
    source: str, top: int, where: Sequence[str], results: str, data_root: Path | None
) -> "list[BestConfig]":
    from contrasweep.tuning.planning.best_config import config_of, load_best
    from contrasweep.tuning.results.selection import best_trials
    from contrasweep.tuning.store import ResultsStore

    if top < 1:
        raise InputError(f"--top must be at least 1, given {top}")
    if Path(source).suffix in (".yaml", ".yml"):
        if top > 1 or where:
            raise InputError(
                f"{'--top' if top > 1 else '--where'} goes with a study; {source} holds one configuration"
            )
        return [load_best(Path(source), data_root)]
    return [config_of(trial) for trial in best_trials(ResultsStore(results), source, top, where)]


def _report(done: "list[FinalRuns]", results: str, as_json: bool) -> None:
    from contrasweep.tuning.results.final_runs import UNTRAINED, scores_by_seed, summarise_runs
    from contrasweep.tuning.statistics import compare_with_first

    rows = [row for one in done for row in one.rows]
    summaries = summarise_runs(rows)
    compared = compare_with_first(scores_by_seed(rows))
    if as_json:
        print_json(
            {
                "studies": [{"study": one.study, "failed": one.failed} for one in done],
                "rows": [_as_json(row) for row in summaries],
                "differences": [asdict(row) for row in compared],
            }
        )
        return
    names = list(dict.fromkeys(name for row in summaries for name in row.scores))
    print_rows(
        f"{', '.join(one.study for one in done)}: mean ± sample standard deviation over fresh seeds",
        [
            {"encoder": row.encoder, **{_column(name): _cell(row.scores.get(name), name) for name in names}}
            for row in summaries
        ],
        footer="In brackets the 95 % interval of the mean (Student's t). Each run reads the test split once; "
        "the untrained encoders have the same seeds.",
    )
    _print_differences(compared)
    for one in done:
        if one.failed:
            hint = f"`contrasweep show {one.study}{results_option(results)}` says why."
            warn(f"{one.failed} runs of {one.study} failed; {hint}")
    trained = [row for row in summaries if not row.encoder.startswith(UNTRAINED)]
    untrained = [row for row in summaries if row.encoder.startswith(UNTRAINED)]
    if untrained and max(r.accuracy.mean for r in trained) <= max(r.accuracy.mean for r in untrained):
        warn("training did not beat the untrained encoder.")
    for one in done:
        say(f"Encoders: {place_in(results, f'exports/{one.study}/*/encoder.safetensors')}")


def _as_json(row: "FinalSummary") -> dict[str, Any]:
    from contrasweep.tuning.statistics import mean_interval

    scores = {name: {**asdict(one), "interval": mean_interval(one)} for name, one in row.scores.items()}
    return {"encoder": row.encoder, "scores": scores}


def _print_differences(compared: "list[Comparison]") -> None:
    tested = [row for row in compared if row.p is not None]
    if not tested:
        return
    several = len(tested) > 1
    print_rows(
        f"Test accuracy, %, minus that of {tested[0].reference}, seed by seed",
        [
            {
                "encoder": row.encoder,
                "difference": _mean_and_std(row.difference, row.interval, scale=100),
                "p": row.p,
                **({"p (Holm)": row.p_holm} if several else {}),
            }
            for row in tested
        ],
        footer="Paired t test, two-sided"
        + (f"; Holm's correction for {len(tested)} comparisons." if several else "."),
    )


def _column(score: str) -> str:
    words = score.replace("_", " ").replace("mse", "MSE")
    return f"test {words}, %" if score.endswith("accuracy") else words


def _cell(summary: "Summary | None", score: str) -> str | None:
    from contrasweep.tuning.statistics import mean_interval

    if summary is None:
        return None
    return _mean_and_std(summary, mean_interval(summary), scale=100 if score.endswith("accuracy") else 1)


def _mean_and_std(one: "Summary", interval: tuple[float, float] | None, scale: float) -> str:
    """Return `mean ± std [low, high] (n = N)` times `scale`; parts that are None are left out."""
    spread = "" if one.std is None else f" ± {scale * one.std:,.1f}"
    within = "" if interval is None else f" [{scale * interval[0]:,.1f}, {scale * interval[1]:,.1f}]"
    return f"{scale * one.mean:,.1f}{spread}{within} (n = {one.n})"
