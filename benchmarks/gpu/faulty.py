"""A training process with a fault: `python -m benchmarks.gpu.faulty FAULT DEVICE`.

`memory`: the GPU's memory runs out. `assert`: a kernel reads outside its tensor, which ends the process's use
of the GPU. `none`: no fault. On a CPU the errors are raised by hand. The process ends as Python does: with 0,
or with 1 and a traceback.
"""

import argparse
import sys

import torch

from benchmarks.gpu import made_up
from benchmarks.gpu.findings import Place
from benchmarks.gpu.speed import experiment_of
from contrasweep.tuning.training.pretrain import pretrain

FAULTS = ("none", "memory", "assert")
SHARE = 0.004
"""The share of the GPU's memory that a process with too little may take: 320 MB of 80 GB."""

AGAIN = "a second use of the device in this process:"


def out_of_memory(device: str) -> None:
    """Let the process have too little memory for its network's activations."""
    if device == "cpu":
        raise torch.OutOfMemoryError("out of memory (made up, on a CPU)")
    torch.cuda.set_per_process_memory_fraction(SHARE)


def device_assert(device: str) -> None:
    """Read outside a tensor on the device, and say what a further use of it does."""
    values, outside = torch.zeros(4, device=device), torch.tensor([10], device=device)
    try:
        values[outside].sum().item()
    except (RuntimeError, IndexError):
        try:
            torch.ones(2, device=device).sum().item()
            print(AGAIN, "works", flush=True)
        except RuntimeError as error:
            print(AGAIN, type(error).__name__, flush=True)
        raise


def train(device: str) -> float:
    """Train two short epochs and return the last loss."""
    small = Place(device, device == "cpu", None)  # type: ignore[arg-type] - it writes no files
    experiment = experiment_of(small, {"epochs": 2})
    data = made_up.cifar_like(2 * experiment.batch_size, device)
    *_, last = pretrain(experiment, data=data, device=device)
    return last.metrics["train.loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("device", choices=("cpu", "cuda"))
    options = parser.parse_args()
    if options.fault == "memory":
        out_of_memory(options.device)
    loss = train(options.device)
    if options.fault == "assert":
        device_assert(options.device)
    print(f"loss {loss}")


if __name__ == "__main__":
    sys.exit(main())
