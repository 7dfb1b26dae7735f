"""`contrasweep pool`: configurations for several methods, paired, for `sweep --enqueue`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.completion import complete_methods
from contrasweep.tuning.cli.options import AsJson, Set, parse_settings
from contrasweep.tuning.cli.rendering import print_json, remark, say
from contrasweep.tuning.cli.typed import command_line
from contrasweep.tuning.errors import InputError, refuse_repeats
from contrasweep.tuning.files import check_folder, write_whole
from contrasweep.tuning.limits import check_count


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
    seed: Annotated[int, typer.Option(help="Seed of the Sobol sequence.")] = 0,
    json: AsJson = False,
) -> None:
    """Write paired configurations of several methods, for `sweep --enqueue` and then `stability`.

    Example: contrasweep pool infonce fair-cclk --data colour-digits --size 48 -o pools
    """
    from contrasweep.tuning.planning.request import check_request

    refuse_repeats("method", methods)
    check_count("size", size, least=2)
    check_folder(output, "-o")
    values = parse_settings(set_)
    spaces = {
        one: check_request(one, data, values=values, sampler="random", trials=size + 1, seed=seed).space
        for one in methods
    }
    for one, space in spaces.items():
        if not space.searched:
            raise InputError(f"{one} searches nothing with these settings: leave out some of --set")
    from contrasweep.tuning.stability.pools import common_parameters, paired_pools, pool_text

    shared = list(common_parameters(list(spaces.values())))
    told = f"common to {', '.join(methods)}: {', '.join(shared) or 'nothing'}"
    for method, configurations in paired_pools(spaces, size, seed).items():
        remarks = [f"{size} configurations of {method} on {data}; {told}", f"Made by: {command_line()}"]
        write_whole(output / f"{method}.yaml", pool_text(configurations, remarks))
    if json:
        files = {method: str(output / f"{method}.yaml") for method in methods}
        print_json({"files": files, "common": shared, "size": size})
        return
    if not shared:
        remark("The methods have no parameter in common, so their pools are not paired.")
    for method in methods:
        say(f"Wrote {output / method}.yaml: {size} configurations; {told}")
    given = "".join(f" --set {shlex.quote(one)}" for one in set_ or [])
    say(
        f"Next, for each method: contrasweep sweep METHOD --data {shlex.quote(data)} --trials {size + 1} "
        f"--enqueue {shlex.quote(str(output))}/METHOD.yaml --scheduler none{given}"
    )
