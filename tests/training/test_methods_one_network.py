"""LNL, HEX and L-Softmax against their authors' released formulas, and what each does beside them."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from contrasweep.losses import LargeMarginSoftmax, projection
from contrasweep.losses.adversarial import negative_entropy
from contrasweep.losses.projection import project_out
from contrasweep.models import Encoder, NeuralGlcm, Tap
from contrasweep.models.texture import _graded
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.hex import ProjectedClassifier
from contrasweep.tuning.methods.lnl import LearningNotToLearn
from contrasweep.tuning.objectives.objective import Batch, identity_gather
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import build_objective

SmallData = Callable[[str], PreparedData]

GOLDEN = Path(__file__).parents[1] / "golden" / "methods"


def _golden(name: str) -> tuple[SimpleNamespace, dict[str, Any]]:
    with np.load(GOLDEN / f"{name}.npz") as archive:
        tensors = {key: torch.as_tensor(archive[key]) for key in archive.files if key != "meta"}
        return SimpleNamespace(**tensors), json.loads(str(archive["meta"]))


def _linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
        if bias is not None:
            layer.bias.copy_(bias)
    return layer


def _close(found: Tensor | None, expected: Tensor) -> None:
    assert found is not None
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))


class _Vectors(Encoder):
    """A linear encoder that reads the first row of an image."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__(_linear(weight), len(weight))

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.body(images[:, 0, 0])
        return features


def _batch(vectors: Tensor, labels: Tensor, bias: Tensor | None = None) -> Batch:
    return Batch(vectors[None, :, None, None], labels=labels, index=torch.arange(len(labels)), bias=bias)


def test_lnl_has_the_gradients_of_both_released_steps() -> None:
    g, meta = _golden("lnl")
    encoder = _Vectors(g.encoder)
    predictor = _linear(g.predictor, g.predictor_bias)
    objective = LearningNotToLearn(
        encoder, len(g.classifier), predictor, Tap(encoder), meta["entropy_weight"], meta["reversal"]
    )
    objective.classifier = _linear(g.classifier, g.classifier_bias)
    loss, _ = objective.compute(_batch(g.images, g.labels, g.bias), identity_gather)
    loss.backward()
    _close(encoder.body.weight.grad, g.grad_encoder)
    _close(objective.classifier.weight.grad, g.grad_classifier)
    _close(predictor.weight.grad, g.grad_predictor)


def test_hex_is_the_released_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "RIDGE", 1e-14)
    g, _ = _golden("hex")
    levels, width = len(g.levels), len(g.summary)
    texture = NeuralGlcm(levels, width).double()
    with torch.no_grad():
        texture.levels.copy_(g.levels)
        texture.changes.copy_(g.changes)
    texture.summary = _linear(g.summary, g.summary_bias)
    encoder = _Vectors(g.encoder)
    objective = ProjectedClassifier(encoder, texture, width, len(g.classifier), "batch").double()
    objective.classifier = _linear(g.classifier, g.classifier_bias)
    objective._texture_of = lambda images: texture(g.grey)  # type: ignore[method-assign]
    loss, _ = objective.compute(_batch(g.vectors, g.labels), identity_gather)
    loss.backward()
    assert loss.item() == pytest.approx(float(g.expected), rel=1e-9)
    _close(encoder.body.weight.grad, g.grad_encoder)
    _close(texture.changes.grad, g.grad_changes)
    _close(texture.levels.grad, g.grad_levels)
    _close(texture.summary.weight.grad, g.grad_summary)
    _close(objective.classifier.weight.grad, g.grad_classifier)
    squares = (g.vectors @ g.encoder.T).square().sum(0)
    _close(objective.squares, 0.9 + 0.1 * squares)
    # Where the running lengths are those of the batch, predictions are the released ones too.
    objective.squares.copy_(squares)
    _close(objective.predict(g.vectors[:, None, None]), g.predicted)


@pytest.mark.parametrize("margin", [2, 3, 4])
def test_l_softmax_is_the_released_layer(margin: int) -> None:
    g, meta = _golden(f"l-softmax-{margin}")
    features, weight = g.features.requires_grad_(), g.weight.requires_grad_()
    loss = LargeMarginSoftmax(margin)(features, weight, g.labels, lam=meta["lam"])
    of_features, of_weight = torch.autograd.grad(loss, (features, weight))
    assert float(loss.detach()) == pytest.approx(float(g.expected), rel=1e-9)
    _close(of_features, g.grad_features)
    _close(of_weight, g.grad_weight)


def test_projected_logits_know_nothing_of_what_was_projected_out() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, superficial = (torch.randn(20, n, generator=generator, dtype=torch.float64) for n in (3, 4))
    left = project_out(logits, superficial)
    assert (superficial.T @ left).abs().max() < 1e-4
    # What is orthogonal already stays.
    torch.testing.assert_close(project_out(left, superficial), left, rtol=1e-5, atol=1e-5)


