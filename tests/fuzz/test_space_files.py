"""Damaged and foreign search spaces: a sweep refuses them in one line, or plans with them."""

from pathlib import Path

import pytest

from contrasweep.search_spaces import method_space
from contrasweep.search_spaces.files import shipped_text
from tests.fuzz.harness import fuzz, random_of
from tests.fuzz.yaml_files import damaged

CASES = 40
METHODS = ("infonce", "fair-cclk", "align-uniform", "moco-v2", "swav", "herocon")
OPTIONS: tuple[tuple[str, ...], ...] = (
    ("--trials", "1"),
    ("--sampler", "grid"),
    ("--sampler", "grid", "--grid-points", "3"),
    ("--sampler", "gp", "--trials", "3"),
    ("--sampler", "cmaes", "--trials", "3"),
    ("--sampler", "random", "--trials", "3", "--seeds", "2"),
    ("--preset",),
)


def test_damaged_space_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    monkeypatch.chdir(tmp_path)
    for case in range(CASES * times):
        draws = random_of("space", case)
        method = draws.choice(METHODS)
        assert method_space(method)
        content, what = damaged(shipped_text(f"{method}.yaml"), draws)
        Path("space.yaml").write_bytes(content)
        data = "two-view-digits" if method == "herocon" else "colour-digits"
        options = draws.choice(OPTIONS)
        command = ("sweep", method, "--data", data, "--space", "space.yaml", *options, "--dry-run")
        fuzz(*command, allowed=(0, 2), case=f"case {case}, {method}: {what}")
    assert not Path("results").exists()
