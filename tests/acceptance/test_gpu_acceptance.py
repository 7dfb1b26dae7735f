"""The acceptance script for GPUs, without one: its driver, its limits, and cheap parts as a dry run."""

import json
import os
import re
import select
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu_acceptance
from benchmarks.gpu import at_size, packed, parity, same_bits, speed, tracing
from benchmarks.gpu.findings import Findings, Limit, NotRun, Place, recorded
from benchmarks.gpu.parts import PARTS, Part
from contrasweep.optimizers import Optimizer
from contrasweep.tuning.objectives.batches import ImageFeed
from contrasweep.tuning.objectives.objective import Objective
from tests.architecture.imports import files, importing
from tests.threads import torch_threads

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("cpu", small=True, out=tmp_path)


def of(run: Callable[[Place], Findings], place: Place) -> dict[str, Any]:
    return recorded("one", lambda: run, place)


# The driver.

RECORD = {"part": "sound", "ok": True, "error": None, "headline": "well", "figures": {}, "limits": []}
RECORD |= {"device": "a device", "dry_run": True, "versions": {}, "seconds": 1}
SCRIPTS = {
    "sound": f"import json; json.dump({RECORD}, open('FOLDER/sound.json', 'w'))",
    "dies": "import sys; sys.exit('what it says last')",
    # Its child would go on after it.
    "hangs": "import os, subprocess; pipe = os.open('FOLDER/pipe', os.O_WRONLY); os.write(pipe, b'begun'); "
    "subprocess.run(['sleep', '600'], pass_fds=[pipe])",
    "last": "import os; os._exit(7)",
}


