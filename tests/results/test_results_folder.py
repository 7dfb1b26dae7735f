"""Where functions keep and look for studies if they are given no results folder."""

from pathlib import Path

import pytest

import contrasweep
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.results.commands import RESULTS, RESULTS_VARIABLE
from contrasweep.tuning.store import StoreError


def test_functions_use_the_folder_of_the_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert plan_sweep("infonce", "digits").results == RESULTS
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "elsewhere"))
    assert plan_sweep("infonce", "digits").results == str(tmp_path / "elsewhere")
    assert plan_sweep("infonce", "digits", results="mine").results == "mine"
    for call in (contrasweep.resume_sweep, lambda name: contrasweep.evaluate(name, "digits")):
        with pytest.raises((StoreError, InputError), match="elsewhere"):
            call("none")
