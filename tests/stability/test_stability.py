"""Claims of invented pools, whose answers are known."""

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from contrasweep.tuning.cli.rendering import json_text
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.stability.analysis import aligned, analyse, stable_from
from contrasweep.tuning.stability.claims import budgets_of, claims_of
from contrasweep.tuning.stability.pool_file import read_pool_file, write_scored_pools
from contrasweep.tuning.stability.ranking import agreement
from contrasweep.tuning.stability.scored_pool import ScoredPool
from contrasweep.tuning.stability.table import (
    claim_rows,
    content_of,
    other_seed_rows,
    percent,
    ranking_rows,
    score_rows,
    sentences,
)
from contrasweep.tuning.stability.win_probabilities import ranks_of
from tests.stability.invented import tried

RNG = np.random.default_rng(0)
SPREAD = RNG.uniform(0.5, 0.7, size=24)
BUDGETS = [1, 2, 4, 8, 12, 24]


def judged(*pools: ScoredPool, claims: tuple[str, ...] = (), subsets: int = 400):
    asked = claims_of(claims, [(one.study, one.method) for one in pools])
    return analyse(pools, asked, BUDGETS, subsets=subsets, seed=0)


def test_a_method_that_is_always_better_is_so_at_every_budget() -> None:
    found = judged(tried("good", SPREAD + 0.3), tried("bad", SPREAD[::-1]))
    claim = found.claims[0]
    assert claim.here.above.value == pytest.approx(np.ones(len(BUDGETS)))
    assert claim.here.above.low[:3] == pytest.approx(np.ones(3))
    assert (claim.here.stable_from, claim.here.contrary_from) == (1, None)
    contrary = judged(tried("good", SPREAD + 0.3), tried("bad", SPREAD), claims=("bad > good",)).claims[0]
    assert (contrary.here.stable_from, contrary.here.contrary_from) == (None, 1)


def test_pairing_counts() -> None:
    """The same configurations, a little better: each paired search says so, half of the others do."""
    better = SPREAD + 1e-3
    paired = judged(tried("a", better), tried("b", SPREAD))
    alone = judged(tried("a", better), tried("bb", SPREAD, shared=False))
    assert paired.paired
    assert paired.common == ("optimizer.lr",)
    assert paired.claims[0].here.above.value[0] == pytest.approx(1)
    assert not alone.paired
    assert 0.5 < alone.claims[0].here.above.value[0] < 0.6


def test_paired_studies_keep_the_trials_that_all_have() -> None:
    short = tried("b", SPREAD).some(np.array([0, 2, 3, *range(5, 24)]))
    (first, second), common = aligned([tried("a", SPREAD), short])
    assert common == ("optimizer.lr",)
    assert first.trial.tolist() == second.trial.tolist() == short.trial.tolist()


def test_a_common_parameter_that_never_changes_pairs_nothing() -> None:
    alike = tuple({"views.flip": 0.5} for _ in SPREAD)
    held = [replace(tried(name, SPREAD), values=alike) for name in ("a", "b")]
    assert aligned(held)[1] == ()


def test_select_chooses_and_report_is_compared() -> None:
    """B reports the opposite of what it selects by: the more it searches, the worse its found score."""
    found = judged(tried("a", SPREAD, np.full(24, 0.6)), tried("b", SPREAD, 1.2 - SPREAD))
    assert (np.diff(found.found[1].score.value) < 0).all()
    assert found.found[1].optimism.value[-1] == pytest.approx(2 * SPREAD.max() - 1.2)
    assert found.claims[0].here.above.value[-1] == 1


def test_a_claim_that_one_lucky_seed_carries_does_not_hold_on_other_seeds() -> None:
    """A is better on the seed that chooses and reports, and worse on both others; C has no other seed."""
    low, high = np.full((2, 24), 0.4), np.full((2, 24), 0.6)
    a, b = tried("a", SPREAD + 1, again=low), tried("b", SPREAD, again=high)
    found = judged(a, b, tried("c", SPREAD - 1))
    first, second, third = found.claims
    assert first.here.stable_from == 1
    assert first.elsewhere is not None
    assert first.elsewhere.above.value == pytest.approx(np.zeros(len(BUDGETS)))
    assert second.elsewhere is None
    assert third.elsewhere is None
    assert (first.elsewhere.stable_from, first.elsewhere.contrary_from) == (None, 1)
    assert [(row["claim"], row["stable from"]) for row in other_seed_rows(found)] == [
        ("a > b", "opposite from 1")
    ]
    assert any(line.startswith("On other seeds") for line in sentences(found))
    unpaired = judged(replace(a, values=tried("apart", SPREAD, shared=False).values), b)
    assert not unpaired.paired
    apart = unpaired.claims[0]
    assert apart.elsewhere is not None
    assert apart.elsewhere.above.value == pytest.approx(np.zeros(len(BUDGETS)))
    high[1, 3] = np.nan
    assert judged(a, tried("b", SPREAD, again=high)).claims[0].elsewhere is None


