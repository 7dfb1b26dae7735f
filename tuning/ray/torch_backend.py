"""The process group of the workers of Ray Train, on the network of Ray."""

from ray.train._internal.base_worker_group import BaseWorkerGroup
from ray.train.backend import BackendConfig
from ray.train.torch import TorchConfig
from ray.train.torch.config import _TorchBackend

from contrasweep.tuning.ray.network import apart_in_words, meet_on_rays_network
from contrasweep.tuning.ray.nodes import NodeLacks


class _OnRaysNetwork(_TorchBackend):
    """Ray's way to set up the process group, which leaves the choice of a network to gloo."""

    def on_start(self, worker_group: BaseWorkerGroup, backend_config: BackendConfig) -> None:
        assert isinstance(backend_config, TorchConfig), "Ray passes the config that named this class"
        apart = apart_in_words(worker_group.execute)
        if apart is not None:
            raise NodeLacks(apart)
        worker_group.execute(meet_on_rays_network)
        super().on_start(worker_group, backend_config)


class TorchOnRaysNetwork(TorchConfig):
    """A `TorchConfig` whose workers meet on the network of Ray; see `meet_on_rays_network`."""

    @property
    def backend_cls(self) -> type[_TorchBackend]:
        """The class that sets up the process group, as Ray asks for it."""
        return _OnRaysNetwork
