"""Methods made from a loss: its arguments, its result, and its bounds, which hold everywhere."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Any, Literal

import pytest
import torch
from torch import Tensor, nn

from contrasweep.losses import (
    CACR,
    BarlowTwins,
    BiasCon,
    CanonicalCorrelation,
    ClInfoNCE,
    EnD,
    EpsSupInfoNCE,
    FairKL,
    HardNegCCLK,
    HeroConUnsupervised,
    InfoNCE,
    JensenShannon,
    LabelRanking,
    LossTerms,
    QueueAlignUniform,
    QueueHardNegInfoNCE,
    QueueInfoNCE,
    SupCon,
    SwAV,
)
from contrasweep.losses.validation import checked, rule_of
from contrasweep.models import Encoder
from contrasweep.rules import Number, OneOf
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError, WrongReturn
from contrasweep.tuning.methods import METHODS, Method, loss_method
from contrasweep.tuning.methods.from_loss import LossOfBatch
from contrasweep.tuning.objectives.objective import Batch, ContrastiveObjective

BATCH = Batch(
    torch.rand(2, 3, 1, 4, 4),
    labels=torch.tensor([0, 0, 1]),
    index=torch.tensor([5, 6, 7]),
    bias=torch.ones(3),
)


def _declared(loss: type[nn.Module], **hyperparameters: str) -> Method:
    return loss_method(
        loss, name="mine", summary="s", paper="p", equation="e", hyperparameters=hyperparameters
    )


class Weighted(nn.Module):
    """A scalar of the views, the bias and the images' rows, with a weight that learns."""

    def __init__(self, power: float, kind: Literal["a", "b"] = "a", times: int = 1) -> None:
        super().__init__()
        if power == 3:
            raise ValueError("power must not be 3")
        self.power = power
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, views: Tensor, bias: Tensor, index: Tensor, scale: float = 1.0) -> Tensor:
        return self.weight * scale * (views.mean() + bias.sum() + index.sum())


def test_the_arguments_say_what_is_needed_and_given() -> None:
    method = _declared(Weighted, power="how steep")
    assert method.needs == {"bias"}
    views = torch.ones(2, 3, 4)
    result = LossOfBatch(Weighted(1.0), ("bias", "index"))(views, BATCH)
    assert result == 1.0 + 3.0 + 18.0


def test_a_scalar_is_trained_with_the_weights_of_its_loss_and_drops_nothing() -> None:
    loss = LossOfBatch(Weighted(1.0), ("bias", "index"))
    objective = ContrastiveObjective(Encoder(nn.Flatten(), width=16), nn.Identity(), loss)
    value, metrics = objective.step(BATCH)
    assert value.dim() == 0
    assert metrics == {"dropped_fraction": torch.zeros(())}
    value.backward()
    weight = dict(objective.named_parameters())["loss.loss.weight"]
    assert weight.grad is not None


def test_what_a_condition_can_leave_out_needs_a_default() -> None:
    """The trials where the condition does not hold would fail, each with a TypeError of the constructor."""
    space = Space.parse(
        {
            "kind": {"choice": ["a", "b"], "default": "a"},
            "power": {"uniform": [0, 1], "default": 0.5, "when": {"kind": ["a"]}},
            "times": {"int": [1, 3], "default": 1, "when": {"kind": ["b"]}},
        }
    )
    told = {"power": "how steep", "kind": "which", "times": "how often"}
    given: dict[str, Any] = {"name": "mine", "summary": "s", "paper": "p", "equation": "e"}
    with pytest.raises(ValueError, match=r"Weighted requires power, which has a condition .* default"):
        loss_method(Weighted, **given, hyperparameters=told, space=space)


