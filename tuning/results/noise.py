"""The noise of a final score: by how much it differs by chance, where that is known."""

from typing import Final

from contrasweep.tuning.statistics import Summary, binomial_noise
from contrasweep.tuning.store import SearchRecord

_SHARES: Final = tuple((f"val.{name}",) for name in ("accuracy", "ridge_accuracy", "classifier_accuracy"))


def images_behind(search: SearchRecord) -> int | None:
    """Return on how many validation images a search's score is a share of correct answers.

    None where the score is another one (the accuracy of the worst group is a share of few of the images, that
    of clusters depends on how they are matched), where there are several metrics, or where the number is
    unknown.
    """
    return search.validation_images if search.metrics in _SHARES else None


def score_noise(score: Summary, images: int | None) -> float | None:
    """Return the noise of a trial's final score; None where it is unknown.

    Of several seeds, it is the standard error of their mean; an accuracy has the noise of one image at least.
    Of one seed, an accuracy has its binomial noise (`statistics.binomial_noise`).

    Args:
        score: the score over the trial's seeds.
        images: see `images_behind`.
    """
    if score.error is not None:
        return score.error if images is None else max(score.error, 1 / images)
    return None if images is None else binomial_noise(score.mean, images)
