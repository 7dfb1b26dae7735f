"""Optimizers by name, with LARS and LARC, which torch does not have, and the learning rate of every step."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from contrasweep.optimizers import SGD, Adam, AdamW, Optimizer
from contrasweep.tuning.experiment import OptimizerSettings, ScheduleSettings

_APEX_EPSILON = 1e-8
"""What Apex adds to the norm of a gradient, so that a vanishing one does not become a step of usual size."""


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling with momentum (You, Gitman and Ginsburg, 2017).

    For a tensor p with gradient g: `d = g + weight_decay p`, `rate = trust |p| / (|g| + weight_decay |p|)`,
    `m = momentum m + lr rate d`, `p = p - m`. The learning rate is inside the momentum buffer, as in CCL-K's
    released code. With `exclude=True` one-dimensional tensors (biases, norm layers) take a plain momentum
    step without decay, at `excluded_factor` times `lr`. With `exclude=False` a tensor that starts at zero has
    rate 0 and never moves.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        *,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 1e-3,
        exclude: bool = True,
        excluded_factor: float = 1.0,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust}
        super().__init__(parameters, {**defaults, "exclude": exclude})
        # Not in the defaults: a checkpoint of an earlier version has none.
        self._excluded_factor = excluded_factor

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step on the gradients at hand; `closure` is not supported and must be None."""
        for parameters, group in _with_gradients(self, closure):
            others, plain = _apart(parameters) if group["exclude"] else (parameters, [])
            momentum, lr = group["momentum"], group["lr"]
            self._move(plain, _gradients(plain), momentum, self._excluded_factor * lr)
            self._move(others, _at_own_rates(others, group["weight_decay"], group["trust"]), momentum, lr)

    def _move(self, parameters: list[Tensor], steps: list[Tensor], momentum: float, lr: float) -> None:
        if not parameters:
            return
        buffers = [self._buffer(parameter) for parameter in parameters]
        torch._foreach_mul_(buffers, momentum)
        torch._foreach_add_(buffers, steps, alpha=lr)
        torch._foreach_sub_(parameters, buffers)

    def _buffer(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        buffer: Tensor = state["momentum_buffer"]
        return buffer


class LARC(SGD):
    """SGD with layer-wise adaptive rate control.

    A tensor p with gradient g has the rate `trust |p| / (|g| + weight_decay |p|)` of its own. With `clip` it
    takes the smaller of this rate and `lr`, otherwise their product; a tensor or gradient of zeros takes
    `lr`. With `decay_all=False` one-dimensional tensors (biases, norm layers) have no decay. Source: NVIDIA
    Apex. HeroCon's released code clips, SwAV's does not.

    `fused` is as in torch's SGD.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        *,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 0.02,
        clip: bool = True,
        decay_all: bool = True,
        fused: bool | None = None,
    ) -> None:
        super().__init__(parameters, lr=lr, momentum=momentum, fused=fused)
        self._decay = weight_decay
        self._decay_all = decay_all
        self._trust = trust
        self._clip = clip

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step on the gradients at hand; `closure` is not supported and must be None."""
        for parameters, group in _with_gradients(self, closure):
            others, plain = (parameters, []) if self._decay_all else _apart(parameters)
            self._scale(plain, group["lr"], 0.0)
            self._scale(others, group["lr"], self._decay)
        super().step()

    def _scale(self, parameters: list[Tensor], lr: float, decay: float) -> None:
        if not parameters:
            return
        gradients = _gradients(parameters)
        norms, gradient_norms = _norms(parameters), _norms(gradients)
        lengths = gradient_norms + decay * norms
        if self._clip:
            shares = (self._trust * norms / lengths / lr).clamp(max=1.0)
        else:
            shares = self._trust * norms / (lengths + _APEX_EPSILON)
        shares = torch.where((norms > 0) & (gradient_norms > 0), shares, 1.0)
        # As in Apex, a tensor without a gradient does not decay.
        decays = (decay * (gradient_norms > 0)).unbind()
        torch._foreach_add_(gradients, torch._foreach_mul(parameters, decays))
        torch._foreach_mul_(gradients, shares.unbind())


def _with_gradients(
    optimizer: Optimizer, closure: Callable[[], float] | None
) -> Iterator[tuple[list[Tensor], dict[str, Any]]]:
    """Yield the parameters of every group that have a gradient, and the group; refuse a closure."""
    if closure is not None:
        raise ValueError(f"{type(optimizer).__name__} takes no closure")
    for group in optimizer.param_groups:
        found = [parameter for parameter in group["params"] if parameter.grad is not None]
        if found:
            yield found, group


def _at_own_rates(parameters: list[Tensor], decay: float, trust: float) -> list[Tensor]:
    """Return the steps of LARS: the gradients with decay, each times the rate of its tensor."""
    if not parameters:
        return []
    gradients = _gradients(parameters)
    norms, gradient_norms = _norms(parameters), _norms(gradients)
    rates = trust * norms / (gradient_norms + decay * norms)
    steps = list(torch._foreach_mul(parameters, decay))
    torch._foreach_add_(steps, gradients)
    # 0 / 0: a zero tensor without gradient stays where it is; so does one whose gradient has a norm of 0 in
    # float32 because its entries are tiny.
    torch._foreach_mul_(steps, torch.nan_to_num(rates, nan=0.0, posinf=0.0).unbind())
    return steps


def _gradients(parameters: Iterable[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _norms(tensors: list[Tensor]) -> Tensor:
    """Return the 2-norms `(T,)` of T tensors."""
    return torch.stack(torch._foreach_norm(tensors))


def is_norm_or_bias(parameter: Tensor) -> bool:
    """Whether a parameter is one-dimensional: a bias, or the scale or shift of a norm layer."""
    return parameter.ndim <= 1


def build_optimizer(module: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """Return the optimizer that `settings` name over all parameters of `module`."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    given: dict[str, Any] = settings.model_dump(include={"lr", "weight_decay"})
    trusted: dict[str, Any] = {"momentum": settings.momentum, "trust": settings.trust}
    if settings.name == "lars":
        return LARS(
            parameters,
            exclude=settings.exclude_norm_and_bias,
            excluded_factor=settings.norm_and_bias_lr_factor,
            **trusted,
            **given,
        )
    # One kernel takes the whole step on a GPU. On a CPU it would change the last digits.
    given["fused"] = True if all(parameter.is_cuda for parameter in parameters) else None
    if settings.name == "larc":
        clip, decay_all = settings.larc_clip, settings.decay_norm_and_bias
        return with_late_momentum(LARC(parameters, clip=clip, decay_all=decay_all, **trusted, **given))
    groups = _decay_groups(parameters, settings)
    if settings.name == "sgd":
        return with_late_momentum(
            SGD(groups, momentum=settings.momentum, nesterov=settings.nesterov, **given)
        )
    return (Adam if settings.name == "adam" else AdamW)(groups, **given)


def with_late_momentum(optimizer: SGD) -> SGD:
    """Let tensors join a fused SGD after its first step, such as the prototypes of SwAV; return it.

    Torch's kernel for a GPU fails where some tensors have momentum and others do not have it yet. A momentum
    of zero changes no number: the first step of a tensor is `0 momentum + gradient` either way.
    """

    def start(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            joined = [p for p in group["params"] if p.grad is not None] if group["momentum"] else []
            for parameter in joined:
                state = optimizer.state[parameter]
                if state.get("momentum_buffer") is None:
                    state["momentum_buffer"] = torch.zeros_like(parameter)

    if optimizer.defaults["fused"]:
        optimizer.register_step_pre_hook(start)
    return optimizer


def _decay_groups(parameters: Sequence[Tensor], settings: OptimizerSettings) -> list[dict[str, Any]]:
    """Return the parameters in groups as torch takes them: one, or those that decay and those that do not."""
    if settings.decay_norm_and_bias:
        return [{"params": parameters}]
    others, plain = _apart(parameters)
    return [{"params": others}, {"params": plain, "weight_decay": 0.0}]


def _apart(parameters: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the tensors of more dimensions, and those of norm layers and biases."""
    plain = [parameter for parameter in parameters if is_norm_or_bias(parameter)]
    return [parameter for parameter in parameters if not is_norm_or_bias(parameter)], plain


def clip_gradients(module: nn.Module, clip_norm: float) -> None:
    """Scale the gradient of all parameters to the norm `clip_norm` if it is longer; 0 changes nothing.

    Torch clips all gradients together and does not read the norm, so that the host does not wait for it.
    """
    if clip_norm:
        nn.utils.clip_grad_norm_(module.parameters(), clip_norm)


def learning_rate(
    base: float, step: int, *, steps_per_epoch: int, epochs: int, schedule: ScheduleSettings
) -> float:
    """Return the rate for global step `step` (from 0) of a run of `epochs` epochs.

    It is a pure function of the step: nothing to save, nothing to restore.

    A linear ramp over `warmup_epochs` (the first step already moves), then, for `cosine`, half a cosine from
    `base` to `base * final_fraction` at the last step; for `constant`, `base`; for `step`, `base` times
    `factor` for every milestone that the run has passed. `cosine-min-ramp` has its own rule, see
    `_cosine_min_ramp`.
    """
    if schedule.name == "cosine-min-ramp":
        return base * _cosine_min_ramp(step // steps_per_epoch, epochs, schedule)
    warmup = round(schedule.warmup_epochs * steps_per_epoch)
    if step < warmup:
        return base * (step + 1) / warmup
    if schedule.name == "constant":
        return base
    if schedule.name == "step":
        passed = sum(step >= round(share * epochs * steps_per_epoch) for share in schedule.milestones)
        return base * schedule.factor**passed
    remaining = max(1, epochs * steps_per_epoch - 1 - warmup)
    progress = min(1.0, (step - warmup) / remaining)
    return _half_cosine(base, base * schedule.final_fraction, progress)


def _cosine_min_ramp(epoch: int, epochs: int, schedule: ScheduleSettings) -> float:
    """Return the share of the base rate in an epoch (from 0): `min(cosine, (1 + epoch) / warmup_epochs)`.

    The cosine `(1 + cos(pi epoch / epochs)) / 2` begins with the run, not after the ramp. Source: CCL-K's
    released code (scheduler.py), where the ramp has 10 epochs.
    """
    cosine = _half_cosine(1, schedule.final_fraction, epoch / epochs)
    return min(cosine, (1 + epoch) / schedule.warmup_epochs)


def _half_cosine(high: float, low: float, progress: float) -> float:
    """Return the value that falls from `high` to `low` along half a cosine, at `progress` in 0..1."""
    return low + (high - low) * 0.5 * (1 + math.cos(math.pi * progress))
