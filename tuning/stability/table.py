"""The result as rows of tables, as plain values for JSON, and in sentences."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from contrasweep.names import counted
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.stability.analysis import Chances, Found, Series, Stability
from contrasweep.tuning.stability.claims import names_of
from contrasweep.tuning.stability.variance import PARTS
from contrasweep.tuning.statistics import Z

NOT_BY: Final = "not by {last}"
NOT_LOOKED_AT: Final = "not computed"
STABLE_FROM: Final = "stable from"
CLAIMS: Final = "Probability that a claim holds, by number of trials, %"
INTERVALS: Final = "95 % interval of this probability, %"
ON_OTHER_SEEDS: Final = "Probability on other seeds (95 % interval), %"
SCORES: Final = "Mean score of the selected configuration"
DEVIATIONS: Final = "Standard deviation of this score, by source"
RANKING: Final = "Agreement with the ranking of the whole pools"
"""The titles of the tables, wherever they are shown."""
FALSE_RATE: Final = (
    "Where two methods are equal, the claim or its opposite is stable by chance in 5 to 13 % of pools, and "
    "from a third of the pool or fewer trials in at most 3.5 %."
)
"""How often a claim without truth is stable: docs/stability.md has how this was measured."""
SMALL_POOL: Final = 24
"""Pools of fewer configurations are warned of."""


def claim_rows(found: Stability) -> list[dict[str, str]]:
    """Return a row for each claim: the chance that it holds at each budget, and from where it is stable."""
    return [
        {
            "claim": one.claim.text,
            **_by_budget(found, [percent(chance) for chance in one.here.above.value]),
            STABLE_FROM: _stable_text(one.here, found),
        }
        for one in found.claims
    ]


def interval_rows(found: Stability) -> list[dict[str, str]]:
    """Return the intervals of the same chances, at the budgets that have some; nothing without these."""
    sure = [place for place, budget in enumerate(found.budgets) if budget <= found.sure]
    if not sure:
        return []
    return [
        {
            "claim": one.claim.text,
            **{str(found.budgets[place]): _interval(one.here.above, place) for place in sure},
        }
        for one in found.claims
    ]


def other_seed_rows(found: Stability) -> list[dict[str, str]]:
    """Return the same of each claim on other seeds, with its intervals; nothing without other seeds."""
    known = [(one.claim.text, one.elsewhere) for one in found.claims if one.elsewhere is not None]
    return [
        {
            "claim": text,
            **_by_budget(found, [_with_interval(there.above, place) for place in range(len(found.budgets))]),
            STABLE_FROM: _stable_text(there, found),
        }
        for text, there in known
    ]


def score_rows(found: Stability) -> list[dict[str, str]]:
    """Return a row for each method: its found score by budget, and where it beats the untrained encoder."""
    return [
        {
            "method": name_of(one, found),
            "untrained": number_text(one.study.untrained),
            **_by_budget(found, [number_text(score) for score in one.score.value]),
            "beats untrained from": _beats_text(one, found),
        }
        for one in found.found
    ]


def variance_rows(found: Stability) -> list[dict[str, str]]:
    """Return for each method and budget the deviations from search, seed and rest; nothing without seeds.

    The luck of the first seed is a difference of means.
    """
    rows = []
    for one in found.found:
        if one.parts is None or one.search_share is None or one.luck is None:
            continue
        for place in np.flatnonzero(np.isfinite(one.parts).all(axis=1)).tolist():
            deviations = [number_text(float(value)) for value in np.sqrt(one.parts[place])]
            rows.append(
                {
                    "method": name_of(one, found),
                    "trials": str(found.budgets[place]),
                    **dict(zip(PARTS, deviations, strict=True)),
                    "search, % of the variance": _with_interval(one.search_share, place),
                    "luck of the first seed": f"{one.luck.value[place]:+.4f}",
                }
            )
    return rows


def ranking_rows(found: Stability) -> list[dict[str, str]]:
    """Return a row for each budget: how rankings agree with that of the whole pools; nothing for two."""
    tau = found.ranking
    if tau is None:
        return []
    return [
        {
            "trials": str(budget),
            "Kendall's tau": f"{tau.tau[place]:.2f}",
            "95 % of searches": f"{tau.low[place]:.2f} to {tau.high[place]:.2f}",
            "same ranking": percent(tau.same[place]),
        }
        for place, budget in enumerate(found.budgets)
    ]


def sentences(found: Stability) -> list[str]:
    """Return what a reader should know beside the numbers: the pools, what is paired, what is optimistic."""
    first = found.found[0].study
    sizes = sorted({len(one.study) for one in found.found})
    told = [
        f"Pools of {' to '.join(map(str, sizes))} configurations on {first.dataset}, without the defaults. A "
        "search of n trials is a random subset of n configurations. It selects the one with the highest "
        f"{first.metric}; {first.report_metric} of the selected configurations is compared. Probabilities "
        "are exact, over all subsets."
    ]
    if found.paired:
        told.append(
            f"The studies are paired: they agree trial by trial in {', '.join(found.common)}, and both "
            "methods of a claim draw the same trials."
        )
    else:
        told.append("The studies are not paired: each method draws trials of its own.")
    if not first.is_halved:
        told.append(
            "The score that selects is also the score that is compared, on the same images, so it is "
            "optimistic; --set validation.halves=true gives separate scores."
        )
    told.append(
        "Stable from: the smallest number of trials at which the probability is 95 % or more, there and at "
        f"all larger numbers in the table. It is at most {found.half} (half of the pool), because larger "
        f"subsets are too similar. {FALSE_RATE}"
    )
    told.append(
        f"Intervals are given up to {counted(found.sure, 'trial')}, a sixth of the pool. For more trials, a "
        "few configurations decide, and intervals would cover the truth too rarely."
    )
    if any(one.elsewhere is not None for one in found.claims):
        told.append(
            "On other seeds: configurations are selected on the first seed, and their scores on the seeds of "
            "--again are compared. If a claim is stable only on the first seed, its result depends on that "
            "seed."
        )
    if any(one.luck is not None for one in found.found):
        told.append(
            "Seed: what a seed adds to all configurations. Luck of the first seed: how much higher the "
            "selected configurations score on the seed that selects than on the others, less what it adds to "
            "all."
        )
    if found.ranking is not None:
        told.append(
            f"Kendall's tau is the mean over {counted(found.ranking.subsets, 'random subset')} of these "
            f"pools, which makes it uncertain by ±{Z * float(found.ranking.error.max()):.2g} at most. With "
            "other pools it may be very different."
        )
    if found.ranking is not None and found.ranking.tied:
        told.append(
            f"The ranking of the whole pools ties {counted(found.ranking.tied, 'pair')} of methods, so "
            f"Kendall's tau is at most {found.ranking.most:.2f}."
        )
    for one in (one.study for one in found.found):
        if one.failed:
            failed = counted(one.failed, "failed trial")
            told.append(f"{one.study}: {failed} counted with the scores of the worst completed one.")
        if one.left_out:
            told.append(f"{one.study}: without {counted(one.left_out, 'trial')} that had not ended.")
    return told


def warnings_of(found: Stability) -> list[str]:
    """Return why a result should be read with care."""
    told, studies = [], [one.study for one in found.found]
    size = min(map(len, studies))
    if size < SMALL_POOL:
        told.append(
            f"the smallest pool has {size} configurations: another one may say something else; the "
            "intervals, which -o FILE and --json have, tell how much"
        )
    for one in studies:
        if one.learned_by:
            told.append(
                f"in {one.study}, {one.learned_by} may have proposed trials from the scores of others: a "
                "random subset of such trials is better than a random search; --sampler random or "
                "`contrasweep pool` gives random trials"
            )
    if len({one.epochs for one in studies}) > 1:
        epochs = ", ".join(f"{one.study} {one.epochs or 'unknown'}" for one in studies)
        told.append(f"the studies differ in the epochs of a trial: {epochs}")
    return told


def content_of(found: Stability) -> dict[str, Any]:
    """Return everything as plain values, for JSON."""
    return {
        "budgets": found.budgets.tolist(),
        "half": found.half,
        "largest_with_interval": found.sure,
        "paired": found.paired,
        "common": list(found.common),
        "claims": [
            {
                "claim": one.claim.text,
                **_chances_content(one.here),
                "on_other_seeds": None if one.elsewhere is None else _chances_content(one.elsewhere),
            }
            for one in found.claims
        ],
        "studies": [_found_content(one) for one in found.found],
        "ranking": None if found.ranking is None else _ranking_content(found),
    }


def name_of(one: Found, found: Stability) -> str:
    """Return what a study is called in tables: its method where no other study has it."""
    studies = [(other.study.study, other.study.method) for other in found.found]
    return names_of(studies)[studies.index((one.study.study, one.study.method))]


def percent(chance: float) -> str:
    """Return a chance in percent: 95, and 99.7 where rounding would say 100."""
    shown = 100 * float(chance)
    return f"{shown:.0f}" if abs(shown - round(shown)) < 0.05 or 1 < shown < 99 else f"{shown:.1f}"


def _stable_text(chances: Chances, found: Stability) -> str:
    if chances.stable_from is not None:
        return str(chances.stable_from)
    if chances.contrary_from is not None:
        return f"opposite from {chances.contrary_from}"
    return _not_by(found)


def _beats_text(one: Found, found: Stability) -> str:
    if one.beats_untrained is None:
        return "unknown"
    return _not_by(found) if one.beats_from is None else str(one.beats_from)


def _not_by(found: Stability) -> str:
    last = found.last_looked_at
    return NOT_LOOKED_AT if last is None else NOT_BY.format(last=last)


def _by_budget(found: Stability, cells: Sequence[str]) -> dict[str, str]:
    return {str(budget): cell for budget, cell in zip(found.budgets, cells, strict=True)}


def _interval(series: Series, place: int) -> str:
    return f"{percent(series.low[place])} to {percent(series.high[place])}"


def _with_interval(series: Series, place: int) -> str:
    value = percent(series.value[place])
    return f"{value} ({_interval(series, place)})" if np.isfinite(series.low[place]) else value


def _chances_content(chances: Chances) -> dict[str, Any]:
    return {
        "above": _series(chances.above),
        "below": _series(chances.below),
        "stable_from": chances.stable_from,
        "opposite_stable_from": chances.contrary_from,
    }


def _found_content(one: Found) -> dict[str, Any]:
    study = one.study
    return {
        "study": study.study,
        "method": study.method,
        "dataset": study.dataset,
        "metric": study.metric,
        "report_metric": study.report_metric,
        "configurations": len(study),
        "failed": study.failed,
        "left_out": study.left_out,
        "untrained": study.untrained,
        "score": _series(one.score),
        "optimism": _series(one.optimism),
        "beats_untrained": _series(one.beats_untrained),
        "beats_untrained_from": one.beats_from,
        "variance": None if one.parts is None else _variance(one.parts),
        "search_share": _series(one.search_share),
        "luck_of_first_seed": _series(one.luck),
    }


def _variance(parts: Any) -> dict[str, list[float]]:
    return {name: _numbers(column) for name, column in zip(PARTS, parts.T, strict=True)}


def _ranking_content(found: Stability) -> dict[str, Any]:
    tau = found.ranking
    assert tau is not None, "asked by the caller"
    named = {"tau": tau.tau, "error": tau.error, "low": tau.low, "high": tau.high, "same": tau.same}
    facts = {"subsets": tau.subsets, "tied_pairs": tau.tied, "largest_possible_tau": tau.most}
    return {**{name: _numbers(values) for name, values in named.items()}, **facts}


def _series(series: Series | None) -> dict[str, list[float]] | None:
    if series is None:
        return None
    return {name: _numbers(getattr(series, name)) for name in ("value", "low", "high")}


def _numbers(values: Sequence[float] | Any) -> list[float]:
    return [float(value) for value in values]
