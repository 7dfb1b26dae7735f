"""The stand-in device refuses what a GPU refuses, computes what the CPU computes, and counts each wait."""

import copy
import io
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.optimizers import SGD
from tests.devices.counting import Counts, counted
from tests.devices.process import DeviceProcess
from tests.devices.standin import install

MIXED: dict[str, Callable[[Tensor, Tensor], object]] = {
    # `there` is a matrix on the device, `here` the same on the CPU.
    "sum": lambda there, here: there + here,
    "sum, the other way round": lambda there, here: here + there,
    "into the CPU": lambda there, here: here.add_(there.sum()),
    "a number of the CPU, in place": lambda there, here: here.sum().add_(there.sum()),
    "product": lambda there, here: here @ there.T,
    "concatenation": lambda there, here: torch.cat([there, here]),
    "choice": lambda there, here: torch.where(there > 0, there, here),
    "index select": lambda there, here: there.index_select(0, torch.tensor([0])),
    "gather": lambda there, here: there.gather(1, here.long()),
    "scatter into the CPU": lambda there, here: here.scatter_(0, there.long() * 0, 1.0),
    "index of the device": lambda there, here: here[torch.zeros(1, dtype=torch.int64, device=there.device)],
    "values put": lambda there, here: there.index_put_((torch.tensor([0]),), here[:1]),
    "loss": lambda there, here: functional.cross_entropy(there, torch.tensor([0, 1])),
    "module": lambda there, here: nn.Linear(3, 2)(there),
    "foreach": lambda there, here: torch._foreach_add([there], [here]),
    "generator": lambda there, here: torch.rand(2, device=there.device, generator=torch.Generator()),
}
LACKING: dict[str, Callable[[Tensor], object]] = {
    "whole numbers multiplied": lambda there: there.long() @ there.long().T,
    "bytes resized": lambda there: torch.ops.aten.upsample_bicubic2d(there.byte()[None, None], [4, 4], False),
    "padding, backwards": lambda there: (
        functional.pad(there.requires_grad_(), (1, 1), mode="reflect").sum().backward()
    ),
    "median with its place": lambda there: there.median(dim=0),
    "weights counted": lambda there: there.long()[0].bincount(weights=there[0]),
}
ALLOWED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a number": lambda there, here: there * here.sum(),
    "a number chosen": lambda there, here: torch.where(there > 2, there, torch.tensor(0.0)),
    "a number filled in": lambda there, here: there.masked_fill(there > 2, torch.tensor(1.0)),
    "a number put": lambda there, here: there.clone().index_put((there > 2,), torch.tensor(1.0)),
    "remainder": lambda there, here: there % 2,
    "indices of the CPU": lambda there, here: there[torch.tensor([1, 0])],
    "copy into the CPU": lambda there, here: here.clone().copy_(there),
}
COUNTED: dict[str, tuple[Callable[[Tensor], object], dict[str, int]]] = {
    "view": (lambda x: x.T[0].reshape(1, 2).expand(3, 2)[1:], {}),
    "sum": (lambda x: x + x, {"launch": 1}),
    "item": (lambda x: x[0, 0].item(), {"to_host": 1, "wait": 1}),
    "float": (lambda x: float(x[0, 0]), {"to_host": 1, "wait": 1}),
    "bool": (lambda x: bool(x[0, 0]), {"to_host": 1, "wait": 1}),
    "tolist": (lambda x: x.tolist(), {"to_host": 1, "wait": 1}),
    "cpu": (lambda x: x.cpu(), {"to_host": 1, "wait": 1}),
    "equal": (lambda x: torch.equal(x, x), {"to_host": 1, "wait": 1}),
    "nonzero": (lambda x: x.nonzero(), {"wait": 1}),
    "mask": (lambda x: x[x > 1], {"launch": 2, "wait": 1}),
    "masked select": (lambda x: x.masked_select(x > 1), {"launch": 2, "wait": 1}),
    "mask, put": (lambda x: x.clone().index_put_((x > 3,), x[0, :2]), {"wait": 1}),
    "mask, one number put": (lambda x: x.clone().index_put_((x > 3,), x[0, 0]), {"wait": 0}),
    "unique": (lambda x: x.unique(), {"wait": 1}),
    "bincount": (lambda x: x.long().flatten().bincount(), {"wait": 1}),
    "repeat": (lambda x: x[0].long().repeat_interleave(x[0].long()), {"wait": 1}),
    "repeat, size given": (lambda x: x[0].repeat_interleave(x[0].long(), output_size=3), {"wait": 0}),
    "one-hot": (lambda x: functional.one_hot(x.long(), 6), {"wait": 0}),
    "indices": (lambda x: x[torch.tensor([0])], {"to_device": 1, "wait": 1}),
    "to the device": (lambda x: torch.ones(3).to(x.device), {"to_device": 1, "wait": 1}),
    "not blocking": (lambda x: torch.ones(3).to(x.device, non_blocking=True), {"to_device": 1, "wait": 1}),
    "pinned": (
        lambda x: torch.ones(3).pin_memory().to(x.device, non_blocking=True),
        {"to_device": 1, "wait": 0},
    ),
    "made there": (lambda x: torch.zeros(3, device=x.device), {"to_device": 0, "wait": 0}),
    "made of a list": (lambda x: torch.tensor([1.0, 2.0], device=x.device), {"to_device": 1, "wait": 1}),
    "draw": (torch.rand_like, {"draw": 1, "wait": 0}),
    "foreach": (lambda x: torch._foreach_mul([x, x, x], 2.0), {"launch": 1}),
}