def test_dependent_superficial_logits_keep_value_and_gradient_finite() -> None:
    logits = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    superficial = logits[:, :1].repeat(1, 3).requires_grad_()
    left = project_out(logits, superficial)
    left.square().sum().backward()
    assert left.isfinite().all()
    assert superficial.grad is not None
    assert superficial.grad.isfinite().all()


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (((5, 3), (4, 3)), r"logits must be \(N, C\) and superficial \(N, K\), got \(5, 3\) and \(4, 3\)"),
        (((3, 3), (3, 3)), r"to project 3 columns out takes more than 3 images, given 3"),
    ],
)
def test_projection_refuses_other_shapes(shapes: tuple[tuple[int, int], ...], said: str) -> None:
    logits, superficial = (torch.ones(shape) for shape in shapes)
    with pytest.raises(ValueError, match=said):
        project_out(logits, superficial)


def test_negative_entropy_lies_between_certain_and_uniform() -> None:
    assert negative_entropy(torch.zeros(3, 8)).item() == pytest.approx(-np.log(8))
    certain = torch.tensor([[1e4, 0.0, 0.0]], requires_grad=True)
    value = negative_entropy(certain)
    value.backward()
    assert value.item() == 0
    assert certain.grad is not None
    assert certain.grad.isfinite().all()


def test_grey_levels_span_all_and_the_texture_network_sees_changes_only() -> None:
    ramp = torch.linspace(0, 0.3, 16).view(1, 4, 4)
    assert _graded(ramp, 16).flatten().tolist() == list(range(16))
    assert _graded(torch.zeros(1, 2, 2), 16).abs().max() == 0
    texture = NeuralGlcm(4, 3)
    with torch.no_grad():
        texture.changes.fill_(0.0)
        texture.levels.fill_(-1.0)
    falling = torch.tensor([[[1.0, 0.5, 0.0]]])
    # A pixel without a left neighbour is compared with 0, so only a fall to the right counts.
    counted = texture.summary(torch.full((1, 16), 2.0)).relu()
    torch.testing.assert_close(texture(falling), counted)
    torch.testing.assert_close(texture(falling.flip(2)), texture.summary(torch.zeros(1, 16)).relu())


def test_hex_predicts_an_image_whatever_the_others(small_data: SmallData) -> None:
    data = small_data("digits")
    objective = build_objective(resolve("hex", "digits", {"batch_size": 32}), data)
    images = next(data.inputs(data.train))
    torch.testing.assert_close(objective.predict(images[:3]), objective.predict(images)[:3])


def test_hex_asks_for_more_images_in_a_batch_than_classes(small_data: SmallData) -> None:
    with pytest.raises(InputError, match="batch_size must be above 10, given 10"):
        build_objective(resolve("hex", "digits", {"batch_size": 10}), small_data("digits"))


def test_the_predictor_of_lnl_reads_the_middle_where_there_is_one(small_data: SmallData) -> None:
    data = small_data("biased-digits")
    objective = build_objective(resolve("lnl", "biased-digits", {"reads": "middle"}), data)
    assert isinstance(objective, LearningNotToLearn)
    objective.encoder(next(data.inputs(data.train))[:2])
    assert objective.tap.output.shape[1:] == (64, 8, 8)
    assert objective.predictor(objective.tap.output).shape == (2, 10)
    without = resolve("lnl", "biased-digits", {"reads": "middle", "encoder.name": "bagnet18"})
    with pytest.raises(InputError, match="encoder bagnet18 states none; give features"):
        build_objective(without, data)


def test_the_predictor_of_lnl_learns_and_the_features_unlearn(small_data: SmallData) -> None:
    """One step along each gradient: the predictor's lowers the cross-entropy, the encoder's raises it."""
    data = small_data("biased-digits")
    settings = {"entropy_weight": 0.0, "reversal": 1.0, "batch_size": 48}
    e = resolve("lnl", "biased-digits", settings)
    batch = next(METHODS["lnl"].feed(e, data).epoch(1))
    for part, sign in (("predictor", -1), ("encoder", 1)):
        objective = build_objective(e, data).train()
        loss, before = objective.step(batch)
        named = [p for name, p in objective.named_parameters() if name.startswith(part)]
        # Without the classifier's loss, which pulls on the encoder too.
        own = torch.autograd.grad(
            loss - super(LearningNotToLearn, objective).compute(batch, identity_gather)[0], named
        )
        with torch.no_grad():
            for weight, gradient in zip(named, own, strict=True):
                weight -= 1e-3 * gradient
        after = objective.step(batch)[1]
        assert sign * (after["bias_loss"] - before["bias_loss"]) > 0


def test_the_margin_of_l_softmax_comes_in_by_epochs(small_data: SmallData) -> None:
    e = resolve("l-softmax", "digits", {"epochs": 4, "lambda_start": 100.0, "lambda_min": 0.05})
    objective = build_objective(e, small_data("digits"))
    seen = [objective.on_epoch_start(epoch, lambda: torch.zeros(0))["lambda"] for epoch in (1, 2, 3, 4)]
    assert seen == pytest.approx([100.0, 100 * (1 + 0.75 / 4) ** -35, 0.05, 0.05])
