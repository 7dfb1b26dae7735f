"""DINO: a student predicts the centred and sharpened output of a momentum teacher on another crop."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from contrasweep.losses import DINO, moved_centre
from contrasweep.models import CosineOutputs, Encoder, MomentumCopy, rising_momentum
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.byol import RISING_MOMENTUM
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import image_feed
from contrasweep.tuning.objectives.heads import experiment_head, head_outputs
from contrasweep.tuning.objectives.objective import (
    Batch,
    Gather,
    Metrics,
    Objective,
    channels_last,
    of_every_image,
    of_views,
)
from contrasweep.tuning.objectives.prepared import PreparedData


class SelfDistillation(Objective):
    """A student (encoder, head and output layer) and its momentum copy, the teacher.

    The student sees views and local crops, each size apart in the encoder and all together in the head; the
    teacher sees the views. The output layer learns after the first `freeze_epochs` epochs. A checkpoint keeps
    the teacher and the centre.
    """

    centre: Tensor

    def __init__(self, experiment: Experiment, encoder: Encoder, steps_per_epoch: int) -> None:
        super().__init__(encoder)
        settings = experiment.hyperparameters
        self.head = experiment_head(experiment, encoder)
        self.outputs = CosineOutputs(head_outputs(self.head, encoder.width), int(settings["prototypes"]))
        self.loss = DINO(float(settings["temperature"]), float(settings["teacher_temperature"]))
        self.momentum, self.centre_momentum = (float(settings[name]) for name in ("momentum_m", "centre_m"))
        self.teacher_encoder = MomentumCopy(self.encoder, self.momentum)
        self.teacher_head = MomentumCopy(self.head, self.momentum)
        self.teacher_outputs = MomentumCopy(self.outputs, self.momentum)
        self.register_buffer("centre", torch.zeros(int(settings["prototypes"])))
        self.freeze_epochs = int(settings["freeze_epochs"])
        self.steps_per_epoch, self.epochs = steps_per_epoch, experiment.epochs
        self._done = 0
        self._newest: Tensor | None = None

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Go to the epoch's place in the momentum's schedule, and report the momentum there."""
        self.outputs.requires_grad_(epoch > self.freeze_epochs)
        self._done = (epoch - 1) * self.steps_per_epoch
        return {"momentum": self._share()}

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the mean over pairs of a crop and another view, and the entropy of the teacher's mean."""
        student, teacher = self.student(batch.views, batch.local), self.teacher(batch.views)
        # A term belongs to one image. The ranks exchange terms, not the student's far larger outputs.
        terms = self.loss.terms(student, teacher, self.centre).values.view(-1, teacher.shape[1])
        loss = gather(terms, 1).mean()
        self._newest = gather(teacher, 1)
        return of_every_image(loss, {"teacher_entropy": self._entropy(self._newest)})

    def student(self, views: Tensor, local: Tensor | None = None) -> Tensor:
        """Return the outputs `(V + L, B, K)` of `views` and `local` crops `(..., B, C, S, S)`."""
        features = torch.cat([self._encode(crops) for crops in (views, local) if crops is not None])
        outputs: Tensor = self.outputs(of_views(self.head, features, apart=self.views_apart))
        return outputs

    @torch.no_grad()
    def teacher(self, views: Tensor) -> Tensor:
        """Return the teacher's outputs `(V, B, K)` of `views`, without gradient."""
        features = of_views(
            lambda images: self.teacher_encoder(channels_last(images)), views, apart=self.views_apart
        )
        outputs: Tensor = self.teacher_outputs(of_views(self.teacher_head, features, apart=self.views_apart))
        return outputs

    def after_step(self) -> None:
        """Move the teacher towards the student, and the centre towards the teacher's outputs of the step."""
        assert self._newest is not None, "a step has been taken"
        share = self._share()
        for follower, own in (
            (self.teacher_encoder, self.encoder),
            (self.teacher_head, self.head),
            (self.teacher_outputs, self.outputs),
        ):
            follower.follow(own, share)
        self.centre.copy_(moved_centre(self.centre, self._newest, self.centre_momentum))
        self._newest = None
        self._done += 1

    def _share(self) -> float:
        return rising_momentum(self.momentum, self._done, self.epochs * self.steps_per_epoch)

    @torch.no_grad()
    def _entropy(self, teacher: Tensor) -> Tensor:
        """Return the entropy of the teacher's mean distribution as a share of that of a uniform one."""
        scaled = (teacher.float() - self.centre) / self.loss.teacher_temperature
        mean = scaled.softmax(2).flatten(0, 1).mean(0)
        entropy: Tensor = torch.special.entr(mean).sum()
        return entropy / math.log(len(mean))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return DINO on the projection head's output."""
    return SelfDistillation(experiment, encoder, image_feed(experiment, data).sampler.steps_per_epoch)


METHOD = Method(
    name="dino",
    summary="a student predicts the centred and sharpened output of a momentum teacher on another crop",
    paper="DINO (Caron et al. 2021)",
    equation="Eq. 1-4",
    hyperparameters={
        **hyperparameters_of(
            DINO,
            {
                "temperature": "the student's temperature tau_s",
                "teacher_temperature": "the teacher's temperature tau_t",
            },
        ),
        "prototypes": Hyperparameter("K, the number of outputs", Number(at_least=2, whole=True)),
        "centre_m": Hyperparameter(
            "the share m that the centre keeps of itself in a step", Number(at_least=0, at_most=1)
        ),
        "momentum_m": RISING_MOMENTUM,
        "freeze_epochs": Hyperparameter(
            "first epochs in which the output layer stays", Number(at_least=0, whole=True)
        ),
    },
    build=build,
    local_crops=True,
    train_metrics=("momentum", "teacher_entropy"),
)
