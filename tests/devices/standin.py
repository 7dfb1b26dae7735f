"""A stand-in for a GPU: a device of its own whose memory and kernels are the CPU's.

`install()` registers the device `standin:0` with torch (a PrivateUse1 backend, in Python alone). Its tensors
are plain torch tensors with storages of their own, so views, autograd, modules, optimizers, copies and saved
files work as on a GPU, with the bits of a CPU run. What a GPU refuses is refused: tensors of both devices in
one operation, a generator of the CPU for a draw on the device, numpy of a tensor there. As on a GPU, a number
(a CPU tensor without dimensions) may meet tensors of the device, and indices may lie on the CPU (a counted
copy).

    device = install()
    with counted() as counts:  # of tests/devices/counting.py
        loss = model(images.to(device))
        float(loss)
    print(counts, counts.where("wait"))

torch starts the threads of backward passes once in a process, for the devices that it knows then. So
`install` must come before the first backward pass: `DeviceProcess` of tests/devices/process.py runs functions
in a process where it does.

Differences from a GPU: `device.type` is not `cuda`, there are no streams, a generator of the device cannot be
made, and `module.to(device)` makes new parameters, where a GPU's `to` keeps the objects.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._device import _device_constructors

from tests.devices.counting import note
from tests.devices.gpu_limits import refuse_what_cuda_lacks

NAME = "standin"
INDEX = 0

METADATA = ("view", "as_strided", "_reshape_alias", "unfold", "view_as_real", "view_as_complex")
"""Operations that only describe memory anew: nothing runs on the device."""

SETTERS = ("source_Storage", "source_Storage_storage_offset", "source_Tensor")
"""The overloads of `set_`, which give a tensor other memory."""

ONE_CALL = ("convolution", "convolution_backward")
"""Operations that torch composes of others on a CPU, and that are one call on a GPU, as `_foreach_` are."""

INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index")
"""Operations whose indices may lie on the CPU, and may be masks."""

TAKE_NUMBERS = ("masked_fill", "fill_", "lerp", "_foreach_mul", "_foreach_div")
"""How the names of operations begin that take a number from the CPU, beside the pointwise ones."""

IN_HALF = ("conv1d", "conv2d", "linear", "matmul", "mm", "bmm", "addmm", "baddbmm")
"""Operations that autocast computes in half precision, as on a GPU."""

_KEY = torch._C.DispatchKey
_CPU, _AUTOCAST = (torch._C.DispatchKeySet(key) for key in (_KEY.CPU, _KEY.AutocastPrivateUse1))
_SET = torch.ops.aten.set_.source_Storage_storage_offset
_HOST = torch.device("cpu")
_libraries: list[torch.library.Library] = []


def can_install() -> bool:
    """Whether this torch takes a device that is made in Python; older ones do not."""
    return hasattr(backend_registration, "_setup_privateuseone_for_python_backend")


def install() -> torch.device:
    """Register the device with torch, once in a process, and return it."""
    if not _libraries:
        backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
        aten, any_other = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
        _libraries.extend((aten, any_other))
        any_other.fallback(_run, "PrivateUse1")
        for name, kernel in _kernels().items():
            aten.impl(name, kernel, "PrivateUse1")
        any_other.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
        for name in IN_HALF:
            aten.impl(name, _in_half(getattr(torch.ops.aten, name)), "AutocastPrivateUse1")
        torch.serialization.register_package(0, _location, _restored)
        torch.UntypedStorage.clone = _storage_clone(torch.UntypedStorage.clone)  # type: ignore[method-assign]
        torch.Tensor.pin_memory, torch.Tensor.is_pinned = _pin_memory, _is_pinned  # type: ignore[assignment]
        # `with torch.device(...)` looks up torch's own function, in a list made at its first use.
        _device_constructors()
        torch.empty = _empty_pinned(torch.empty)  # type: ignore[assignment]
    return torch.device(NAME, INDEX)


class _Module:
    """What torch asks of `torch.standin`."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return INDEX

    def device_count(self) -> int:
        return 1

    def synchronize(self, device: Any = None) -> None:
        note("wait", "synchronize")

    def manual_seed_all(self, seed: int) -> None:
        """Do nothing: draws on the device come from the CPU's default generator."""

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


@dataclass(frozen=True)
class _Operation:
    """What decides how an operation runs, of its schema and tags."""

    overload: Any
    name: str
    arguments: tuple[str, ...]
    takes_tensor: tuple[bool, ...]
    written: frozenset[str]
    takes_numbers: bool
    reads: bool
    waits: bool
    draws: bool


