"""`contrasweep replay`: compare samplers and schedulers on recorded studies, without training."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrasweep.tuning.cli.completion import complete_studies
from contrasweep.tuning.cli.options import AsJson, Results, store_with
from contrasweep.tuning.cli.rendering import print_json, print_rows, remark, say, warn
from contrasweep.tuning.errors import InputError, refuse_repeats
from contrasweep.tuning.files import check_file
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.tuning.replay.recording import Recording

RECORDING = ".parquet"


def replay(
    studies: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDY|FILE.parquet...",
            help="Finished studies, or recordings of them.",
            autocompletion=complete_studies,
        ),
    ],
    samplers: Annotated[
        str, typer.Option(metavar="A,B", help="Samplers to compare: curves, tpe, gp, cmaes, random.")
    ] = "curves,tpe,random",
    schedulers: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Schedulers to compare: asha, asha:eta=4:grace=2, curves, asha+curves, none."
        ),
    ] = "asha,none",
    full_trials: Annotated[
        int,
        typer.Option(
            metavar="N", help="Budget of each search: the epochs of N trials that are not stopped early."
        ),
    ] = 20,
    workers: Annotated[int, typer.Option(help="Trials in parallel.")] = 4,
    seeds: Annotated[int, typer.Option(help="How many times each search runs.")] = 20,
    again: Annotated[
        str | None,
        typer.Option(
            metavar="STUDY",
            help="Study of the same configurations with another seed, to estimate the noise of seeds.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Only write the learning curves of a study to this .parquet file."
        ),
    ] = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Compare samplers and schedulers on the learning curves of finished studies, without training.

    Example: contrasweep replay my-study --samplers tpe,random --schedulers asha,asha:eta=4,none
    """
    from contrasweep.tuning.replay.request import Effort, settings_of

    refuse_repeats("study", studies)
    settings, effort = settings_of(samplers, schedulers), Effort(full_trials, workers, seeds)
    if len(studies) > 1 and (again is not None or output is not None):
        raise InputError(f"{'--again' if again else '-o'} goes with one study, given {len(studies)}")
    if output is not None:
        check_file(output, "-o", (RECORDING,))
    recordings = [_recording(one, results, again) for one in studies]
    if output is not None:
        recordings[0].write(output)
        say(f"Wrote {output}: {len(recordings[0].scores)} trials of {recordings[0].epochs} epochs")
        return
    from contrasweep.tuning.replay.comparison import compare
    from contrasweep.tuning.replay.searches import check_settings, searches_of
    from contrasweep.tuning.replay.table import content_of, rows_of, said_of, warnings_of
    from contrasweep.tuning.replay.workload import Workload

    for recording in recordings:
        check_settings(settings, recording)
    found = []
    for recording in recordings:
        remark(f"Fitting the curves of {recording.name} ...")
        workload = Workload.of(recording)
        standings = compare(
            searches_of(settings),
            workload,
            workers=effort.workers,
            budget=effort.full_trials * recording.epochs,
            seeds=effort.seeds,
            tell=lambda name: remark(f"Searching by {name} ..."),
        )
        for line in warnings_of(workload):
            warn(f"{line}.")
        found.append(content_of(workload, standings))
        if not json:
            print_rows(
                f"{recording.name}: {recording.metric} on other seeds of the best trial so far, "
                f"after parts of {effort.full_trials * recording.epochs:,} epochs",
                rows_of(standings),
                footer=f"{said_of(workload)}. Mean and half its 95 % interval over {effort.seeds} searches.",
            )
    if json:
        print_json({"studies": found})


def _recording(source: str, results: str, again: str | None) -> "Recording":
    if source.endswith(RECORDING):
        if again is not None:
            raise InputError("--again goes with a study: a recording has its second seeds in it")
        from contrasweep.tuning.replay.recording import read_recording

        return read_recording(Path(source))
    store = store_with([source, *([again] if again else [])], results)
    from contrasweep.tuning.replay.recording import recording_of

    return recording_of(store, source, again)
