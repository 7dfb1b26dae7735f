"""The rows of a study as files that spreadsheets and data frames open: CSV and Parquet."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from contrasweep.tuning.files import check_folder, written_whole
from contrasweep.tuning.results.final_runs import final_records
from contrasweep.tuning.store import ResultsStore


def write_rows(store: ResultsStore, study: str, folder: Path) -> list[Path]:
    """Write the trials and epochs of a study, and of its final runs, as .csv and .parquet files.

    Only the latest attempt counts: one row per (trial, seed), and one per (trial, seed, epoch).

    Raises:
        InputError: `folder` is a file, or cannot be written.
        StoreError: there is no such study.
    """
    check_folder(folder)
    names = [study, *(final.name for final in final_records(store, study))]
    read = {name: store.tables(name) for name in names}
    tables = {
        f"{name}-{kind}": table
        for name, found in read.items()
        for kind, table in (("trials", found.trials), ("epochs", found.epochs))
    }
    folder.mkdir(parents=True, exist_ok=True)
    return [path for name, table in tables.items() for path in _write(table, folder / name)]


def _write(table: pa.Table, stem: Path) -> list[Path]:
    csv, parquet = stem.with_name(f"{stem.name}.csv"), stem.with_name(f"{stem.name}.parquet")
    with written_whole(csv) as file:
        pa_csv.write_csv(table, file)
    with written_whole(parquet) as file:
        pq.write_table(table, file)
    return [csv, parquet]
