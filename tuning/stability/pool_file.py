"""Pools of several studies as one small Parquet file, from which the analysis can be made again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from contrasweep.tuning.results.parquet_files import damage_told, read_rows_about, write_rows_about
from contrasweep.tuning.stability.scored_pool import ScoredPool

_ABOUT: Final = "contrasweep.stability"
_FACTS: Final = (
    *("study", "method", "dataset", "metric", "report_metric"),
    *("untrained", "failed", "left_out", "epochs", "learned_by"),
)


def write_scored_pools(studies: Sequence[ScoredPool], path: Path) -> None:
    """Write the trials of studies: a row for each, with its values as JSON."""
    rows = [
        {
            "study": one.study,
            "trial": int(one.trial[row]),
            "select": float(one.select[row]),
            "report": float(one.report[row]),
            "again": one.again[:, row].tolist(),
            "values": json.dumps(one.values[row]),
        }
        for one in studies
        for row in range(len(one))
    ]
    about = [{name: getattr(one, name) for name in _FACTS} for one in studies]
    write_rows_about(path, rows, _ABOUT, about)


def read_pool_file(path: Path) -> list[ScoredPool]:
    """Return the studies in a file that `write_scored_pools` wrote.

    Raises:
        InputError: the file cannot be read, is another one, or is damaged.
    """
    otherwise = "holds no pools; `contrasweep stability STUDY... -o FILE.parquet` writes them"
    table, about = read_rows_about(path, _ABOUT, otherwise)
    rows = table.to_pylist()
    with damage_told(path):
        return [
            _scored_pool(facts, [row for row in rows if row["study"] == facts["study"]]) for facts in about
        ]


def _scored_pool(facts: dict[str, Any], rows: Sequence[dict[str, Any]]) -> ScoredPool:
    again = np.array([row["again"] for row in rows], dtype=np.float64).reshape(len(rows), -1)
    return ScoredPool(
        **facts,
        trial=np.array([row["trial"] for row in rows], dtype=np.int64),
        values=tuple(json.loads(row["values"]) for row in rows),
        select=np.array([row["select"] for row in rows], dtype=np.float64),
        report=np.array([row["report"] for row in rows], dtype=np.float64),
        again=again.T,
    )
