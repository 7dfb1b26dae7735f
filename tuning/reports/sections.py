"""The sections of a report on one study."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from contrasweep.names import counted, with_capital
from contrasweep.tuning.experiment.conditions import appended
from contrasweep.tuning.experiment.statuses import ENDED, counts_in_words
from contrasweep.tuning.methods.metrics import is_cheap
from contrasweep.tuning.reports.answer import answer_section
from contrasweep.tuning.reports.cost import cost_of, cost_table, draw_cost
from contrasweep.tuning.reports.figures import (
    COLOUR,
    MAX_POINTS,
    better_in_words,
    draw_curves,
    draw_front,
    draw_progress,
    front_of,
    last_score,
    sampled,
)
from contrasweep.tuning.reports.final import final_section, scored_runs
from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.reports.parallel import FEWEST, MOST_ROWS, draw_parallel
from contrasweep.tuning.reports.reproduce import reproduce_section
from contrasweep.tuning.results.best import beats, best_name, not_beaten_in_words, rule_in_words
from contrasweep.tuning.results.collapse import collapsed_trials
from contrasweep.tuning.results.commands import sensitivity_command, show_command
from contrasweep.tuning.results.failures import kinds_of_errors
from contrasweep.tuning.results.numbers import cell_text
from contrasweep.tuning.results.study import StudyData, TrialResult, hardware_of

MAX_MARKS = 2000
MAX_CURVES = 200
MAX_LINES = 150
MAX_FRONT = 1000
TOP = 10
MAX_ROWS = 50
MAX_ERROR = 400
NO_ERROR = "no error was recorded"
FEW = 5
"""With fewer completed trials, the page says that they are too few to tell."""


def study_sections(data: StudyData, mapped: Section | None = None) -> list[Section]:
    """Return the sections of a study's report, also the `mapped` one; those without content are left out."""
    found = [
        answer_section(data),
        _progress(data),
        _best(data),
        final_section(data),
        mapped,
        _curves(data),
        _parallel(data),
        _pareto(data),
        _failed(data),
        _cost(data),
        reproduce_section(data),
    ]
    return [section for section in found if section is not None]


def state_line(data: StudyData) -> str:
    """Return one line on the state of a study."""
    over = sum(data.counts.get(status, 0) for status in ENDED)
    endings = counts_in_words(data.counts)
    state = {"ended": "The sweep has ended", "running": "The sweep is running"}.get(
        data.state, "The sweep was interrupted; --resume goes on"
    )
    of_all = f"of {counted(data.planned, 'trial')} {'is' if data.planned == 1 else 'are'}"
    return f"{state}: {over:,} {of_all} over ({endings or 'none has begun'})."


def _progress(data: StudyData) -> Section:
    drawn = sampled(data, data.trials, MAX_MARKS)
    figures = [draw_progress(data, drawn.trials)] if data.curves else []
    scoreless = sum(last_score(trial) is None for trial in data.trials)
    without = f"Without a score and a mark: {counted(scoreless, 'trial')}." if scoreless else ""
    lines = _lines_of_progress(data) if figures else ""
    collapsed = collapsed_trials(data.candidates.outcomes)
    return Section("Progress", _text(state_line(data), lines, without, drawn.said, collapsed), figures)


def _lines_of_progress(data: StudyData) -> str:
    """Say what the lines and the marks of the figure are; it need not have each line."""
    best = f"The line is the {best_name(data.metric)}: the {_rule(data)}." if data.ranked else ""
    known = data.untrained_score(data.metric) is not None
    untrained = "The dashed line is the untrained encoder." if known else ""
    cheap = (
        f"{data.cheap_metric} is read on the validation split after every epoch; of trials that did not "
        "complete, the mark is its last value."
    )
    stops = data.search.scheduler != "none"
    stopped_by = f"{data.rung_metric} decides which trials are stopped early." if stops else ""
    return " ".join(filter(None, [best, untrained, cheap, stopped_by]))


def _best(data: StudyData) -> Section:
    title = "Best trials"
    rule = f"Selected: {_rule(data)}, on the validation split."
    if not data.ranked:
        return Section(title, _text(rule, f"{data.candidates.no_best}, so there is no best one."))
    return Section(title, _text(rule, data.order_in_words, _verdict(data)), tables=[_best_table(data)])


