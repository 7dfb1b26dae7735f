"""The parts of the acceptance, in the order in which they run. Nothing here imports torch."""

from dataclasses import dataclass
from importlib import import_module

from benchmarks.gpu.findings import Run


@dataclass(frozen=True)
class Part:
    """A part: its name, what it asks in one sentence, where its function is, and its time limit in seconds.

    `needs_gpu` says that it cannot run on a CPU, not even with sizes cut.
    """

    name: str
    asks: str
    home: str
    seconds: int
    needs_gpu: bool = False

    def load(self) -> Run:
        """Return the function that runs the part."""
        module, _, function = self.home.partition(":")
        run: Run = getattr(import_module(f"benchmarks.gpu.{module}"), function)
        return run


PARTS = (
    Part("parity", "the first loss and gradient of every method are the CPU's", "parity:parity", 120),
    Part("determinism", "every method gives the same bits twice", "same_bits:determinism", 180),
    Part("resume", "a resumed run gives the bits of an uninterrupted one", "same_bits:resume", 90),
    Part("faults", "lost memory and a device assert are told; the next process works", "faults:faults", 120),
    Part("fault-sweep", "a device assert ends a trial, not the sweep", "fault_sweep:fault_sweep", 150),
    Part("gloo", "two ranks on one device give the numbers of one process", "ranks:gloo", 90),
    Part("nccl", "a group of one rank works with NCCL", "ranks:nccl", 60, needs_gpu=True),
    Part("counts", "copies, syncs and launches a step", "tracing:counts", 150),
    Part("speed", "ResNet-18 on 32 pixels: images a second; what views cost", "speed:speed", 240),
    Part("profile", "where the time of a step goes", "tracing:profiled", 60),
    Part("packing", "many LeNet-5 processes on one device, with and without MPS", "packing:packing", 240),
    Part("at-size", "views, probes, neighbours and k-means at size", "at_size:at_size", 120),
    Part("streaming", "JPEG files decoded beside the training", "streaming:streaming", 120),
)

BY_NAME = {part.name: part for part in PARTS}