@pytest.fixture
def ran(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """The records of parts that fail in every way, and of one that does not; a pipe that one part holds."""

    def command(_: str, __: str, name: str, *arguments: object) -> list[str]:
        return [sys.executable, "-S", "-c", SCRIPTS[name].replace("FOLDER", str(place.out))]

    monkeypatch.setattr(gpu_acceptance, "command", command)
    os.mkfifo(place.out / "pipe")
    pipe = os.open(place.out / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    parts = [Part(name, "is it?", "", 1 if name == "hangs" else 60) for name in SCRIPTS]
    parts.insert(1, Part("for a GPU", "is it?", "", 60, needs_gpu=True))
    yield gpu_acceptance.run_all(parts, place, 1.0), pipe
    os.close(pipe)


def test_the_driver_goes_on_after_every_failure_and_leaves_nothing_behind(
    ran: tuple[list[dict[str, Any]], int], place: Place
) -> None:
    records, pipe = ran
    assert {one["part"]: one["ok"] for one in records} == {
        "sound": True,
        "for a GPU": None,
        "dies": False,
        "hangs": False,
        "last": False,
    }
    assert json.loads((place.out / "acceptance.json").read_text()) == records
    table = gpu_acceptance.table(records)
    assert re.search(r"^sound +ok +1 s +well$", table, re.MULTILINE)
    assert "for a GPU: not run: it needs a GPU" in table
    assert "dies: the process ended with 1 and no record: what it says last" in table
    assert "hangs: it took longer than its limit of 1 s" in table
    assert "last: the process ended with 7" in table
    assert gpu_acceptance.exit_code(records) == 1
    assert os.read(pipe, 10) == b"begun"
    # The pipe ends once all that held it have ended.
    assert select.select([pipe], [], [], 60)[0]
    assert os.read(pipe, 10) == b""


def test_a_record_of_an_earlier_run_does_not_count(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.out / "old.json").write_text('{"ok": true}')
    monkeypatch.setattr(gpu_acceptance, "command", lambda *_: [sys.executable, "-S", "-c", ""])
    assert gpu_acceptance.run_apart(Part("old", "", "", 60), place, 60)["ok"] is False


@pytest.mark.parametrize(
    ("results", "code"), [([True, None], 0), ([True, False], 1), ([None, None], 1), ([], 1)]
)
def test_the_exit_code_says_whether_a_part_failed_or_none_ran(results: list[bool | None], code: int) -> None:
    assert gpu_acceptance.exit_code([{"ok": result} for result in results]) == code


def test_an_unknown_part_and_a_missing_gpu_are_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_acceptance, "_finds_gpu", lambda: False)
    for words, said in ((["--only", "sped"], "given sped; allowed: parity"), ([], "finds no GPU here")):
        with pytest.raises(SystemExit, match="2"):
            gpu_acceptance.main(["--out", str(place.out), *words])
        assert said in capsys.readouterr().err


# Records.


def test_a_limit_that_is_missed_fails_the_part_only_where_it_is_judged(place: Place) -> None:
    def found(*limits: Limit) -> dict[str, Any]:
        return of(lambda _: Findings("", {"rate": 5, "cost": 0.1}, list(limits)), place)

    assert found(Limit("rate", "at least", 5), Limit("cost", "at most", 0.1))["ok"] is True
    assert found(Limit("rate", "at least", 6))["ok"] is False
    assert found(Limit("cost", "at most", 0.09))["ok"] is False
    assert found(Limit("absent", "at most", 1))["ok"] is False
    told = found(Limit("rate", "at least", 6, judged=False))
    assert told["ok"] is True
    assert "missed, not judged here: rate is 5, at least 6 is wanted" in gpu_acceptance.table([told])


def test_what_is_not_installed_counts_as_not_run_and_a_fault_of_ours_does_not(place: Place) -> None:
    def lacks(name: str) -> Callable[[Place], Findings]:
        def run(_: Place) -> Findings:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        return run

    def refuses(_: Place) -> Findings:
        raise NotRun("no room")

    assert of(lacks("ray"), place)["ok"] is None
    assert of(lacks("ray"), place)["error"] == "not run: ray is not installed"
    assert of(lacks("contrasweep.gone"), place)["ok"] is False
    assert of(refuses, place)["error"] == "not run: no room"


def test_every_part_has_its_function_and_none_needs_ray_to_be_imported() -> None:
    assert all(callable(part.load()) for part in PARTS)
    there = [*files("benchmarks/gpu"), ROOT / "benchmarks/gpu_acceptance.py"]
    for package in ("ray", "optuna", "contrasweep.tuning.ray"):
        assert importing(package, there) == set()


def test_the_document_has_every_part_and_the_limits_of_the_script() -> None:
    text = (ROOT / "docs/gpu-check.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE) == [part.name for part in PARTS]
    for bound in (
        f"{speed.FLOOR:,} images/s",
        f"{speed.VIEWS_COST:.0%}",
        f"{tracing.COPIES} copies",
        f"{tracing.WAITS} waits",
    ):
        assert bound in text
    for tolerance in (parity.LOSS_TOLERANCE, parity.GRADIENT_TOLERANCE):
        assert f"{tolerance:g}".replace("1e-05", "1e-5") in text


@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_the_document_shows_the_records_of_the_gpus_that_it_names(gpu: str) -> None:
    records = json.loads((ROOT / f"docs/gpu-{gpu}.json").read_text(encoding="utf-8"))
    shown = f"{gpu_acceptance.title(records)}\n{gpu_acceptance.table(records)}"
    assert f"```text\n{shown}\n```" in (ROOT / "docs/gpu-records.md").read_text(encoding="utf-8")
    assert not any(one["dry_run"] for one in records)
    assert gpu.upper() in records[0]["device"]


def test_every_part_has_run_on_a_gpu() -> None:
    ran = [one["part"] for file in ROOT.glob("docs/gpu-*.json") for one in json.loads(file.read_text())]
    assert sorted(ran) == sorted(part.name for part in PARTS)


# Parts.


def test_parity_holds_between_two_libraries_and_sees_a_wrong_gradient(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the methods clusters by k-means, whose clusters are given to both."""
    monkeypatch.setattr(parity, "methods", lambda _: ["infonce", "cl-infonce"])
    record = of(parity.parity, place)
    assert record["ok"] is True, record
    step, taken = parity.first_step, []

    def doubled(*arguments: Any) -> parity.Step:
        taken.append(step(*arguments))
        one = taken[-1]
        wrong = {name: 2 * value for name, value in one.gradients.items()}
        return one if len(taken) % 2 else parity.Step(one.loss, wrong)

    monkeypatch.setattr(parity, "methods", lambda _: ["infonce"])
    monkeypatch.setattr(parity, "first_step", doubled)
    record = of(parity.parity, place)
    assert [limit["holds"] for limit in record["limits"]] == [True, False]
    assert record["ok"] is False


def test_resume_holds_and_sees_a_state_that_was_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_bits, "RESUMED", same_bits.RESUMED[:1])
    assert of(same_bits.resume, place)["ok"] is True
    # Without its momentum the optimizer goes on differently.
    load = Optimizer.load_state_dict
    monkeypatch.setattr(Optimizer, "load_state_dict", lambda own, state: load(own, {**state, "state": {}}))
    record = of(same_bits.resume, place)
    assert record["ok"] is False
    assert record["figures"]["which have other bits"] == ["infonce, sgd"]


def test_the_jobs_at_size_get_their_made_up_classes_right(place: Place) -> None:
    record = of(at_size.at_size, place)
    assert record["ok"] is True, record
    assert min(record["figures"]["share that is right"].values()) >= at_size.RIGHT


def test_random_groups_explain_nothing_and_the_classes_all(place: Place) -> None:
    rows, classes = at_size.made_up.features(2000, 32, place.device)
    shuffled = classes[torch.randperm(len(classes), generator=torch.Generator().manual_seed(0))]
    whole = at_size.explained(rows, classes)
    assert at_size.explained(rows, shuffled) < 0.02 * whole
    merged = torch.where(classes == 1, 0, classes)
    assert 0.7 * whole < at_size.explained(rows, merged) < 0.97 * whole
    # Of the mean squares of the classes: what is left is the noise of each class.
    centred = rows - rows.mean(dim=0)
    left = sum(float((rows[classes == c] - rows[classes == c].mean(dim=0)).square().sum()) for c in range(10))
    assert whole == pytest.approx(float(centred.square().sum()) - left, rel=1e-4)


def test_a_kernel_is_told_by_its_bare_name() -> None:
    name = "void at::native::(anonymous namespace)::batch_norm_kernel<at::native::Var, float, 4>(float*, int)"
    assert tracing.short(name) == "batch_norm_kernel"
    assert tracing.short("sm90_fprop_cudnn") == "sm90_fprop_cudnn"


def test_cached_views_are_made_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = speed.experiment_of(place, {"encoder.name": "lenet5", "batch_size": 8})
    data, made = speed.made_up.cifar_like(64, "cpu"), []
    make = ImageFeed._batch
    monkeypatch.setattr(ImageFeed, "_batch", lambda *given: made.append(1) or make(*given))
    speed.images_a_second(experiment, data, "cpu")
    every = len(made)
    made.clear()
    with speed.cached_views():
        speed.images_a_second(experiment, data, "cpu")
    assert every == experiment.epochs * 8
    # A feed may make a batch ahead.
    assert experiment.epochs * speed.CACHED <= len(made) <= experiment.epochs * (speed.CACHED + 1)


def test_a_value_that_a_step_reads_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = tracing.quick_run("infonce", tracing.UNSCORED)
    data = tracing.FewImages("cpu", 288).of(experiment)
    before = tracing.watched(experiment, data, "cpu")
    monkeypatch.setattr(Objective, "after_step", lambda _: float(torch.ones(())))
    after = tracing.watched(experiment, data, "cpu")
    assert after["reads of a value"] == before["reads of a value"] + 1


def test_a_packed_training_takes_part_in_its_rounds_alone(tmp_path: Path) -> None:
    for count in (1, 2, 4):
        (tmp_path / f"go-{count}").touch()
    rounds = packed.Rounds(1, tmp_path, (1, 2, 4), 0.0, "cpu")
    with torch_threads():
        for _ in range(packed.WARM_UP + 1):
            rounds()
        with pytest.raises(packed.Enough):
            rounds()
    assert list(tmp_path.glob("unfinished-*")) == []
    assert sorted(file.name for file in tmp_path.glob("done-*")) == ["done-2-1", "done-4-1"]
    assert json.loads((tmp_path / "done-2-1").read_text())["steps"] == 1
