"""Recordings of an invented workload whose best configuration is known."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from contrasweep.search_spaces import Space
from contrasweep.tuning.replay.recording import Recording
from contrasweep.tuning.search.axes import axes_of

EPOCHS = 9
SPACE = Space.parse(
    {
        "kernel": {"choice": ["rbf", "cosine"], "default": "cosine"},
        "sigma2": {"log": [1.0, 1e4], "default": 10.0, "when": {"kernel": ["rbf"]}},
        "lr": {"log": [1e-3, 1.0], "default": 0.9},
    }
)


def final_score(values: Mapping[str, Any]) -> float:
    """The best is 0.9, at rbf with sigma2 100 and lr 0.03."""
    off = 0.0 if values["kernel"] == "rbf" else 0.1
    off += 0.1 * abs(math.log10(values.get("sigma2", 100.0) / 100.0)) / 2
    return 0.9 - off - 0.15 * math.log10(values["lr"] / 0.03) ** 2


def recorded(count: int = 60, noise: float = 0.01, seed: int = 0, again: int = 0) -> Recording:
    """Return random trials whose curves rise to their final scores; the first `again` have a second seed."""
    rng, axes = np.random.default_rng(seed), axes_of(SPACE)
    codes, scores, second = [], [], []
    rise = 1 - np.exp(-np.arange(1, EPOCHS + 1) / 3)
    for _ in range(count):
        values: dict[str, Any] = {
            "kernel": str(rng.choice(["rbf", "cosine"])),
            "lr": float(10 ** rng.uniform(-3, 0)),
        }
        if values["kernel"] == "rbf":
            values["sigma2"] = float(10 ** rng.uniform(0, 4))
        codes.append([axis.codes([values.get(axis.name)])[0] for axis in axes])
        curve = np.append(final_score(values) * rise, final_score(values))
        scores.append(curve + noise * rng.normal())
        second.append(curve + noise * rng.normal())
    later = np.array(second)
    later[again:] = np.nan
    return Recording(
        "invented", SPACE, 0.0, "val.accuracy", "val.accuracy", np.array(codes), np.array(scores), later,
        np.ones(count),
    )  # fmt: skip
