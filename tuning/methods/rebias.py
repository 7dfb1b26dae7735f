"""ReBias (Bahng et al. 2020): features independent of those of a network that can learn the bias alone."""

from collections.abc import Callable

import torch
from torch import Tensor

from contrasweep.data import torch_generator
from contrasweep.losses import HSIC, median_distance
from contrasweep.losses.hsic import FEWEST_IMAGES
from contrasweep.losses.validation import POSITIVE
from contrasweep.models import Encoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.biased_network import BIASED_ENCODER, build_biased_encoder
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.objective import Batch, Objective, channels_last
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.two_networks import Outputs, PairLosses, TwoNetworks

MEDIAN_ROWS = 2048
"""Training images whose distances give the kernels' radius."""


class Minimax:
    """Cross-entropy of both networks; HSIC of their features is a cost of the first, a gain of the second."""

    def __init__(self, lambda_f: float, lambda_g: float, hsic: HSIC) -> None:
        self.lambda_f, self.lambda_g = lambda_f, lambda_g
        self.hsic = hsic

    def __call__(self, own: Outputs, biased: Outputs, batch: Batch) -> PairLosses:
        """Return both losses and the HSIC."""
        dependence = self.hsic(own.features, biased.features.detach())
        gain = self.hsic(own.features.detach(), biased.features)
        classified, biased_classified = (
            torch.nn.functional.cross_entropy(one.logits, batch.labels) for one in (own, biased)
        )
        return PairLosses(
            classified + self.lambda_f * dependence,
            biased_classified - self.lambda_g * gain,
            {"hsic": dependence},
        )


class IndependentFeatures(TwoNetworks):
    """ReBias. With `median`, every epoch begins by setting the kernels' radii.

    A radius is then `sigma` times the median distance of the network's features of training images. The
    released code takes the images of a quarter of an epoch's batches, in training mode; here they are 2,048
    whole images in evaluation mode.
    """

    def __init__(
        self,
        encoder: Encoder,
        biased_encoder: Encoder,
        classes: int,
        minimax: Minimax,
        *,
        seed: int,
        median_of: float | None,
    ) -> None:
        super().__init__(encoder, biased_encoder, classes, minimax)
        self.minimax = minimax
        self.seed = seed
        self.median_of = median_of

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Set the radii where they follow the features."""
        if self.median_of is not None:
            features = embed()
            generator = torch_generator("kernel radii", self.seed, epoch)
            rows = torch.randperm(len(features), generator=generator)[:MEDIAN_ROWS].to(features.device)
            own, biased = features[rows].tensor_split([self.encoder.width], dim=1)
            radii = (self.median_of * median_distance(one) for one in (own, biased))
            self.minimax.hsic = HSIC(*radii)
        return {}

    @torch.no_grad()
    def embed_images(self, images: Tensor) -> Tensor:
        """Return the features `(N, D + E)` that both networks have of `images`, in evaluation mode."""
        given = channels_last(images)
        return self._evaluated(lambda: torch.cat([self.encoder(given), self.biased_encoder(given)], dim=1))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return both networks, which move in the same step.

    The released code moves the biased network first, and the other against it as it then is.
    """
    settings = experiment.hyperparameters
    sigma = float(settings["sigma"])
    minimax = Minimax(float(settings["lambda_f"]), float(settings["lambda_g"]), HSIC(sigma, sigma))
    return IndependentFeatures(
        encoder,
        build_biased_encoder(experiment, data),
        data.spec.classes,
        minimax,
        seed=experiment.seed,
        median_of=sigma if settings["radius"] == "median" else None,
    )


METHOD = Method(
    name="rebias",
    summary="features independent of those of a network that can only learn the bias",
    paper="ReBias (Bahng et al. 2020)",
    equation="HSIC_1 and the minimax of section 3",
    hyperparameters={
        "lambda_f": Hyperparameter("the weight of HSIC in the network's loss", Number(at_least=0)),
        "lambda_g": Hyperparameter("the weight of HSIC in the biased network's gain", Number(at_least=0)),
        "radius": Hyperparameter(
            "the kernels' radius: sigma, or sigma times the median distance", OneOf(("sigma", "median"))
        ),
        "sigma": Hyperparameter("the radius, or its multiple of the median distance", POSITIVE),
        "biased_encoder": BIASED_ENCODER,
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels"}),
    smallest_batch=FEWEST_IMAGES,
    classifies=True,
    train_metrics=("biased_loss", "hsic"),
)
