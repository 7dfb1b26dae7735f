"""The head of a report: the result beside its baselines, its uncertainty, its cost, and the next command."""

from collections.abc import Iterator, Mapping

from contrasweep.names import counted, with_capital
from contrasweep.tuning.durations import in_words as time_in_words
from contrasweep.tuning.experiment.conditions import in_words
from contrasweep.tuning.methods.metrics import is_minimised
from contrasweep.tuning.reports.cost import cost_of
from contrasweep.tuning.reports.final import for_epochs, none_scored, other_epochs, runs_of, selected_rows
from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.results.best import beats, not_beaten_in_words
from contrasweep.tuning.results.commands import (
    best_command,
    final_runs_command,
    report_command,
    resume_command,
    sensitivity_command,
    show_command,
)
from contrasweep.tuning.results.final_runs import UNTRAINED, main_score, scores_by_seed, summarise_runs
from contrasweep.tuning.results.numbers import cell_text, interval_text, mean_and_std
from contrasweep.tuning.results.study import StudyData, TrialResult
from contrasweep.tuning.statistics import FEW_SEEDS, ROUNDING, difference_interval, seed_by_seed, summarise

TITLE = "In short"
Scores = Mapping[int, float]


def answer_section(data: StudyData) -> Section:
    """Return the section that a report opens with."""
    said = [*_tested(data), *_validated(data), _spent(data)]
    commands = "\n".join(f"    {command}" for command in next_commands(data))
    text = "\n\n".join([*filter(None, said), "Next:", commands])
    tables = [_scores(data), _values(data, data.ranked[0])] if data.ranked else []
    return Section(TITLE, text, tables=tables)


def next_commands(data: StudyData) -> list[str]:
    """Return the commands that lead on from where the study stands."""
    if data.state == "running":
        return [report_command(data.name, data.results, watch=10)]
    best = best_command(data.name, data.results)
    run = final_runs_command([data.name], data.results, other_epochs(data, data.final_record))
    if data.state == "interrupted":
        resume = resume_command([data.record.method], data.name, data.results)
        return [resume, *([best] if data.ranked else [])]
    if not data.ranked:
        return [show_command(data.name, data.results)]
    runs = selected_rows(data)
    if len(runs) < FEW_SEEDS or runs[0]["trial"] != data.ranked[0].number:
        return [best, run]
    return [best, sensitivity_command(data.name, data.results)]


def _tested(data: StudyData) -> Iterator[str]:
    """Say what the final runs of the best trial that has any scored on the test split."""
    rows = selected_rows(data)
    if not rows:
        if data.ranked:
            yield _untested(data)
        return
    trial, score = rows[0]["trial"], main_score(list(summarise_runs(rows)[0].scores))
    by_encoder = scores_by_seed(rows)
    encoder = next(iter(by_encoder))
    longer = for_epochs(data)
    trained = f" when trained{longer}" if longer else ""
    said = f"On the test split, trial {trial} reaches {_over(by_encoder[encoder])} ({score}){trained}"
    if UNTRAINED in by_encoder:
        untrained = by_encoder[UNTRAINED]
        added = _added(score, by_encoder[encoder], untrained)
        said += f", against {_mean(untrained)} before training. {added}"
    else:
        said += "."
    yield said
    if data.ranked and data.ranked[0].number != trial:
        yield f"The best of the search is trial {data.ranked[0].number} now; it has no final run."


def _untested(data: StudyData) -> str:
    if not data.final_rows:
        return "No final run yet: nothing was read from the test split."
    elsewhere = any(runs.rows for _, runs in data.other_finals)
    return none_scored(data) + (" Those of other numbers of epochs are below." if elsewhere else "")


def _validated(data: StudyData) -> Iterator[str]:
    """Say how the best trial of the search compares with its control and the defaults, and how surely."""
    if not data.ranked:
        yield f"{data.candidates.no_best}: there is no best configuration."
        return
    best, metric = data.ranked[0], data.metric
    smaller = " (smaller is better)" if is_minimised(metric) else ""
    said = (
        f"On the validation split, trial {best.number} is the best of {data.candidates_in_words}: "
        f"{metric}{smaller} {cell_text(best.score)}"
    )
    own, untrained = data.by_seed(best, metric), data.untrained_by_seed(best, metric)
    before = "its encoder before training"
    yield said + (f", {_beyond(own, untrained, before)}." if untrained else ".")
    if control := data.record.experiment.encoder.control:
        yield control
    yield _against_defaults(data, best)
    luck = "The best of many owes some of its score to luck: what counts are runs on fresh seeds."
    yield f"{_chance(data.record.seeds)} {luck}"
    yield data.candidates.ties_in_words
    if len(data.search.metrics) > 1:
        yield f"The study weighs {len(data.search.metrics)} metrics; this is the best by the first of them."


def _chance(seeds: int) -> str:
    """Say what the seeds of each trial tell of chance."""
    if seeds == 1:
        return "Each trial ran with one seed, which cannot tell how much of a difference is chance."
    if seeds < FEW_SEEDS:
        return f"Each trial ran with {seeds} seeds, too few for an interval of a difference."
    return f"Each trial ran with {seeds} seeds; the intervals are over these, seed by seed."


