"""Searches whose trials have made-up learning curves, for tests of the model of curves."""

import math

from contrasweep.search_spaces import Space
from contrasweep.tuning.search import PastTrial, SearchStudy

SPACE_X = {"uniform": [0.0, 1.0], "default": 0.5}
SPACE = Space.parse(
    {
        "x": SPACE_X,
        "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
        "sigma2": {"log": [1.0, 100.0], "default": 10.0, "when": {"kernel": ["rbf"]}},
    }
)
EPOCHS = 8


def level(x: float, epoch: int) -> float:
    """Curves that rise to 1 - |x - 0.7|."""
    return (1 - abs(x - 0.7)) * (1 - math.exp(-epoch / 4))


def past(number: int, x: float, epochs: int, state: str = "stopped") -> PastTrial:
    curve = {epoch: level(x, epoch) for epoch in range(1, epochs + 1)}
    final = level(x, EPOCHS) + 0.1 if state == "completed" else None
    return PastTrial(number, {"x": x, "kernel": "cosine"}, state, curve, final)  # type: ignore[arg-type]


def held(running: float = 0.72, at: int = 2, seed: int = 0) -> SearchStudy:
    """A search of nine trials that have ended, three of them whole; number 9 runs."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS, seed=seed)
    places = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.9, 0.8, 0.65]
    whole = {0.35, 0.55, 0.9}
    trials = [
        past(number, x, *((EPOCHS, "completed") if x in whole else (2, "stopped")))
        for number, x in enumerate(places)
    ]
    study.restore([*trials, past(9, running, at, "running")])
    return study
