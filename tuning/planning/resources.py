"""What trials run on: the cores and GPUs of this machine or of a Ray cluster, and how many trials fit."""

from dataclasses import dataclass, replace
from typing import Any, Final

from contrasweep.machine import available_cores, available_gpus
from contrasweep.names import counted
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.training.devices import AUTO, check_device_name, gpus_wanted

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

    `machine` is a Ray cluster; None means this machine. `allowed` trials would run at once if there were more
    of them; None means no more than `concurrency`.
    """

    concurrency: int
    cpus: int = 1
    workers: int = 1
    gpus: float = 0.0
    machine: Machine | None = None
    allowed: int | None = None

    @property
    def cores(self) -> int:
        """Cores of all trials together."""
        return self.concurrency * self.workers * self.cpus

    @property
    def one_node(self) -> bool:
        """Whether the workers of a trial must be on one node of a cluster."""
        return self.machine is not None and self.machine.one_node

    @property
    def in_words(self) -> str:
        """The resources of one trial in words."""
        cpus, gpus = counted(self.cpus, "cpu"), f" and {self.gpus:g} GPU" if self.gpus else ""
        if self.workers == 1:
            return f"{cpus}{gpus} each"
        return f"{counted(self.workers, 'worker')} of {cpus}{gpus} each{' on one node' * self.one_node}"


@dataclass(frozen=True)
class AskedResources:
    """What a user asks for: how many trials at once, what each takes, and where; None: it was not given.

    Attributes:
        concurrency: trials at once; by default as many as fit.
        cpus: cores of each worker of a trial; one by default.
        workers: processes that train one trial together; one by default.
        gpus: GPUs of each worker, 0 to 1; by default as the device says.
        device: the name of a device; `auto` by default.
        machine: a Ray cluster; this machine by default.

    Raises:
        InputError: a number is below 1 or above `limits.MOST`, or there is no such device.
    """

    concurrency: int | None = None
    cpus: int | None = None
    workers: int | None = None
    gpus: float | None = None
    device: str | None = None
    machine: Machine | None = None

    def __post_init__(self) -> None:
        """Refuse what is wrong on any machine."""
        for what in ("cpus", "workers", "concurrency"):
            check_count(what, getattr(self, what))
        check_device_name(self.device or AUTO)

    @property
    def in_one_process(self) -> bool:
        """Whether a run alone can take place in this process: one worker, and no part of a GPU for it."""
        return self.workers in (None, 1) and not self.gpus

    def given(self, cpus: str = "cpus") -> dict[str, Any]:
        """Return what was given, as arguments of a function for users, which calls the cores `cpus`."""
        called = {"cpus": cpus, "gpus": "gpus_per_worker"}
        return {called.get(name, name): value for name, value in vars(self).items() if value is not None}

    def gpus_each(self) -> float:
        """Return how many GPUs each worker takes.

        Raises:
            InputError: the device is not there, or contradicts the GPUs.
        """
        device, there = self.device or AUTO, self.machine
        if there is None:
            return gpus_wanted(device, self.gpus, available_gpus())
        return gpus_wanted(device, self.gpus, there.gpus, there.in_words, to_come=there.autoscales)

    def resources(self, most: int | None = None) -> Resources:
        """Return the resources of the trials: of as many as were asked for, or as fit; of at most `most`.

        Trials of one process without a GPU may outnumber the cores if the user asks for that. Other trials
        run only as many at once as fit, because a group that waits for some of its workers would wait for
        ever. A cluster that autoscales takes `concurrency` as it is given.

        Raises:
            InputError: one trial needs more than there is, the device is not there, or a cluster that
                autoscales is asked for no number of trials.
        """
        gpus, cluster = self.gpus_each(), self.machine
        asked = Resources(self.concurrency or 0, self.cpus or 1, self.workers or 1, gpus, cluster)
        if cluster is not None and cluster.autoscales:
            return _of_nodes_to_come(asked, most)
        place = cluster or Machine((available_cores(),), (float(available_gpus()),) if gpus else ())
        fit = place.room_for(asked)
        allowed = self.concurrency or fit
        if cluster is None and (asked.workers > 1 or gpus):
            allowed = min(allowed, fit)
        cut = _cut(asked, allowed, most)
        if not fit or (cluster is not None and cut.concurrency > fit):
            trials = f"{counted(cut.concurrency, 'trial')} at once" if fit else "trials"
            lacking = " and no GPU that torch can use" if gpus and not place.gpus else ""
            raise InputError(
                f"{trials} of {asked.in_words} were asked for; {place.in_words}{lacking}: room for {fit}"
            )
        return cut


NOTHING_ASKED: Final = AskedResources()


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


def shortfalls(asked: AskedResources, got: Resources, trials: int) -> tuple[str, ...]:
    """Return where trials run otherwise than asked, a sentence each: fewer at once, or on too few cores.

    Args:
        asked: what was asked for.
        got: what the trials get.
        trials: how many trials there are.
    """
    told, at_once = [], got.concurrency
    if asked.concurrency is not None and at_once < min(asked.concurrency, trials):
        fit = f"{counted(at_once, 'trial')} of {got.in_words} at once"
        told.append(f"this machine has room for {fit}, not {asked.concurrency}.")
    if got.machine is None and got.cores > available_cores():
        shared = f"{got.cores} cores, and this machine has {available_cores()}"
        told.append(
            f"{counted(at_once, 'trial')} at once ask for {shared}: all take longer than is estimated."
        )
    return tuple(told)


def check_share(gpus: float) -> None:
    """Raise InputError unless so many GPUs can be those of one worker."""
    if not 0 <= gpus <= 1:
        raise InputError(f"gpus-per-worker must be 0 to 1, a worker trains on one GPU; given {gpus:g}")


def idle_gpu_in_words(asked: Resources, encoder: str) -> str | None:
    """Return a hint that more trials of a small network fit on this machine's GPUs; None if there is none.

    On an H200 with 16 cores, 16 trainings of LeNet-5 at once did at least twice the epochs of four.
    """
    if asked.gpus != 1 or asked.workers > 1 or asked.machine is not None or encoder not in SMALL_NETWORKS:
        return None
    gpus = max(1, available_gpus())
    trials = available_cores() // gpus // asked.cpus
    if trials < 2:
        return None
    # Rounded down: so many trials must fit on a GPU.
    share = SHARES // trials / SHARES
    return (
        f"The GPU mostly waits for a network as small as {encoder}: with --gpus-per-worker {share:g}, "
        f"{trials * gpus} trials fit at once, not {gpus} (docs/gpu.md)."
    )
