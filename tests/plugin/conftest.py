"""What tests of plug-ins share."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from installing import install_example, write_metadata

from contrasweep.data import DATASETS
from contrasweep.models.encoders.registry import ENCODER_REGISTRY
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_ENCODERS, DECLARED_METHODS
from contrasweep.tuning.methods import METHODS


@pytest.fixture(autouse=True)
def registries_of_before() -> None:
    """Complete the registries of methods: what a test brings must not be found in later tests."""
    assert "mine" not in METHODS
    assert "mine" not in DECLARED_METHODS


Install = Callable[[list[str]], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts folders on the path, and makes the registries look for distributions anew."""

    def install(folders: list[str]) -> None:
        kept = {"_items": (DATASETS, ENCODER_REGISTRY), "_others": (DECLARED_DATASETS, DECLARED_ENCODERS)}
        for name, registries in kept.items():
            for registry in registries:
                assert len(registry)  # It is complete now: what is removed here comes back after the test.
                monkeypatch.delitem(vars(registry), name)
        for folder in folders:
            monkeypatch.syspath_prepend(folder)

    return install


@pytest.fixture
def stripes(tmp_path: Path, install: Install) -> None:
    """The distribution with the dataset `stripes` and the encoder `stripe-net`."""
    install(install_example(tmp_path, "contrasweep-stripes"))


@pytest.fixture
def bring(tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a module with some `code` under some entry points."""

    def bring(code: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
        write_metadata(tmp_path, "my-plugin", entry_points)
        (tmp_path / "my_plugin.py").write_text(code)
        monkeypatch.delitem(sys.modules, "my_plugin", raising=False)
        install([str(tmp_path)])

    return bring