def _rule(data: StudyData) -> str:
    """Return what the best trial is, and the conditions that it keeps."""
    return rule_in_words(data.metric) + appended(data.search.keep)


def _verdict(data: StudyData) -> str:
    best, n = data.ranked[0], len(data.ranked)
    score = f"{data.metric} {cell_text(best.score)}"
    said = f"Trial {best.number} is the best of {data.candidates_in_words}: {score}"
    if best.untrained is None or best.score is None:
        said += "; how its encoder scored before training is not known."
    elif beats(data.metric, best.score, best.untrained):
        said += f", against {cell_text(best.untrained)} before training."
    else:
        said += f". {with_capital(not_beaten_in_words())} ({cell_text(best.untrained)})."
    if n < FEW:
        said += f" Too few to tell how good the search could get: {counted(n, 'trial')} completed."
    if data.record.seeds == 1:
        said += " Each trial ran with one seed: neighbours in this table may owe their order to it."
    return (
        said + " The best of many validation scores is optimistic; final runs on fresh seeds say what holds."
    )


def _best_table(data: StudyData) -> Table:
    shown = data.ranked[:TOP]
    recorded = [name for name in data.record.columns.metrics if name.startswith("val.")]
    metrics = [data.metric, *(name for name in recorded if not is_cheap(name) and name != data.metric)]
    hidden = len(data.ranked) - len(shown)
    note = f"The {TOP} best; {hidden:,} more completed." if hidden else ""
    cells = [(trial.epoch, trial.score, *map(trial.metrics.get, metrics[1:])) for trial in shown]
    title = "Completed trials, and the control"
    table = _trial_table(title, data, shown, ("epochs", *metrics), cells, note)
    control = ("untrained encoder", None, *map(data.untrained_score, metrics))
    padded = (*control, *[None] * (len(table.columns) - len(control)))
    return replace(table, rows=[*table.rows, padded])


def _trial_table(
    title: str,
    data: StudyData,
    trials: Sequence[TrialResult],
    columns: Sequence[str],
    cells: Sequence[Sequence[object]],
    note: str,
) -> Table:
    """Return a table with a row for each trial: its number, its `cells` under `columns`, and its values."""
    searched = [parameter.name for parameter in data.space.searched]
    rows = [(t.number, *own, *map(t.values.get, searched)) for t, own in zip(trials, cells, strict=True)]
    return Table(title, ("trial", *columns, *searched), rows, note)


def _curves(data: StudyData) -> Section | None:
    drawn = sampled(data, [t for t in data.trials if t.number in data.curves], MAX_CURVES)
    if not drawn.trials:
        return None
    longest = max(len(data.curves[t.number].epochs) for t in drawn.trials)
    thinned = f"Of {longest} epochs, {MAX_POINTS} are drawn." if longest > MAX_POINTS else ""
    marks = "A mark at the end of a curve says how the trial ended: stopped early, completed, failed."
    return Section("Learning curves", _text(marks, drawn.said, thinned), [draw_curves(data, drawn.trials)])


def _parallel(data: StudyData) -> Section | None:
    title = "Searched parameters"
    if not data.space.searched:
        return None
    scored = [trial for trial in data.trials if trial.last is not None]
    drawn = sampled(data, scored, MAX_LINES)
    found = draw_parallel(data, scored, {trial.number for trial in drawn.trials})
    if found is None:
        return Section(title, f"Too few to tell: fewer than {FEWEST} trials have a score.")
    how = (
        "Each line is a trial, from one parameter's value to the next, down to its score. A click on a fifth "
        "in the legend hides it. A trial that did not complete has its last score."
    )
    surely = sensitivity_command(data.name, data.results)
    left_out = (
        f"The rows are the {MOST_ROWS} parameters that tell good trials from bad ones most, each by itself; "
        f"without a row: {', '.join(found.left_out)}. `{surely}` says how surely."
        if found.left_out
        else ""
    )
    return Section(title, _text(how, left_out, drawn.said), [found.figure])


