"""`contrasweep pool`: configurations for several methods, paired, for `sweep --enqueue`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.cli.completion import complete_methods
from contrasweep.tuning.cli.options import AsJson, DataRoot, Set, parse_settings
from contrasweep.tuning.cli.rendering import print_json, remark, say
from contrasweep.tuning.cli.typed import command_line
from contrasweep.tuning.errors import InputError, refuse_repeats
from contrasweep.tuning.files import check_folder, write_whole
from contrasweep.tuning.limits import check_count, check_seed
from contrasweep.tuning.results.commands import pool_command, stability_command

HALVES: Final = {"validation.halves": "true", "validation.fraction": "0.3"}
"""One half of the validation split chooses, the other reports; each has 15 % of the images."""


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
    from contrasweep.tuning.planning.request import check_request
    from contrasweep.tuning.planning.rules import SearchRules
    from contrasweep.tuning.stability.least import refuse_few

    refuse_repeats("method", methods)
    check_count("size", size)
    check_seed(seed)
    refuse_few(size, f"--size {size}: `stability` compares that many trials besides the defaults")
    check_folder(output, "-o")
    values = parse_settings(set_)
    if values.get("validation.fraction") == 0:
        raise InputError("validation.fraction is 0: a pool is compared on images that are held out")
    halves = [f"{name}={value}" for name, value in HALVES.items() if name not in values]
    settings = {**parse_settings(halves), **values}
    rules = SearchRules(values=settings, sampler="random", scheduler="none", trials=size + 1, seed=seed)
    requests = {one: check_request(one, data, rules) for one in methods}
    for one, request in requests.items():
        if not request.space.searched:
            raise InputError(f"{one} searches nothing with these settings: leave out some of --set")
    remark("Loading torch ...")
    from contrasweep.data import data_root as folder_of_data
    from contrasweep.tuning.planning.plan_sweep import experiment_of_defaults
    from contrasweep.tuning.planning.resolve import is_possible
    from contrasweep.tuning.stability.pools import (
        common_parameters,
        paired_pools,
        pool_text,
        searched_by_some,
    )

    spaces = {one: request.space for one, request in requests.items()}
    root = folder_of_data(data_root)
    bases = {one: experiment_of_defaults(one, data, request, root) for one, request in requests.items()}

    def can_run(method: str, values: Mapping[str, Scalar]) -> bool:
        return is_possible(bases[method], spaces[method], values, root)

    shared = list(common_parameters(list(spaces.values())))
    told = f"common to {', '.join(methods)}: {', '.join(shared) or 'nothing'}"
    pools = paired_pools(spaces, size, seed, can_run)
    for method, configurations in pools.items():
        remarks = [f"{size} configurations of {method} on {data}; {told}", f"Made by: {command_line()}"]
        write_whole(output / f"{method}.yaml", pool_text(configurations, remarks))
    if json:
        files = {method: str(output / f"{method}.yaml") for method in methods}
        print_json({"files": files, "common": shared, "size": size})
        return
    if not shared:
        remark("The methods have no parameter in common, so their pools are not paired.")
    for setting, searching in searched_by_some(spaces).items():
        fixed = ", ".join(one for one in methods if one not in searching)
        remark(
            f"{setting} is searched for {', '.join(searching)}, and has one value for {fixed}: the "
            f"comparison is not on equal terms. `--set {setting}=VALUE` fixes it for all."
        )
    for method in methods:
        say(f"Wrote {output / method}.yaml: {size} configurations; {told}")
        different = len({tuple(one.items()) for one in pools[method]})
        if different < size:
            remark(f"{method} searches few values: {different} of its {size} configurations are different.")
    say("Next:")
    fixed_settings = [*halves, *(set_ or [])]
    studies = {method: f"pool-{method}" for method in methods}
    for method, study in studies.items():
        file = output / f"{method}.yaml"
        say(pool_command(method, data, study, file, size + 1, fixed_settings, data_root))
    if len(methods) > 1:  # of one method there is nothing to compare
        say(stability_command(list(studies.values())))
