"""C2AE: features and labels are encoded into similar codes, and a decoder ranks the labels from a code.

Training encodes features (F_x) and labels (F_e), and decodes the labels' codes (F_d). A prediction decodes
the code of the features. The views' features are joined, as HeroCon does for this baseline.

Shapes: n labelled objects, K width of a code, c labels.
"""

from torch import Tensor, nn

from contrasweep.losses import CanonicalCorrelation, LabelRanking
from contrasweep.losses.validation import rule_of
from contrasweep.models.encoders.multiview import MultiViewEncoder
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import transductive_feed
from contrasweep.tuning.objectives.objective import Gather, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedTransductive, TransductiveBatch
from contrasweep.tuning.objectives.transductive import MultiViewClassifier, views_of

LEAK = 0.1
"""The slope of the leaky ReLU below 0, as in the released code (forwardpass.m)."""


class Code(nn.Module):
    """`sigmoid(x) - 1/2` of the last layer: a code lies in (-1/2, 1/2) (released code, DCCAtrain_SGD.m)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the codes `(n, K)`."""
        outputs: Tensor = self.network(inputs)
        return outputs.sigmoid() - 0.5


class LabelAutoencoder(MultiViewClassifier):
    """`Phi(F_x, F_e) + alpha Gamma(F_e, F_d)` on the labelled objects; the unlabelled ones are not read."""

    def __init__(self, experiment: Experiment, encoder: MultiViewEncoder, data: PreparedTransductive) -> None:
        super().__init__(encoder, data)
        settings = experiment.hyperparameters
        hidden, labels = int(settings["hidden"]), self.classes
        width = max(1, round(float(settings["latent"]) * labels))
        self.of_features = Code(nn.Linear(encoder.width, width))
        self.of_labels = Code(_two_layers(labels, hidden, width))
        self.decoder = _two_layers(width, hidden, labels)
        self.correlation = CanonicalCorrelation(float(settings["lam"]))
        self.ranking = LabelRanking(float(settings["scale"]))
        self.alpha = float(settings["alpha"])

    def compute(self, batch: TransductiveBatch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss, a sum over the batch, and its parts, `correlation` and `ranking`."""
        features = gather(self.of_features(self.encoder(views_of(batch.labelled))), 0)
        labels = self.rows_of(batch.gathered_labels(gather), features)
        codes = self.of_labels(labels)
        correlation = self.correlation(features, codes)
        ranks = self.ranking.terms(self.decoder(codes).sigmoid(), labels)
        ranking = ranks.sum()
        return correlation + self.alpha * ranking, {
            "dropped_fraction": ranks.dropped_fraction().detach(),
            "correlation": correlation.detach(),
            "ranking": ranking.detach(),
        }

    def logits(self, views: list[Tensor]) -> Tensor:
        """Return the decoder's scores of the features' code."""
        scores: Tensor = self.decoder(self.of_features(self.encoder(views)))
        return scores


def _two_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.LeakyReLU(LEAK), nn.Linear(hidden, outputs))


def build(experiment: Experiment, encoder: MultiViewEncoder, data: PreparedTransductive) -> Objective:
    """Return the autoencoder of labels beside the views' encoders."""
    return LabelAutoencoder(experiment, encoder, data)


METHOD = Method(
    name="c2ae",
    summary="features and labels have similar codes; a decoder ranks an object's labels above the others",
    paper="C2AE (Yeh et al. 2017); a baseline of HeroCon",
    equation="Phi + alpha Gamma",
    hyperparameters={
        "alpha": Hyperparameter("the weight of the ranking", Number(at_least=0)),
        "lam": Hyperparameter("the weight of uncorrelated codes", rule_of(CanonicalCorrelation, "lam")),
        "scale": Hyperparameter("how much a wrong order of labels costs", rule_of(LabelRanking, "scale")),
        "latent": Hyperparameter("the width of a code, in labels", Number(above=0)),
        "hidden": Hyperparameter(
            "the hidden width of the labels' encoder and decoder", Number(at_least=1, whole=True)
        ),
    },
    build=build,
    feed=transductive_feed,
    needs=frozenset({"labels", "own views"}),
    classifies=True,
    train_metrics=("correlation", "ranking"),
)
