"""The arguments of a sweep in Python: wrong ones are told as well as those of the command line."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import contrasweep
import contrasweep.tuning.ray.sweep as sweeping
from contrasweep.search_spaces import Space
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.options import SweepOptions
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.results.commands import RESUMABLE
from contrasweep.tuning.store import StoreError


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("trails", 3, "Did you mean 'trials'?"),
        ("n_trials", 3, "Did you mean 'trials'?"),
        ("settings", {}, "Did you mean 'values'?"),
        ("overrides", {}, "Did you mean 'values'?"),
        ("config", {}, "Did you mean 'values'?"),
        ("search_space", {}, "Did you mean 'space'?"),
        ("timeout", 60, "Did you mean 'trial_timeout'?"),
        ("reduction_factor", 2, "Did you mean 'eta'?"),
        ("lr", 0.3, "It is a setting: give values={'optimizer.lr': 0.3}."),
        ("temperature", 0.1, "It is a setting: give values={'temperature': 0.1}."),
        ("xyzzy", 1, "Known: method, dataset, trials, epochs, values, "),
    ],
)
def test_an_argument_that_there_is_not(name: str, value: object, hint: str) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(TypeError) as refused:
        contrasweep.sweep("infonce", "digits", **options)
    assert str(refused.value).startswith(f"sweep() has no argument '{name}'. {hint}")
    with pytest.raises(TypeError, match=rf"^plan_sweep\(\) has no argument '{name}'\. "):
        plan_sweep("infonce", "digits", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": "3"}, "trials must be a whole number, given '3'"),
        ({"trials": 3.0}, "trials must be a whole number, given 3.0"),
        ({"trials": True}, "trials must be a whole number, given True"),
        ({"seed": "1"}, "seed must be a whole number, given '1'"),
        ({"gpus_per_worker": "1"}, "gpus_per_worker must be a number, given '1'"),
        ({"use_preset": 1}, "use_preset must be True or False, given 1"),
        ({"keep": "accuracy>0.5"}, "keep must be a list, given 'accuracy>0.5'"),
        ({"metric": ["accuracy"]}, "metric must be a text, given ['accuracy']"),
        ({"values": [("epochs", 1)]}, "values must be a mapping, given [('epochs', 1)]"),
        ({"space": 3}, "space must be a Space, a mapping, a text or a path, given 3"),
        ({"budget": "1h"}, "budget must be a number, given '1h'"),
        ({"results": 3}, "results must be a text or a path, given 3"),
    ],
)
def test_an_option_of_another_kind(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        contrasweep.sweep("infonce", "digits", **options)
    assert str(refused.value) == message


def test_other_functions_refuse_a_count_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="top must be a whole number, given '3'"):
        contrasweep.best_trials("absent", tmp_path, top="3")  # type: ignore[arg-type]


@pytest.mark.parametrize("as_file", [True, False])
def test_a_space_may_be_a_mapping_or_a_file(tmp_path: Path, as_file: bool) -> None:
    """It takes what it leaves out from the method, as on the command line."""
    forms = {"temperature": {"log": [0.05, 1.0]}, "optimizer.lr": 0.1}
    file = tmp_path / "space.yaml"
    file.write_text("{temperature: {log: [0.05, 1.0]}, optimizer.lr: 0.1}")
    plan = plan_sweep("infonce", "digits", space=str(file) if as_file else forms, trials=2)
    whole = {"log": [0.05, 1.0], "default": 0.1}
    assert plan.space.forms() == {"temperature": whole, "optimizer.lr": 0.1, "negatives": "all"}
    parsed = Space.parse({"temperature": whole, "optimizer.lr": 0.1})
    assert plan_sweep("infonce", "digits", space=parsed, trials=2).space.forms() == plan.space.forms()


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            {"temprature": 0.1},
            "space: unknown setting for infonce: 'temprature'. Did you mean 'temperature'?",
        ),
        ({"temperature": {"lg": [0.1, 1]}}, "space: temperature: "),
        ("absent.yaml", "absent.yaml: there is no such file"),
    ],
)
def test_a_space_that_is_wrong_is_told(space: Any, message: str) -> None:
    with pytest.raises(InputError) as refused:
        plan_sweep("infonce", "digits", space=space)
    assert str(refused.value).startswith(message)


def test_a_name_that_is_taken_is_told_with_what_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of a notebook is run again: there is no `--resume` there, and no same command."""
    monkeypatch.chdir(tmp_path)
    plans: list[SweepPlan] = []
    monkeypatch.setattr(sweeping, "_run", lambda plan, *_: plans.append(plan))

    def again(**options: Any) -> str:
        contrasweep.sweep("infonce", "digits", trials=2, name="python", **options)
        with pytest.raises(StoreError) as refused:
            contrasweep.sweep("infonce", "digits", trials=2, name="python", **options)
        return str(refused.value)

    assert again().endswith(f"{RESUMABLE}; in Python, `contrasweep.resume_sweep('python')` does.")
    assert "`contrasweep.resume_sweep('python', 'elsewhere')` does" in again(results="elsewhere")
    typed = CliRunner().invoke(app, ["sweep", "infonce", "--data", "digits", "--name", "python"])
    assert typed.exit_code == 2
    assert f"{RESUMABLE}." in typed.stderr
    assert "resume_sweep" not in typed.stderr
    assert len(plans) == 2


def test_the_help_of_a_sweep_says_what_its_options_are() -> None:
    told = inspect.getdoc(contrasweep.sweep) or ""
    described = re.findall(r"^ {8}- (\w+) \(([^)]+?)(?:, default (\S+))?\): \w", told, re.MULTILINE)
    parameters = inspect.signature(contrasweep.sweep).parameters
    assert {"trials", "epochs", "values", "space", "metric", "results", "name"} <= {
        one for one, *_ in described
    }
    for name, _, default in described:
        assert name in SweepOptions.__annotations__
        # None stands for a number that the search chooses: of trials 24, of seeds 1.
        assert parameters[name].default in (None, default.strip('"'))


def test_a_sweep_from_python_warns_like_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sweeping, "_run", lambda plan, *_: plan)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 2)
    values = {"schedule.warmup_epochs": 1.0, "validation.fraction": 0.05}
    asked = {"epochs": 2, "concurrency": 3, "trials": 9, "sampler": "grid", "space": {"temperature": 0.2}}
    contrasweep.sweep("infonce", "digits", values=values, results=tmp_path, name="a", **asked)
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [one.partition(":")[0] for one in told] == [
        "the grid has 1 point",
        "the validation split has 72 images",
        "a trial makes 20 steps in all",
        "no trial is stopped early",
    ]
    caplog.clear()
    contrasweep.sweep("infonce", "digits", trials=3, concurrency=3, results=tmp_path, name="b")
    assert [record.getMessage() for record in caplog.records] == [
        "3 trials at once ask for 3 cores, and this machine has 2: all take longer than is estimated."
    ]
