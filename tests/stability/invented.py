"""Invented pools: configurations with scores, of which the answer is known."""

from typing import Any

import numpy as np

from contrasweep.tuning.stability.scored_pool import ScoredPool

Array = Any


def tried(
    name: str, select: Array, report: Array | None = None, *, shared: bool = True, **fields: Any
) -> ScoredPool:
    """Return a pool of a method; `shared` gives its n-th configuration the learning rate of all pools."""
    scores = np.asarray(select, dtype=float)
    start = 0.0 if shared else float(len(name))
    facts = {
        "study": f"{name}-study",
        "method": name,
        "dataset": "invented",
        "metric": "val.accuracy",
        "report_metric": "val.report_accuracy",
        "untrained": 0.5,
        "again": np.zeros((0, len(scores))),
    }
    return ScoredPool(
        trial=np.arange(1, len(scores) + 1),
        values=tuple({"optimizer.lr": start + 0.01 * place} for place in range(len(scores))),
        select=scores,
        report=scores if report is None else np.asarray(report, dtype=float),
        **{**facts, **fields},
    )
