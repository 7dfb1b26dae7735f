"""The folder of the real data, for the tests that need them."""

import os
from pathlib import Path

import pytest

from contrasweep.data import DatasetMissing, check_available, dataset_spec


def real_root(name: str) -> Path:
    """Return the data root that holds a dataset; without it, skip the test and name the folder."""
    given = os.environ.get("CONTRASWEEP_DATA")
    try:
        if not given:
            pytest.skip(f"CONTRASWEEP_DATA is not set: a folder with {dataset_spec(name).folder} is needed")
        check_available(name, Path(given))
    except DatasetMissing as missing:
        pytest.skip(str(missing))
    return Path(given)
