"""Across ranks: every loss on two shards equals the loss on the whole batch, and so do averaged gradients."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from loss_cases import CASE_NAMES, LOSS_CASES, LossCase, seeded_inputs
from torch import Tensor

from contrasweep.losses import gather
from tests.ranks import WORLD, results_of_ranks


def encoder(case: LossCase, inputs: dict[str, Tensor]) -> Tensor:
    """Return a linear encoder's weight, the parameter whose gradient DDP would average."""
    width = inputs[case.embedded].shape[-1]
    generator = torch.Generator().manual_seed(11)
    return torch.randn(width, width, generator=generator, dtype=torch.float64).requires_grad_()


def shard(case: LossCase, inputs: dict[str, Tensor], rank: int) -> dict[str, Tensor]:
    """Return the images of one rank; an input without an axis of images (a queue) is on every rank."""
    shards = {
        name: value.chunk(WORLD, case.dim[name])[rank] if name in case.dim else value
        for name, value in inputs.items()
    }
    if "bias_similarity" in inputs:  # a rank has the rows of its own images, with columns for all images
        shards["bias_similarity"] = inputs["bias_similarity"].chunk(WORLD, 0)[rank]
    return shards


def gathered_loss(case: LossCase, inputs: dict[str, Tensor], weight: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return the loss as a training step computes it, and the gradients of all parameters."""
    module = case.build()
    encoded = {**inputs, case.embedded: inputs[case.embedded] @ weight}
    axes = {**case.dim, "bias_similarity": 0}
    whole = {name: gather(value, axes[name]) if name in axes else value for name, value in encoded.items()}
    value = module(**whole)
    gradients = torch.autograd.grad(value, [weight, *module.parameters()])
    return value.detach(), list(gradients)


def run_rank(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORLD)
    results: dict[str, Any] = {}
    for case in LOSS_CASES:
        inputs = seeded_inputs(case)
        value, gradients = gathered_loss(case, shard(case, inputs, rank), encoder(case, inputs))
        for gradient in gradients:
            dist.all_reduce(gradient)
        results[case.name] = value, [gradient / WORLD for gradient in gradients]
    results["gathered"] = gather_examples(rank)
    torch.save(results, Path(folder) / f"rank-{rank}.pt")
    dist.destroy_process_group()


def gather_examples(rank: int) -> dict[str, Any]:
    own = torch.arange(6.0).view(2, 3) + 10 * rank
    found: dict[str, Any] = {
        "rows": gather(own),
        "columns": gather(own, dim=-1),
        "transposed": gather(own.T, dim=1),
        "integers": gather(torch.tensor([rank, 7])),
        "booleans": gather(torch.tensor([rank == 0, True])),
        "half": gather(own.bfloat16()),
    }
    leaf = own.clone().requires_grad_()
    (gather(leaf) * torch.arange(12.0).view(4, 3) * (rank + 1)).sum().backward()
    found["gradient"] = leaf.grad
    longer = (torch.arange(6.0 + 3 * rank).view(-1, 3) + 10 * rank).requires_grad_()
    found["longer"] = gather(longer).detach()
    (gather(longer) * torch.arange(15.0).view(5, 3) * (rank + 1)).sum().backward()
    found["longer_gradient"] = longer.grad
    found["known"] = gather(longer, lengths=[2, 3]).detach()
    found["none_of_one"] = gather(own[: 2 * rank], lengths=(0, 2))
    try:
        gather(own, lengths=[3, 3])
    except ValueError as error:
        found["other_lengths"] = str(error)
    try:
        gather(torch.zeros(2, 3 + rank))
    except ValueError as error:
        found["unequal"] = str(error)
    return found


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The results of both ranks for all losses, from one process group, which starts once."""
    return results_of_ranks(run_rank, tmp_path_factory.mktemp("ranks"), "contrasweep.losses")


@pytest.mark.parametrize("case", LOSS_CASES, ids=CASE_NAMES)
def test_two_shards_equal_the_whole_batch(case: LossCase, ranks: list[dict[str, Any]]) -> None:
    inputs = seeded_inputs(case)
    value, gradients = gathered_loss(case, inputs, encoder(case, inputs))
    assert gradients[0].norm() > 0
    for rank in ranks:
        sharded_value, averaged = rank[case.name]
        torch.testing.assert_close(sharded_value, value, rtol=1e-6, atol=1e-9)
        for mean, expected in zip(averaged, gradients, strict=True):
            torch.testing.assert_close(mean, expected, rtol=1e-6, atol=1e-9)


def test_gather_concatenates_in_the_order_of_ranks(ranks: list[dict[str, Any]]) -> None:
    first = torch.arange(6.0).view(2, 3)
    for found in (rank["gathered"] for rank in ranks):
        assert found["rows"].equal(torch.cat([first, first + 10]))
        assert found["columns"].equal(torch.cat([first, first + 10], 1))
        assert found["transposed"].equal(torch.cat([first.T, first.T + 10], 1))
        assert found["integers"].tolist() == [0, 7, 1, 7]
        assert found["booleans"].tolist() == [True, True, False, True]
        assert found["half"].equal(found["rows"].bfloat16())


def test_gradient_of_gather_is_summed_over_ranks(ranks: list[dict[str, Any]]) -> None:
    """Rank 0 weights position k by k, rank 1 by 2k, so a shard's gradient is 3k at its own positions."""
    expected = 3 * torch.arange(12.0).view(4, 3)
    assert ranks[0]["gathered"]["gradient"].equal(expected[:2])
    assert ranks[1]["gathered"]["gradient"].equal(expected[2:])


def test_shards_may_differ_in_length(ranks: list[dict[str, Any]]) -> None:
    expected = 3 * torch.arange(15.0).view(5, 3)
    for rank in ranks:
        shards = [torch.arange(6.0).view(2, 3), torch.arange(9.0).view(3, 3) + 10]
        assert rank["gathered"]["longer"].equal(torch.cat(shards))
    assert ranks[0]["gathered"]["longer_gradient"].equal(expected[:2])
    assert ranks[1]["gathered"]["longer_gradient"].equal(expected[2:])


def test_lengths_that_all_ranks_know_need_no_exchange(ranks: list[dict[str, Any]]) -> None:
    for number, found in enumerate(rank["gathered"] for rank in ranks):
        assert found["known"].equal(found["longer"])
        assert found["none_of_one"].equal(torch.arange(6.0).view(2, 3) + 10)
        message = "lengths along 0 must be those of all 2 ranks, got [3, 3] and a tensor of shape (2, 3)"
        assert found["other_lengths"] == f"{message} on rank {number}"


def test_shards_of_another_width_are_refused_on_every_rank(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        assert "otherwise equal shape on every rank, got [(2, 3), (2, 4)]" in rank["gathered"]["unequal"]


def test_one_process_gathers_itself() -> None:
    x = torch.randn(2, 3)
    assert gather(x) is x