@cache
def _operation(overload: Any) -> _Operation:
    name, tags = overload._schema.name.removeprefix("aten::"), overload.tags
    arguments = overload._schema.arguments
    written = (one.name for one in arguments if one.alias_info is not None and one.alias_info.is_write)
    reads = torch.Tag.data_dependent_output in tags
    return _Operation(
        overload,
        name,
        tuple(one.name for one in arguments),
        tuple(str(one.type) == "Tensor" for one in arguments),
        frozenset(written),
        torch.Tag.pointwise in tags or name.startswith(TAKE_NUMBERS),
        reads,
        reads or torch.Tag.dynamic_output_shape in tags,
        torch.Tag.nondeterministic_seeded in tags,
    )


def _kernels() -> dict[str, Callable[..., Any]]:
    """Return the device's kernels by the name of their operation; `_run` does what is not among them."""
    found = {name: _kernel(overload) for name, overload in _overloads() if _has_kernel(name, overload)}
    found |= {name: _metadata(getattr(torch.ops.aten, name).default) for name in METADATA}
    found |= {f"set_.{name}": _metadata(getattr(torch.ops.aten.set_, name)) for name in SETTERS}
    return found | {
        "empty.memory_format": _empty,
        "empty_strided": _empty_strided,
        "_copy_from": _copy,
        "_copy_from_and_resize": lambda source, target: _copy(source, target.resize_(source.size())),
    }


def _overloads() -> Iterator[tuple[str, Any]]:
    for whole in torch._C._dispatch_get_all_op_names():
        space, _, name = whole.partition("::")
        short, _, overload = name.partition(".")
        found = getattr(getattr(torch.ops.aten, short, None), overload or "default", None)
        if space == "aten" and found is not None:
            yield name, found


def _has_kernel(name: str, overload: Any) -> bool:
    """Whether an operation on tensors is one call; torch composes the others of such operations."""
    if not any("Tensor" in str(argument.type) for argument in overload._schema.arguments):
        return False
    if name.startswith("_foreach_") or name in ONE_CALL:
        return True
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return has(f"aten::{name}", "CPU") and not has(f"aten::{name}", "CompositeImplicitAutograd")