def test_means_over_seeds_that_differ_by_rounding_are_ties() -> None:
    """Of two seeds with 100 images each, 80 and 84 of them are as many as 82 and 82."""
    own, other = np.full((2, 24), [[0.80], [0.84]]), np.full((2, 24), [[0.82], [0.82]])
    assert own.mean(axis=0)[0] != other.mean(axis=0)[0]
    for pair in ((own, other), (other, own)):
        there = judged(*(tried(n, SPREAD, again=one) for n, one in zip("ab", pair, strict=True))).claims[0]
        assert there.elsewhere is not None
        assert there.elsewhere.above.value.tolist() == there.elsewhere.below.value.tolist() == [0.0] * 6


def test_untrained_encoders_are_beaten_or_not() -> None:
    found = judged(
        tried("a", SPREAD), tried("b", SPREAD, untrained=0.9), tried("c", SPREAD, untrained=np.nan)
    )
    assert [one.beats_from for one in found.found] == [1, None, None]
    assert found.found[1].beats_untrained is not None
    assert found.found[1].beats_untrained.value == pytest.approx(np.zeros(len(BUDGETS)))
    assert found.found[2].beats_untrained is None
    alike = judged(tried("a", np.full(24, 0.5)), tried("b", SPREAD)).found[0]
    assert alike.beats_from is None, "as good is no better"


@pytest.mark.parametrize(
    ("chance", "text"),
    [(0.0, "0"), (0.007, "0.7"), (0.5, "50"), (0.985, "98"), (0.997, "99.7"), (1.0, "100")],
)
def test_a_chance_that_is_not_sure_is_not_shown_as_sure(chance: float, text: str) -> None:
    assert percent(chance) == text


def test_rankings_agree_with_that_of_the_whole_pools() -> None:
    steps = [tried(name, SPREAD + shift) for name, shift in (("a", 0.0), ("b", 1e-3), ("c", 2e-3))]
    always = judged(*steps).ranking
    assert always is not None
    assert always.tau == pytest.approx(np.ones(len(BUDGETS)))
    alike = [
        tried(name * place, RNG.permutation(SPREAD), shared=False) for place, name in enumerate("xyz", 1)
    ]
    ranking = judged(*alike, subsets=4000).ranking
    assert ranking is not None
    # Kendall's tau-a is the mean of the pairs' orders, which are known exactly.
    exact = [one.here for one in judged(*alike).claims]
    signs = [1 if one.above.value[-1] == 1 else -1 if one.below.value[-1] == 1 else 0 for one in exact]
    mean = np.mean(
        [s * (one.above.value - one.below.value) for s, one in zip(signs, exact, strict=True)], axis=0
    )
    assert ranking.tau == pytest.approx(mean, abs=0.05)
    assert judged(tried("a", SPREAD), tried("b", SPREAD)).ranking is None


def test_tau_is_the_mean_over_all_subsets() -> None:
    """Of three pools of four, each with scores of its own that choose and that are reported."""
    rng = np.random.default_rng(3)
    select, report = rng.normal(size=(2, 3, 4))
    budgets = np.array([1, 2, 3, 4])

    def order(found: tuple[float, ...]) -> NDArray[np.float64]:
        return np.sign([one - other for one, other in combinations(found, 2)])

    whole = order(tuple(own[np.argmax(chosen)] for chosen, own in zip(select, report, strict=True)))
    exact, same = [], []
    for budget in budgets.tolist():
        found = [
            [own[max(rows, key=chosen.__getitem__)] for rows in combinations(range(4), budget)]
            for chosen, own in zip(select, report, strict=True)
        ]
        exact.append(np.mean([np.mean(order(one) * whole) for one in product(*found)]))
        same.append(np.mean([np.all(order(one) == whole) for one in product(*found)]))
    drawn = agreement(
        [ranks_of(one) for one in select], [*report], budgets, paired=False, subsets=20_000, seed=0
    )
    assert drawn.tau == pytest.approx(exact, abs=0.02)
    assert drawn.same == pytest.approx(same, abs=0.02)
    assert len({round(one, 1) for one in exact}) > 2, "budgets can be told apart"


