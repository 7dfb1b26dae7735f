"""The text beside a table's numbers, shared by all formats: form, selection, seeds, deviations, gaps."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from contrasweep.names import counted, few
from contrasweep.search_spaces.papers import PAPERS
from contrasweep.search_spaces.tables import Table
from contrasweep.tuning.durations import in_one_unit
from contrasweep.tuning.statistics import Summary
from contrasweep.tuning.store import FINAL_SUFFIX
from contrasweep.tuning.tables.collect import information_of
from contrasweep.tuning.tables.compare import Compared, Difference
from contrasweep.tuning.tables.plan import own_prefix
from contrasweep.tuning.tables.results import TableResults, without

NO_SELECTION = (
    "nothing is selected: all settings are fixed before a run, which reads the test split once, at its end"
)
MINUS = "\u2212"


def title(results: TableResults) -> str:
    """Return the paper, the number of the table and the form that was run."""
    table = results.table
    return f"{PAPERS[table.paper].short}, {table.number}: {results.label}"


def selection(results: TableResults) -> str:
    """Return the rule by which the settings behind the numbers were chosen."""
    if not results.tuned:
        return results.table.run.selection or NO_SELECTION
    rows = _grouped((info.selected, row) for (row, _), info in results.cells.items() if info.selected)
    rules = [rule if len(rows) == 1 else f"{rule} ({', '.join(own)})" for rule, own in rows.items()]
    rule = "; ".join(rules) or "none chosen yet"
    return f"for each row, {rule}, on the validation split; then fresh seeds, which read the test split once"


def facts(results: TableResults) -> list[str]:
    """Return the facts behind the numbers, one sentence each."""
    table = results.table
    if table.run.information is not None:
        return [f"Facts of the data ({table.run.information}): no run, no seed.", _crossing(results)]
    datasets = sorted({info.dataset for info in results.cells.values()})
    form = table.run.form(results.scale)
    lines = [
        f"Runs: {results.label}{f': {form.what}' if form else ''}; {counted(results.seeds, 'seed')}.",
        f"Selection: {selection(results)}.",
        f"These runs: mean ± sample standard deviation over {_seeds(results)}, as many as n says. "
        + _compared(results),
        f"Data: {', '.join(datasets) or 'none here'}.",
    ]
    if results.values:
        searches = f", of the searches {in_one_unit(results.search_seconds)}" if results.tuned else ""
        lines.append(f"Wall-clock of all final runs together: {in_one_unit(results.seconds)}{searches}.")
    lines += _taken(results)
    if results.provenance:
        lines.append("; ".join(f"{name} {value}" for name, value in sorted(results.provenance.items())) + ".")
    measured = {value.column for value in results.values} & set(table.run.columns)
    lines += _stand_ins(table, measured)
    if results.on_other_data:
        lines.append("Nothing was run on the paper's data: the verdicts are about what stands in for them.")
    return lines


def _seeds(results: TableResults) -> str:
    """Return the range of the seeds; a row whose search took several seeds has later ones than the others."""
    seeds = {value.seed for value in results.values if value.seed is not None}
    first, last = (min(seeds), max(seeds)) if seeds else (1, results.seeds)
    return f"seed {first}" if first == last else f"seeds {first} to {last}"


def deviations(results: TableResults) -> list[str]:
    """Return how these runs differ from the paper."""
    run = results.table.run
    full, as_printed = results.scale != "quick", results.scale == "paper" and not results.tuned
    return [
        *run.deviations,
        *(run.full_deviations if full else ()),
        *(run.paper_deviations if as_printed else ()),
    ]


def gaps(results: TableResults) -> list[str]:
    """Return the cells that lack runs, one line a reason; a column without any runs is named as a whole."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for (row, column), why in results.gaps.items():
        reasons.setdefault(why, {}).setdefault(column, []).append(row)
    rows = len(results.table.row_names)
    lines = []
    for why, columns in reasons.items():
        whole = [f"all of {results.table.column_name(c)}" for c, own in columns.items() if len(own) == rows]
        parts = [f"{row} in {c}" for c, own in columns.items() if len(own) < rows for row in own]
        lines.append(f"{few([*whole, *parts])}: {why}")
    return lines


