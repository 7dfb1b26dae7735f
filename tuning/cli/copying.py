"""`contrasweep copy`: bring studies from another results folder."""

from typing import Annotated

import typer

from contrasweep.tuning.cli.options import Results
from contrasweep.tuning.cli.rendering import print_rows, remark
from contrasweep.tuning.errors import refuse_repeats
from contrasweep.tuning.results.commands import RESULTS, studies_command


def copy(
    source: Annotated[
        str,
        typer.Option("--from", metavar="FOLDER", help="Results folder that has the studies, or its URI."),
    ],
    studies: Annotated[
        list[str] | None, typer.Argument(metavar="STUDY...", help="Names of the studies; default: all.")
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Copy studies, with their final runs, from another results folder: a collaborator's, or one in a bucket.

    A study that is being run is not copied, and a name that is taken is refused. If the copy is interrupted,
    the same command goes on.

    Example: contrasweep copy --from s3://bucket/results my-study
    """
    from contrasweep.tuning.store import StoreError, open_location
    from contrasweep.tuning.store.copying import copy_studies, with_final_runs

    if studies:
        refuse_repeats("study", studies)
    there = open_location(source)
    names = with_final_runs(there, studies or ())
    here = open_location(results, writable=True)
    if (here.filesystem, here.root) == (there.filesystem, there.root):
        raise StoreError(f"--from {source} is the results folder itself; give another --results.")
    remark(f"Copying {', '.join(names)} from {source} ...")
    done = [
        {"study": one.study, "files": one.files, "kB": round(one.size / 1e3)}
        for one in copy_studies(there, here, names)
    ]
    print_rows(f"Copied into {results}", done, footer=f"`{studies_command(results)}` lists all studies.")
