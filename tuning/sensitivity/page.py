"""The sensitivity page: what each figure says in words, and where the data cannot say it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from contrasweep.tuning.files import write_whole
from contrasweep.tuning.reports.page import Section, Table, cell_text, check_page, render_page, while_running
from contrasweep.tuning.sensitivity import figures
from contrasweep.tuning.sensitivity.analyse import Sensitivity, StudySensitivity, Surrogate, analyse
from contrasweep.tuning.sensitivity.compared import comparison_sections
from contrasweep.tuning.sensitivity.decomposition import Share
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import Fidelity
from contrasweep.tuning.sensitivity.importance import Importance
from contrasweep.tuning.sensitivity.marginals import Marginal
from contrasweep.tuning.sensitivity.tables import sensitivity_tables
from contrasweep.tuning.sensitivity.tunability import Tunability
from contrasweep.tuning.store import ResultsStore, StudyRecord

MOST_NAMED = 4
PAIRS_DRAWN = 4
LEAST_R2 = 0.1
"""Below this, a surrogate predicts too little for its curves to mean much; the page says so."""


def sensitivity_page(
    found: Sensitivity, records: Sequence[StudyRecord], command: str, *, refresh: float | None = None
) -> str:
    """Return the page of an analysis as self-contained HTML.

    Args:
        found: the analysis.
        records: of the same studies, in the same order.
        command: that makes the page again.
        refresh: seconds after which a browser loads the page again.
    """
    tables = sensitivity_tables(found)
    several = len(found.studies) > 1
    sections = list(comparison_sections(found, tables)) if several else []
    for one in found.studies:
        sections += sensitivity_sections(one, tables, several)
    names = [one.observations.study for one in found.studies]
    title = f"Sensitivity: {names[0]}" if not several else f"Sensitivity of {len(names)} studies"
    footer = _footer(found, records, command)
    return render_page(title, _subtitle(found), sections, footer, refresh=refresh)


def _subtitle(found: Sensitivity) -> str:
    seen = {(one.observations.method, one.observations.dataset) for one in found.studies}
    if len(seen) <= MOST_NAMED:
        return "; ".join(f"{method} on {dataset}" for method, dataset in sorted(seen))
    return f"{len({method for method, _ in seen})} methods on {len({data for _, data in seen})} datasets"


def sensitivity_sections(
    one: StudySensitivity, tables: Mapping[str, Table], several: bool
) -> Iterator[Section]:
    """Yield the sections about one study.

    Args:
        one: its analysis.
        tables: of all analyses, as `sensitivity_tables` gives them.
        several: whether the titles are to name the study.
    """
    builders: tuple[Callable[[StudySensitivity, Mapping[str, Table]], Section], ...] = (
        _overview,
        _importance,
        _marginals,
        _interactions,
        _tunability,
        _robustness,
        _fidelity,
        _budget,
        _noise,
    )
    for build in builders:
        section = build(one, tables)
        title = f"{one.observations.study}: {section.title.lower()}" if several else section.title
        yield Section(title, section.text, section.figures, section.tables)


def _overview(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    o = one.observations
    known = o.score[np.isfinite(o.score)]
    lines = [
        f"{len(o.trial)} trials of {o.method} on {o.dataset}; score: {o.metric} after {o.epochs} epochs "
        "at most, "
        "on the validation split, larger is better.",
        _best_line(known, o.untrained),
        _surrogate_line(one.surrogate),
    ]
    transposed = _transposed(_of(tables, "studies", one))
    return Section("Trials", "\n\n".join(filter(None, lines)), (), [transposed])


def _best_line(scores: np.ndarray[tuple[int], np.dtype[np.float64]], untrained: float) -> str:
    if not len(scores):
        return "No trial has a final score yet."
    line = f"Best score {scores.max():.4g}"
    if np.isfinite(untrained):
        line += f"; the untrained encoder has {untrained:.4g}"
        line += "." if scores.max() > untrained else ": training did not beat it."
    return line.rstrip(".") + "."


def _surrogate_line(surrogate: Surrogate | TooFew) -> str:
    if isinstance(surrogate, TooFew):
        return f"Curves, pairs, gains and robust ranges come from a model of the score: {surrogate}."
    line = (
        f"Curves, pairs, gains and robust ranges come from a forest fitted on {surrogate.trials} trials"
        + (
            f", {surrogate.estimated} of them stopped early with an estimated score"
            * (surrogate.estimated > 0)
        )
        + f". Of trials it has not seen, it predicts {100 * max(0.0, surrogate.r2):.0f} % of the variance."
    )
    if surrogate.left_out:
        line += f" {surrogate.left_out} ended trials without a score are left out of it."
    if surrogate.r2 < LEAST_R2:
        line += " That is next to nothing: what rests on it here is not to be relied on."
    return line


def _importance(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    known = [i for i in one.importances if isinstance(i, Importance)]
    text = (
        "Blue or green: more than chance would give; grey: not told apart from chance (the red mark). "
        "PED-ANOVA asks what sets the best trials apart; fANOVA asks what moves the score over the whole "
        "space, bad regions included, so the two need not agree. A parameter that depends on another is "
        "judged within each value of that other."
    )
    missing = [i for i in one.importances if isinstance(i, TooFew)]
    if missing:
        least = min(missing, key=lambda i: i.found)
        text += f"\n\nPED-ANOVA of {len(missing)} entries: {least}."
    drawn = [figures.importance_figure(known)] if known else []
    if one.shares:
        drawn.append(figures.variance_figure(one.shares))
    return Section("Importance", text, drawn, _some(tables, one, "importance", "variance"))


def _marginals(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    if isinstance(one.surrogate, TooFew):
        return Section("One parameter at a time", f"{_capital(one.surrogate)}.")
    text = (
        "Mean predicted score over one parameter, averaged over the whole space of the others, with a "
        "pointwise 95 % interval; dots are trials (open: estimated score), the dotted vertical line is "
        "the default. The mean over the others is lower "
        "than the best trials: read the shape, not the height. Dotted or grey: very few trials."
    )
    groups: dict[str, list[Marginal]] = {}
    for curve in one.marginals:
        groups.setdefault(curve.axis.name, []).append(curve)
    metric = one.observations.metric
    drawn = [figures.marginal_figure(curves, metric) for curves in groups.values()]
    return Section("One parameter at a time", text, drawn)


def _interactions(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    if isinstance(one.interactions, TooFew):
        return Section("Two parameters together", f"{_capital(one.interactions)}.")
    above = sum(share.above_chance for share in one.interactions)
    text = (
        "How much two parameters explain beyond the sum of what each explains, of the surrogate's variance. "
        f"{above} of {len(one.interactions)} pairs explain more than chance would give. The maps show "
        "the mean "
        "score over both; the largest interactions come first."
    )
    by_name = {(p.first.name, p.second.name): p for p in one.pairs}
    pairs = [(by_name[_two(share)], share) for share in one.interactions[:PAIRS_DRAWN]]
    drawn = [figures.pair_figure(pair, share, one.observations.metric) for pair, share in pairs]
    return Section("Two parameters together", text, drawn, _some(tables, one, "interactions"))


def _two(share: Share) -> tuple[str, str]:
    first, second = share.parameters
    return first, second


def _tunability(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    found = one.tunability
    if isinstance(found, TooFew):
        return Section("Tunability", f"{_capital(found)}.")
    measured = found.measured_default
    text = (
        f"{_gain_line(found)} Half of the trials choose the values and the other half judges them, so that a "
        "lucky trial does not count as a gain; a gain below 0 means that the choice did not hold. "
        f"The defaults are predicted to score {found.default_score:.4g}"
        + (f"; trial 0, which ran them, scored {measured:.4g}." if measured is not None else ".")
    )
    return Section("Tunability", text, [figures.tunability_figure(found)], _some(tables, one, "tunability"))


def _gain_line(found: Tunability) -> str:
    g = found.jointly
    interval = f"{g.gain:+.3g} (95 %: {g.low:+.3g} to {g.high:+.3g})"
    if g.low > 0:
        return f"Tuning all parameters gains {interval} over the defaults."
    if g.high < 0:
        return f"Tuning loses against the defaults: {interval}."
    return f"Whether tuning gains anything over the defaults cannot be told: {interval}."


def _robustness(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    found = one.robustness
    if isinstance(found, TooFew):
        return Section("Robust region", f"{_capital(found)}.")
    values = ", ".join(f"{name} {figures.short(value)}" for name, value in found.best.items())
    text = (
        "How far each parameter can be moved, the others at their best, while the predicted score stays "
        f"within one standard error ({found.error:.2g}) of the best prediction ({found.score:.4g}). "
        f"Best configuration among the trials: {values}. A wide range means that the parameter need not be "
        "tuned finely, or that there are too few trials to tell."
    )
    return Section("Robust region", text, [figures.robust_figure(found)], _some(tables, one, "robustness"))


def _fidelity(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    found = one.fidelity
    if isinstance(found, TooFew):
        return Section("Was stopping early safe?", f"{_capital(found)}.")
    if not found.epochs:
        return Section("Was stopping early safe?", "The early scores were not recorded, or are all alike.")
    text = (
        f"Rank correlation of {found.metric} after each epoch with the final {found.final_metric}, over "
        "completed "
        "trials. " + _safety_line(found)
    )
    if found.stopped:
        text += (
            f"\n\n{found.stopped} trials were stopped and have no final score. Those that went on "
            "resemble each "
            "other, which makes the correlation look smaller than it is over all trials; the open marks undo "
            "this as far as the relation is a straight line. A good trial that was stopped by mistake shows "
            "in neither: only a search without early stopping can tell."
        )
    return Section(
        "Was stopping early safe?", text, [figures.fidelity_figure(found)], _some(tables, one, "fidelity")
    )


def _safety_line(found: Fidelity) -> str:
    rungs = [e for rung in found.rungs if (e := found.at(rung)) is not None]
    if not rungs:
        first = next((e for e in found.epochs if e.verdict == "safe"), None)
        if first is None:
            return "At no epoch would it surely have been safe to stop (correlation above 0.5)."
        safe = f"it would have been safe from epoch {first.epoch} on (above 0.5, interval and all)"
        return f"Nothing was stopped; {safe}."
    told = "; ".join(
        f"epoch {e.epoch}: {e.verdict} ({e.spearman:.2f}, 95 % {e.low:.2f} to {e.high:.2f}; the final "
        "best was "
        f"number {e.best_rank} of {e.trials} then)"
        for e in rungs
    )
    return f"Where trials were stopped: {told}."


def _budget(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    found, o = one.budget, one.observations
    if isinstance(found, TooFew):
        return Section("Score against budget", f"{_capital(found)}.")
    text = (
        "The best score to expect of b trials drawn from those of this study, with its 95 % interval, up to "
        f"half of the {found.ended} ended trials; {found.without_score} without a final score count as the "
        "worst that completed. "
    )
    if not found.independent:
        text += (
            f"The sampler ({o.sampler or 'unknown'}) learned as it went, so its first trials were worse than "
            "its last ones and the curve is what they give in any order; the dashed line is how it went. "
        )
    text += f"A trial took {found.seconds_a_trial:.3g} s on average."
    drawn = [
        figures.budget_figure(found, o.metric, o.untrained),
        figures.cost_figure(found, o.metric, o.untrained),
    ]
    return Section("Score against budget", text, drawn, _some(tables, one, "budget"))


def _noise(one: StudySensitivity, tables: Mapping[str, Table]) -> Section:
    found = one.noise
    if isinstance(found, TooFew):
        text = f"{_capital(found)}. Seeds are repeated with --seeds, or by final runs."
        return Section("Seed noise", text)
    text = (
        f"Over {found.trials} configurations with {found.runs} runs, seeds scatter by {found.seed_std:.3g} "
        f"(95 %: {found.seed_low:.3g} to {found.seed_high:.3g}), configurations by {found.trial_std:.3g}: "
        f"{100 * found.share:.0f} % of the variance of single runs is the configuration "
        f"({100 * found.share_low:.0f} to {100 * found.share_high:.0f} %). Two single runs that differ "
        "by less "
        f"than {found.detectable:.3g} may differ by their seeds alone."
    )
    return Section("Seed noise", text, (), _some(tables, one, "noise"))


def _of(tables: Mapping[str, Table], name: str, one: StudySensitivity) -> Table:
    """The rows of one study, without the column that names it."""
    table = tables[name]
    rows = [row[1:] for row in table.rows if row[0] == one.observations.study]
    return Table(table.title, table.columns[1:], rows, table.note)


def _some(tables: Mapping[str, Table], one: StudySensitivity, *names: str) -> list[Table]:
    found = [_of(tables, name, one) for name in names if name in tables]
    return [table for table in found if table.rows]


def _transposed(table: Table) -> Table:
    (row,) = table.rows
    pairs = [[name, cell_text(value)] for name, value in zip(table.columns, row, strict=True)]
    return Table(table.title, ("", "this study"), pairs)


def _footer(found: Sensitivity, records: Sequence[StudyRecord], command: str) -> list[str]:
    lines = []
    for one, record in zip(found.studies, records, strict=True):
        o = one.observations
        seeds = ", ".join(map(str, np.unique(o.replicates.seed))) or "none"
        versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
        lines.append(
            f"{record.name}: {len(o.trial)} trials, {o.count('completed')} completed, seeds {seeds}; "
            f"trials are compared by {o.metric} on the validation split, so the best is optimistic; "
            f"ran on {o.hardware or record.host}; {versions}; revision {record.git_revision or 'unknown'}."
        )
    return [
        *lines,
        "Intervals are 95 %. How each figure is computed: docs/sensitivity.md.",
        f"Made by: {command}",
    ]


def _capital(text: object) -> str:
    words = str(text)
    return words[:1].upper() + words[1:]


def write_sensitivity(
    store: ResultsStore,
    studies: Sequence[str],
    path: Path,
    command: str,
    *,
    watch: float | None = None,
    wait: Callable[[float], object] = time.sleep,
) -> Sensitivity:
    """Analyse studies and write the page about them into `path`, whole or not at all.

    Args:
        store: the results.
        studies: their names.
        path: the file.
        command: that makes the page again.
        watch: seconds after which both are done again, as long as one of the studies runs; None: once. If
            the waiting is interrupted, the last page does not ask a browser to load it again.
        wait: waits for as many seconds as it is told.

    Returns:
        What the page shows; of several pages, the last.

    Raises:
        InputError: `path` is no page, or cannot be written; or `watch` is less than a second.
        StoreError: there is no such study.
    """
    check_page(path)
    for refresh in [None] if watch is None else while_running(store, studies, watch, wait):
        records = [store.study(name) for name in studies]
        found = analyse(store, studies)
        write_whole(path, sensitivity_page(found, records, command, refresh=refresh))
    return found
