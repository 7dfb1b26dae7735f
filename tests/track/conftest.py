"""W&B as tests see it."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from contrasweep.tuning.track import tracking


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """In place of W&B, which has no store that a test could read: what it was told, a dict a run."""
    told: dict[str, dict[str, Any]] = {}

    class There:
        def __init__(self, **given: Any) -> None:
            self.told = told.setdefault(given["id"], {"logged": {}})
            self.told.update(given)
            self.starting_step = max(self.told["logged"], default=-1) + 1
            self.summary = self.told.setdefault("summary", {})

        def __enter__(self) -> "There":
            return self

        def __exit__(self, *_: object) -> None: ...

        def log(self, metrics: dict[str, float], step: int) -> None:
            assert step not in self.told["logged"]
            self.told["logged"][step] = metrics

        def finish(self, exit_code: int) -> None:
            self.told["exit_code"] = exit_code

    fake = SimpleNamespace(
        init=There,
        Settings=lambda **given: given,
        errors=SimpleNamespace(Error=RuntimeError),
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setitem(sys.modules, "wandb.errors", fake.errors)
    monkeypatch.delitem(sys.modules, "contrasweep.tuning.track.to_wandb", raising=False)
    monkeypatch.setattr(tracking, "find_spec", lambda name: object())
    return told  # type: ignore[return-value]
