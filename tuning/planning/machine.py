"""What there is to run on: the cores of this machine, or the nodes of a Ray cluster."""

from dataclasses import dataclass

CLIENT_SCHEME = "ray://"
"""How the address of a cluster begins that is reached from outside, by Ray's client."""


@dataclass(frozen=True)
class Machine:
    """Cores, by node; of this machine alone, or of the Ray cluster at `address`.

    Attributes:
        nodes: cores of each node.
        node_gpus: GPUs of each node; empty: none anywhere.
        address: of the cluster.
    """

    nodes: tuple[int, ...]
    node_gpus: tuple[float, ...] = ()
    address: str | None = None

    @property
    def gpus(self) -> float:
        """GPUs of all nodes."""
        return sum(self.node_gpus)

    @property
    def cpus(self) -> int:
        """Cores of all nodes."""
        return sum(self.nodes)

    @property
    def largest(self) -> int:
        """Cores of the largest node: a trial cannot have more."""
        return max(self.nodes, default=0)

    @property
    def in_words(self) -> str:
        """What there is."""
        if self.address is None:
            return f"this machine has {self.cpus}"
        each = ", ".join(str(cpus) for cpus in self.nodes)
        gpus = f" and {self.gpus:g} GPUs" if self.gpus else ""
        return f"the Ray cluster at {self.address} has {self.cpus} cpus ({each} by node){gpus}"

    def places(self, cpus: int) -> int:
        """Return how many trials of `cpus` cores fit at once: none spans two nodes."""
        return sum(node // cpus for node in self.nodes)
