"""One of several LeNet-5 trainings that share a device: `python -m benchmarks.gpu.packed NUMBER FOLDER ...`.

The trainings go through rounds of more and more of them, `--counts 1,4,16`: the numbers below a count take
part. For each of its rounds a training writes `ready-COUNT-NUMBER` into the folder, waits for `go-COUNT`,
trains for some seconds, and writes its steps and their seconds as `done-COUNT-NUMBER`.
"""

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch

from benchmarks.gpu import made_up
from contrasweep.machine import available_cores
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import pretrain

BATCH, WARM_UP = 256, 20
POLL, PATIENCE = 0.02, 120.0
"""Seconds between two looks for `go`, and until a process gives up on it."""


class Enough(Exception):
    """The time is up."""


class Rounds:
    """Counts the steps of every round; it is called after every step."""

    def __init__(self, number: int, folder: Path, counts: Sequence[int], seconds: float, device: str) -> None:
        self._number, self._folder, self._device = number, folder, device
        self._waiting = [count for count in counts if number < count]
        self._seconds = seconds
        self._steps, self._started = -WARM_UP, 0.0

    def __call__(self, *_: int) -> None:
        """Take note of a step.

        Raises:
            Enough: the last round has ended.
        """
        self._steps += 1
        if self._steps == 0:
            self._begin()
        elif self._steps > 0 and time.perf_counter() - self._started >= self._seconds:
            self._end()

    def _begin(self) -> None:
        count = self._waiting[0]
        torch.set_num_threads(max(1, available_cores() // count))
        self._synchronise()
        (self._folder / f"ready-{count}-{self._number}").touch()
        deadline = time.monotonic() + PATIENCE
        while not (self._folder / f"go-{count}").exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the other trainings did not become ready")
            time.sleep(POLL)
        self._steps, self._started = 0, time.perf_counter()

    def _end(self) -> None:
        self._synchronise()
        result = {"steps": self._steps, "seconds": time.perf_counter() - self._started}
        done = self._folder / f"done-{self._waiting.pop(0)}-{self._number}"
        # The reader looks for the name: it must not find half a file.
        unfinished = done.with_name(f"unfinished-{self._number}")
        unfinished.write_text(json.dumps(result), encoding="utf-8")
        unfinished.rename(done)
        if not self._waiting:
            raise Enough
        self._begin()

    def _synchronise(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--counts", default="1", help="trainings of each round")
    options = parser.parse_args()
    settings = {
        "encoder.name": "lenet5",
        "batch_size": min(BATCH, options.images),
        "epochs": 1_000,
        "validation.fraction": 0.0,
    }
    experiment = resolve("infonce", "cifar10", {**settings, "seed": options.number})
    counts = [int(count) for count in options.counts.split(",")]
    rounds = Rounds(options.number, options.folder, counts, options.seconds, options.device)
    data = made_up.cifar_like(options.images, options.device)
    with suppress(Enough):
        for _ in pretrain(experiment, data=data, device=options.device, on_step=rounds):
            pass


if __name__ == "__main__":
    main()
