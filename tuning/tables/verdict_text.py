"""Verdicts as text and as plain data, without the table that they are about."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from contrasweep.names import counted, few
from contrasweep.search_spaces.tables import Claim
from contrasweep.tuning.tables.evidence import JudgedComparison
from contrasweep.tuning.tables.verdict import Verdict

BOUND: Final = "the bound is ours"
_BOUNDED: Final = re.compile(r"\b(similar|flat|linear_in_x|quadratic_in_x)\(")
"""The functions of checks whose bounds we chose (tables/functions.py)."""


def verdicts_markdown(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as Markdown: how many came out how, the claims, then each of their comparisons."""
    counts = Counter[str](verdict.status for verdict in verdicts)
    total = counted(len(verdicts), "claim")
    parts = [f"{total}: {', '.join(f'{count} {status}' for status, count in counts.items())}."]
    told = [(claim, status, remarks) for claim, _, status, remarks in map(verdict_line, verdicts)]
    parts.append(pipes(("claim", "verdict", ""), told))
    singles = [
        (verdict.claim.text, one.text, *_interval(one), one.finding)
        for verdict in verdicts
        for one in verdict.comparisons
    ]
    if singles:
        parts.append(pipes(("claim", "comparison", "true by", "90 % interval", "finding"), singles))
    return "\n\n".join(parts) + "\n"


def verdict_content(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data."""
    return {
        "text": verdict.claim.text,
        "check": verdict.claim.check,
        "verdict": verdict.status,
        "p_false": verdict.false,
        "p_true": verdict.true,
        "chance": verdict.chance,
        "comparisons": [asdict(one) for one in verdict.comparisons],
        "seeds": verdict.seeds,
        "note": verdict.note,
    }


def _interval(one: JudgedComparison) -> tuple[str, str]:
    """Return the margin and its interval; empty where one has no value, as after a division by 0."""
    margin = f"{one.margin:.4g}" if math.isfinite(one.margin) else ""
    return margin, "" if math.isnan(one.low) else f"{one.low:.4g} to {one.high:.4g}"


def verdict_line(verdict: Verdict) -> tuple[str, str, str, str]:
    """Return the claim, whether it holds as printed, our verdict, and remarks on the verdict."""
    claim = verdict.claim
    # The printed cells of a column say nothing about the column that is read in its place.
    printed = {True: "holds", False: "does not hold", None: ""}[None if verdict.read_in else claim.holds]
    place = f"read in {', '.join(verdict.read_in)}" if verdict.read_in else ""
    seeds = "" if verdict.seeds is None else f"n = {verdict.seeds}"
    if verdict.seeds is None and verdict.status in ("holds", "contradicted"):
        seeds = "facts of the data"
    bound = BOUND if bound_is_ours(claim) else ""
    text = f"{verdict.shown_in}: {claim.text}" if verdict.shown_in else claim.text
    remarks = "; ".join(filter(None, [place, _findings(verdict), seeds, verdict.note, bound]))
    return text, printed, verdict.status, remarks


def _findings(verdict: Verdict) -> str:
    """Return how many comparisons came out how, which ones contradict the claim, and what chance gives."""
    counts = Counter[str](one.finding for one in verdict.comparisons)
    words = {"supports": "supported", "contradicts": "contradicted", "equal": "equal", "undecided": "open"}
    found = [f"{counts[finding]} {word}" for finding, word in words.items() if counts[finding]]
    text = f"of {sum(counts.values())}: {', '.join(found)}" if sum(counts.values()) > 1 else ""
    named = verdict.against if len(verdict.comparisons) > 1 else ()
    against = f"against it: {few(named, 2)}" if named else ""
    p = "" if verdict.p is None else f"p {p_text(verdict.p)}"
    chance = "" if verdict.chance is None else f"{100 * verdict.chance:.0f} % by chance"
    return "; ".join(filter(None, [text, against, p, chance]))


def bound_is_ours(claim: Claim) -> bool:
    """Whether the paper only says `similar`, `flat` or the like, so that we chose what is near enough."""
    return claim.threshold_chosen_here or _BOUNDED.search(claim.check or "") is not None


def p_text(p: float) -> str:
    """Return a p value after its sign: `= 0.012`, or `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def pipes(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table without its empty columns; the first column always stays.

    A line break in a cell becomes a blank.
    """
    said = [place for place in range(len(headings)) if place == 0 or any(row[place] for row in rows)]
    shown = [[line[place] for place in said] for line in (headings, *rows)]
    lines = [shown[0], ["---"] * len(said), *shown[1:]]
    return "\n".join(
        "| " + " | ".join(" ".join(text.split()).replace("|", "\\|") for text in line) + " |"
        for line in lines
    )
