"""IDFD: an image is told apart from the memory of all others, and the features are decorrelated."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.data import torch_generator
from contrasweep.losses import FeatureDecorrelation, InstanceDiscrimination
from contrasweep.losses.validation import rule_of
from contrasweep.models import Encoder, MemoryBank
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.heads import experiment_head, head_outputs
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective, channels_last, of_views
from contrasweep.tuning.objectives.prepared import PreparedData


@dataclass(frozen=True)
class Seen:
    """The images of a step: their rows in the training set (B,) and their embeddings (B, D)."""

    index: Tensor
    embeddings: Tensor


class MemoryDiscrimination(Objective):
    """`L_I + weight * L_F` of the head's embeddings of one view of each image.

    After a step, the memory of its images moves towards their embeddings. What is clustered for the scores
    are the head's embeddings, as IDFD's authors do.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        memory: MemoryBank,
        losses: tuple[InstanceDiscrimination, FeatureDecorrelation],
        weight: float,
    ) -> None:
        super().__init__(encoder)
        self.head = head
        self.memory = memory
        self.instances, self.decorrelation = losses
        self.weight = weight
        self._seen: Seen | None = None

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the sum of both losses, and the second before its weight as `decorrelation`."""
        views = of_views(self.head, self._encode(batch.views), apart=self.views_apart)
        embeddings, index = gather(views, 1)[0], batch.gathered(gather).index
        terms = self.instances.terms(embeddings, self.memory.rows, index)
        correlated = self.decorrelation(embeddings)
        self._seen = Seen(index, embeddings.detach())
        return terms.mean() + self.weight * correlated, {
            "dropped_fraction": terms.dropped_fraction(),
            "decorrelation": correlated.detach(),
        }

    def after_step(self) -> None:
        """Move the memory of the step's images towards the embeddings that the step began with."""
        assert self._seen is not None, "a step has been taken"
        self.memory.follow(self._seen.index, self._seen.embeddings)
        self._seen = None

    @torch.no_grad()
    def embed_images(self, images: Tensor) -> Tensor:
        """Return the head's embeddings `(N, D)`, of length 1, of `images` `(N, C, S, S)`."""

        def embed() -> Tensor:
            return functional.normalize(self.head(self.encoder(channels_last(images))), dim=1)

        return self._evaluated(embed)


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return IDFD; its memory begins with random directions, which depend on the seed alone."""
    settings = experiment.hyperparameters
    head, start = experiment_head(experiment, encoder), torch_generator(experiment.seed, "memory")
    width = head_outputs(head, encoder.width)
    return MemoryDiscrimination(
        encoder,
        head,
        MemoryBank(len(data.train), width, float(settings["memory_m"]), start),
        (
            InstanceDiscrimination(float(settings["temperature"])),
            FeatureDecorrelation(float(settings["feature_temperature"])),
        ),
        float(settings["weight"]),
    )


METHOD = Method(
    name="idfd",
    summary="every image is its own class, compared with a memory of all; features are decorrelated",
    paper="IDFD (Tao et al. 2021), a baseline of Cl-InfoNCE (Tsai et al. 2022)",
    equation="L_I + alpha L_F, Section 3",
    hyperparameters={
        **hyperparameters_of(InstanceDiscrimination, {"temperature": TEMPERATURE}),
        "feature_temperature": Hyperparameter(
            "the scale tau_2 of the features' correlations", rule_of(FeatureDecorrelation, "temperature")
        ),
        "weight": Hyperparameter("the weight alpha of the decorrelation", Number(at_least=0)),
        "memory_m": Hyperparameter(
            "the share that the memory of an image keeps of itself when it is seen",
            Number(at_least=0, at_most=1),
        ),
    },
    build=build,
    feed=single_view,
    train_metrics=("decorrelation",),
)
