"""The optimizers of torch, without torch's compiler.

An optimizer of torch tells the compiler (`torch.compile`) to leave its methods alone, and imports the
compiler for that at its first use. This takes a second of every process that trains, half as long as torch
itself. We may compile backbones, but never an optimizer. The classes here have torch's own methods, without
what torch wraps around them for the compiler.
"""

import inspect

import torch


class Optimizer(torch.optim.Optimizer):
    """The base class, see `torch.optim.Optimizer`."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)


class SGD(Optimizer, torch.optim.SGD):
    """Stochastic gradient descent, see `torch.optim.SGD`."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.SGD.step))


class Adam(Optimizer, torch.optim.Adam):
    """Adam, see `torch.optim.Adam`."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class AdamW(Optimizer, torch.optim.AdamW):
    """Adam with decoupled weight decay, see `torch.optim.AdamW`."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


class LBFGS(Optimizer, torch.optim.LBFGS):
    """Limited-memory BFGS, see `torch.optim.LBFGS`."""
