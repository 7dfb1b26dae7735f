"""Which of our networks is which ResNet of other libraries."""

from contrasweep.models.formats.network import Network, NotOffered

IMAGENET_STEM = {"resnet18": 18, "resnet50": 50}
CIFAR_STEM = {"resnet18-cifar": 18, "resnet50-cifar": 50}
BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
"""How many blocks the four stages have (He et al. 2016, Table 1)."""


def imagenet_resnet(network: Network, library: str) -> int:
    """Return the depth of a ResNet with the ImageNet stem.

    Raises:
        NotOffered: the network is another one.
    """
    if network.name in IMAGENET_STEM:
        return IMAGENET_STEM[network.name]
    if network.name in CIFAR_STEM:
        raise NotOffered(
            f"{library} has no ResNet with the CIFAR stem, and the encoder is {network.name}; "
            "--format torchvision and --format onnx take it"
        )
    raise NotOffered(f"{library} has no network {network.name}; --format onnx takes every encoder of images")
