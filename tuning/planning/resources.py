"""What trials run on: the cores and GPUs of this machine or of a Ray cluster, and how many trials fit."""

from dataclasses import dataclass, replace

from contrasweep.machine import available_cores, available_gpus
from contrasweep.names import counted
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.training.devices import AUTO, gpus_wanted

CLIENT_SCHEME = "ray://"
"""How the address of a cluster begins that is reached from outside, by Ray's client."""


SMALL_NETWORKS = ("lenet5", "lenet5-linear", "small-conv", "herocon-mlp")
"""Encoders that leave a GPU idle for most of a training step: the first was measured, others are as small."""

SHARES = 10_000
"""A share of a GPU has four digits, as in Ray."""


@dataclass(frozen=True)
class Machine:
    """The cores and GPUs of this machine, or of the nodes of a Ray cluster.

    Attributes:
        nodes: the cores of each node.
        node_gpus: the GPUs of each node; empty if no node has any.
        address: the cluster's address; None for this machine.
        autoscales: whether the cluster starts further nodes for trials that wait. The nodes above are those
            of now, so they do not limit what may be asked for.
        one_node: whether the workers of a trial must be on one node; otherwise they may be on several.
    """

    nodes: tuple[int, ...]
    node_gpus: tuple[float, ...] = ()
    address: str | None = None
    autoscales: bool = False
    one_node: bool = False

    @property
    def gpus(self) -> float:
        """GPUs of all nodes."""
        return sum(self.node_gpus)

    @property
    def cpus(self) -> int:
        """Cores of all nodes."""
        return sum(self.nodes)

    @property
    def in_words(self) -> str:
        """The cores and GPUs in words, for messages."""
        has = f"has {counted(self.cpus, 'cpu')}"
        gpus = f" and {self.gpus:g} GPU{'s' * (self.gpus != 1)}" if self.gpus else ""
        if self.address is None:
            return f"this machine {has}{gpus}"
        each = ", ".join(str(cpus) for cpus in self.nodes)
        return f"the Ray cluster at {self.address} {has} ({each} by node){gpus}"

    def room_for(self, asked: "Resources") -> int:
        """Return how many trials fit at once: each worker needs its cores and its GPU on one node.

        Raises:
            InputError: a worker asks for more than one GPU.
        """
        slots = self._slots(asked)
        if self.one_node:
            return sum(there // asked.workers for there in slots)
        return sum(slots) // asked.workers

    def _slots(self, asked: "Resources") -> list[int]:
        """Return how many workers fit on each node."""
        if not asked.gpus:
            return [cpus // asked.cpus for cpus in self.nodes]
        check_share(asked.gpus)
        # A worker's share lies on one GPU: three workers of 0.4 take two GPUs.
        shares = int(1 / asked.gpus + 1e-9)
        gpus = self.node_gpus or (0.0,) * len(self.nodes)
        nodes = zip(self.nodes, gpus, strict=True)
        return [min(cpus // asked.cpus, int(there) * shares) for cpus, there in nodes]


@dataclass(frozen=True)
class Resources:
    """`concurrency` trials at once, each of `workers` processes with `cpus` cores and `gpus` GPUs each.

    `address` names a Ray cluster; None means this machine. `autoscales` says that the cluster starts nodes
    for trials that wait, `one_node` that the workers of a trial must be on one node. `allowed` trials would
    run at once if there were more of them; None means no more than `concurrency`.
    """

    concurrency: int
    cpus: int = 1
    workers: int = 1
    gpus: float = 0.0
    address: str | None = None
    autoscales: bool = False
    one_node: bool = False
    allowed: int | None = None

    @property
    def cores(self) -> int:
        """Cores of all trials together."""
        return self.concurrency * self.workers * self.cpus

    @property
    def in_words(self) -> str:
        """The resources of one trial in words."""
        cpus, gpus = counted(self.cpus, "cpu"), f" and {self.gpus:g} GPU" if self.gpus else ""
        if self.workers == 1:
            return f"{cpus}{gpus} each"
        return f"{counted(self.workers, 'worker')} of {cpus}{gpus} each{' on one node' * self.one_node}"


def resources_for(
    concurrency: int | None,
    cpus: int,
    workers: int = 1,
    gpus: float | None = None,
    *,
    device: str = AUTO,
    most: int | None = None,
    machine: Machine | None = None,
) -> Resources:
    """Return the resources of `concurrency` trials; None takes as many trials as fit, at most `most`.

    `gpus` and `device` are those of `gpus_for`. `machine` is a Ray cluster; None means this machine. Trials
    of one process without a GPU may outnumber the cores if the user asks for that. Other trials run only as
    many at once as fit, because a group that waits for some of its workers would wait for ever. A cluster
    that autoscales takes `concurrency` as it is given.

    Raises:
        InputError: a number is below 1 or above `limits.MOST`, one trial needs more than there is, the device
            is not there, or a cluster that autoscales is asked for no number of trials.
    """
    check_counts(concurrency, cpus, workers)
    gpus = gpus_for(device, gpus, machine)
    if machine is not None and machine.autoscales:
        asked = Resources(concurrency or 0, cpus, workers, gpus, machine.address, True, machine.one_node)
        return _of_nodes_to_come(asked, most)
    here = Machine((available_cores(),), (float(available_gpus()),) if gpus else ())
    place = here if machine is None else machine
    asked = Resources(concurrency or 0, cpus, workers, gpus, place.address, one_node=place.one_node)
    fit = place.room_for(asked)
    allowed = concurrency or fit
    if machine is None and (workers > 1 or gpus):
        allowed = min(allowed, fit)
    cut = _cut(asked, allowed, most)
    if not fit or (machine is not None and cut.concurrency > fit):
        trials = f"{counted(cut.concurrency, 'trial')} at once" if fit else "trials"
        lacking = " and no GPU that torch can use" if gpus and not place.gpus else ""
        raise InputError(
            f"{trials} of {asked.in_words} were asked for; {place.in_words}{lacking}: room for {fit}"
        )
    return cut


def _cut(asked: Resources, allowed: int, most: int | None) -> Resources:
    """Return the resources of `allowed` trials at once; of `most` if there are no more."""
    concurrency = min(allowed, most or allowed)
    return replace(asked, concurrency=concurrency, allowed=allowed if allowed > concurrency else None)


def _of_nodes_to_come(asked: Resources, most: int | None) -> Resources:
    """Return what is asked of a cluster that starts nodes for it: no node of now says what fits."""
    check_share(asked.gpus)
    if not asked.concurrency:
        raise InputError(
            "--autoscale needs --concurrency: nodes that are not there yet do not say how many trials fit"
        )
    return _cut(asked, asked.concurrency, most)


def check_share(gpus: float) -> None:
    """Raise InputError unless so many GPUs can be those of one worker."""
    if not 0 <= gpus <= 1:
        raise InputError(f"gpus-per-worker must be 0 to 1, a worker trains on one GPU; given {gpus:g}")


def idle_gpu_in_words(asked: Resources, encoder: str) -> str | None:
    """Return a hint that more trials of a small network fit on this machine's GPUs; None if there is none.

    On an H200 with 16 cores, 16 trainings of LeNet-5 at once did at least twice the epochs of four.
    """
    if asked.gpus != 1 or asked.workers > 1 or asked.address is not None or encoder not in SMALL_NETWORKS:
        return None
    gpus = max(1, available_gpus())
    trials = available_cores() // gpus // asked.cpus
    if trials < 2:
        return None
    # Rounded down: so many trials must fit on a GPU.
    share = SHARES // trials / SHARES
    return (
        f"The GPU mostly waits for a network as small as {encoder}: with --gpus-per-worker {share:g}, "
        f"{trials * gpus} trials fit at once, not {gpus} (docs/where-to-run.md)."
    )


def check_counts(concurrency: int | None, cpus: int | None, workers: int | None) -> None:
    """Raise InputError unless each of the given numbers is a count."""
    for what, count in (("cpus", cpus), ("workers", workers), ("concurrency", concurrency)):
        check_count(what, count)


def gpus_for(asked: str, gpus: float | None, machine: Machine | None = None) -> float:
    """Return how many GPUs each worker takes on a machine, by `gpus_wanted`; this machine by default.

    Raises:
        InputError: as `gpus_wanted`.
    """
    if machine is None:
        return gpus_wanted(asked, gpus, available_gpus())
    return gpus_wanted(asked, gpus, machine.gpus, machine.in_words, to_come=machine.autoscales)