@pytest.fixture(scope="module")
def process() -> Iterator[DeviceProcess]:
    found = DeviceProcess()
    yield found
    found.close()


def _matrices() -> tuple[Tensor, Tensor]:
    here = torch.arange(6.0).view(2, 3)
    return here.to(install()), here


def _refused() -> dict[str, str]:
    messages = {}
    for name, mix in MIXED.items():
        try:
            mix(*_matrices())
        except RuntimeError as error:
            messages[name] = str(error)
    return messages


def _lacking() -> list[str]:
    """What is refused; deterministic algorithms are asked for."""
    found = []
    torch.use_deterministic_algorithms(True)
    for name, act in LACKING.items():
        try:
            act(_matrices()[0])
        except (NotImplementedError, RuntimeError) as error:
            found += [name] if "CUDA" in str(error) else []
    torch.use_deterministic_algorithms(False)
    return found


def _allowed() -> dict[str, tuple[Tensor, Tensor]]:
    there, here = _matrices()
    return {name: (act(there, here).cpu(), act(here, here)) for name, act in ALLOWED.items()}


def _counted() -> dict[str, Counts]:
    found = {}
    there, _ = _matrices()
    for name, (act, _) in COUNTED.items():
        with counted() as found[name]:
            act(there)
    return found


def test_a_mix_of_devices_is_refused(process: DeviceProcess) -> None:
    messages = process(_refused)
    assert list(messages) == list(MIXED)
    for name, message in messages.items():
        what = "device type for generator" if name == "generator" else "to be on the same device"
        assert what in message, name


def test_what_cuda_has_no_kernel_for_is_refused(process: DeviceProcess) -> None:
    assert process(_lacking) == list(LACKING)


def test_what_a_gpu_takes_of_the_cpu_is_allowed(process: DeviceProcess) -> None:
    for name, (there, here) in process(_allowed).items():
        assert torch.equal(there, here), name


@pytest.mark.parametrize("what", COUNTED)
def test_copies_and_waits_are_counted(what: str, process: DeviceProcess) -> None:
    if not _found:
        _found.update(process(_counted))
    expected = COUNTED[what][1]
    if expected:
        assert {kind: _found[what].of(kind) for kind in expected} == expected
    else:
        assert not _found[what].places


_found: dict[str, Counts] = {}


def _trained(device: torch.device) -> tuple[list[Tensor], bytes]:
    """A network with convolutions and batch norm after three steps of SGD, and its file."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    images, labels = torch.randn(5, 3, 8, 8), torch.tensor([0, 1, 1, 0, 1])
    network = copy.deepcopy(network.to(device))
    optimizer = SGD(network.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        functional.cross_entropy(network(images.to(device)), labels.to(device)).backward()
        optimizer.step()
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    return [value.cpu() for value in network.state_dict().values()], file.getvalue()


def _both() -> tuple[list[Tensor], list[Tensor]]:
    return _trained(torch.device("cpu"))[0], _trained(install())[0]


def _file() -> tuple[bool, set[str], set[str]]:
    """Whether a saved state comes back, and the devices of what is loaded for the CPU, and for the device."""
    state, file = _trained(install())
    places = []
    for place in ("cpu", install()):
        loaded = torch.load(io.BytesIO(file), map_location=place, weights_only=True)
        same = all(torch.equal(one.cpu(), two) for one, two in zip(loaded.values(), state, strict=True))
        places.append({str(value.device) for value in loaded.values()})
    return same, *places


def test_training_gives_the_bits_of_the_cpu(process: DeviceProcess) -> None:
    for here, there in zip(*process(_both), strict=True):
        assert torch.equal(here, there)


def test_a_state_is_saved_and_loaded(process: DeviceProcess) -> None:
    assert process(_file) == (True, {"cpu"}, {"standin:0"})


def _in_half() -> tuple[torch.dtype, str]:
    there, _ = _matrices()
    network = nn.Linear(3, 2).to(there.device)
    with torch.autocast(there.device.type, torch.bfloat16):
        outputs = network(there)
    outputs.float().sum().backward()
    return outputs.dtype, str(network.weight.grad.dtype)


def test_autocast_computes_in_half_precision(process: DeviceProcess) -> None:
    assert process(_in_half) == (torch.bfloat16, "torch.float32")


def _place() -> dict[str, int]:
    from contrasweep.models import rankme

    there, _ = _matrices()
    with counted() as counts:
        rankme(there)
    return counts.where("wait")


def test_a_wait_has_a_place(process: DeviceProcess) -> None:
    places = process(_place)
    assert "_local_scalar_dense in models.label_free._finite" in places