def _pareto(data: StudyData) -> Section | None:
    front = front_of(data)
    if front is None:
        return None
    n = len(front.members) + len(front.others)
    few = f"Too few to tell what the trade is: {n} completed." if n < FEW else ""
    colour = (
        "A large colour error (squared 8-bit levels) means that the representation has forgotten the colour."
        if COLOUR in front.metrics
        else ""
    )
    better = better_in_words(front.metrics, "each")
    how = (
        f"By {', '.join(front.metrics)}: {better}. A trial is on the front if no other completed trial is "
        "better by one of them without being worse by another."
    )
    by_number = {trial.number: trial for trial in data.trials}
    hidden = len(front.members) - MAX_ROWS
    note = f"The first {MAX_ROWS}; {hidden} more." if hidden > 0 else ""
    listed = [by_number[point.trial] for point in front.members[:MAX_ROWS]]
    cells = [point.scores for point in front.members[:MAX_ROWS]]
    table = _trial_table("On the front", data, listed, front.metrics, cells, note)
    others = front.others[:: max(1, -(-len(front.others) // MAX_FRONT))]
    said = (
        f"Drawn: the front, and {len(others):,} of the {len(front.others):,} other trials."
        if len(others) < len(front.others)
        else ""
    )
    return Section("Pareto front", _text(how, colour, few, said), draw_front(front, others), [table])


def _failed(data: StudyData) -> Section:
    failed = [trial for trial in data.trials if trial.status == "failed"]
    if not failed:
        return Section("Failed trials", "None.")
    kinds = kinds_of_errors(trial.error or NO_ERROR for trial in failed)
    tables = []
    if len(kinds) < len(failed):
        reasons = [(count, _shortened(error)) for count, error in kinds[:TOP]]
        tables.append(Table("Errors", ("trials", "error, the first of its kind"), reasons))
    shown, columns = failed[:MAX_ROWS], ("epoch", "error")
    note = (
        f"The first {MAX_ROWS}; `{show_command(data.name, data.results)}` lists all."
        if shown != failed
        else ""
    )
    cells = [(trial.epoch, _shortened(trial.error)) for trial in shown]
    tables.append(_trial_table("Failed trials", data, shown, columns, cells, note))
    said = f"{len(failed):,} of {counted(len(data.trials), 'trial')} failed; the search went on without them."
    return Section("Failed trials", said, tables=tables)


def _shortened(error: str | None) -> str:
    text = error or NO_ERROR
    return text if len(text) <= MAX_ERROR else f"{text[:MAX_ERROR]} ..."


def _cost(data: StudyData) -> Section | None:
    cost = cost_of(data)
    return Section("What it cost", "", [draw_cost(cost)], [cost_table(cost)]) if cost.trials else None


def _text(*paragraphs: str) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def footer_lines(studies: Iterable[StudyData], written: str, *, mapped: bool = False) -> list[str]:
    """Return the foot of a page: n, seeds, selection rule, hardware, versions and damaged files.

    `mapped` says whether the page has a map, whose features were computed for it.
    """
    lines: list[str] = []
    studies = list(studies)
    for data in studies:
        prefix = f"{data.name}: " if len(studies) > 1 else ""
        lines += [prefix + line for line in _study_lines(data)]
    source = (
        "from the store, and for the map from the encoder's file and the dataset; nothing was trained again."
        if mapped
        else "from the store alone; nothing was run again."
    )
    return [*lines, f"Written {written} {source}"]


def _study_lines(data: StudyData) -> list[str]:
    record = data.record
    seeds = sorted({seed for trial in data.trials for seed in trial.seeds})
    final = [row["seed"] for row in scored_runs(data)]
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    rules = {name: getattr(data.search, name) for name in ("sampler", "scheduler", "seed")}
    lines = [
        f"n = {counted(len(data.trials), 'trial')}, search seeds {_list(seeds)}"
        + (f"; final runs: n = {len(final)}, seeds {_list(sorted(set(final)))}" if final else ""),
        f"Selection: {' and '.join(data.search.metrics)}, by {data.rung_metric} after every epoch; "
        + ", ".join(f"{name} {value}" for name, value in rules.items()),
        f"Hardware: {hardware_of(data.rows) or record.host}",
        f"Versions: {versions}; revision {record.git_revision or 'unknown'}; store {record.schema_version}",
    ]
    if data.damaged:
        files = "; ".join(f"{file.path} {file.reason}" for file in data.damaged[:5])
        more = f"; and {len(data.damaged) - 5} more" if len(data.damaged) > 5 else ""
        lines.append(f"Left out, damaged: {files}{more}")
    return lines


def _list(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds[:10])) + (" ..." if len(seeds) > 10 else "") or "none"