def _kernel(overload: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: _run(overload, *args, **kwargs)


def _metadata(overload: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: overload.redispatch(_CPU, *args, **kwargs)


def _in_half(packet: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        half = torch.get_autocast_dtype(NAME)
        given = [one.to(half) if _is_float(one) else one for one in args]
        with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
            return packet(*given, **kwargs)

    return run


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _run(overload: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operation by the CPU's kernel, in the memory of the device's tensors."""
    operation = _operation(overload)
    refuse_what_cuda_lacks(operation.name, args)
    call = _Call(operation)
    host = [call.on_host(value, name) for value, name in zip(args, operation.arguments, strict=False)]
    named = {name: call.on_host(value, name) for name, value in kwargs.items()}
    _count(operation, args, kwargs)
    # A number in a tensor's place (`tensor % 2`) belongs to another overload on the CPU.
    takes = zip(host, operation.takes_tensor, strict=False)
    numbers = any(tensor and isinstance(value, (int, float)) for value, tensor in takes)
    result = (overload.overloadpacket if numbers else overload)(*host, **named)
    call.follow_changes()
    return call.on_device(result)


class _Call:
    """One call's tensors of the device, and the CPU's descriptions of the same memory."""

    def __init__(self, operation: _Operation) -> None:
        self._operation = operation
        self._lent: list[tuple[Tensor, Tensor]] = []
        self._written: list[tuple[Tensor, Tensor]] = []

    def on_host(self, value: Any, argument: str) -> Any:
        """Return an argument for the CPU's kernel; raise what a GPU raises if it does not take it."""
        if isinstance(value, Tensor):
            return self._lend(value, argument)
        if isinstance(value, (list, tuple)):
            return [self.on_host(one, argument) for one in value]
        if isinstance(value, torch.device):
            return _HOST
        if isinstance(value, torch.Generator) and value.device.type != NAME:
            kind = value.device.type
            raise RuntimeError(f"Expected a '{NAME}' device type for generator but found '{kind}'")
        return value

    def on_device(self, value: Any) -> Any:
        """Return a result on the device: one of the arguments, their memory, or memory of its own."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.on_device(one) for one in value)
        if not isinstance(value, Tensor):
            return value
        memory = value.untyped_storage()
        for host, tensor in self._lent:
            if host is value:
                return tensor
            if host.untyped_storage() is memory:
                empty = torch._C._acc.create_empty_tensor([0], value.dtype)
                return _described(empty, tensor.untyped_storage(), value)
        return _new(value)

    def follow_changes(self) -> None:
        """Give the tensors that were written the sizes, or the memory, that the operation gave them."""
        for host, tensor in self._written:
            storage, memory = tensor.untyped_storage(), host.untyped_storage()
            moved = storage.data_ptr() != memory.data_ptr() or storage.nbytes() != memory.nbytes()
            if moved or tensor.size() != host.size() or tensor.stride() != host.stride():
                _described(tensor, _device_storage(memory) if moved else storage, host)

    def _lend(self, tensor: Tensor, argument: str) -> Tensor:
        if tensor.device.type == NAME:
            host = _on_host(tensor)
            self._lent.append((host, tensor))
            if argument in self._operation.written:
                self._written.append((host, tensor))
            return host
        if not self._may_be_elsewhere(tensor, argument):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:{INDEX} and {tensor.device}! (when checking argument {argument} of "
                f"{self._operation.overload})"
            )
        return tensor

    def _may_be_elsewhere(self, tensor: Tensor, argument: str) -> bool:
        """Whether a GPU takes a CPU tensor as this argument beside tensors of its own."""
        if argument in self._operation.written:
            return False
        if argument == "indices" and self._operation.name in INDEXING:
            note("to_device", "indices")
            note("wait", "indices")
            return True
        number = argument == "values" and self._operation.name in INDEXING
        return not tensor.dim() and (number or self._operation.takes_numbers)


def _count(operation: _Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    note("launch", operation.name)
    if operation.reads:
        note("to_host", operation.name)
    if operation.draws:
        note("draw", operation.name)
    waits = operation.waits
    if operation.name in INDEXING:
        masks = [one for one in args[1] if one is not None and one.dtype in (torch.bool, torch.uint8)]
        # One number put where a mask is true needs no indices.
        filled = len(masks) == 1 and len(args) > 2 and args[2].numel() == 1
        waits = bool(masks) and not filled
    elif operation.name == "repeat_interleave":
        waits = kwargs.get("output_size") is None
    if waits:
        note("wait", operation.name)


def _on_host(tensor: Tensor) -> Tensor:
    memory = tensor.untyped_storage()._memory  # type: ignore[attr-defined]
    host = torch.empty(0, dtype=tensor.dtype, device=_HOST)
    return host.set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())


def _device_storage(memory: torch.UntypedStorage) -> torch.UntypedStorage:
    """Return a storage of the device that is the CPU's `memory`, and keeps it."""
    device = torch.device(NAME, INDEX)
    storage = torch._C._construct_storage_from_data_pointer(memory.data_ptr(), device, memory.nbytes())
    storage._memory = memory
    return storage


def _described(tensor: Tensor, storage: torch.UntypedStorage, host: Tensor) -> Tensor:
    """Make `tensor` of the device describe `storage` as `host` does."""
    return _SET.redispatch(_CPU, tensor, storage, host.storage_offset(), host.size(), host.stride())


def _new(host: Tensor) -> Tensor:
    empty = torch._C._acc.create_empty_tensor([0], host.dtype)
    return _described(empty, _device_storage(host.untyped_storage()), host)


def _empty(size: Any, dtype: Any = None, *_: Any, memory_format: Any = None, **__: Any) -> Tensor:
    return _new(torch.empty(size, dtype=dtype, device=_HOST, memory_format=memory_format))


def _empty_strided(size: Any, stride: Any, dtype: Any = None, *_: Any, **__: Any) -> Tensor:
    return _new(torch.empty_strided(size, stride, dtype=dtype, device=_HOST))


def _copy(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy from anywhere to anywhere; without a wait only where that is asked for and memory is pinned."""
    there, here = (one.device.type == NAME for one in (source, target))
    note("launch", "copy_")
    if there != here:
        note("to_device" if here else "to_host", "copy_")
        if not (non_blocking and _is_pinned(source if here else target)):
            note("wait", "copy_")
    to, of = (_on_host(one) if one.device.type == NAME else one for one in (target, source))
    to.copy_(of)
    return target


def _empty_pinned(of_torch: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def empty(*size: Any, pin_memory: bool = False, **kwargs: Any) -> Tensor:
        memory = of_torch(*size, **kwargs)
        return _pin_memory(memory) if pin_memory else memory

    return empty


def _pin_memory(tensor: Tensor, device: Any = None) -> Tensor:
    pinned = tensor.clone()
    pinned.untyped_storage()._pinned = True  # type: ignore[attr-defined]
    return pinned


def _is_pinned(tensor: Tensor, device: Any = None) -> bool:
    return getattr(tensor.untyped_storage(), "_pinned", False)


def _location(storage: Any) -> str | None:
    return f"{NAME}:{INDEX}" if storage.device.type == NAME else None


def _restored(storage: Any, location: str) -> torch.UntypedStorage | None:
    if not location.startswith(NAME):
        return None
    note("to_device", "torch.load")
    note("wait", "torch.load")
    return _device_storage(storage)


def _storage_clone(of_torch: Callable[..., Any]) -> Callable[..., Any]:
    def clone(storage: torch.UntypedStorage) -> torch.UntypedStorage:
        if storage.device.type != NAME:
            return of_torch(storage)
        note("launch", "clone")
        return _device_storage(storage._memory.clone())  # type: ignore[attr-defined]

    return clone
