"""`contrasweep embed`: an exported encoder's features of images, as a file and as a map."""

from pathlib import Path
from typing import Annotated

import typer

from contrasweep.names import counted
from contrasweep.tuning.cli.completion import complete_datasets, complete_studies
from contrasweep.tuning.cli.options import AsJson, DataRoot, Device, MapMethod, Results
from contrasweep.tuning.cli.rendering import print_json, remark, say
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.results.commands import RESULTS


def embed(
    encoder: Annotated[
        str,
        typer.Argument(
            help="Encoder file (.safetensors), or a study that has one.",
            autocompletion=complete_studies,
        ),
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|DATASET",
            help="Folder with images at any depth, or a dataset with its options.",
            autocompletion=complete_datasets,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Parquet file to write, such as features.parquet.")
    ],
    split: Annotated[
        str | None, typer.Option(metavar="train|test", help="Split of a dataset; default: test.")
    ] = None,
    map_: Annotated[
        Path | None,
        typer.Option("--map", help="Also write a map of the features there, with the images: .html."),
    ] = None,
    map_method: MapMethod = None,
    skip_corrupt: Annotated[
        bool,
        typer.Option(
            "--skip-corrupt",
            help="Leave out damaged images of a folder; default: stop at the first one and name it.",
        ),
    ] = False,
    cpus: Annotated[int | None, typer.Option(help="Threads; default: one per core.")] = None,
    device: Device = None,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Write an exported encoder's features of the images of a folder or dataset to a Parquet file.

    Example: contrasweep embed encoder.safetensors holiday-photos -o features.parquet

    Example: contrasweep embed encoder.safetensors digits --split train -o digits.parquet --map digits.html
    """
    from contrasweep.tuning.training.devices import AUTO, check_device_name
    from contrasweep.tuning.transfer.request import EmbedRequest, map_method_of
    from contrasweep.tuning.transfer.sources import one_encoder

    # All that is known to be wrong is refused here, before torch is imported.
    check_count("cpus", cpus)
    check_device_name(device or AUTO)
    method = map_method_of(map_method, map_asked=map_ is not None)
    request = EmbedRequest(source, output, split, map_, method, skip_corrupt)
    own = one_encoder(encoder, results)
    remark("Loading torch ...")
    import torch

    from contrasweep.machine import available_cores
    from contrasweep.tuning.planning.resources import AskedResources
    from contrasweep.tuning.transfer.embed import run_request

    torch.set_num_threads(AskedResources(1, cpus or available_cores(), gpus=0.0).resources().cpus)
    found = run_request(request, own, data_root=data_root, device=device or AUTO, tell=remark)
    if json:
        written = [str(one) for one in (output, map_) if one is not None]
        print_json(
            {
                "files": written,
                "images": found.images,
                "width": found.width,
                "preprocessing": found.preprocessing,
            }
        )
        return
    size = f"{counted(found.images, 'image')}, {counted(found.width, 'feature')} each"
    say(f"Wrote {output}: {size} ({found.preprocessing})")
    if map_ is not None:
        say(f"Wrote {map_} ({map_.stat().st_size / 1e3:,.0f} kB)")
