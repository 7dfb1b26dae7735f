import numpy as np
import pytest
import torch

from contrasweep.data import named_seed, numpy_generator, torch_generator


def test_the_seed_of_a_name_never_changes() -> None:
    """Python's own hash would differ between processes."""
    assert named_seed("views", 0, 1) == 5993434075842347183


@pytest.mark.parametrize(
    ("one", "other"),
    [(("ab", "c"), ("a", "bc")), ((1,), ("1",)), ((1, 2), (12,)), (("a",), ("a", "")), ((-1,), (1,))],
)
def test_names_that_read_alike_have_different_seeds(
    one: tuple[str | int, ...], other: tuple[str | int, ...]
) -> None:
    assert named_seed(*one) != named_seed(*other)


def test_seeds_fill_63_bits() -> None:
    seeds = [named_seed("x", number) for number in range(200)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**62
    assert len(set(seeds)) == 200


def test_numpy_integers_count_as_integers() -> None:
    assert named_seed("epoch", int(np.int64(3))) == named_seed("epoch", np.int64(3))


@pytest.mark.parametrize("part", [1.5, None])
def test_other_types_are_refused(part: object) -> None:
    with pytest.raises(TypeError):
        named_seed(part)  # type: ignore[arg-type]


def test_a_name_without_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        named_seed()


def test_generators_repeat_by_name_and_leave_the_global_state_alone() -> None:
    before = torch.get_rng_state()
    first = torch.rand(4, generator=torch_generator("a", 1))
    again = torch.rand(4, generator=torch_generator("a", 1))
    other = torch.rand(4, generator=torch_generator("a", 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.get_rng_state())
    assert numpy_generator("a", 1).random() == numpy_generator("a", 1).random()
    assert numpy_generator("a", 1).random() != numpy_generator("a", 2).random()
