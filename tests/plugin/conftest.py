"""What tests of plug-ins share."""

import pytest

from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
from contrasweep.tuning.methods import METHODS


@pytest.fixture(autouse=True)
def registries_of_before() -> None:
    """Complete the registries of methods: what a test brings must not be found in later tests."""
    assert "mine" not in METHODS
    assert "mine" not in DECLARED_METHODS
