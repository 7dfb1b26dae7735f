"""The columns in which trials and final runs are shown, by commands, as JSON and in notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from contrasweep.names import with_capital
from contrasweep.tuning.methods.metrics import bounds_of, is_cheap
from contrasweep.tuning.results.numbers import cell_text, interval_text, mean_and_std
from contrasweep.tuning.statistics import FEW_SEEDS, Comparison, Summary, mean_interval

INTERVAL: Final = "95 % interval"

MEAN_AND_STD: Final = "mean ± sample standard deviation over fresh seeds"
"""What the scores of final runs are."""

_SPELLED: Final[Mapping[str, str]] = {
    **{word: word.upper() for word in ("auc", "f1", "mse", "nmi")},
    "rankme": "RankMe",
    "lidar": "LiDAR",
}
"""Words of scores that are written with capitals."""


def texts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return a record as the cells of a table, each as `cell_text` gives it."""
    return {name: cell_text(value) for name, value in record.items()}


def score_columns(
    number: int,
    metric: str,
    score: float | None,
    untrained: float | None,
    metrics: Mapping[str, float],
    spread: tuple[float | None, int] | None = None,
) -> dict[str, Any]:
    """Return the scores of a trial of a search: its score, that of its untrained encoder, then the others.

    Args:
        number: of the trial.
        metric: the name of `score`.
        score: at the end of the trial.
        untrained: the same before training.
        metrics: all scores of the trial; of those on the validation split, the cheap ones are left out.
        spread: the deviation of the score over the trial's seeds, and their number, if there are several.
    """
    others = {
        name: value
        for name, value in metrics.items()
        if name.startswith("val.") and not is_cheap(name) and name != metric
    }
    over = {} if spread is None else dict(zip(("std", "seeds"), spread, strict=True))
    return {"trial": number, metric: score, **over, "untrained": untrained, **others}


def unit_note(scores: Iterable[str]) -> str:
    """Return what the numbers of a table are measured in, where a score among these is not a fraction."""
    if not any(name.endswith("colour_mse") for name in scores):
        return ""
    return (
        "Colour MSE: squared 8-bit levels (0 to 255), the mean over red, green and blue, of the background "
        "colour as a ridge regression reads it; the larger, the less of the colour the features keep."
    )


def column_of(score: str) -> str:
    """Return what a test score is called above its column: `test accuracy`, `colour MSE`."""
    words = score_in_words(score)
    return f"test {words}" if score.endswith("accuracy") else words


def score_in_words(score: str) -> str:
    """Return the name of a score as a text has it: `colour MSE`, `top5 accuracy`, `RankMe`."""
    return " ".join(_SPELLED.get(word, word) for word in score.split("_"))


def summary_columns(
    encoder: str, scores: Mapping[str, Summary], names: Sequence[str], main: str
) -> dict[str, Any]:
    """Return the test scores of an encoder over seeds, each with its interval beside it.

    Args:
        encoder: its name.
        scores: by name.
        names: the scores of all encoders of the table.
        main: the main one of them, whose interval needs no name.
    """
    cells: dict[str, Any] = {"encoder": encoder}
    for name in names:
        found, column = scores.get(name), column_of(name)
        cells[column] = mean_and_std(found)
        beside = INTERVAL if name == main else f"{INTERVAL} of {column}"
        cells[beside] = None if found is None else interval_text(score_interval(name, found))
    return {**cells, "n": max(one.n for one in scores.values())}


def score_interval(score: str, found: Summary) -> tuple[float, float] | None:
    """Return the 95 % interval of a mean score, as far as the score can have such values.

    Fewer than `FEW_SEEDS` values have none: they tell little of the spread.
    """
    interval = mean_interval(found) if found.n >= FEW_SEEDS else None
    if interval is None:
        return None
    least, most = bounds_of(score)
    return max(least, interval[0]), min(most, interval[1])


def summary_note(scores: Iterable[str]) -> str:
    """Return what stands below a table of `summary_columns` with these scores."""
    said = (
        f"Intervals are of the mean (Student's t), from {FEW_SEEDS} seeds on. Each run reads the test "
        "split once; the untrained encoders have the same seeds."
    )
    return f"{said} {unit_note(scores)}".rstrip()


def difference_rows(compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return how much better an encoder is than each baseline; nothing where each has a single seed."""
    tested = [row for row in compared if row.p is not None]
    several = sum(not _few(row) for row in tested) > 1
    return [
        {
            "baseline": row.reference,
            "difference": mean_and_std(row.difference, sign="+"),
            INTERVAL: None if _few(row) else interval_text(row.interval, sign="+"),
            "n": row.difference.n,
            "p": None if _few(row) else row.p,
            **({"p (Holm)": None if _few(row) else row.p_holm} if several else {}),
        }
        for row in tested
    ]


def difference_title(compared: Sequence[Comparison], score: str) -> str:
    """Return what stands above a table of `difference_rows`, of a test score."""
    return f"{with_capital(column_of(score))}: {compared[0].encoder} minus each baseline, seed by seed"


def difference_note(compared: Sequence[Comparison], too_few: str = "") -> str:
    """Return what stands below a table of `difference_rows`; `too_few` says what mends too few seeds."""
    known = [row for row in compared if row.p is not None and not _few(row)]
    few = [row for row in compared if row.p is not None and _few(row)]
    said = "A difference above 0: the baseline is worse."
    if known:
        said += " Paired t test, two-sided"
        said += f"; Holm's correction for {len(known)} comparisons." if len(known) > 1 else "."
        if any(row.interval is None for row in known):
            said += " Where the difference is the same with each seed: sign test, and no interval."
    if few:
        some = f" ({', '.join(row.reference for row in few)})" if known else ""
        said += f" Too few to tell: fewer than {FEW_SEEDS} seeds{some}.{too_few}"
    return said


def _few(row: Comparison) -> bool:
    return row.difference.n < FEW_SEEDS
