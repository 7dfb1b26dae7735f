"""MIB and C2AE, HeroCon's baselines with codes: the parts of their losses, and what a prediction reads."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional

from contrasweep.data import MultiView
from contrasweep.losses import InfoNCE
from contrasweep.tuning.methods.c2ae import LabelAutoencoder
from contrasweep.tuning.methods.mib import InformationBottleneck, scheduled_beta
from contrasweep.tuning.objectives.batches import transductive_feed
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedTransductive, TransductiveBatch
from contrasweep.tuning.objectives.transductive import views_of
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective

DATA = "two-view-digits"


def _started(method: str, data: PreparedTransductive, **values: Any) -> tuple[Any, TransductiveBatch]:
    e = resolve(method, DATA, {"batch_size": 64, "epochs": 20, **values})
    objective = build_objective(e, data).train()
    return objective, next(transductive_feed(e, data).epoch(1))


def _with_other_unlabelled(batch: TransductiveBatch) -> TransductiveBatch:
    return replace(batch, unlabelled=MultiView(tuple(view.flip(-1) for view in batch.unlabelled.views)))


def test_the_bottleneck_stands_beside_classification(digits: PreparedTransductive) -> None:
    values = {"alpha": 0.3, "beta_start": 0.01, "hidden": 16, "dim": 8}
    objective, batch = _started("mib", digits, **values)
    assert isinstance(objective, InformationBottleneck)
    loss, parts = objective.step(batch)
    bottleneck = -parts["information"] + 0.01 * parts["divergence"]
    torch.testing.assert_close(loss.detach(), parts["classification"] + 0.3 * bottleneck)
    loss.backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in objective.parameters())


def test_each_step_has_its_own_noise_that_predictions_do_not_have(digits: PreparedTransductive) -> None:
    objective, batch = _started("mib", digits, hidden=16, dim=8)
    frozen = {name: value.clone() for name, value in objective.state_dict().items()}
    first = objective.step(batch)[1]
    again = objective.step(batch)[1]
    objective.after_step()
    other = objective.step(batch)[1]
    assert first["information"] == again["information"] != other["information"]
    assert first["classification"] == other["classification"]
    objective.load_state_dict(frozen)
    assert torch.equal(objective.predict(batch.labelled.views), objective.predict(batch.labelled.views))


def test_unlabelled_objects_enter_the_bottleneck_alone(digits: PreparedTransductive) -> None:
    objective, batch = _started("mib", digits, hidden=16, dim=8)
    one, other = (objective.step(b)[1] for b in (batch, _with_other_unlabelled(batch)))
    assert one["classification"] == other["classification"]
    assert one["divergence"] != other["divergence"]


def test_infonce_estimates_the_information_of_all_pairs(digits: PreparedTransductive) -> None:
    objective, batch = _started("mib", digits, estimator="infonce", temperature=0.5, dim=8)
    seen = []
    objective.information = lambda codes: seen.append(codes) or InfoNCE(0.5).terms(codes)
    _, parts = objective.step(batch)
    objects = len(batch.labelled.views[0]) + len(batch.unlabelled.views[0])
    assert seen[0].shape == (2, objects, 8)
    torch.testing.assert_close(-parts["information"], InfoNCE(0.5)(seen[0]).detach())


def test_beta_holds_then_rises_by_equal_factors() -> None:
    e = resolve("mib", DATA, {"epochs": 20, "hold": 0.25, "rise": 0.5, "beta_start": 1e-3, "beta": 1.0})
    betas = [scheduled_beta(e, epoch) for epoch in range(1, 21)]
    assert betas[:6] == pytest.approx([1e-3] * 6)
    assert betas[10] == pytest.approx(10**-1.5)
    assert betas[15:] == pytest.approx([1.0] * 5)


def test_the_bottleneck_has_the_beta_of_its_epoch(digits: PreparedTransductive) -> None:
    objective, _ = _started("mib", digits, hidden=16, dim=8, hold=0.25, rise=0.5)
    for epoch in (10, 11):
        objective.on_epoch_start(epoch, lambda: torch.zeros(0))
        assert objective.beta == scheduled_beta(objective.experiment, epoch)


def test_a_code_is_normal_with_the_means_that_are_classified(digits: PreparedTransductive) -> None:
    objective, batch = _started("mib", digits, hidden=16, dim=8)
    views = views_of(batch.labelled)
    features = objective.encoder.by_view(views)
    means, deviations = objective.codes(features, views)
    assert torch.equal(torch.cat(list(means), dim=1), objective.codes.means(features))
    raw = torch.stack(
        [code(own)[:, 8:] for code, own in zip(objective.codes.of_features, features, strict=True)]
    )
    torch.testing.assert_close(deviations, functional.softplus(raw) + 1e-7)


@pytest.mark.parametrize("method", ["mib", "c2ae"])
def test_one_view_is_enough(method: str, digits: PreparedTransductive) -> None:
    held = digits.data
    one = replace(
        digits,
        spec=replace(digits.spec, views=digits.spec.views[:1]),
        data=replace(
            held,
            labelled=MultiView(held.labelled.views[:1], held.labelled.labels),
            unlabelled=MultiView(held.unlabelled.views[:1]),
        ),
    )
    objective, batch = _started(method, one)
    objective.step(batch)[0].backward()
    assert all(p.grad is not None for p in objective.parameters())
    assert objective.predict(batch.labelled.views).shape == (len(batch.labelled.views[0]), 10)


def test_labels_are_ranked_from_their_own_code_and_predicted_from_that_of_the_features(
    digits: PreparedTransductive,
) -> None:
    objective, batch = _started("c2ae", digits, alpha=0.3, latent=0.5)
    assert isinstance(objective, LabelAutoencoder)
    loss, parts = objective.step(batch)
    torch.testing.assert_close(loss.detach(), parts["correlation"] + 0.3 * parts["ranking"])
    features = objective.of_features(objective.encoder(views_of(batch.labelled)))
    assert features.shape == (len(batch.labelled.views[0]), 5)
    outputs = objective.of_features.network(objective.encoder(views_of(batch.labelled)))
    torch.testing.assert_close(features, outputs.sigmoid() - 0.5)
    objective.eval()
    features = objective.of_features(objective.encoder(views_of(batch.labelled)))
    expected = objective.decoder(features).softmax(dim=1)
    torch.testing.assert_close(objective.predict(batch.labelled.views), expected.detach())


def test_a_code_is_one_number_at_least(digits: PreparedTransductive) -> None:
    objective, batch = _started("c2ae", digits, latent=0.01)
    assert objective.of_features(objective.encoder(views_of(batch.labelled))).shape[1] == 1


def test_the_ranking_does_not_reach_the_encoder_of_features(digits: PreparedTransductive) -> None:
    gradients = []
    for alpha in (0.0, 5.0):
        objective, batch = _started("c2ae", digits, alpha=alpha)
        objective.step(batch)[0].backward()
        gradients.append(_gradients(objective))
    one, other = gradients
    changed = {name for name in one if not torch.equal(one[name], other[name])}
    assert {name.split(".")[0] for name in changed} == {"of_labels", "decoder"}


def test_unlabelled_objects_are_not_read_by_c2ae(digits: PreparedTransductive) -> None:
    objective, batch = _started("c2ae", digits)
    assert objective.step(batch)[0] == objective.step(_with_other_unlabelled(batch))[0]


def _gradients(objective: Objective) -> dict[str, torch.Tensor]:
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in objective.named_parameters()
    }
