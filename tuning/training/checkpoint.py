"""The state of a run as bytes: model, optimizer, average, epoch, and the experiment that it belongs to.

Random streams are not saved: each is keyed by (seed, epoch, step). The learning rate is a function of the
step. So a resumed run gives the same numbers as a run that was never interrupted.
"""

import copy
import hashlib
import io
import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from contrasweep.tuning.errors import InputError, one_line, told_to_user
from contrasweep.tuning.experiment import Experiment, differing_settings, flat_settings, parse_experiment
from contrasweep.tuning.training.averaging import WeightAverage

FORMAT = 1
DIGEST_BYTES = 16
_FIELDS = {"experiment": str, "epoch": int, "objective": OrderedDict, "optimizer": dict}
_KERNELS = ("fused", "foreach")
_SHOWN = 200


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint: the last finished `epoch` and the states to restore; `average` is as in a run."""

    epoch: int
    objective: dict[str, Any]
    optimizer: dict[str, Any]
    average: dict[str, Any] | None = None

    def restore(
        self, objective: nn.Module, optimizer: Optimizer, average: WeightAverage | None = None
    ) -> None:
        """Load the states.

        Raises:
            InputError: they do not fit.
        """
        try:
            objective.load_state_dict(self.objective)
            optimizer.load_state_dict(_with_kernels_of(optimizer, self.optimizer))
            if average is not None:
                average.load_state_dict(self.average or {})
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            why = one_line(error) or type(error).__name__
            raise InputError(f"the checkpoint does not fit the experiment: {why}") from error


@dataclass(frozen=True)
class Snapshot:
    """A copy of a run's state after an epoch in the host's memory: training may go on."""

    content: dict[str, Any]

    def dumped(self) -> bytes:
        """Return the state as bytes for `load_checkpoint`."""
        buffer = io.BytesIO()
        torch.save(self.content, buffer)
        state = buffer.getvalue()
        return _digest(state) + state


def take_snapshot(
    experiment: Experiment,
    epoch: int,
    objective: nn.Module,
    optimizer: Optimizer,
    average: WeightAverage | None = None,
) -> Snapshot:
    """Return the run's state after `epoch`; `average` is that of its weights, if it keeps one."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "experiment": json.dumps(experiment.model_dump(mode="json"), sort_keys=True),
        "epoch": epoch,
        "objective": objective.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    if average is not None:
        content["average"] = average.state_dict()
    copied = _in_host_memory(content)
    for device in {weight.device for weight in objective.parameters() if weight.is_cuda}:
        torch.cuda.synchronize(device)
    return Snapshot(copied)


def _in_host_memory(state: Any) -> Any:
    """Return a copy of a state; the copies from a GPU are under way until it is synchronised."""
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True, non_blocking=state.is_cuda)
    if isinstance(state, list | tuple):
        return type(state)(_in_host_memory(part) for part in state)
    if not isinstance(state, dict):
        return state
    copied = copy.copy(state)  # a state dict of torch has attributes beside its entries
    for name, part in state.items():
        copied[name] = _in_host_memory(part)
    return copied


def load_checkpoint(source: bytes | Path, experiment: Experiment) -> Checkpoint:
    """Return the checkpoint in `source`, with its tensors in the host's memory.

    `restore` moves them where they belong. An optimizer has numbers that belong to the host: from a GPU, each
    would be read at every step.

    Raises:
        InputError: the bytes are no checkpoint, or the checkpoint belongs to another experiment; the message
            names the settings that differ.
    """
    content = _load(source if isinstance(source, bytes) else source.read_bytes())
    with told_to_user("not a readable checkpoint: "):
        there = parse_experiment(json.loads(content["experiment"]))
    # A setting that did not exist when the checkpoint was written has its default there.
    saved = flat_settings(there.model_dump(mode="json"))
    wanted = flat_settings(experiment.model_dump(mode="json"))
    if different := differing_settings(wanted, saved, ()):
        changes = ", ".join(f"{path}: {there!r} there, {here!r} here" for path, here, there in different)
        raise InputError(f"the checkpoint belongs to another experiment ({changes})")
    if not 0 <= content["epoch"] <= experiment.epochs:
        raise InputError(
            f"not a readable checkpoint: its epoch is {content['epoch']}, allowed: 0 to {experiment.epochs}"
        )
    return Checkpoint(content["epoch"], content["objective"], content["optimizer"], content.get("average"))


def checkpoint_epoch(source: bytes) -> int:
    """Return the last finished epoch of a checkpoint.

    Raises:
        InputError: the bytes are no checkpoint.
    """
    epoch: int = _load(source)["epoch"]
    return epoch


def _load(data: bytes) -> dict[str, Any]:
    digest, state = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    # Without a digest torch would load most damaged files, with other weights.
    if digest != _digest(state):
        raise InputError("not a readable checkpoint: it is damaged, or no checkpoint at all")
    try:
        content = torch.load(io.BytesIO(state), map_location="cpu", weights_only=True)
    except Exception as error:  # on bytes of another origin, torch raises nearly everything
        why = one_line(error)[:_SHOWN]
        raise InputError(f"not a readable checkpoint: {why or type(error).__name__}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"not a checkpoint of format {FORMAT}")
    for key, kind in _FIELDS.items():
        if type(content.get(key)) is not kind:
            raise InputError(f"not a readable checkpoint: its {key} is no {kind.__name__}")
    return content


def _digest(state: bytes) -> bytes:
    return hashlib.blake2b(state, digest_size=DIGEST_BYTES).digest()


def _with_kernels_of(optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    """Return an optimizer's state with the kernels of this machine: the run may have begun on another."""
    own = optimizer.param_groups[0]
    kernels = {name: own[name] for name in _KERNELS if name in own}
    return {**state, "param_groups": [{**group, **kernels} for group in state["param_groups"]]}
