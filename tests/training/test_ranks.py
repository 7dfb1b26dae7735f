"""Two processes compute the same as one, with every registered method."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_runs import (
    Trace,
    difference,
    embedded,
    experiment_of,
    handed_over,
    loss_difference,
    normed,
    run_group,
    scored,
    small,
)
from trial_steps import fitting_dataset

from contrasweep.data import MultiView
from contrasweep.models import build_encoder
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.batch_norm import synchronise_batch_norm
from contrasweep.tuning.objectives.objective import Batch
from contrasweep.tuning.objectives.prepared import TransductiveBatch
from contrasweep.tuning.objectives.ranks import (
    ONE,
    Ranks,
    check_batch_size,
    group_ranks,
)
from contrasweep.tuning.training.pretrain import pretrain

BOTH = ("without statistics", "averaged", *METHODS)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The results of both ranks of one group; the group starts once."""
    return run_group(tmp_path_factory.mktemp("ranks"))


pytestmark = pytest.mark.usefixtures("one_thread")


def _rounding(run: str) -> float:
    """How far apart rounding may take a run on two ranks and one on one process.

    The network of HeroCon has four batch norms in a row: on one process, its objects in another order differ
    by 4e-5.
    """
    several = run in METHODS and fitting_dataset(run) == "two-view-digits"
    return 5e-5 if several else 1e-5


def test_a_rank_trains_without_the_compiler_of_torch(ranks: list[dict[str, Any]]) -> None:
    """Its import takes a second of every process that trains, see `contrasweep.optimizers`."""
    assert not any(rank["compiler"] for rank in ranks)


@pytest.mark.parametrize("method", METHODS)
def test_loss_and_averaged_gradients_are_those_of_one_process(
    method: str, ranks: list[dict[str, Any]], trained: dict[str, Trace]
) -> None:
    whole = trained[method]
    for found in (rank["runs"][method] for rank in ranks):
        assert found.losses[0] == pytest.approx(whole.losses[0], rel=1e-5)
        assert found.gradients.keys() == whole.gradients.keys()
        assert difference(whole.gradients, found.gradients) < _rounding(method)


@pytest.mark.parametrize("method", BOTH)
def test_two_epochs_have_the_losses_of_one_process(
    method: str, ranks: list[dict[str, Any]], trained: dict[str, Trace]
) -> None:
    assert loss_difference(trained[method], ranks[0]["runs"][method]) < _rounding(method)


@pytest.mark.parametrize("method", BOTH)
def test_every_rank_holds_the_same_bits(method: str, ranks: list[dict[str, Any]]) -> None:
    """Weights, running statistics, queues, prototypes, momentum copies, clusters and metrics."""
    one, other = (rank["runs"][method] for rank in ranks)
    assert one.losses == other.losses
    assert one.metrics == other.metrics
    assert one.state.keys() == other.state.keys()
    assert all(torch.equal(value, other.state[name]) for name, value in one.state.items())


@pytest.mark.parametrize("method", METHODS)
def test_the_state_in_the_end_is_that_of_one_process(
    method: str, ranks: list[dict[str, Any]], trained: dict[str, Trace]
) -> None:
    found, whole = ranks[0]["runs"][method].state, trained[method].state
    assert list(found) == list(whole)
    # Two epochs take what rounding did to a step a hundred times further.
    rounding = _rounding(method)
    for name, value in whole.items():
        assert torch.allclose(found[name], value, rtol=100 * rounding, atol=10 * rounding), name


def test_batch_norm_is_over_the_whole_batch_however_it_is_shared(ranks: list[dict[str, Any]]) -> None:
    whole = normed(ONE)
    for found in (rank["normed"] for rank in ranks):
        assert found.keys() == whole.keys()
        for name, value in whole.items():
            torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-9)


def test_a_run_goes_on_with_another_number_of_ranks(ranks: list[dict[str, Any]]) -> None:
    _, whole = handed_over(None, 2, ONE)
    _, from_two = handed_over(ranks[0]["halfway"][0], 2, ONE)
    for found in (from_two, ranks[0]["continued"][1], ranks[1]["continued"][1]):
        assert found["train.loss"] == pytest.approx(whole["train.loss"], rel=1e-5)
        assert found.keys() == whole.keys()


def test_ranks_share_the_embedding_of_the_training_set(ranks: list[dict[str, Any]]) -> None:
    whole = embedded(ONE)
    assert all(torch.equal(rank["embedded"], whole) for rank in ranks)


