"""Whether a representation has collapsed: the label-free scores that say so, and what to try."""

from collections.abc import Iterable, Mapping
from typing import Final

from contrasweep.names import few
from contrasweep.tuning.results.trials import TrialOutcome

COLLAPSED_STD: Final = 0.05
"""Below this `val.feature_std`, all images have nearly one direction; spread out, the value is near 1."""

COLLAPSED_RANK: Final = 2.0
"""Below this `val.rankme`, the features lie along one direction, near enough."""

ADVICE: Final = (
    "Try a lower learning rate (optimizer.lr), a method or weights that push images apart (negatives, "
    "uniformity), a lower temperature, or larger batches."
)

_NAMED = 10


def collapse_seen(metrics: Mapping[str, float | None]) -> str | None:
    """Return what of a trained encoder's metrics shows that it collapsed, in words; None if nothing does."""
    deviation, rank = metrics.get("val.feature_std"), metrics.get("val.rankme")
    if deviation is not None and deviation < COLLAPSED_STD:
        return f"val.feature_std is {deviation:.2g}: all images have nearly the same features"
    if rank is not None and rank < COLLAPSED_RANK:
        return f"val.rankme is {rank:.2g}: the features lie along one direction, near enough"
    return None


def collapse_warning(epoch: int, metrics: Mapping[str, float | None]) -> str | None:
    """Return a warning of a run whose representation has collapsed after an epoch; None if it has not.

    Epoch 0 is the untrained encoder, whose features are often alike: it gives no warning.
    """
    seen = collapse_seen(metrics) if epoch else None
    return None if seen is None else f"the representation collapsed at epoch {epoch}: {seen}. {ADVICE}"


def collapsed_trials(outcomes: Iterable[TrialOutcome]) -> str:
    """Return a sentence on the trials of a study whose representations collapsed; empty if none has.

    A trial is judged by its last scores, whether it completed or was stopped.
    """
    seen = {
        one.trial: collapse_seen({name: found.mean for name, found in one.metrics.items()})
        for one in outcomes
    }
    found = {trial: words for trial, words in seen.items() if words is not None}
    if not found:
        return ""
    names = few([str(trial) for trial in found], _NAMED)
    which = f"Trials {names}" if len(found) > 1 else f"Trial {names}"
    first = next(iter(found))
    return f"Collapsed: {which} ({'' if len(found) == 1 else f'of trial {first}, '}{found[first]}). {ADVICE}"
