"""`contrasweep export`: an encoder in the format of another library, with a model card."""

from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.completion import complete_studies
from contrasweep.tuning.cli.options import Results
from contrasweep.tuning.cli.rendering import remark, say
from contrasweep.tuning.results.commands import RESULTS

FORMATS = "torchvision|timm|hf|onnx"


def export(
    source: Annotated[
        str,
        typer.Argument(
            help="A study (its final runs, or else the encoders that its search kept), or an encoder file.",
            autocompletion=complete_studies,
        ),
    ],
    form: Annotated[
        str,
        typer.Option("--format", metavar=FORMATS, help="Format of the library that will read the encoder."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write, new or empty.")
    ],
    trial: Annotated[
        int | None,
        typer.Option(help="With a study: the trial to export; default: the best one that has an encoder."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With a study: the seed of the run to export; default: its first.")
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME", help="Send the folder to this repository of the Hugging Face hub."
        ),
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Write a trained encoder for another library, with a model card and an example that loads it.

    Example: contrasweep export my-study --format timm -o my-encoder

    Example: contrasweep export encoder.safetensors --format onnx -o my-encoder
    """
    from contrasweep.tuning.export.checks import check_format, check_hub, check_new_folder, check_source

    # All that is known to be wrong is refused here, before torch is imported.
    check_format(form)
    check_new_folder(output)
    if push is not None:
        check_hub(push)
    check_source(source, results)
    remark("Loading torch ...")
    from contrasweep.models.formats import FORMATS
    from contrasweep.tuning.export import folder
    from contrasweep.tuning.export.source import find_source

    found = find_source(source, results, trial, seed)
    written = folder.export(found, FORMATS[form], output)
    run, reader = found.run, FORMATS[form].reader
    which = "" if run is None else f" of {run.study}, trial {run.trial}, seed {run.seed}"
    say(f"The encoder{which} is in {output}: {', '.join(written)}.")
    say(f"README.md has its scores, and an example that loads it with {reader}.")
    if push is not None:
        remark(f"Sending it to {push} ...")
        say(f"Sent to {folder.push(output, push)}")