def test_ranks_share_the_embedding_of_all_images_that_are_scored(ranks: list[dict[str, Any]]) -> None:
    """The first rank alone fits probes and clusters: see `alone_on_the_first_rank`."""
    whole = scored(ONE)
    for rank in ranks:
        for found, expected in zip(rank["scored"], whole, strict=True):
            assert found == pytest.approx(expected, rel=1e-5)


def test_no_rank_asks_the_others_for_what_follows_from_the_batch(ranks: list[dict[str, Any]]) -> None:
    """Labels, indices and the lengths of shards are known to all."""
    for rank in ranks:
        assert rank["exchanged"] == []


def test_a_step_gathers_rows_of_its_batch() -> None:
    whole = Batch(torch.zeros(1, 2, 3, 4, 4), torch.arange(5), torch.arange(5))
    batch = replace(whole, labels=torch.arange(3), index=torch.arange(3), whole=whole)
    assert batch.lengths(2) == ((3, 2),)
    assert batch.gathered(Ranks(0, 2).gather).labels.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="of which this rank has 3; given 1 along 0"):
        Ranks(0, 2).gather_of(batch)(torch.zeros(1), 0)


def test_rows_of_two_kinds_that_look_alike_are_exchanged() -> None:
    """5 and 6 objects are 3 and 2, and 3 and 3: the first rank could not tell which it has."""
    views = MultiView((torch.zeros(3, 2),), torch.zeros(3, dtype=torch.int64))
    batch = TransductiveBatch(views, views, labels=torch.zeros(5), others=6)
    assert batch.lengths(2) == ((3, 2), (3, 3), (6, 5))
    for rank in range(2):
        alike = Ranks(rank, 2)
        assert alike.gather_of(batch) == alike.gather
        assert alike.gather_of(replace(batch, others=2)) != alike.gather
        assert alike.gather_of(object()) == alike.gather


def test_what_the_first_rank_computes_all_know(ranks: list[dict[str, Any]]) -> None:
    for rank, found in enumerate(one["told"] for one in ranks):
        assert found["once"] == "computed by 0"
        assert found["error"] == ("TrainingDiverged", "seen by 0")
        # An error that cannot be sent goes on as its words.
        words = "RuntimeError: locked by 0" if rank else "locked by 0"
        assert found["unsendable"] == ("RuntimeError", words)


def test_an_objective_that_does_not_gather_is_refused_on_every_rank(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        name, message = rank["told"]["disagreement"]
        assert name == "RuntimeError"
        assert "infonce: the workers' losses of one step differ ([1.0, 2.0])" in message


def test_a_batch_that_does_not_divide_is_refused_before_work(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        name, message = rank["told"]["undivided"]
        assert name == "InputError"
        assert message.startswith("batch_size 33 does not divide among 2 workers: give 32 or 34")
    with pytest.raises(InputError, match="batch_size 3 does not divide among 4 workers: give 4, or other"):
        check_batch_size(3, 4)
    check_batch_size(33, 1)


def test_batches_smaller_than_the_group_are_refused() -> None:
    experiment = experiment_of("fair-infonce", clusters=3)
    feed = METHODS["fair-infonce"].feed(experiment, small(experiment, {}))
    smallest = min(len(batch) for batch in feed.sampler.epoch(1))  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=f"the smallest batch has {smallest} images, fewer than the 64"):
        feed.shared(Ranks(0, 64))


def test_a_rank_that_has_left_is_noticed(ranks: list[dict[str, Any]]) -> None:
    assert "another rank is gone" in ranks[0]["lost"]


def test_without_a_group_there_is_one_rank(tmp_path: Path) -> None:
    assert group_ranks() == ONE
    assert next(pretrain(experiment_of("infonce"))).epoch == 0


def test_on_a_gpu_batch_norm_is_torchs_own_over_all_ranks() -> None:
    network = build_encoder("resnet18-cifar", 3, 32)
    before = network.state_dict()
    synchronise_batch_norm(network, torch.device("cuda"))
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    found = [module for module in network.modules() if isinstance(module, torch.nn.SyncBatchNorm)]
    assert (len(norms), len(found)) == (0, 20)
    after = network.state_dict()
    assert list(after) == list(before)
    assert all(value.data_ptr() == before[name].data_ptr() for name, value in after.items())
