"""The workers of a group meet on the network of Ray, also where a machine's name is a loopback address."""

import os
import socket
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch.distributed as dist
from ray.train.torch.config import _TorchBackend

from contrasweep.tuning.objectives.ranks import Ranks
from contrasweep.tuning.ray import network, worker_group
from contrasweep.tuning.ray.network import (
    GLOO_INTERFACE,
    apart_in_words,
    interface_of,
    meet_on_rays_network,
    open_door,
    unreached,
)
from contrasweep.tuning.ray.nodes import NodeLacks
from contrasweep.tuning.ray.torch_backend import TorchOnRaysNetwork
from contrasweep.tuning.ray.worker_group import RankActor, RankGroup


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The address of this node in Ray; nothing names an interface yet."""
    told = {"address": "127.0.0.1"}
    monkeypatch.setattr(network.ray.util, "get_node_ip_address", lambda: told["address"])
    # Set first, so that what a test leaves is removed.
    monkeypatch.setenv(GLOO_INTERFACE, "")
    monkeypatch.delenv(GLOO_INTERFACE)
    return told


def test_an_interface_is_found_by_its_address() -> None:
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("192.0.2.1") is None, "an address for documents, of nobody"


def test_gloo_uses_the_interface_of_the_node_unless_the_user_names_one(
    node: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    node["address"] = "192.0.2.1"
    meet_on_rays_network()
    assert GLOO_INTERFACE not in os.environ, "gloo chooses"
    node["address"] = "127.0.0.1"
    meet_on_rays_network()
    assert os.environ[GLOO_INTERFACE] == "lo"
    monkeypatch.setenv(GLOO_INTERFACE, "theirs")
    meet_on_rays_network()
    assert os.environ[GLOO_INTERFACE] == "theirs"


def test_the_ranks_of_a_trial_join_on_that_interface(
    node: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(
        dist, "init_process_group", lambda *_, **__: seen.append(os.environ.get(GLOO_INTERFACE))
    )
    rank: Any = SimpleNamespace(_store=object(), _ranks=Ranks(0, 2))
    RankActor.join(rank, "127.0.0.1", 1, "gloo")
    assert seen == ["lo"]


def test_the_workers_of_ray_train_join_on_that_interface(
    node: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(_TorchBackend, "on_start", lambda *_: seen.append(os.environ.get(GLOO_INTERFACE)))
    workers: Any = SimpleNamespace(execute=lambda function, *given: [function(*given)])
    config = TorchOnRaysNetwork(backend="gloo", timeout_s=60)
    config.backend_cls().on_start(workers, config)
    assert seen == ["lo"]


def test_a_door_is_reached_and_one_that_is_closed_is_not(
    node: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    doors = [open_door()]
    assert doors[0][0] == "127.0.0.1"
    assert unreached(doors) == [], "this node itself"
    node["address"] = "127.0.0.9"
    assert unreached(doors) == [], "from another node"
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        closed = nobody.getsockname()[1]
    assert unreached([("127.0.0.1", closed), ("127.0.0.9", closed)]) == [("127.0.0.9", "127.0.0.1")]


def test_each_pair_that_is_apart_is_told_once() -> None:
    def found(*pairs: list[tuple[str, str]]) -> Callable[..., Sequence[Any]]:
        return lambda function, *_: pairs if function is unreached else ["a door"]

    assert apart_in_words(found([], [])) is None
    told = apart_in_words(found([("b", "c")], [("c", "b")], [("c", "b")]))
    assert told is not None
    assert "no connection to c from b, b from c." in told


def test_workers_of_ray_train_that_do_not_reach_each_other_are_told_before_they_meet() -> None:
    told = iter([["a door"], [[("here", "there")]]])
    workers: Any = SimpleNamespace(execute=lambda *_: next(told))
    config = TorchOnRaysNetwork(backend="gloo")
    with pytest.raises(NodeLacks, match="no connection to there from here"):
        config.backend_cls().on_start(workers, config)


def test_a_trial_whose_workers_do_not_reach_each_other_is_no_failure(
    node: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = RankGroup("crashes", checks_node=False)
    killed: list[Any] = []
    found = {open_door: ("here", 1), unreached: [("here", "there")]}
    rank = SimpleNamespace(
        __ray_ready__=SimpleNamespace(remote=lambda: True),
        call=SimpleNamespace(remote=lambda function, *_: found[function]),
    )
    monkeypatch.setattr(group, "_started", lambda request: [rank, rank])
    monkeypatch.setattr(worker_group.ray, "get", lambda given: given)
    monkeypatch.setattr(worker_group.ray, "kill", killed.append)
    request: Any = SimpleNamespace(gpus=0.0)
    trial = group.begin(request)
    with pytest.raises(NodeLacks, match="no connection to there from here"):
        trial.advance()
    assert killed == [rank, rank], "the next trial gets new ones"
