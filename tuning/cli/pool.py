"""`contrasweep pool`: configurations for several methods, paired, for `sweep --enqueue`."""

from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.command_line import command_line
from contrasweep.tuning.cli.completion import complete_methods
from contrasweep.tuning.cli.options import AsJson, DataRoot, Set, parse_settings
from contrasweep.tuning.cli.rendering import json_text, print_json, remark, say
from contrasweep.tuning.files import check_folder
from contrasweep.tuning.results.commands import pool_command, stability_command


def pool(
    methods: Annotated[
        list[str],
        typer.Argument(metavar="METHOD...", help="The methods to compare.", autocompletion=complete_methods),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Write METHOD.yaml there.")
    ],
    data: Annotated[str, typer.Option(help="Dataset.")] = "colour-digits",
    size: Annotated[int, typer.Option(metavar="N", help="Configurations of each method.")] = 48,
    set_: Set = None,
    data_root: DataRoot = None,
    seed: Annotated[int, typer.Option(help="Seed of the Sobol sequence.")] = 0,
    json: AsJson = False,
) -> None:
    """Write paired configurations of several methods, for `sweep --enqueue` and then `stability`.

    Example: contrasweep pool infonce fair-cclk --data colour-digits --size 48 -o pools
    """
    from contrasweep.tuning.stability.pool_request import PoolRequest

    check_folder(output, "-o")
    request = PoolRequest(methods, data, size, seed, parse_settings(set_))
    remark("Loading torch ...")
    from contrasweep.tuning.stability.pools import make_pools

    pools = make_pools(request, data_root)
    files = pools.write(output, command_line())
    if json:
        written = {method: str(file) for method, file in files.items()}
        print_json({"files": written, "common": pools.common, "size": size})
        return
    for line in pools.remarks:
        remark(line)
    for method, file in files.items():
        say(f"Wrote {file}: {size} configurations; {pools.common_in_words}")
        if told := pools.repeats_in_words(method):
            remark(told)
    say("Next:")
    fixed = [*(f"{name}={json_text(value)}" for name, value in request.halves.items()), *(set_ or [])]
    studies = {method: f"pool-{method}" for method in methods}
    for method, study in studies.items():
        say(pool_command(method, data, study, files[method], request.trials, fixed, data_root))
    if len(methods) > 1:  # of one method there is nothing to compare
        say(stability_command(list(studies.values())))
