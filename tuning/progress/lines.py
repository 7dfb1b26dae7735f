"""Progress as a line of text; its parts come in the order in which they matter."""

from contrasweep.tuning.durations import on_a_clock
from contrasweep.tuning.experiment.statuses import counts_in_words
from contrasweep.tuning.progress.states import RunsProgress, SweepProgress, TrainingProgress
from contrasweep.tuning.results.best import best_name
from contrasweep.tuning.results.numbers import number_text

SEPARATOR = " · "
MOST_RUNNING = 3
"""Of more running trials, the line says only how many they are and how far the furthest is."""


def sweep_line(progress: SweepProgress, elapsed: float) -> str:
    """Return the progress of a sweep, `elapsed` seconds after its beginning here."""
    endings = counts_in_words(progress.counts)
    parts = [f"{progress.done}/{progress.planned} trials" + (f" ({endings})" if endings else "")]
    running = {f"trial {one}": (at, progress.epochs) for one, at in progress.running.items()}
    parts.append(progress.stage or _running(running))
    if progress.best is not None:
        number, score = progress.best
        parts.append(f"{best_name(progress.metric)} {number_text(score)} (trial {number})")
    return _joined(parts, elapsed, _left(progress) if progress.done < progress.planned else None)


def runs_line(progress: RunsProgress, elapsed: float) -> str:
    """Return the progress of final runs, `elapsed` seconds after their beginning here."""
    parts = [f"{progress.done}/{progress.planned} final runs"]
    parts.append(progress.stage or _running(dict(progress.running)))
    return _joined(parts, elapsed, _left(progress) if progress.done < progress.planned else None)


def training_line(progress: TrainingProgress, elapsed: float) -> str:
    """Return the progress of one training, `elapsed` seconds after its beginning here."""
    epoch = f"epoch {progress.epoch}/{progress.epochs}"
    if progress.step == progress.steps:
        return _joined([f"{epoch}: scoring"], elapsed, None)
    left = None if progress.left is None else _about(progress.left)
    return _joined([f"{epoch}: step {progress.step}/{progress.steps}"], elapsed, left)


def stage_line(stage: str, elapsed: float) -> str:
    """Return what goes on before there is progress, `elapsed` seconds after its beginning here."""
    return _joined([stage], elapsed, None)


def _running(running: dict[str, tuple[int, int]]) -> str:
    if len(running) <= MOST_RUNNING:
        return ", ".join(f"{name}: epoch {at}/{of}" for name, (at, of) in sorted(running.items()))
    name = max(running, key=lambda one: running[one][0])
    at, of = running[name]
    return f"{len(running)} running, {name}: epoch {at}/{of}"


def _left(progress: SweepProgress | RunsProgress) -> str | None:
    """Return the time left; where it may well be twice or half as long, its interval and not one number."""
    if progress.left is None:
        return None
    low, high = progress.left_between or (progress.left, progress.left)
    if low >= progress.left / 2 and high <= 2 * progress.left:
        return _about(progress.left)
    return f"{on_a_clock(low)} to {on_a_clock(high)} left"


def _about(seconds: float) -> str:
    return f"about {on_a_clock(seconds)} left"


def _joined(parts: list[str], elapsed: float, left: str | None) -> str:
    return SEPARATOR.join(filter(None, [*parts, f"{on_a_clock(elapsed)} spent", left]))
