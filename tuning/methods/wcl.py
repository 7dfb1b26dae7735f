"""WCL: one head discriminates instances; another attracts images that the neighbour graph connects."""

from contrasweep.losses import WCL, InfoNCE
from contrasweep.models import Encoder
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.objectives.heads import experiment_head
from contrasweep.tuning.objectives.objective import ContrastiveObjective, Objective, SecondHead
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return NT-Xent of the head's embeddings, plus the loss of weak labels on a second head like it."""
    settings = experiment.hyperparameters
    temperature = float(settings["temperature"])
    instances, weak = InfoNCE(temperature, "all"), WCL(temperature, str(settings["form"]))
    head = experiment_head(experiment, encoder)
    second = SecondHead(
        experiment_head(experiment, encoder),
        lambda embeddings, batch: weak.terms(embeddings),
        float(settings["weight"]),
    )
    return ContrastiveObjective(
        encoder, head, lambda embeddings, batch: instances.terms(embeddings), second=second
    )


METHOD = Method(
    name="wcl",
    summary="two views attract; on a second head, images connected by nearest neighbours attract",
    paper="WCL (Zheng et al. 2021), a baseline of Cl-InfoNCE (Tsai et al. 2022)",
    equation="L_NCE + L_swap, Section 3, without multi-crop",
    hyperparameters={
        **hyperparameters_of(
            WCL,
            {
                "temperature": TEMPERATURE,
                "form": "whether all images of the second head's loss have a gradient, or its anchors alone",
            },
        ),
        "weight": Hyperparameter("the weight of the second head's loss", Number(at_least=0)),
    },
    build=build,
    train_metrics=("second_loss",),
)
