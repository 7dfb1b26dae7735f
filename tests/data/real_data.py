"""Where the real data are, for the tests that need them."""

import os
from pathlib import Path

import pytest

from contrasweep.data import (
    DatasetMissing,
    check_available,
    check_transductive,
    dataset_spec,
    transductive_spec,
)
from contrasweep.data.transductive import TRANSDUCTIVE


def real_root(name: str) -> Path:
    """Return the data root that holds a dataset; skip the test, naming its folder, where there is none."""
    is_transductive = name.partition(":")[0] in TRANSDUCTIVE
    given = os.environ.get("CONTRASWEEP_DATA")
    try:
        if not given:
            folder = (transductive_spec(name) if is_transductive else dataset_spec(name)).folder
            pytest.skip(f"CONTRASWEEP_DATA is not set: a folder with {folder} is needed")
        (check_transductive if is_transductive else check_available)(name, Path(given))
    except DatasetMissing as missing:
        pytest.skip(str(missing))
    return Path(given)
