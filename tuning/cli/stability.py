"""`contrasweep stability`: how many trials a claim about methods needs, from stored trials."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrasweep.tuning.cli.command_line import command_line
from contrasweep.tuning.cli.completion import complete_studies
from contrasweep.tuning.cli.options import AsJson, Results, store_with
from contrasweep.tuning.cli.rendering import print_json, print_rows, remark, say, warn
from contrasweep.tuning.errors import InputError, refuse_repeats
from contrasweep.tuning.files import check_file, check_folder
from contrasweep.tuning.limits import check_count, check_seed
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.tuning.stability.analysis import Stability
    from contrasweep.tuning.stability.scored_pool import ScoredPool

FILE = ".parquet"
ENDINGS = (".html", ".htm", ".md", FILE)
LEAST_SUBSETS = 100


def stability(
    studies: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDY...|FILE.parquet",
            help="Studies of one dataset, one for each method, none stopped early; or a file of pools.",
            autocompletion=complete_studies,
        ),
    ],
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'A > B'", help="A claim about two methods; may be repeated; default: each pair."
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(metavar="1,2,4,all", help="Numbers of trials; default: powers of two, half and all."),
    ] = None,
    subsets: Annotated[
        int, typer.Option(help="Number of random subsets for the ranking of several methods.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    again: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STUDY", help="A study of the same configurations with another seed; may be repeated."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Also write a page, .html or .md; or only the pools, as .parquet."
        ),
    ] = None,
    choices: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the configurations that each study selects at each budget, as files for run: "
            "STUDY-BUDGET.yaml.",
        ),
    ] = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Estimate after how many trials a claim about methods no longer depends on the drawn configurations.

    Example: contrasweep stability infonce-study cclk-study --claim 'fair-cclk > infonce' -o page.html
    """
    refuse_repeats("study", studies)
    if again:
        refuse_repeats("study of --again", again)
    check_count("subsets", subsets, least=LEAST_SUBSETS)
    check_seed(seed)
    if output is not None:
        check_file(output, "-o", ENDINGS)
        given = {"--claim": claim, "--budgets": budgets, "--choices": choices, "--json": json}
        if output.suffix == FILE and (named := [name for name, value in given.items() if value]):
            raise InputError(f"-o {output} only writes the trials: leave out {', '.join(named)}")
    if choices is not None:
        check_folder(choices, "--choices")
    pools = _pools(studies, again or [], results)
    if output is not None and output.suffix == FILE:
        from contrasweep.tuning.stability.pool_file import write_scored_pools

        write_scored_pools(pools, output)
        say(f"Wrote {output}: {sum(map(len, pools))} configurations of {len(pools)} studies")
        return
    from contrasweep.tuning.stability.analysis import aligned, analyse
    from contrasweep.tuning.stability.claims import budgets_of, claims_of
    from contrasweep.tuning.stability.page import check_output, write_page

    if output is not None:
        check_output(output)
    if choices is not None and studies[0].endswith(FILE):
        raise InputError("--choices goes with studies: a file of pools has no experiments")
    if len(pools) < 2:
        raise InputError("stability compares methods: give a study of each, two or more")
    claims = claims_of(claim or [], [(one.study, one.method) for one in pools])
    pools, _ = aligned(pools)
    sizes = budgets_of(budgets, min(map(len, pools)))
    found = analyse(pools, claims, sizes, subsets=subsets, seed=seed)
    written = [] if output is None else write_page(found, output, command_line())
    if choices is not None:
        written += _choices(pools, sizes, choices, results)
    _tell(found, written, json)


def _pools(studies: Sequence[str], again: Sequence[str], results: str) -> "list[ScoredPool]":
    files = [one for one in studies if one.endswith(FILE)]
    if not files:
        store = store_with([*studies, *again], results)
        remark(f"Reading {', '.join(studies)} ...")
        from contrasweep.tuning.stability.scored_pool import read_scored_pools

        return read_scored_pools(store, studies, again)
    if len(studies) > 1 or again:
        raise InputError(f"{files[0]} has its studies and their other seeds in it: give it alone")
    from contrasweep.tuning.stability.pool_file import read_pool_file

    return read_pool_file(Path(files[0]))


def _choices(pools: "Sequence[ScoredPool]", budgets: Sequence[int], folder: Path, results: str) -> list[Path]:
    from contrasweep.tuning.stability.choices import write_choices
    from contrasweep.tuning.store import ResultsStore

    return write_choices(ResultsStore(results), pools, budgets, folder)


def _tell(found: "Stability", written: Sequence[Path], as_json: bool) -> None:
    from contrasweep.tuning.stability.table import (
        CLAIMS,
        DEVIATIONS,
        ON_OTHER_SEEDS,
        RANKING,
        SCORES,
        claim_rows,
        content_of,
        other_seed_rows,
        ranking_rows,
        score_rows,
        sentences,
        variance_rows,
        warnings_of,
    )

    for line in warnings_of(found):
        warn(f"{line}.")
    if as_json:
        print_json({**content_of(found), "files": [str(path) for path in written]})
        return
    print_rows(CLAIMS, claim_rows(found), footer=" ".join(sentences(found)))
    if rows := other_seed_rows(found):
        print_rows(ON_OTHER_SEEDS, rows)
    print_rows(SCORES, score_rows(found))
    if rows := variance_rows(found):
        print_rows(DEVIATIONS, rows)
    if rows := ranking_rows(found):
        print_rows(RANKING, rows)
    for path in written:
        say(f"Wrote {path}")