class Remembering(nn.Module):
    """Keeps the mean of the views, once as a buffer and once as a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
        self.plain = torch.zeros(())

    def forward(self, views: Tensor) -> Tensor:
        self.mean = self.plain = views.mean().detach()
        return views.square().mean()


def test_a_checkpoint_has_the_buffers_of_a_loss_and_no_plain_attribute() -> None:
    objective = ContrastiveObjective(
        Encoder(nn.Flatten(), width=16), nn.Identity(), LossOfBatch(Remembering(), ())
    )
    objective.step(BATCH)
    state = objective.state_dict()
    assert list(state) == ["loss.loss.mean"]
    assert state["loss.loss.mean"] != 0.0


class Returning(nn.Module):
    """Returns what it is told to."""

    def __init__(self, result: object) -> None:
        super().__init__()
        self.result = result

    def forward(self, views: Tensor) -> object:
        return self.result


def test_terms_are_taken_where_a_loss_has_them() -> None:
    result = LossOfBatch(SupCon(0.1), ("labels",))(torch.rand(2, 3, 4), BATCH)
    assert isinstance(result, LossTerms)


def test_the_terms_of_a_loss_that_sums_them_are_summed() -> None:
    views = torch.rand(2, 3, 4)
    loss = BarlowTwins(0.1)
    result = LossOfBatch(loss, ())(views, BATCH)
    assert isinstance(result, Tensor)
    assert result == loss.terms(views).values.sum()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (torch.ones(3), r"Returning must return a scalar or LossTerms, returned Tensor of shape \(3,\)"),
        (1.0, "returned float"),
        (None, "returned NoneType"),
    ],
)
def test_a_result_that_is_not_a_loss_is_refused(result: object, message: str) -> None:
    with pytest.raises(WrongReturn, match=message):
        LossOfBatch(Returning(result), ())(torch.rand(2, 3, 4), BATCH)


class OfLabel(nn.Module):
    """Asks for what no batch has."""

    def forward(self, views: Tensor, label: Tensor) -> Tensor:
        return views.sum()


class OfOptionalLabels(nn.Module):
    """Would train without labels, because nothing says that it needs them."""

    def forward(self, views: Tensor, labels: Tensor | None = None) -> Tensor:
        return views.sum()


class OfImages(nn.Module):
    """Does not begin with the views."""

    def forward(self, images: Tensor) -> Tensor:
        return images.sum()


class OfAnything(nn.Module):
    """Its argument has no bounds that could be read."""

    def __init__(self, weight: object) -> None:
        super().__init__()

    def forward(self, views: Tensor) -> Tensor:
        return views.sum()


@pytest.mark.parametrize(
    ("loss", "given", "message"),
    [
        (OfLabel, {}, "OfLabel takes 'label', which no batch has. Did you mean 'labels'?"),
        (OfImages, {}, "the first argument of OfImages must be views, given 'images'"),
        (OfOptionalLabels, {}, "OfOptionalLabels has a default for labels: remove the default"),
        (
            OfImages(),
            {},
            "must be a class of torch.nn.Module, which is made for each run; given an object of",
        ),
        (torch.square, {}, "must be a class of torch.nn.Module, which is made for each run; given square"),
        (Weighted, {}, "Weighted requires power: name it among the hyperparameters"),
        (Weighted, {"power": "", "tims": ""}, "no argument 'tims'. Did you mean 'times'?"),
        (OfAnything, {"weight": ""}, "argument 'weight' of OfAnything is annotated"),
        (ClInfoNCE, {"temperature": ""}, "ClInfoNCE takes clusters: feed= must give batches that have them"),
    ],
)
def test_a_loss_that_cannot_be_served_is_refused(
    loss: type[nn.Module], given: Mapping[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        _declared(loss, **given)


def test_annotations_say_what_is_allowed() -> None:
    assert rule_of(Weighted, "power") == Number()
    assert rule_of(Weighted, "times") == Number(whole=True)
    assert rule_of(Weighted, "kind") == OneOf(("a", "b"))
    assert rule_of(SwAV, "prototypes") == Number(at_least=2, whole=True)


def test_the_constructor_has_the_last_word() -> None:
    method = _declared(Weighted, power="", times="")
    method.check({"power": 2.0})
    state = torch.random.get_rng_state()
    with pytest.raises(InputError, match=r"^mine: power must not be 3$"):
        method.check({"power": 3.0})
    assert torch.equal(torch.random.get_rng_state(), state)
    space = Space.parse({"power": {"choice": [1.0, 3.0], "default": 1.0}, "times": 1}, "a space")
    with pytest.raises(InputError, match="power must not be 3"):
        method.check_space(space)


@pytest.mark.parametrize("name", list(METHODS))
def test_space_and_hyperparameters_agree(name: str) -> None:
    METHODS[name].check_space(METHODS[name].search_space())


LOSSES: Mapping[str, Mapping[str, type[nn.Module]]] = {
    "biascon": {"temperature": BiasCon},
    "cacr": dict.fromkeys(("t_pos", "t_neg", "negatives", "cost", "precision"), CACR),
    "cacr-moco": dict.fromkeys(("t_pos", "t_neg", "negatives", "cost", "precision"), CACR),
    "cl-infonce": {"temperature": ClInfoNCE, "pairing": ClInfoNCE},
    "cmc-attributes": {"temperature": InfoNCE},
    "end": {"alpha": EnD, "beta": EnD},
    "fairkl": {"temperature": EpsSupInfoNCE, "epsilon": EpsSupInfoNCE, "form": FairKL},
    "hardneg-cclk": dict.fromkeys(("kernel", "sigma2", "lam", "temperature", "weights"), HardNegCCLK),
    "herocon": {"negatives": HeroConUnsupervised, "temperature": InfoNCE},
    "align-uniform-moco": dict.fromkeys(("t", "align_weight", "uniform_weight"), QueueAlignUniform),
    "cmc-moco": {"temperature": QueueInfoNCE},
    "hardneg-moco": dict.fromkeys(("temperature", "beta", "tau_plus"), QueueHardNegInfoNCE),
    "c2ae": {"lam": CanonicalCorrelation, "scale": LabelRanking},
    "mib": {"dim": JensenShannon, "hidden": JensenShannon, "temperature": InfoNCE},
    "moco-v2": {"temperature": QueueInfoNCE},
    "pcl": {"temperature": QueueInfoNCE},
    "swav": dict.fromkeys(("temperature", "epsilon", "prototypes", "iterations"), SwAV),
}
"""The losses of the methods that build them themselves."""

NUMBERS = (-1.0, -1, 0.0, 0, 1e-9, 0.5, 1.0, 1, 2, 2.5, 1e9, float("nan"))
WORDS = ("rbf", "cross", "both", "kl", "sampled", "paper", "x")
OTHERS = {
    "temperature": 0.1,
    "epsilon": 0.1,
    "lam": 0.1,
    "kernel": "rbf",
    "alpha": 1.0,
    "beta": 1.0,
    "dim": 4,
}


@pytest.mark.parametrize(
    ("name", "argument", "loss"),
    [(name, argument, loss) for name, losses in LOSSES.items() for argument, loss in losses.items()],
)
def test_a_hyperparameter_takes_what_its_loss_takes(name: str, argument: str, loss: type[nn.Module]) -> None:
    required = {
        one: OTHERS.get(one, 5) for one in signature(loss).parameters if one in (*OTHERS, "prototypes")
    }
    hyperparameter = METHODS[name].hyperparameters[argument]
    for value in (*NUMBERS, *WORDS):
        by_method = _refuses(hyperparameter.check, argument, value)
        assert by_method == _refuses(loss, **{**required, argument: value}), value


def _refuses(attempt: Callable[..., object], *arguments: object, **named: object) -> bool:
    try:
        attempt(*arguments, **named)
    except ValueError:
        return True
    return False


class Careful(nn.Module):
    """Its bounds stand in its annotations alone."""

    @checked
    def __init__(self, share: Annotated[float, Number(at_least=0, at_most=1)], mode: str = "m") -> None:
        super().__init__()
        self.share, self.mode = share, mode


def test_a_checked_constructor_refuses_what_its_annotations_do_not_allow() -> None:
    assert rule_of(Careful, "share") == Number(at_least=0, at_most=1)
    assert isinstance(Careful(1).share, float)
    assert Careful(share=0.5, mode="n").mode == "n"
    for refused in (2, -0.1, "0.5"):
        with pytest.raises(ValueError, match=r"^share must be"):
            Careful(refused)  # type: ignore[arg-type]