def ours_text(summary: Summary | None, digits: int) -> str:
    """Return `mean ± std (n)`; empty without a summary."""
    if summary is None:
        return ""
    spread = "" if summary.std is None else f" ± {summary.std:.{digits}f}"
    return f"{plain(summary.mean, digits)}{spread} ({summary.n})"


def difference_text(found: Difference | None, digits: int) -> str:
    """Return the difference with the ends of its interval."""
    if found is None:
        return ""
    ends = [signed(end, digits) for end in (found.low, found.high) if end is not None]
    return signed(found.mean, digits) + (f" [{', '.join(ends)}]" if ends else "")


def plain(value: float, digits: int) -> str:
    """Return a number with a minus sign if it is negative; a number that rounds to zero has no sign."""
    text = f"{abs(value):.{digits}f}"
    return MINUS + text if value < 0 and text.strip("0.") else text


def signed(value: float, digits: int) -> str:
    """Return a number with its sign; a number that rounds to zero has no sign."""
    text = plain(value, digits)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def printed_text(cell: Compared) -> str:
    """Return the printed value; a value quoted from another paper is marked."""
    return cell.printed.replace("±", " ± ") + (" (cited)" if cell.cited else "")


def settings_lines(results: TableResults) -> list[str]:
    """Return the settings behind the cells: first those that all rows share, then those of each row."""
    common = results.common_settings
    lines = [f"all rows: {_assigned(common)}"] if common else []
    rows: dict[str, dict[str, list[str]]] = {}
    for (row, column), info in results.cells.items():
        own = _assigned(without(info.settings, common))
        rows.setdefault(row, {}).setdefault(own, []).append(column)
    for row, variants in rows.items():
        for own, columns in variants.items():
            where = "" if len(variants) == 1 else f" in {', '.join(columns)}"
            lines.append(f"{row}{where}: {own or 'nothing else'}")
    return lines


def _assigned(settings: Mapping[str, Any]) -> str:
    shown = {name.removeprefix("hyperparameters."): value for name, value in settings.items()}
    return ", ".join(f"{name} {_short(value)}" for name, value in shown.items() if value is not None)


def _short(value: Any) -> str:
    """Return a value as text; a long number, such as a searched one, keeps four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) and len(str(value)) > 8 else str(value)


def _taken(results: TableResults) -> list[str]:
    """Return a sentence for each study of another table whose runs are shown."""
    own = own_prefix(results.table)
    taken = [value for value in results.values if value.study and not value.study.startswith(own)]
    return [
        f"From study {study}{FINAL_SUFFIX}, run for another table with the same settings and seeds: "
        f"{', '.join(rows)}."
        for study, rows in _grouped((value.study, value.row) for value in taken).items()
    ]


def _crossing(results: TableResults) -> str:
    curve = information_of(results)
    found = f"k = {curve.ks[0]} to {curve.ks[-1]}"
    if curve.crossing is None:
        return f"Over {found} rescaled I(Z;T) and -H(Z|T) do not cross."
    return f"Over {found} rescaled I(Z;T) and -H(Z|T) cross at k = {curve.crossing.at:.1f}."


def _compared(results: TableResults) -> str:
    if not results.compared:
        return "Nothing is compared with print: the verdicts are about these small runs, not the paper's."
    runs = results.table.run.published_runs
    alone = "of these runs alone: the paper does not say how many runs it prints"
    return (
        f"Difference: these runs {MINUS} printed, with its 95 % interval "
        f"({f'Welch, {runs} printed runs' if runs is not None else alone}); none where the runs are on other "
        "data than the paper's."
    )


def _stand_ins(table: Table, measured: Collection[str]) -> list[str]:
    """Return why columns stand in for the paper's, one sentence for each reason."""
    ours = [(key, column.stands_in) for key, column in table.run.columns.items() if key in measured]
    columns = _grouped((why, table.column_name(key)) for key, why in ours if why is not None)
    return [
        f"Column{'s' * (len(names) > 1)} {', '.join(names)} stand{'s' * (len(names) == 1)} in: {why}."
        for why, names in columns.items()
    ]


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the second words by the first, each once, in their order."""
    found: dict[str, list[str]] = {}
    for key, word in dict.fromkeys(pairs):
        found.setdefault(key, []).append(word)
    return found
