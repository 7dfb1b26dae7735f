"""The records that `pretrain` yields, and the state that it leaves untouched."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from trial_steps import fitting_dataset

import contrasweep.data as datasets
from contrasweep.data import dataset_spec, kmeans_clusters, named_seed
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.cclk import condition_clusters
from contrasweep.tuning.methods.metrics import search_metrics
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.ranks import Ranks
from contrasweep.tuning.training.evaluation import probe_scores
from contrasweep.tuning.training.pretrain import EpochRecord, build_objective, pretrain

Make = Callable[..., Experiment]
ON_COLOURS = [method for method in METHODS if fitting_dataset(method) == "colour-digits"]


def _weights(objective: Objective) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in objective.state_dict().items()}


def _equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("dataset", ["digits", "colour-digits"])
def test_a_run_loads_its_data_and_yields_every_epoch(dataset: str, experiment: Make) -> None:
    few = {"views.min_crop": 0.5, "batch_size": 256}
    records = list(pretrain(experiment("infonce", few, dataset)))
    assert [(record.epoch, record.epochs, record.finished) for record in records] == [
        (0, 2, False),
        (1, 2, False),
        (2, 2, True),
    ]
    for record in records[1:]:
        assert record.train_seconds > 0
    assert records[0].train_seconds == 0
    assert 0.05 < records[-1].metrics["val.accuracy"] <= 1


@pytest.mark.parametrize("dataset", ["digits", "colour-digits"])
def test_the_metrics_are_those_that_a_study_declares(
    dataset: str, experiment: Make, small_data: Callable[[str], PreparedData]
) -> None:
    records = list(pretrain(experiment("infonce", dataset=dataset), data=small_data(dataset)))
    declared = search_metrics(METHODS["infonce"], dataset_spec(dataset))
    last = records[-1].metrics
    assert set(last) == set(declared)
    train = {name for name in declared if name.startswith("train.")}
    exact = {name for name in declared if name.startswith("val.") and "ridge" not in name}
    assert set(records[0].metrics) == set(declared) - train
    assert set(records[1].metrics) == set(declared) - exact


def test_the_exact_probe_is_fitted_after_the_epochs_that_are_asked_for(
    experiment: Make, data: PreparedData
) -> None:
    values = {"epochs": 4, "probes.max_steps": 5}
    usual = list(pretrain(experiment("infonce", values), data=data))
    asked = list(pretrain(experiment("infonce", {**values, "probes.at_epochs": [1, 3]}), data=data))
    assert [record.epoch for record in usual if "val.accuracy" in record.metrics] == [0, 4]
    assert [record.epoch for record in asked if "val.accuracy" in record.metrics] == [0, 1, 3, 4]
    # Scoring draws no random numbers: the runs are the same.
    assert usual[-1].metrics == asked[-1].metrics


def test_the_first_record_is_the_untrained_encoder(experiment: Make, data: PreparedData) -> None:
    e = experiment("fair-cclk")
    record = next(pretrain(e, data=data))
    untrained = build_objective(e, data)
    assert _equal(_weights(record.objective), _weights(untrained))
    assert data.validation is not None
    held_out, spec, settings = data.validation, data.spec, e.probes
    ridge = probe_scores(untrained, data.probe_rows, held_out, spec, settings, "ridge")
    logistic = probe_scores(untrained, data.train, held_out, spec, settings, "logistic")
    expected = {f"val.ridge_{name}": score for name, score in ridge.items()}
    expected |= {f"val.{name}": score for name, score in logistic.items()}
    assert record.metrics == expected


def test_scores_of_untrained_encoders_are_shared_where_they_are_equal(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[str] = []

    def counted(*arguments: Any, **options: Any) -> dict[str, float]:
        computed.append(arguments[-1])
        return probe_scores(*arguments, **options)

    monkeypatch.setattr("contrasweep.tuning.training.evaluation.probe_scores", counted)
    first = next(pretrain(experiment("infonce"), data=data)).metrics
    first["val.accuracy"] = -1.0  # changing a record does not change the remembered scores
    second = next(pretrain(experiment("fair-cclk", {"optimizer.lr": 0.1}), data=data)).metrics
    assert computed == ["ridge", "logistic"]
    assert {**first, "val.accuracy": second["val.accuracy"]} == second
    assert second["val.accuracy"] >= 0
    for other in ({"seed": 1}, {"probes.penalty": 0.1}):
        next(pretrain(experiment("infonce", other), data=data))
    assert len(computed) == 6


def test_the_untrained_encoder_depends_on_the_seed_alone(experiment: Make, data: PreparedData) -> None:
    def encoder(method: str, values: dict[str, Any] | None = None) -> dict[str, Tensor]:
        return _weights(build_objective(experiment(method, values), data).encoder)  # type: ignore[arg-type]

    first = encoder("infonce")
    for method in ON_COLOURS:
        assert _equal(encoder(method, {"head.width": 32, "optimizer.lr": 0.7}), first)
    assert _equal(encoder("infonce", {"optimizer.name": "lars", "batch_size": 16, "epochs": 9}), first)
    other = encoder("infonce", {"seed": 1})
    assert not any(torch.equal(first[name], other[name]) for name in first if first[name].ndim == 4)


def test_the_head_depends_on_the_seed_too(experiment: Make, data: PreparedData) -> None:
    heads = [
        _weights(build_objective(experiment("infonce", {"seed": seed}), data).head)  # type: ignore[arg-type]
        for seed in (0, 0, 1)
    ]
    assert _equal(heads[0], heads[1])
    assert not torch.equal(heads[0]["0.weight"], heads[2]["0.weight"])


def test_training_moves_every_weight(experiment: Make, data: PreparedData) -> None:
    records = pretrain(experiment("infonce"), data=data)
    before = _weights(next(records).objective)
    after = _weights(next(records).objective)
    assert not any(torch.equal(before[name], after[name]) for name in before)


def test_the_recorded_rate_is_that_of_the_epoch_s_last_step(experiment: Make, data: PreparedData) -> None:
    e = experiment("infonce", {"schedule.name": "constant", "optimizer.lr": 0.02})
    assert [r.metrics.get("train.lr") for r in pretrain(e, data=data)] == [None, 0.02, 0.02]
    ramp = experiment("infonce", {"schedule.warmup_epochs": 2, "optimizer.lr": 0.06})
    # Six steps in all: 0.01, 0.02, 0.03 | 0.04, 0.05, 0.06.
    rates = [r.metrics["train.lr"] for r in pretrain(ramp, data=data) if r.epoch]
    assert rates == pytest.approx([0.03, 0.06])


def test_test_images_are_out_of_reach(experiment: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("pretrain asked for the test split")

    original = datasets.sources.digits.read_digits

    def train_only(split: str) -> Any:
        return original(split) if split == "train" else refuse()

    monkeypatch.setattr("contrasweep.data.load_test", refuse)
    monkeypatch.setattr("contrasweep.data.datasets.load_test", refuse)
    monkeypatch.setattr("contrasweep.data.sources.digits.read_digits", train_only)
    for dataset in ("digits", "colour-digits"):
        e = experiment("infonce", {"epochs": 1, "batch_size": 256}, dataset)
        assert [record.epoch for record in pretrain(e)] == [0, 1]


def test_without_a_validation_split_there_are_no_scores(
    experiment: Make, small_data: Callable[[str], PreparedData]
) -> None:
    data = replace(small_data("digits"), validation=None)
    records = list(pretrain(experiment("infonce", dataset="digits"), data=data))
    assert records[0].metrics == {}
    assert set(records[-1].metrics) == {"train.loss", "train.dropped_fraction", "train.lr"}


def _batches(e: Experiment, data: PreparedData, monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """Every batch of a run, as the objective received it."""
    seen: list[Batch] = []
    original = Objective.step

    def spy(self: Objective, batch: Batch, *rest: Any) -> Any:
        seen.append(batch)
        return original(self, batch, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Objective, "step", spy)
        for _ in pretrain(e, data=data):
            pass
    return seen


def test_a_batch_holds_its_images_with_their_labels_and_conditions(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = experiment("infonce", {"views.min_crop": 1.0, "views.flip": 0.0})
    train = data.train
    batches = _batches(e, data, monkeypatch)
    assert len(batches) == 6
    for batch in batches:
        assert batch.views.shape == (2, 32, 3, 8, 8)
        assert torch.equal(batch.labels, train.labels[batch.index])
        assert batch.condition is not None
        assert train.condition is not None
        assert torch.equal(batch.condition, train.condition[batch.index])
        # A crop with the image's shape is the whole image.
        images = train.images[batch.index].float() / 255
        whole = (batch.views - images).abs().amax(dim=(2, 3, 4)) < 1e-6
        assert bool(whole.any(dim=1).all())
    drawn = torch.cat([batch.index for batch in batches[:3]])
    assert len(drawn.unique()) == 96


def test_the_two_views_of_an_image_are_drawn_apart(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = _batches(experiment("infonce", {"views.min_crop": 0.3}), data, monkeypatch)
    same = [torch.equal(one, two) for batch in batches for one, two in zip(*batch.views, strict=True)]
    # Boxes are whole pixels and 8 x 8 has few of them: two draws coincide now and then.
    assert len(same) == 192
    assert sum(same) < 20


def test_batches_of_fair_infonce_come_from_one_cluster(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = experiment("fair-infonce", {"clusters": 4, "batch_size": 16})
    clusters = condition_clusters(e, data)
    assert clusters.unique().tolist() == [0, 1, 2, 3]
    batches = _batches(e, data, monkeypatch)
    found = [clusters[batch.index].unique().tolist() for batch in batches]
    assert all(len(group) == 1 for group in found)
    assert {group[0] for group in found} == {0, 1, 2, 3}
    plain = _batches(experiment("infonce", {"batch_size": 16}), data, monkeypatch)
    assert all(len(clusters[batch.index].unique()) > 1 for batch in plain)


def test_clusters_follow_the_seed_by_a_stream_of_their_own(experiment: Make, data: PreparedData) -> None:
    colours = data.train.condition
    assert colours is not None
    for seed in (0, 3):
        found = condition_clusters(experiment("fair-infonce", {"clusters": 9, "seed": seed}), data)
        assert torch.equal(found, kmeans_clusters(colours, 9, named_seed(seed, "clusters")))


def test_more_clusters_than_colours_are_refused(
    experiment: Make, small_data: Callable[[str], PreparedData]
) -> None:
    data = small_data("colour-digits")
    few = replace(data, train=data.train.subset([0, 1, 0, 1, 0, 1]))
    with pytest.raises(InputError, match=r"fair-infonce on colour-digits: .*the 2 distinct rows, got 3"):
        next(pretrain(experiment("fair-infonce", {"clusters": 3}), data=few))


def test_the_objective_gathers_by_the_ranks_given(experiment: Make, data: PreparedData) -> None:
    calls: list[tuple[tuple[int, ...], int]] = []

    class Watched(Ranks):
        def gather(self, tensor: Tensor, dim: int) -> Tensor:
            calls.append((tuple(tensor.shape), dim))
            return tensor

    records: list[EpochRecord] = list(pretrain(experiment("fair-cclk"), data=data, ranks=Watched()))
    assert calls == [((32,), 0), ((32,), 0), ((32, 3), 0), ((2, 32, 128), 1)] * 6
    assert records[-1].finished


@pytest.mark.parametrize("given", ["infonce", {"method": "infonce", "dataset": "digits"}])
def test_what_is_no_experiment_is_refused_in_words(given: object) -> None:
    with pytest.raises(InputError, match="pretrain takes an experiment, as `resolve`"):
        next(pretrain(given))  # type: ignore[arg-type]
