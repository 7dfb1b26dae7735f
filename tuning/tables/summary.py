"""The papers' claims in one paragraph, and which stored runs are older than the settings of their table."""

from collections.abc import Sequence

from contrasweep.search_spaces.papers import PAPERS
from contrasweep.tuning.tables.outdated import changed_settings
from contrasweep.tuning.tables.scoreboard import ScoreLine
from contrasweep.tuning.tables.standings import ClaimOutcome, JudgedForm, Standing

UNDECIDING: tuple[ClaimOutcome, ...] = ("equal", "undecided", "inert")
"""The outcomes of claims that were run as printed, and neither confirmed nor contradicted."""
NOT_RUN: tuple[ClaimOutcome, ...] = ("not run yet", "data missing", "cannot run")


def in_short(stands: Sequence[Standing], total: ScoreLine) -> str:
    """Return what all claims come to, in a paragraph of Markdown.

    Args:
        stands: where all claims stand.
        total: the scoreboard's line of all papers.
    """
    counts = {outcome: total.outcomes.get(outcome, 0) for outcome in (*UNDECIDING, *NOT_RUN)}
    confirmed, contradicted, elsewhere, fixed = (
        total.outcomes.get(outcome, 0)
        for outcome in ("confirmed", "contradicted", "other form", "not re-testable")
    )
    said = [
        f"**In short.** Of {total.claims} claims, {_are(confirmed)} confirmed{_without_runs(stands)} and "
        f"{_are(contradicted)} contradicted."
    ]
    ran = sum(counts[outcome] for outcome in UNDECIDING)
    if ran:
        kinds = ", ".join(f"{counts[one]} {one}" for one in UNDECIDING if counts[one])
        said.append(f"{ran} more ran with the paper's settings on its data: {kinds}{_inert(stands)}.")
    said.append(
        f"{elsewhere} were judged only in another form or on other data, {fixed} cannot be tested again, and "
        f"{sum(counts[outcome] for outcome in NOT_RUN)} have not been run ({counts['data missing']} of them "
        "need data that no stored run has read)."
    )
    return " ".join(said)


def older_runs(judged: Sequence[JudgedForm]) -> str:
    """Return which tables have runs with settings that the paper's form has changed since; empty if none."""
    older: dict[str, list[str]] = {}
    for one in judged:
        if one.as_printed and changed_settings(one.results):
            table = one.results.table
            older.setdefault(PAPERS[table.paper].short, []).append(table.number)
    if not older:
        return ""
    named = "; ".join(f"{paper}: {', '.join(tables)}" for paper, tables in older.items())
    return (
        "Some stored runs with the paper's settings are older than the present settings of their table "
        f"({named}). They count here until they are run again; the paper's page lists what has changed."
    )


def _are(count: int) -> str:
    return {0: "none is", 1: "1 is"}.get(count, f"{count} are")


def _without_runs(stands: Sequence[Standing]) -> str:
    """Return how many of the confirmed claims are facts of the data."""
    decisive = [stand.decisive for stand in stands if stand.outcome == "confirmed"]
    facts = sum(found is not None and found.verdict.p is None for found in decisive)
    if not facts:
        return ""
    who = ("both" if facts == 2 else "all") if facts == len(decisive) else f"{facts} of them"
    return f" ({who} by facts of the data, without runs)"


def _inert(stands: Sequence[Standing]) -> str:
    """Return what inert means, with the length of the runs where all have the same."""
    found = [stand.decisive for stand in stands if stand.outcome == "inert"]
    if not found:
        return ""
    lengths = {
        cell.settings.get("epochs") for one in found if one is not None for cell in one.results.cells.values()
    }
    after = f"after {lengths.pop()} epochs, " if len(lengths) == 1 and None not in lengths else ""
    return f" ({after}no row that they read is shown to differ from its untrained encoder)"