def test_tau_has_no_interval_because_other_pools_differ_more_than_subsets() -> None:
    """The error of the drawn mean is 0.02 here, and the deviation over pools such as these is 0.2."""
    rng = np.random.default_rng(0)
    found = judged(*(tried(name, rng.normal(size=24)) for name in "abc"), subsets=2000)
    assert found.ranking is not None
    # Of three methods, tau of a subset is -1, -1/3, 1/3 or 1.
    assert 0.005 < found.ranking.error[0] < 1 / 2000**0.5
    assert all("±" not in row["Kendall's tau"] for row in ranking_rows(found))
    (line,) = [line for line in sentences(found) if "other pools" in line]
    assert "2,000 random subsets" in line
    assert f"±{1.96 * found.ranking.error.max():.2g}" in line


def test_stable_means_from_there_on_and_by_half() -> None:
    budgets = np.array([1, 2, 4, 8, 16])
    assert stable_from(np.array([0.96, 0.9, 0.97, 0.99, 1.0]), budgets, 8) == 4
    assert stable_from(np.array([0.5, 0.5, 0.5, 0.9, 1.0]), budgets, 8) is None
    assert stable_from(np.array([0.949, 0.95, 0.95, 0.95, 1.0]), budgets, 8) == 2


def test_intervals_end_at_a_sixth_of_the_smallest_pool() -> None:
    found = judged(tried("a", np.arange(24.0), shared=False), tried("bb", np.arange(35.0), shared=False))
    assert (found.half, found.sure) == (12, 4)
    larger = judged(*(tried(name, np.arange(35.0)) for name in "ab"))
    assert (larger.half, larger.sure) == (17, 5)


def test_the_same_split_is_told() -> None:
    halved = judged(tried("a", SPREAD), tried("b", SPREAD))
    whole = judged(*(tried(name, SPREAD, report_metric="val.accuracy") for name in ("a", "b")))
    assert not any("optimistic" in line for line in sentences(halved))
    assert any("optimistic" in line for line in sentences(whole))
    assert claim_rows(halved)[0]["stable from"] == "not by 12"


@pytest.mark.parametrize(("budgets", "told"), [([1, 4, 24], "not by 4"), ([24], "not computed")])
def test_nothing_is_said_of_budgets_that_were_not_computed(budgets: list[int], told: str) -> None:
    pools = tried("a", SPREAD), tried("b", SPREAD, untrained=0.9)
    found = analyse(pools, claims_of((), [("a", "a"), ("b", "b")]), budgets, subsets=100, seed=-1)
    assert claim_rows(found)[0]["stable from"] == told
    assert score_rows(found)[1]["beats untrained from"] == told


def test_a_tie_of_the_whole_pools_keeps_tau_below_one() -> None:
    """Two methods are always alike, and a third is always better: all rankings are the same."""
    found = judged(tried("a", SPREAD), tried("b", SPREAD), tried("c", SPREAD + 1))
    assert found.ranking is not None
    assert found.ranking.same == pytest.approx(np.ones(len(BUDGETS)))
    assert found.ranking.tau == pytest.approx(np.full(len(BUDGETS), 2 / 3))
    assert any(
        "ranking of the whole pools ties 1 pair of methods, so Kendall's tau is at most 0.67" in line
        for line in sentences(found)
    )


def test_a_file_keeps_pools(tmp_path: Path) -> None:
    again = RNG.uniform(size=(2, 24))
    again[0, 3] = np.nan
    pools = [tried("a", SPREAD, again=again), tried("b", SPREAD[::-1], failed=2)]
    write_scored_pools(pools, tmp_path / "pools.parquet")
    held = read_pool_file(tmp_path / "pools.parquet")
    assert json_text(content_of(judged(*pools))) == json_text(content_of(judged(*held)))
    assert held[0].again == pytest.approx(again, nan_ok=True)
    assert held[1].failed == 2
    table = pq.read_table(tmp_path / "pools.parquet")
    pq.write_table(table.drop(["report"]), tmp_path / "damaged.parquet")
    with pytest.raises(InputError, match=r"is damaged: .*report"):
        read_pool_file(tmp_path / "damaged.parquet")
    (tmp_path / "other.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_pool_file(tmp_path / "other.parquet")


def test_budgets_are_powers_of_two_half_and_all() -> None:
    assert budgets_of(None, 48) == [1, 2, 4, 8, 16, 24, 32, 48]
    assert budgets_of("1,all,4", 24) == [1, 4, 24]
    for wrong in ("0", "25", "x", "1,1"):
        with pytest.raises(InputError):
            budgets_of(wrong, 24)
