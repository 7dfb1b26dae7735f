"""docs/limits.md says the limits that the code has."""

from pathlib import Path

import pytest

from contrasweep.data import decoding, hierarchy, image_files, text_table
from contrasweep.data.sources import table_facts
from contrasweep.models import export
from contrasweep.search_spaces import parameters, yaml_text
from contrasweep.tuning import limits
from contrasweep.tuning.planning import halving
from contrasweep.tuning.search import grid
from contrasweep.tuning.tables import runs_file

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8").splitlines()
MIB = 2**20


@pytest.mark.parametrize(
    ("row", "figures"),
    [
        ("| trials, epochs", [f"{limits.MOST:,}"]),
        ("| `--grid-points`", [f"{limits.MOST_LEVELS:,}", f"{halving.LARGEST_ETA:,}"]),
        ("| points of a grid", [f"{grid.LARGEST_GRID:,}"]),
        ("| values of one choice", [f"{parameters.MOST_CHOICES:,}"]),
        ("| a seed", [f"2^{limits.LARGEST_SEED.bit_length() - 1}"]),
        ("| `--watch`", [f"{limits.LONGEST_WATCH:,.0f} seconds"]),
        ("| YAML", [f"{yaml_text.MOST_BYTES // MIB} MiB", f"{yaml_text.MOST_VALUES:,} values"]),
        ("| YAML", [f"{yaml_text.DEEPEST} levels"]),
        ("| runs of", [f"{runs_file.MOST_BYTES // MIB} MiB", f"{runs_file.MOST_COLUMNS:,} columns"]),
        ("| runs of", [f"{runs_file.MOST_RUNS:,} runs"]),
        ("| a CSV", [f"{text_table.MOST_BYTES // 2**30} GiB", f"{text_table.MOST_COLUMNS:,} columns"]),
        ("| a hierarchy", [f"{hierarchy.MOST_BYTES // MIB} MiB"]),
        ("| an image", [f"{image_files.MOST_BYTES // MIB} MiB", f"{decoding.MOST_PIXELS:,} pixels"]),
        ("| an image", [f"{decoding.MOST_ELONGATED} times", f"{decoding.LARGEST_SIDE:,} pixels a side"]),
        ("| labels in Parquet or Arrow", [f"{table_facts.MOST_CLASSES:,} classes"]),
        ("| an encoder", [f"{export.LARGEST:,} channels"]),
    ],
)
def test_a_row(row: str, figures: list[str]) -> None:
    (line,) = [line for line in PAGE if line.startswith(row)]
    assert all(figure in line for figure in figures), line
