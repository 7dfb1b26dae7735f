"""`contrasweep eval`: how good the features of exported encoders are, on one dataset or on others."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.tuning.cli.completion import complete_datasets, complete_studies
from contrasweep.tuning.cli.options import AsJson, DataRoot, Device, Results
from contrasweep.tuning.cli.rendering import print_json, print_rows, remark, say, warn
from contrasweep.tuning.files import check_file
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.tuning.transfer.evaluate import Transfer

MOST_CLASSES = 20
"""Up to so many classes, `--detail` prints confusion matrices; the JSON always has them."""


def eval(
    encoders: Annotated[
        list[str],
        typer.Argument(
            metavar="ENCODER...",
            help="Encoder files (.safetensors), or studies: the encoders of all their final runs.",
            autocompletion=complete_studies,
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Datasets to score on, with their options.", autocompletion=complete_datasets
        ),
    ],
    probe: Annotated[
        str, typer.Option(metavar="A,B", help="Probes: logistic, knn, moco, cl-infonce, cacr.")
    ] = "logistic,knn",
    shots: Annotated[
        str,
        typer.Option(metavar="1,5,all", help="Number of training images per class from which probes learn."),
    ] = "all",
    draws: Annotated[int, typer.Option(help="Number of few-shot training sets to draw; at least 5.")] = 5,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Also train encoder and linear classifier together.")
    ] = False,
    epochs: Annotated[int | None, typer.Option(help="Epochs of fine-tuning; default: 20.")] = None,
    lr: Annotated[
        float | None, typer.Option(help="Learning rate of fine-tuning; default: that of cross-entropy.")
    ] = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="Also print accuracy by class, confusion matrices, and clusters.")
    ] = False,
    cpus: Annotated[
        int,
        typer.Option(
            help="Threads. With as many threads as the final run, the scores are bit-identical to its scores."
        ),
    ] = 1,
    device: Device = None,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write every single score there: .csv or .parquet."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Score exported encoders by probes on any dataset, beside the same networks before training.

    Example: contrasweep eval results/exports/photos-final/00000-1/encoder.safetensors --data digits

    Example: contrasweep eval photos --data colour-digits,digits --probe logistic,knn --shots 1,5,all
    """
    from contrasweep.tuning.training.devices import AUTO, check_device_name
    from contrasweep.tuning.transfer.plan import (
        TransferPlan,
        fine_tuning_of,
        split_datasets,
        split_names,
        split_shots,
    )
    from contrasweep.tuning.transfer.sources import encoder_sources

    # All that is known to be wrong is refused here, before torch is imported.
    check_count("cpus", cpus)
    check_device_name(device or AUTO)
    tuning = fine_tuning_of(fine_tune, epochs, lr)
    plan = TransferPlan(split_datasets(data), split_names(probe), split_shots(shots), draws, tuning, detail)
    if output is not None:
        check_file(output, "-o", (".csv", ".parquet"))
    sources = encoder_sources(encoders, results)
    remark("Loading torch ...")
    import torch

    from contrasweep.tuning.planning.resources import AskedResources
    from contrasweep.tuning.transfer.evaluate import run_plan

    torch.set_num_threads(AskedResources(1, cpus, gpus=0.0).resources().cpus)
    found = run_plan(plan, sources, data_root=data_root, device=device or AUTO, tell=remark)
    if output is not None:
        found.write(output)
    if json:
        print_json(found.content())
        return
    _print(found)
    if output is not None:
        say(f"Wrote {output}")


def _print(found: "Transfer") -> None:
    for note in found.notes:
        remark(f"Note: {note}")
    from contrasweep.tuning.transfer.table import HEADS, TITLE, not_beaten, rows_of, said_of

    cells = found.cells
    print_rows(TITLE, rows_of(cells), footer=said_of(cells), heads=HEADS)
    if told := not_beaten(cells):
        warn(f"{told}.")
    for title, lines in _detail(found):
        say("")
        print_rows(title, lines, heads=HEADS)


def _detail(found: "Transfer") -> "Iterator[tuple[str, list[dict[str, Any]]]]":
    """Yield titles and rows: clusters, accuracy by class, and confusion matrices."""
    from contrasweep.tuning.results.numbers import number_text

    content = found.content()
    if "clusters" not in content:
        return
    clusters = [
        {
            "encoder": one["encoder"],
            "dataset": one["dataset"],
            **{f"{name.removeprefix('cluster_')}": _mean_of(one["trained"][name]) for name in one["trained"]},
            **{
                f"untrained {name.removeprefix('cluster_')}": _mean_of(one["untrained"][name])
                for name in one["untrained"]
            },
        }
        for one in content["clusters"]
    ]
    yield "Clusters of the test images by k-means, matched with the classes", clusters
    for cell in found.cells:
        names = found.class_names[cell.dataset]
        if len(names) > MOST_CLASSES:
            continue
        title = f"{cell.encoder}, {cell.probe}, {cell.dataset}: test images of each class by predicted class"
        counts = zip(names, cell.class_accuracy, cell.confusion.tolist(), strict=True)
        if cell.shots is None:
            yield (
                title,
                [
                    {"class": name, "accuracy": None if share is None else number_text(share)}
                    | dict(zip(names, row, strict=True))
                    for name, share, row in counts
                ],
            )


def _mean_of(summary: dict[str, Any]) -> str | None:
    from contrasweep.tuning.results.numbers import mean_and_std
    from contrasweep.tuning.statistics import Summary

    return mean_and_std(Summary(summary["mean"], summary["std"], summary["n"]))
