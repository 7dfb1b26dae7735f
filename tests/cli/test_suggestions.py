"""Suggested commands are such that the command line takes them, whatever the names of files and folders."""

import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from contrasweep.tuning.cli import app
from contrasweep.tuning.results import commands

STUDY, RESULTS, FILE = "demo", "my results", Path("a b.yaml")


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        (commands.best_command(STUDY, RESULTS, str(FILE)), {"results": RESULTS, "output": FILE}),
        (commands.show_command(STUDY, RESULTS), {"study": STUDY, "results": RESULTS}),
        (commands.studies_command(RESULTS), {"results": RESULTS}),
        (commands.report_command(STUDY, RESULTS, watch=10), {"results": RESULTS, "watch": 10}),
        (commands.sensitivity_command(STUDY, RESULTS), {"studies": [STUDY], "results": RESULTS}),
        (commands.compact_command(STUDY, RESULTS), {"study": STUDY, "results": RESULTS}),
        (commands.delete_command(STUDY, RESULTS), {"study": STUDY, "results": RESULTS}),
        (
            commands.final_runs_command([STUDY, str(FILE)], RESULTS, epochs=7),
            {"sources": [STUDY, str(FILE)], "results": RESULTS, "epochs": 7},
        ),
        (commands.final_runs_command([STUDY], None), {"sources": [STUDY], "seeds": commands.FINAL_SEEDS}),
        (commands.search_command("infonce"), {"methods": ["infonce"]}),
        (commands.spaces_command("infonce"), {"method": "infonce"}),
        (commands.train_command(FILE), {"experiment": FILE}),
        (commands.verify_command(FILE, "my runs.csv"), {"claims": FILE, "runs": Path("my runs.csv")}),
        (
            commands.table_command("cclk-t3", "quick", tuned=True, trials=2, seeds=3),
            {"table": "cclk-t3", "scale": "quick", "tune": True, "trials": 2, "seeds": 3},
        ),
        (
            commands.pool_command("cacr", "digits", "pool-cacr", FILE, 9, ["views.flip=0"], Path("my data")),
            {"methods": ["cacr"], "enqueue": FILE, "set_": ["views.flip=0"], "data_root": Path("my data")},
        ),
        (commands.stability_command([STUDY, "other"]), {"studies": [STUDY, "other"]}),
        (
            commands.resume_command(["cacr"], STUDY, RESULTS, "head:6379", autoscales=True, one_node=True),
            {"name": STUDY, "results": RESULTS, "resume": True, "autoscale": True, "one_node": True},
        ),
    ],
)
def test_the_command_line_takes_a_suggested_command(said: str, holds: dict[str, object]) -> None:
    program, verb, *words = shlex.split(said)
    command = get_command(app).commands[verb]  # type: ignore[attr-defined]
    taken = command.make_context(verb, words).params
    assert program == "contrasweep"
    assert {name: taken[name] for name in holds} == holds


def test_the_usual_results_folder_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(commands.RESULTS_VARIABLE, raising=False)
    assert commands.show_command(STUDY, commands.RESULTS) == "contrasweep show demo"
    monkeypatch.setenv(commands.RESULTS_VARIABLE, "elsewhere")
    assert commands.show_command(STUDY, commands.RESULTS) == "contrasweep show demo --results results"
    assert commands.final_runs_command([STUDY], None) == "contrasweep run demo --seeds 5"
