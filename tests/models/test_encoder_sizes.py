"""What encoders declare about image sizes is what their networks do."""

import pytest

from contrasweep.models import ENCODERS, check_two_sizes
from contrasweep.models.encoders import registry
from contrasweep.models.encoders.meta_device import on_meta_device, outputs_of

DECLARED = [name for name, spec in ENCODERS.items() if spec.any_size]


def test_resnets_declare_it() -> None:
    assert {"resnet18", "resnet50", "resnet18-cifar", "resnet50-cifar"} <= set(DECLARED)


@pytest.mark.parametrize("name", DECLARED)
def test_a_network_that_declares_it_takes_images_of_another_size(name: str) -> None:
    spec = ENCODERS[name]
    network = on_meta_device(lambda: spec.build(3, 64))
    for size in (max(1, spec.smallest_image), 23, 64):
        outputs_of(network, 3, size)


def test_such_a_network_is_not_built_to_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "on_meta_device", lambda build: pytest.fail("the network was built"))
    check_two_sizes("resnet50", 3, 224, 96)
