"""`contrasweep tables`: list the papers' tables: what each needs and costs, and how much has been run."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from contrasweep.tuning.cli.options import AsJson, DataRoot, Results
from contrasweep.tuning.cli.rendering import print_entries, print_json, remark, source_line, tell
from contrasweep.tuning.cli.table import Scale
from contrasweep.tuning.errors import unknown_name
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.search_spaces.tables import Table
    from contrasweep.tuning.tables.collect import StoredRuns


def tables(
    scale: Scale = "paper", results: Results = RESULTS, data_root: DataRoot = None, json: AsJson = False
) -> None:
    """List the papers' tables and figures: what they need, what they cost, and how much has been run.

    Example: contrasweep tables
    """
    remark("Loading torch, and looking for data and results ...")
    from contrasweep.search_spaces.tables import available_tables, load_table
    from contrasweep.tuning.store import ResultsStore
    from contrasweep.tuning.tables.collect import StoredRuns
    from contrasweep.tuning.tables.plan import SCALES

    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    runs = StoredRuns(ResultsStore(results))
    listed = [_listed(load_table(name), scale, runs, data_root) for name in available_tables()]
    if json:
        print_json([row for row, _ in listed])
        return
    shown: dict[str, list[str | Text]] = {}
    never: dict[str, list[str | Text]] = {}
    for row, facts in listed:
        if row["state"] == "cannot run":
            never[row["table"]] = [row["why"]]
        else:
            shown[row["table"]] = [row["caption"], source_line(" · ".join(filter(None, facts)))]
    print_entries(f"Tables that run, {scale} scale", shown)
    print_entries("Tables that cannot run, and why", never)
    tell("Cost: on one core, by measured epochs. contrasweep table ID runs one.")


def _listed(
    table: "Table", scale: str, runs: "StoredRuns", data_root: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the row of a table in the list, and the facts that a terminal shows in one line."""
    from contrasweep.tuning.tables.collect import runs_done
    from contrasweep.tuning.tables.plan import lacks_form, needed_data, plan_table
    from contrasweep.tuning.tables.remaining import cost_in_words

    line = {"table": table.id, "caption": table.caption}
    if table.run.information is not None:
        return _of_information(line, table.run.information, data_root)
    if lacks_form(table, scale):
        state = f"no {scale} form"
        return {**line, "state": state, "data": "", "done": "", "cost": "", "why": ""}, [state]
    plan = plan_table(table, scale=scale, data_root=data_root)
    count, cost = runs_done(plan, runs), cost_in_words(plan.seconds) if plan.runs else ""
    done = "done" if count >= plan.runs > 0 else f"{count} of {plan.runs} runs"
    here, absent = needed_data(plan)
    row = {
        **line,
        "state": plan.state,
        "data": ", ".join([*here, *(f"{name} (not here)" for name in absent)]),
        "done": done,
        "cost": cost,
        "why": next((cell.why for cell in plan.cells if cell.why), table.run.never or ""),
    }
    progress = [done, f"cost {cost}"] if plan.runs else []
    return row, [plan.state, *progress, _short(here), f"not here: {_short(absent)}" if absent else ""]


def _of_information(
    line: dict[str, Any], clusterings: str, data_root: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the same for a figure of clusterings, which needs their file and no run."""
    from contrasweep.data import DatasetMissing, load_clusterings
    from contrasweep.tuning.tables.planned import DATA, RUNS
    from contrasweep.tuning.tables.remaining import cost_in_words

    state, why, where = RUNS, "", clusterings
    try:
        load_clusterings(clusterings, data_root)
    except DatasetMissing as error:
        state, why, where = DATA, str(error), f"not here: {clusterings}"
    known = {"state": state, "data": clusterings, "done": "no runs", "cost": cost_in_words(0), "why": why}
    return {**line, **known}, [state, "facts of the data, no runs", where]


def _short(names: list[str]) -> str:
    """Return the names of datasets as one line; more than two forms of one dataset become their number."""
    forms = Counter(name.partition(":")[0] for name in names)
    bases = ((name, name.partition(":")[0]) for name in names)
    told = (f"{base} ({forms[base]} forms)" if forms[base] > 2 else name for name, base in bases)
    return ", ".join(dict.fromkeys(told))
