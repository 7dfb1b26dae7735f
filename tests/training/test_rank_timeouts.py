"""Ranks wait for each other within limits, and for the work of one rank outside of any collective."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]

from contrasweep.losses import RanksLost
from contrasweep.tuning.objectives import rank_timeouts
from contrasweep.tuning.objectives.rank_timeouts import wait_for_ranks
from contrasweep.tuning.objectives.ranks import Ranks, group_ranks
from tests.ranks import WORLD, results_of_ranks

LOOKS = 10_000


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Any:
    held = HashStore()
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", lambda: held)
    return held


class Clock:
    """A clock that only `sleep` moves; `after` so many sleeps, it calls `happens`."""

    def __init__(self, after: int = 0, happens: Any = None) -> None:
        self.now, self.sleeps = 0.0, 0
        self.after, self.happens = after, happens

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1
        if self.sleeps == self.after:
            self.happens()


def test_a_rank_waits_until_the_awaited_have_come_as_often(store: Any) -> None:
    for _ in range(2):
        clock = Clock(5, lambda: wait_for_ranks(0, [0]))
        wait_for_ranks(1, [0], clock=clock, sleep=clock.sleep)
        assert clock.sleeps == 5


def test_who_does_not_come_in_time_is_named(store: Any) -> None:
    clock = Clock()
    wait_for_ranks(1, [1])
    with pytest.raises(RanksLost, match=r"worker 0 has waited 0:01:00 for worker 2, 3, which hangs"):
        wait_for_ranks(0, range(4), timedelta(minutes=1), clock=clock, sleep=clock.sleep)
    assert 60 < clock.now < 61


def test_a_rank_that_does_not_come_ends_a_collective(ranks: list[dict[str, Any]]) -> None:
    assert "another rank is gone" in ranks[0]["hung"]


def test_ranks_are_in_no_collective_while_one_works_alone(ranks: list[dict[str, Any]]) -> None:
    assert [rank["once"] for rank in ranks] == ["the other waits at the store"] * WORLD


def test_weights_are_copied_when_all_have_loaded_their_data(store: Any) -> None:
    clock: list[str] = []

    class Copied(torch.nn.Module):
        def state_dict(self, *_: Any, **__: Any) -> Any:
            clock.append("copied")
            return {}

    wait_for_ranks(1, [1])
    Ranks(0, 2).copy_first(Copied())
    assert clock == ["copied"]
    assert store.add("contrasweep/turns/0", 0) == 1


def test_a_collective_has_minutes_not_a_year() -> None:
    assert timedelta(minutes=2) <= rank_timeouts.COLLECTIVE <= timedelta(minutes=30) < rank_timeouts.ALONE


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two ranks saw."""
    folder = tmp_path_factory.mktemp("waiting")
    return results_of_ranks(run_rank, folder, "contrasweep.tuning.objectives.ranks")


def run_rank(rank: int, folder: str) -> None:
    """Work alone on the first rank; then let the second hang."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORLD)
    store = dist.distributed_c10d._get_default_store()
    ranks = group_ranks()

    def work() -> str:
        for _ in range(LOOKS):
            if store.add("contrasweep/turns/1", 0) == 1:
                return "the other waits at the store"
        return "the other does not wait at the store"

    found = {"once": ranks.once(work)}
    if rank == 0:
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=0.5), dist.group.WORLD)
        try:
            ranks.gather(torch.zeros(3), 0)
        except RanksLost as error:
            found["hung"] = str(error)
        store.set("given up", "")
    else:
        store.wait(["given up"], timedelta(minutes=1))
    torch.save(found, Path(folder) / f"rank-{rank}.pt")
    dist.destroy_process_group()
