"""How the driver handles workers that take too long or die, with fakes of Tune's trials."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contrasweep.tuning.ray.watch import TrialWatch, kernel_oom_kills

DIED = """The actor died unexpectedly before finishing this task.
\tclass_name: TrialWorker
\tpid: 17465
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR."""


class World:
    """A fake clock, a fake kernel, and a list of what was killed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.oom_kills: int | None = 5
        self.killed: list[str] = []


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def watch(world: World, tmp_path: Path) -> TrialWatch:
    return TrialWatch(
        60.0,
        tmp_path,
        clock=lambda: world.now,
        oom_kills=lambda: world.oom_kills,
        kill=world.killed.append,
    )


def fake_trial(name: str, folder: Path, *failures: str) -> Any:
    errors = folder / f"{name}.txt"
    told = [f"Failure # {number} (occurred at noon)\n{text}\n" for number, text in enumerate(failures, 1)]
    errors.write_text("".join(told))
    return SimpleNamespace(
        trial_id=name,
        max_failures=1,
        num_failures=len(failures),
        error_file=str(errors) if failures else None,
        temporary_state=SimpleNamespace(ray_actor=f"worker of {name}"),
    )


def test_only_who_is_overdue_is_killed_and_once(watch: TrialWatch, world: World, tmp_path: Path) -> None:
    slow, quick = fake_trial("slow", tmp_path), fake_trial("quick", tmp_path)
    watch.on_trial_start(0, [], slow)
    world.now = 50.0
    watch.on_trial_start(0, [], quick)
    for world.now in (60.0, 61.0, 62.0):
        watch.on_step_end(0, [])
    assert world.killed == ["worker of slow"]
    assert (slow.max_failures, quick.max_failures) == (0, 1), "what timed out is not tried again"
    assert watch.cause("slow") == "timed out after 60 s"


@pytest.mark.parametrize("end", ["on_trial_complete", "on_trial_error", "on_trial_recover"])
def test_who_has_left_its_worker_is_not_counted(
    watch: TrialWatch, world: World, tmp_path: Path, end: str
) -> None:
    trial = fake_trial("a", tmp_path)
    watch.on_trial_start(0, [], trial)
    getattr(watch, end)(0, [], trial)
    world.now = 1000.0
    watch.on_step_end(0, [])
    assert world.killed == []
    assert not watch._running


def test_without_a_timeout_nobody_is_killed(tmp_path: Path) -> None:
    killed: list[Any] = []
    clock = iter([0.0, 1e9])
    watch = TrialWatch(None, tmp_path, clock=lambda: next(clock), kill=killed.append)
    watch.on_trial_start(0, [], fake_trial("a", tmp_path))
    watch.on_step_end(0, [])
    assert killed == []


@pytest.mark.parametrize(
    ("failures", "kills", "crash", "words"),
    [
        ((DIED,), 5, None, "it was killed from outside (SIGKILL), and not by the kernel"),
        ((DIED,), 6, None, "it was killed by the kernel because memory ran out"),
        ((DIED,), None, None, "killed from outside (SIGKILL), perhaps because memory ran out"),
        (
            (DIED,),
            5,
            'Fatal Python error: Aborted\n\nCurrent thread 0x1 (...):\n  File "a.py", line 3 in f',
            'it crashed: Aborted (File "a.py", line 3 in f)',
        ),
        (
            ("The node was low on memory. Memory on the node (IP: ::1) was 7.89GB used / 8.00GB limit.",),
            5,
            None,
            "because memory ran out on its node: 7.89GB of 8.00GB used",
        ),
        (("ray::step()\n  File x\nKeyError: 'a'\n",), 5, None, "its worker failed: KeyError: 'a'"),
        (("Traceback", DIED), 5, None, "its worker failed 2 times, the last time: it was killed"),
        ((DIED, DIED), 5, None, "its worker failed: it was killed"),
        ((), 5, None, "its worker died"),
    ],
)
def test_the_cause_of_a_death(
    watch: TrialWatch,
    world: World,
    tmp_path: Path,
    failures: tuple[str, ...],
    kills: int | None,
    crash: str | None,
    words: str,
) -> None:
    world.oom_kills = kills
    if crash is not None:
        (tmp_path / "17465").write_text(crash)
    trials = [fake_trial("other", tmp_path, "not this"), fake_trial("a", tmp_path, *failures)]
    watch.on_step_begin(0, trials)
    assert words in watch.cause("a")


def test_failures_under_other_ray_ids_are_counted_in(watch: TrialWatch, tmp_path: Path) -> None:
    watch.on_step_begin(0, [fake_trial("a", tmp_path, DIED, DIED), fake_trial("b", tmp_path)])
    assert [watch.failures(trial) for trial in ("a", "b", "unknown")] == [1, 0, 0]
    assert "its worker failed 2 times, the last time: it was killed" in watch.cause("a", 1)


@pytest.mark.skipif(not Path("/proc/vmstat").exists(), reason="the kernel is not Linux")
def test_the_kernel_says_how_many_it_killed() -> None:
    kills = kernel_oom_kills()
    assert kills is not None
    assert kills >= 0
