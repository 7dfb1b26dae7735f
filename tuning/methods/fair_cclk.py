"""Fair-CCLK: negatives are weighted by the kernel similarity of their condition to the anchor's."""

from torch import Tensor

from losses import FairCCLK
from losses.cclk import WEIGHTS
from losses.kernels import KERNELS
from losses.terms import LossTerms
from models import Encoder
from tuning.config import Experiment
from tuning.methods.method import TEMPERATURE, Hyperparameter, Method, with_projection_head
from tuning.training.objective import Objective


def build(experiment: Experiment, encoder: Encoder) -> Objective:
    """Return Fair-CCLK on the projection head's output and the batch's condition."""
    loss = FairCCLK(**experiment.hyperparameters)  # type: ignore[arg-type]

    def terms(views: Tensor, condition: Tensor | None) -> LossTerms:
        assert condition is not None, "checked when the experiment was resolved"
        return loss.terms(views, condition)

    return with_projection_head(experiment, encoder, terms)


METHOD = Method(
    name="fair-cclk",
    summary="negatives are weighted by how similar their condition is to the anchor's",
    paper="CCL-K (Tsai et al. 2022)",
    equation="Eq. 8",
    hyperparameters={
        "kernel": Hyperparameter("the kernel on the condition", str, KERNELS),
        "sigma2": Hyperparameter("the kernel's scale (not of the cosine kernel)", float, above=0),
        "lam": Hyperparameter("the ridge lambda of the kernel regression", float, above=0),
        "temperature": TEMPERATURE,
        "weights": Hyperparameter("as the released code, or literally as printed", str, WEIGHTS),
    },
    build=build,
    needs_condition=True,
)
