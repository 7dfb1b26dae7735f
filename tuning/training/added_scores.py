"""The scores of an encoder that plug-ins add (`methods.added_metrics`)."""

import logging
import math

from contrasweep.data import LabelledImages
from contrasweep.data.seeds import drawing
from contrasweep.models import NonFiniteFeatures
from contrasweep.tuning.errors import WrongReturn
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.added_metrics import ADDED_METRICS
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.embedding import embed_whole

log = logging.getLogger(__name__)


def added_scores(
    objective: Objective, data: PreparedData, held_out: LabelledImages, experiment: Experiment
) -> dict[str, float]:
    """Return the scores on held-out images by name (`probes.metrics`); nothing where none are asked for.

    A score of what these images do not have is left out with a warning: a condition from a file covers the
    training images alone, and so test images have none.

    Raises:
        NonFiniteFeatures: the features hold NaN or Inf.
        WrongReturn: a plug-in returns something else than a finite number.
    """
    settings = experiment.probes
    names = [name for name in settings.metrics if _can_be_scored(name, held_out)]
    if not names:
        return {}
    size = data.spec.view_size
    features = embed_whole(objective.features, held_out.images, size, settings.centre, data.ranks)
    if not bool(features.isfinite().all()):
        raise NonFiniteFeatures(f"the features for {', '.join(names)} hold NaN or Inf")

    def score(name: str) -> float:
        metric = ADDED_METRICS[name]
        # A metric may draw (a subsample, the starts of k-means): the same numbers for one seed.
        with drawing(experiment.seed, "metric", name, device=features.device):
            found = metric.score(features, **{one: getattr(held_out, one) for one in metric.takes})
        try:
            number = float(found)
        except (OverflowError, TypeError, ValueError, RuntimeError):
            kind = type(found).__name__
            raise WrongReturn(f"the metric {name} must return a number, returned {kind}") from None
        # A search cannot rank what is not finite: without an error here, the trial would count as completed.
        if not math.isfinite(number):
            raise WrongReturn(f"the metric {name} must return a finite number, returned {number}")
        return number

    return data.ranks.once(lambda: {name: score(name) for name in names})


def _can_be_scored(name: str, held_out: LabelledImages) -> bool:
    missing = [one for one in ADDED_METRICS[name].takes if getattr(held_out, one) is None]
    if missing:
        log.warning("The metric %s is left out: these images have no %s", name, " and no ".join(missing))
    return not missing
