import pytest
import torch
from torch import Tensor, nn

from contrasweep.losses.terms import LossTerms
from contrasweep.models import build_encoder, projection_head
from contrasweep.tuning.objectives.objective import Batch, ContrastiveObjective, identity_gather

VIEWS, IMAGES, WIDTH = 2, 6, 5


class _Spy:
    """A loss that keeps its arguments and drops its second anchor."""

    def __init__(self) -> None:
        self.embeddings = torch.empty(0)
        self.condition: Tensor | None = None

    def __call__(self, embeddings: Tensor, batch: Batch) -> LossTerms:
        self.embeddings, self.condition = embeddings, batch.condition
        values = embeddings.square().sum(dim=2).flatten()
        valid = torch.ones(len(values), dtype=torch.bool)
        valid[1] = False
        return LossTerms(values, valid)


def _objective(loss: _Spy) -> ContrastiveObjective:
    torch.manual_seed(0)
    return ContrastiveObjective(build_encoder("small-conv", 3, 8), projection_head(64, 32, WIDTH), loss)


def _batch(condition: Tensor | None = None) -> Batch:
    views = torch.rand(VIEWS, IMAGES, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    return Batch(views, torch.arange(IMAGES), torch.arange(IMAGES), condition)


def test_the_loss_is_the_mean_over_the_valid_anchors() -> None:
    spy = _Spy()
    loss, metrics = _objective(spy).step(_batch())
    assert spy.embeddings.shape == (VIEWS, IMAGES, WIDTH)
    values = spy.embeddings.detach().square().sum(dim=2).flatten()
    expected = (values.sum() - values[1]) / (len(values) - 1)
    torch.testing.assert_close(loss.detach(), expected)
    assert set(metrics) == {"dropped_fraction"}
    assert metrics["dropped_fraction"].item() == pytest.approx(1 / (VIEWS * IMAGES))
    assert not metrics["dropped_fraction"].requires_grad


def test_what_is_measured_joins_the_metrics_and_pulls_on_nothing() -> None:
    spy, seen = _Spy(), []

    def measure(embeddings: Tensor, batch: Batch) -> dict[str, Tensor]:
        seen.append((embeddings, batch))
        return {"largest": embeddings.max()}

    torch.manual_seed(0)
    encoder, head = build_encoder("small-conv", 3, 8), projection_head(64, 32, WIDTH)
    objective, batch = ContrastiveObjective(encoder, head, spy, measure), _batch()
    _, metrics = objective.step(batch, lambda tensor, dim: torch.cat([tensor, tensor], dim))
    ((embeddings, whole),) = seen
    assert set(metrics) == {"dropped_fraction", "largest"}
    assert not embeddings.requires_grad
    assert torch.equal(embeddings, spy.embeddings.detach())
    assert whole.index.tolist() == [*range(IMAGES)] * 2


def test_views_stay_in_order_through_the_network() -> None:
    spy = _Spy()
    objective = _objective(spy).eval()  # batch norm by fixed statistics: every image by itself
    batch = _batch()
    objective.step(batch)
    for view in range(VIEWS):
        alone = objective.head(objective.encoder(batch.views[view]))
        torch.testing.assert_close(spy.embeddings[view], alone, atol=1e-5, rtol=1e-5)


def test_views_pass_the_network_together_or_apart() -> None:
    # Apart: as net(x1), net(x2) in the released codes of CCL-K and CACR.
    together, apart = _Spy(), _Spy()
    _objective(together).train().step(_batch())
    objective, batch = _objective(apart).train(), _batch()
    objective.views_apart = True
    objective.step(batch)
    by_hand = _objective(_Spy()).train()
    expected = torch.stack([by_hand.head(by_hand.encoder(view)) for view in batch.views])
    torch.testing.assert_close(apart.embeddings, expected, atol=1e-5, rtol=1e-5)
    assert float((apart.embeddings - together.embeddings).detach().abs().max()) > 0.1
    ours, theirs = objective.state_dict(), by_hand.state_dict()
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, atol=1e-5, rtol=1e-5)


def test_embeddings_are_gathered_over_images_and_conditions_over_rows() -> None:
    spy, calls = _Spy(), []
    condition = torch.rand(IMAGES, 3)

    def two_ranks(tensor: Tensor, dim: int) -> Tensor:
        calls.append((tuple(tensor.shape), dim))
        return torch.cat([tensor, tensor + 1], dim)

    _objective(spy).step(_batch(condition), two_ranks)
    # Labels, rows and condition; the embeddings by image.
    assert calls == [((IMAGES,), 0), ((IMAGES,), 0), ((IMAGES, 3), 0), ((VIEWS, IMAGES, WIDTH), 1)]
    assert spy.embeddings.shape == (VIEWS, 2 * IMAGES, WIDTH)
    assert spy.condition is not None
    assert torch.equal(spy.condition, torch.cat([condition, condition + 1]))


def test_without_a_condition_there_is_none_to_gather() -> None:
    spy, dims = _Spy(), []
    _objective(spy).step(_batch(), lambda tensor, dim: (dims.append(dim), tensor)[1])
    assert dims == [0, 0, 1]
    assert spy.condition is None


def test_one_process_gathers_by_doing_nothing() -> None:
    tensor = torch.rand(2, 3)
    assert identity_gather(tensor, 1) is tensor


def test_gradients_reach_encoder_and_head() -> None:
    objective = _objective(_Spy())
    loss, _ = objective.step(_batch())
    loss.backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in objective.encoder.parameters())
    # The head ends in a batch norm: this loss's gradient on its last layer is rounding.
    assert all(p.grad is not None for p in objective.head.parameters())


def test_features_are_the_encoder_s_in_evaluation_mode_and_leave_no_trace() -> None:
    objective = _objective(_Spy()).train()
    images = torch.rand(5, 3, 8, 8)
    before = {name: value.clone() for name, value in objective.state_dict().items()}
    features = objective.features(images)
    assert objective.training
    assert not features.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in objective.state_dict().items())
    norms = [module for module in objective.encoder.modules() if isinstance(module, nn.BatchNorm2d)]
    assert norms
    with torch.no_grad():
        torch.testing.assert_close(features, objective.eval().encoder(images), atol=1e-6, rtol=1e-5)
    assert not objective.training
    objective.features(images)
    assert not objective.training
