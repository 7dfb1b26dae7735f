"""The baselines made from one loss: every hyperparameter and every view reaches the loss."""

from typing import Any

import pytest
import torch

from contrasweep.losses import AlignUniform, EpsInfoNCE, HardNegInfoNCE, InfoNCE, SupCon
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.objective import Batch, ContrastiveObjective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective

DATA = "colour-digits"


def _experiment(method: str, **values: Any) -> Experiment:
    return resolve(method, DATA, {"epochs": 1, "batch_size": 24, **values})


def _started(e: Experiment, data: PreparedData) -> tuple[ContrastiveObjective, Batch]:
    objective = build_objective(e, data).train()
    assert isinstance(objective, ContrastiveObjective)
    return objective, next(METHODS[e.method].feed(e, data).epoch(1))


@pytest.mark.parametrize(
    ("method", "values", "loss"),
    [
        (
            "hardneg-infonce",
            {"temperature": 0.3, "beta": 0.7, "tau_plus": 0.2},
            HardNegInfoNCE(0.3, 0.7, 0.2),
        ),
        ("hardneg-infonce", {"temperature": 0.5, "beta": 1.0, "tau_plus": 0.0}, HardNegInfoNCE(0.5, 1.0)),
        (
            "align-uniform",
            {"t": 3.0, "align_weight": 0.5, "uniform_weight": 2.0},
            AlignUniform(3.0, 0.5, 2.0),
        ),
        ("eps-infonce", {"temperature": 0.2, "epsilon": 0.4}, EpsInfoNCE(0.2, 0.4)),
        ("cmc", {"temperature": 0.2, "positives": 1}, InfoNCE(0.2)),
        ("cmc", {"temperature": 0.2, "positives": 3}, InfoNCE(0.2)),
    ],
)
def test_the_loss_is_that_of_the_embeddings(
    method: str, values: dict[str, Any], loss: torch.nn.Module, data: PreparedData
) -> None:
    objective, batch = _started(_experiment(method, **values), data)
    found, metrics = objective.step(batch)
    torch.testing.assert_close(found, loss(objective.embed(batch.views)), atol=1e-5, rtol=1e-5)
    assert metrics["dropped_fraction"].item() == 0


@pytest.mark.parametrize("form", ["out", "in"])
def test_supcon_learns_the_labels(form: str, data: PreparedData) -> None:
    objective, batch = _started(_experiment("supcon", temperature=0.2, form=form), data)
    found, _ = objective.step(batch)
    expected = SupCon(0.2, form)(objective.embed(batch.views), data.train.labels[batch.index])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("positives", [1, 4])
def test_cmc_has_a_view_more_than_positives(positives: int, data: PreparedData) -> None:
    e = _experiment("cmc", positives=positives)
    batch = next(METHODS["cmc"].feed(e, data).epoch(1))
    assert batch.views.shape[:2] == (positives + 1, 24)
    assert len({tuple(view[0].flatten().tolist()) for view in batch.views}) == positives + 1


@pytest.mark.parametrize("method", ["hardneg-infonce", "align-uniform", "eps-infonce", "supcon"])
def test_the_others_have_two_views(method: str, data: PreparedData) -> None:
    assert len(_started(_experiment(method), data)[1].views) == 2


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        ("hardneg-infonce", {"tau_plus": 1.0}, "tau_plus must be below 1, given 1.0"),
        ("hardneg-infonce", {"tau_plus": -0.1}, "tau_plus must be at least 0"),
        ("hardneg-infonce", {"beta": -1.0}, "beta must be at least 0"),
        ("align-uniform", {"t": 0.0}, "t must be above 0"),
        ("align-uniform", {"align_weight": -1.0}, "align_weight must be at least 0"),
        ("align-uniform", {"temperature": 0.1}, "align-uniform has no hyperparameter 'temperature'"),
        ("supcon", {"form": "outer"}, "Did you mean 'out'"),
        ("eps-infonce", {"epsilon": -0.1}, "epsilon must be at least 0"),
        ("cmc", {"positives": 0}, "positives must be at least 1"),
    ],
)
def test_what_has_no_meaning_is_refused(method: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve(method, DATA, values)


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100", "stl10"])
@pytest.mark.parametrize("method", ["align-uniform", "hardneg-infonce", "cmc"])
def test_cacr_s_baselines_share_its_network_and_views(method: str, dataset: str) -> None:
    own, cacr = (resolve(name, dataset, use_preset=True) for name in (method, "cacr"))
    assert own.views == cacr.views
    assert (own.encoder, own.head, own.schedule) == (cacr.encoder, cacr.head, cacr.schedule)
    assert own.optimizer.lr / own.batch_size == pytest.approx(0.12 / 256)
    assert own.optimizer.lr / cacr.optimizer.lr == own.batch_size / cacr.batch_size
