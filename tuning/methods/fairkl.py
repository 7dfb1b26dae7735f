"""FairKL beside a supervised loss: distances within and across bias groups come from one distribution.

The total is `alpha L + lam R`. `L` is either eps-SupInfoNCE or eps-SupCon of the encoder's normalised
features (a linear classifier then learns alongside), or the cross-entropy of a classifier that is trained
with the encoder. With `representation=embedding`, L compares the embeddings of a projection head; R and the
classifier stay with the features before it (C.3, Table 10). Without a bias label, the condition's rows serve
as bias features: their similarity weights each pair (B.2.4).
"""

from torch import Tensor
from torch.nn import functional

from contrasweep.losses import EpsSupCon, EpsSupInfoNCE, FairKL
from contrasweep.losses.fairkl import FORMS
from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.debiasing import CLASSIFIER_INPUT, bias_of
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.eps_supinfonce import MARGIN
from contrasweep.tuning.methods.method import Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import (
    ClassifierBeside,
    EndToEndClassifier,
    repeated_cross_entropy,
)
from contrasweep.tuning.objectives.heads import experiment_head
from contrasweep.tuning.objectives.objective import Batch, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData

BASES = {"eps-supinfonce": EpsSupInfoNCE, "eps-supcon": EpsSupCon}
CROSS_ENTROPY = "cross-entropy"
EMBEDDING = "embedding"


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return `alpha L + lam R` on the encoder's features; where asked, L is on a head's embeddings."""
    settings = experiment.hyperparameters
    alpha, lam, base = float(settings["alpha"]), float(settings["lam"]), str(settings["base"])
    fair = FairKL(str(settings["form"]))
    if data.train.bias is None and fair.form == "released":
        others = ", ".join(form for form in FORMS if form != "released")
        raise InputError(
            f"form released compares bias labels, {experiment.dataset} has a condition only: give {others}"
        )

    def regulariser(features: Tensor, batch: Batch) -> LossTerms:
        if batch.bias is None:
            return fair.terms(features, batch.labels, bias_similarity=bias_similarity(batch))
        return fair.terms(features, batch.labels, bias_of(batch))

    normalised = settings.get("classifier_input", "normalised") == "normalised"
    if base == CROSS_ENTROPY:

        def classified(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
            fairness = regulariser(features, batch)
            cross_entropy = repeated_cross_entropy(logits, batch.labels)
            loss = alpha * cross_entropy + lam * fairness.sum()
            return loss, {"classifier_loss": cross_entropy, **_reported(fairness)}

        return EndToEndClassifier(encoder, data.spec.classes, classified, normalised=normalised)
    contrast = BASES[base](float(settings["temperature"]), float(settings["epsilon"]))

    def contrasted(features: Tensor, embeddings: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        terms, fairness = contrast.terms(embeddings, batch.labels), regulariser(features, batch)
        metrics = {"dropped_fraction": terms.dropped_fraction(), **_reported(fairness)}
        return alpha * terms.mean() + lam * fairness.sum(), metrics

    head = experiment_head(experiment, encoder) if settings.get("representation") == EMBEDDING else None
    return ClassifierBeside(encoder, data.spec.classes, contrasted, head, normalised=normalised)


def bias_similarity(batch: Batch) -> Tensor:
    """Return the similarity of the images' bias features `(B, B)`, 0..1: their cosines, clipped at 0.

    The condition holds the features. Source: Barbano et al. 2023, section B.2.4; there a network that
    captures the bias gives the features, and they are never negative.
    """
    assert batch.condition is not None, "checked when the experiment was resolved"
    directions = functional.normalize(batch.condition.float(), dim=1)
    return (directions @ directions.T).clamp(0.0, 1.0)


def _reported(fairness: LossTerms) -> Metrics:
    """Return the regulariser, and the share of its two terms for which the batch had too few pairs."""
    return {"regulariser": fairness.sum().detach(), "regulariser_dropped": fairness.dropped_fraction()}


METHOD = Method(
    name="fairkl",
    summary="a supervised loss, and equal distances within and across bias groups",
    paper="eps-SupInfoNCE + FairKL (Barbano et al. 2023)",
    equation="Eq. 10 with Eq. 4 or 5",
    hyperparameters={
        "base": Hyperparameter("the supervised loss L", OneOf((*BASES, CROSS_ENTROPY))),
        **hyperparameters_of(EpsSupInfoNCE, MARGIN),
        "alpha": Hyperparameter("the weight of L", Number(at_least=0)),
        "lam": Hyperparameter("the weight of the regulariser", Number(at_least=0)),
        **hyperparameters_of(FairKL, {"form": "how two distributions of distances are compared"}),
        "classifier_input": CLASSIFIER_INPUT,
        "representation": Hyperparameter(
            "what L compares: the encoder's features, or the embeddings of a projection head",
            OneOf(("features", EMBEDDING)),
        ),
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels", "bias or condition"}),
    classifies=True,
    train_metrics=("regulariser", "regulariser_dropped", "classifier_loss"),
)
