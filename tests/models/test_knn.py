"""Nearest neighbours against a loop."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from contrasweep.models import KNNProbe, accuracy, choose_knn, fit_knn
from contrasweep.models.probes import knn

CLASSES = 3


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _data(rows: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = _generator(seed)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    noise = torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    return noise + 1.5 * F.one_hot(labels, 5), labels


def _naive(features: Tensor, labels: Tensor, query: Tensor, k: int, t: float) -> Tensor:
    cosines = [float(query @ row / (query.norm() * row.norm())) for row in features]
    nearest = sorted(range(len(features)), key=lambda i: -cosines[i])[:k]
    votes = torch.zeros(CLASSES, dtype=torch.float64)
    for i in nearest:
        votes[labels[i]] += math.exp(cosines[i] / t)
    return votes / votes.sum()


@pytest.mark.parametrize(("k", "temperature"), [(1, 0.07), (4, 0.07), (9, 1.0), (30, 0.2), (1000, 0.5)])
def test_votes_are_those_of_the_loop(k: int, temperature: float) -> None:
    features, labels = _data(30)
    queries, _ = _data(7, seed=1)
    found = fit_knn(features, labels, CLASSES, neighbours=k, temperature=temperature)(queries)
    expected = torch.stack([_naive(features, labels, query, k, temperature) for query in queries])
    torch.testing.assert_close(found, expected)


def test_blocks_of_queries_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = _data(30)
    queries, _ = _data(11, seed=1)
    probe = fit_knn(features, labels, CLASSES, neighbours=5)
    whole = probe(queries)
    blocks: list[int] = []
    nearest = KNNProbe._nearest
    monkeypatch.setattr(
        KNNProbe, "_nearest", lambda self, rows: (blocks.append(len(rows)), nearest(self, rows))[1]
    )
    monkeypatch.setattr(knn, "_BLOCK_CELLS", 4 * 30)
    torch.testing.assert_close(probe(queries), whole)
    assert blocks == [4, 4, 3]
    monkeypatch.setattr(knn, "_BLOCK_CELLS", 1)
    torch.testing.assert_close(probe(queries), whole)


def test_lengths_do_not_matter_and_a_low_temperature_does_not_overflow() -> None:
    features, labels = _data(30)
    queries, _ = _data(7, seed=1)
    lengths = torch.rand(30, 1, generator=_generator(), dtype=torch.float64) * 1e3 + 1e-3
    plain = fit_knn(features, labels, CLASSES, neighbours=5)(queries)
    torch.testing.assert_close(
        fit_knn(lengths * features, labels, CLASSES, neighbours=5)(1e4 * queries), plain
    )
    cold = fit_knn(features.float(), labels, CLASSES, neighbours=5, temperature=1e-4)(queries.float())
    nearest = fit_knn(features, labels, CLASSES, neighbours=1)(queries)
    torch.testing.assert_close(cold.double(), nearest, atol=1e-3, rtol=0)


def test_constant_features_and_one_class() -> None:
    labels = torch.tensor([2] * 6 + [0] * 3)
    for dead in (torch.zeros(9, 4), torch.ones(9, 4)):
        shares = fit_knn(dead, labels, CLASSES)(dead)
        torch.testing.assert_close(shares, torch.tensor([[1 / 3, 0, 2 / 3]]).expand(9, 3))
    features, _ = _data(9)
    assert accuracy(fit_knn(features, torch.ones(9).long(), CLASSES), features, torch.ones(9).long()) == 1.0
    alone = fit_knn(features[:1], labels[:1], CLASSES)
    assert alone(features).argmax(dim=1).tolist() == [2] * 9


def test_the_choice_is_the_best_on_the_held_out_rows() -> None:
    features, labels = _data(60)
    ks, ts = (1, 3, 20, 500), (0.01, 0.3)
    chosen = choose_knn(features, labels, CLASSES, _generator(5), neighbours=ks, temperatures=ts)
    order = torch.randperm(60, generator=_generator(5))
    held, kept = order[:12], order[12:]
    scores = {
        (k, t): accuracy(
            fit_knn(features[kept], labels[kept], CLASSES, neighbours=k, temperature=t),
            features[held],
            labels[held],
        )
        for k in ks
        for t in ts
    }
    assert len(set(scores.values())) > 1
    assert (chosen.neighbours, chosen.temperature) == max(scores, key=lambda setting: scores[setting])
    assert len(chosen.features) == 60


def test_the_choice_depends_on_the_generator_alone() -> None:
    features, labels = _data(20)
    state = torch.random.get_rng_state()
    choices = [choose_knn(features, labels, CLASSES, _generator(7)) for _ in range(2)]
    assert torch.equal(torch.random.get_rng_state(), state)
    assert len({(probe.neighbours, probe.temperature) for probe in choices}) == 1
    smallest = choose_knn(features[:2], labels[:2], CLASSES, _generator())
    assert smallest(features).shape == (20, CLASSES)


@pytest.mark.parametrize(("share", "held"), [(0.01, 1), (0.5, 2), (0.99, 3)])
def test_at_least_one_row_is_held_out_and_one_votes(
    share: float, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    split: list[tuple[int, int]] = []
    compare = knn._correct_by_candidate

    def compared(candidates: list[KNNProbe], voters: Tensor, held_out: Tensor) -> Tensor:
        split.append((len(voters), len(held_out)))
        return compare(candidates, voters, held_out)

    monkeypatch.setattr(knn, "_correct_by_candidate", compared)
    choose_knn(*_data(4), CLASSES, _generator(), validation_share=share)
    assert split == [(4 - held, held)]


def test_settings_out_of_range_are_refused() -> None:
    features, labels = _data(6)
    with pytest.raises(ValueError, match="neighbours must be at least 1, got 0"):
        fit_knn(features, labels, CLASSES, neighbours=0)
    for temperature in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="temperature must be > 0"):
            fit_knn(features, labels, CLASSES, temperature=temperature)
    with pytest.raises(ValueError, match=r"labels must lie in 0..1, got 0..2"):
        fit_knn(features, torch.tensor([0, 1, 2, 0, 1, 2]), 2)
    with pytest.raises(ValueError, match="NaN or Inf"):
        fit_knn(features * math.nan, labels, CLASSES)
    with pytest.raises(ValueError, match="nothing to choose from"):
        choose_knn(features, labels, CLASSES, _generator(), neighbours=())
    with pytest.raises(ValueError, match="at least two rows"):
        choose_knn(features[:1], labels[:1], CLASSES, _generator())
    with pytest.raises(ValueError, match=r"validation_share must lie in \(0, 1\), got 1"):
        choose_knn(features, labels, CLASSES, _generator(), validation_share=1)