def _against_defaults(data: StudyData, best: TrialResult) -> str:
    defaults = data.defaults
    if defaults is None:
        return "No trial ran the defaults."
    if defaults.number == best.number:
        keeping = f" that keeps {in_words(data.search.keep)}" if data.search.keep else ""
        return f"It ran the defaults: no other completed trial{keeping} scored better."
    if defaults.score is None:
        return f"The defaults (trial {defaults.number}, {defaults.status}) have no final score."
    have = f"The defaults (trial {defaults.number}) have {cell_text(defaults.score)}"
    if defaults.number in data.candidates.breaking:
        return f"{have}, but break a condition of the search ({in_words(data.search.keep)})."
    own, other = data.by_seed(best, data.metric), data.by_seed(defaults, data.metric)
    return f"{have}; the best is {_beyond(own, other, 'them')}."


def _spent(data: StudyData) -> str:
    cost = cost_of(data)
    trials = f"{len(data.trials):,} of {counted(data.planned, 'trial')}"
    epochs = f"{counted(cost.epochs, 'epoch')} of training"
    clock = f"{time_in_words(cost.running)} by the clock without pauses"
    return f"Spent: {trials}, {epochs}, {time_in_words(cost.trials)} in trials, {clock}."


def _scores(data: StudyData) -> Table:
    """Return a table of the best trial, the defaults and the untrained encoder on both splits."""
    best, metric = data.ranked[0], data.metric
    compared = _compared(data, best)
    rows = [(name, _mean(data.by_seed(trial, metric))) for name, trial in compared.items()]
    rows.append(("untrained encoder", _mean(data.untrained_by_seed(best, metric))))
    title = "The best, and what it has to beat"
    tested = [_tested_scores(data, trial.number) for trial in compared.values()]
    if not any(tested):
        return Table(title, ("configuration", metric), rows)
    score = main_score(list(summarise_runs(selected_rows(data))[0].scores))
    untrained = next((found[UNTRAINED] for found in tested if UNTRAINED in found), {})
    cells = [*(_with_n(next(iter(found.values()), {})) for found in tested), _with_n(untrained)]
    whole = [(*row, cell) for row, cell in zip(rows, cells, strict=True)]
    return Table(title, ("configuration", metric, f"test.{score}"), whole)


def _compared(data: StudyData, best: TrialResult) -> dict[str, TrialResult]:
    """Return the best trial, and the one of the defaults if it is another with a score, by what they are."""
    defaults = data.defaults
    if defaults is not None and defaults.number == best.number:
        return {f"best: trial {best.number}, the defaults": best}
    found = {f"best: trial {best.number}": best}
    if defaults is not None and defaults.score is not None:
        breaks = ", breaks --keep" if defaults.number in data.candidates.breaking else ""
        found[f"defaults: trial {defaults.number}{breaks}"] = defaults
    return found


def _tested_scores(data: StudyData, trial: int) -> Mapping[str, Scores]:
    """Return the test scores of a trial by seed, then those of its untrained encoder; empty without runs."""
    runs = runs_of(data, trial)
    return scores_by_seed(runs) if runs else {}


def _values(data: StudyData, best: TrialResult) -> Table:
    """Return a table of the searched values of a trial beside the defaults."""
    defaults = data.space.defaults()
    names = [parameter.name for parameter in data.space.searched]
    rows = [(name, cell_text(best.values.get(name)), cell_text(defaults.get(name))) for name in names]
    return Table(f"The configuration of trial {best.number}", ("parameter", "best", "default"), rows)


def _with_n(scores: Scores) -> str | None:
    return f"{_mean(scores)} (n = {len(scores)})" if scores else None


def _mean(scores: Scores) -> str | None:
    return mean_and_std(summarise(scores.values()))


def _over(scores: Scores) -> str:
    """Return a mean with what it is taken over: `0.92 ± 0.01 over 5 fresh seeds`."""
    n = len(scores)
    return f"{_mean(scores)} {'on one fresh seed' if n == 1 else f'over {n} fresh seeds'}"


def _beyond(own: Scores, other: Scores, whose: str) -> str:
    """Return by how much one score is above or below another, with an interval where several seeds give one.

    Args:
        own, other: scores by seed.
        whose: what has the `other` scores.
    """
    difference = seed_by_seed(own, other)
    if difference is None:
        return f"on other seeds than {whose}"
    interval = difference_interval(difference) if difference.n >= FEW_SEEDS else None
    between = "" if interval is None else f" (95 % interval of the difference: {interval_text(interval)})"
    if abs(difference.mean) <= ROUNDING:
        return f"level with {whose}{between}"
    side = "below" if difference.mean < 0 else "above"
    return f"{cell_text(abs(difference.mean))} {side} {whose}{between}"


def _added(score: str, own: Scores, untrained: Scores) -> str:
    """Say what training added to a score, seed by seed, and whether that is enough to tell."""
    difference = seed_by_seed(own, untrained)
    if difference is None or difference.n < FEW_SEEDS:
        n = 0 if difference is None else difference.n
        return f"Too few to tell: {counted(n, 'seed')}."
    mean, interval = difference.mean, difference_interval(difference)
    between = "the same with each seed"
    if interval is not None:
        between = f"95 % interval, seed by seed: {interval_text(interval)}"
    if not beats(score, mean, 0.0):
        return f"{with_capital(not_beaten_in_words())}: {cell_text(mean)} ({between})."
    sure = interval is None or all(beats(score, end, 0.0) for end in interval)
    unsure = "" if sure else ", which may be nothing"
    return f"Training adds {cell_text(mean)} ({between}){unsure}."
