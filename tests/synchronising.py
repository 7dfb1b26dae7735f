"""The CPU taken for an accelerator by the losses, which then read no value."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reading_synchronises_everywhere() -> Iterator[None]:
    """Let reading a value count as synchronising on the CPU too, in all modules that ask."""
    name = "reading_synchronises"
    asking = [
        module
        for path, module in list(sys.modules.items())
        if path.startswith("contrasweep.") and hasattr(module, name)
    ]
    usual = [getattr(module, name) for module in asking]
    for module in asking:
        setattr(module, name, lambda tensor: True)
    try:
        yield
    finally:
        for module, function in zip(asking, usual, strict=True):
            setattr(module, name, function)
