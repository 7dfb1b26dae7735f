"""The advice of docs/label-free.md: sentences in plain English, each with the check of the records for it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.label_free_reads import (
    Encoders,
    Study,
    beaten_by_untrained,
    chosen,
    costs,
    mean_of_methods,
    over_methods,
    within_method,
)
from contrasweep.tuning.methods.metrics import LABEL_FREE


@dataclass(frozen=True)
class Advice:
    """A sentence, and whether the records bear it out."""

    text: str
    holds: bool


def advice(study: Study) -> Iterator[str]:
    """Yield the blocks of the section on what to trust.

    Raises:
        ValueError: the records do not bear a sentence out; it has to be written anew.
    """
    yield "## What to trust"
    sentences = (_best, _plain, _colour, _signs, _untrained, _views, _alarm)
    yield "\n".join(f"- {text}" for text in borne_out(one(study) for one in sentences))
    yield (
        "What to do: label some images, even if they are few, and let a sweep choose by their accuracy (nothing "
        "here measures how few suffice). Without any label, search by `val.rankme`, hold the views fixed, keep "
        "learning rates low and few, and look at what the encoder finds alike (`contrasweep embed`) before "
        "using it."
    )


def borne_out(given: Iterator[Advice]) -> Iterator[str]:
    """Yield the sentences, all of which the records must bear out."""
    for one in given:
        if not one.holds:
            raise ValueError(f"the records of the study do not say: {one.text}")
        yield one.text


def _best(study: Study) -> Advice:
    found = costs(study.pairs)
    best = min(found, key=lambda score: found[score].lost)
    cost = found[best]
    return Advice(
        f"**No score here replaces labels.** `val.{best}` chooses best of the five: it loses "
        f"{_points(cost.lost)} points of accuracy on average against the best trial, over {cost.pairs} pairs of "
        f"dataset and method, where a trial picked at random loses {_points(cost.random)} "
        f"(p = {cost.p:.2g}). At worst it loses {_points(cost.worst)}.",
        cost.lost < cost.random and cost.worst > 0.1,
    )


def _plain(study: Study) -> Advice:
    plain = next(one for one in study.encoders if one not in study.coloured)
    within = {method: within_method(plain.of(method), "rankme") for method in plain.methods}
    helped = [method for method, found in within.items() if found.low > 0]
    rest = [method for method in within if method not in helped]
    over = {score: over_methods(plain, score, "accuracy") for score in LABEL_FREE}
    return Advice(
        f"**On plain images, `val.rankme` helps.** On {plain.dataset} its rho is the highest of the five "
        f"({over['rankme'].rho:.2f}); by method it is above 0 for {_code(helped)}, and unclear for {_code(rest)}.",
        max(over, key=lambda score: over[score].rho) == "rankme" and over["rankme"].low > 0 and bool(rest),
    )


def _colour(study: Study) -> Advice:
    found = {_short(one): over_methods(one, "feature_std", "accuracy") for one in study.coloured}
    lower = {name: f"{rho.rho:.2f}" for name, rho in found.items() if rho.high < 0}
    picked = [(one, chosen(one, "feature_std")) for one in study.coloured]
    shares = "; ".join(
        f"{_short(one)}: {100 * choice.row['accuracy']:.0f} %, the best {100 * one.accuracy.max():.0f} %"
        for one, choice in picked
    )
    return Advice(
        "**Spread out is not good.** Where images differ in more than their content, such as the colour and "
        "the noise of a background, an encoder may spread out by that: label-free scores cannot know. A larger "
        f"`val.feature_std` goes with a lower accuracy (rho {' and '.join(lower.values())} on "
        f"{' and '.join(lower)}), and the most spread-out trial is a bad one ({shares}).",
        bool(lower) and all(choice.lost > 0.2 for _, choice in picked),
    )


def _signs(study: Study) -> Advice:
    found = {_short(one): over_methods(one, "rankme", "accuracy") for one in study.encoders}
    against = [name for name, rho in found.items() if rho.high < 0]
    along = [name for name, rho in found.items() if rho.low > 0]
    worst = next(one for one in study.encoders if _short(one) in against)
    return Advice(
        f"**Even `val.rankme` can point the wrong way.** Its rho is above 0 on {' and '.join(along)}, and below 0 "
        f"on {' and '.join(against)} ({found[against[0]].rho:.2f}): there, high learning rates ruin the accuracy "
        f"(mean rho with the rate {mean_of_methods(worst, 'accuracy', 'rate'):.2f}) and raise the rank "
        f"({mean_of_methods(worst, 'rankme', 'rate'):.2f}).",
        bool(along)
        and bool(against)
        and mean_of_methods(worst, "accuracy", "rate") < -0.3
        and mean_of_methods(worst, "rankme", "rate") > 0.3,
    )


def _untrained(study: Study) -> Advice:
    worse = {
        _short(one): float(np.mean(one.column("untrained_accuracy") > one.accuracy)) for one in study.coloured
    }
    said = max(beaten_by_untrained(one, score) for one in study.coloured for score in _WHOLE)
    shares = " and ".join(f"{100 * share:.0f} % of the trials on {name}" for name, share in worse.items())
    return Advice(
        f"**No score says whether training helped.** Training made {shares} worse than the untrained encoder. "
        f"By `val.rankme`, `val.uniformity` and `val.feature_std` it is at most {100 * said:.0f} %.",
        min(worse.values()) > 0.5 and said < 0.5,
    )


_WHOLE = ("rankme", "uniformity", "feature_std")
"""The scores of whole images, which do not depend on the views."""


def _views(study: Study) -> Advice:
    plain = next(one for one in study.encoders if one not in study.coloured)
    lidar, alignment = (over_methods(plain, score, "min_crop") for score in ("lidar", "alignment"))
    fixed = over_methods(plain, "lidar", "accuracy", "min_crop")
    free = over_methods(plain, "lidar", "accuracy")
    return Advice(
        f"**Hold the views fixed for `val.alignment` and `val.lidar`.** On {plain.dataset} they say mostly how "
        f"small the crops are (rho {alignment.rho:.2f} and {lidar.rho:.2f}). With the crop held fixed, the rho of "
        f"LiDAR with the accuracy goes from {free.rho:.2f} to {fixed.rho:.2f}.",
        lidar.high < -0.5 and alignment.low > 0.5 and fixed.low > 0 and free.low < 0,
    )


def _alarm(study: Study) -> Advice:
    ruined = sum(int(one.ruined.sum()) for one in study.encoders)
    called = sum(int((one.ruined & one.collapsed).sum()) for one in study.encoders)
    spread = min(
        float(one.column("feature_std")[one.ruined & ~one.collapsed].min(initial=1.0))
        for one in study.encoders
    )
    return Advice(
        f"**The warning of a collapse is not enough.** {ruined} trials lost more than half of the untrained "
        f"encoder's accuracy. `show` calls {called} of them collapsed; the others have a `val.feature_std` of "
        f"{spread:.2f} or more.",
        0 < called < ruined / 2 and spread > 0.2,
    )


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _short(one: Encoders) -> str:
    return one.dataset.partition(":")[0]
