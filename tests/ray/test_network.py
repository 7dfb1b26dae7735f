"""The workers of a group meet on the network of Ray, also where a machine's name is a loopback address."""

import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch.distributed as dist
from ray.train.torch.config import _TorchBackend

from contrasweep.tuning.objectives.ranks import Ranks
from contrasweep.tuning.ray import network
from contrasweep.tuning.ray.network import GLOO_INTERFACE, interface_of, meet_on_rays_network
from contrasweep.tuning.ray.torch_backend import TorchOnRaysNetwork
from contrasweep.tuning.ray.worker_group import RankActor


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
    workers: Any = SimpleNamespace(execute=lambda function: function())
    config = TorchOnRaysNetwork(backend="gloo", timeout_s=60)
    config.backend_cls().on_start(workers, config)
    assert seen == ["lo"]
