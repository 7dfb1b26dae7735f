"""The advice of docs/label-free.md: sentences in plain English, each with the check of the records for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.label_free.reads import (
    Study,
    beaten_by_untrained,
    chosen,
    costs,
    mean_of_methods,
    over_methods,
    within_method,
)
from benchmarks.label_free.sections import percent, points, short
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
        "What to do: label some images, even if only a few, and let a sweep choose by their accuracy. (We "
        "did not measure how few are enough.) Without any label, search one method by `val.rankme`, which "
        "agreed with the accuracy most often, and keep learning rates low. Before you use the encoder, look "
        "at which images it finds similar (`contrasweep embed`)."
    )


def borne_out(given: Iterator[Advice]) -> Iterator[str]:
    """Yield the sentences, all of which the records must bear out."""
    for one in given:
        if not one.holds:
            raise ValueError(f"the records of the study do not say: {one.text}")
        yield one.text


def _best(study: Study) -> Advice:
    found = costs(study.pairs)
    better = sorted((s for s in LABEL_FREE if found[s].lost < found[s].random), key=lambda s: found[s].lost)
    rest = [score for score in LABEL_FREE if score not in better]
    random, pairs = found[LABEL_FREE[0]].random, found[LABEL_FREE[0]].pairs
    losses = " and ".join(
        f"{points(found[s].lost)} by `val.{s}` (p = {found[s].p:.2g}, at worst {points(found[s].worst)})"
        for s in better
    )
    return Advice(
        f"**No score here replaces labels.** A trial picked at random loses {points(random)} points of "
        f"accuracy against the best of its method and dataset (mean over {pairs} such pairs). The trial with "
        f"the best score loses less, but not significantly: {losses}. By {_code(rest)}, it loses more than "
        "the random one.",
        bool(better)
        and bool(rest)
        and all(found[s].p > 0.05 and found[s].worst > 0.3 for s in better)
        and "rankme" in better,
    )


def _plain(study: Study) -> Advice:
    plain = next(one for one in study.encoders if one not in study.coloured)
    within = {method: within_method(plain.of(method), "rankme") for method in plain.methods}
    helped = [method for method, found in within.items() if found.low > 0]
    rest = [method for method in within if method not in helped]
    over = {score: over_methods(plain, score, "accuracy") for score in LABEL_FREE}
    return Advice(
        f"**On plain images, `val.rankme` helps.** On {plain.dataset}, its rank correlation with the "
        f"accuracy (rho) is the highest of the five scores ({over['rankme'].rho:.2f}). Within one method, "
        f"it is above 0 for {_code(helped)}, and unclear for {_code(rest)}.",
        max(over, key=lambda score: over[score].rho) == "rankme"
        and over["rankme"].low > 0
        and all(within[method].high > 0 for method in rest),
    )


def _colour(study: Study) -> Advice:
    found = {short(one.dataset): over_methods(one, "feature_std", "accuracy") for one in study.coloured}
    lower = {name: f"{rho.rho:.2f}" for name, rho in found.items() if rho.high < 0}
    picked = [(one, chosen(one, "feature_std")) for one in study.coloured]
    shares = "; ".join(
        f"{short(one.dataset)}: {percent(choice.row['accuracy'])}, the best {percent(one.accuracy.max())}"
        for one, choice in picked
    )
    return Advice(
        "**Spread-out features need not be good.** Something irrelevant can spread them out, such as the "
        "colour and the noise of a background, and ruined features can be spread out too. Label-free scores "
        "cannot detect this. A larger `val.feature_std` goes with a lower accuracy "
        f"(rho {' and '.join(lower.values())} on {' and '.join(lower)}), and the trial with the most "
        f"spread-out features has a low accuracy ({shares}).",
        bool(lower) and all(choice.lost > 0.2 for _, choice in picked),
    )


def _signs(study: Study) -> Advice:
    within = [(one, within_method(one, "rankme")) for one in study.pairs]
    along = [one for one, rho in within if rho.low > 0]
    others = [sum(within_method(one, s).low > 0 for one in study.pairs) for s in LABEL_FREE if s != "rankme"]
    against = [(one, rho) for one, rho in within if rho.high < 0]
    named = "; ".join(f"`{one.methods[0]}` on {short(one.dataset)}, {rho.rho:.2f}" for one, rho in against)
    rates = [
        (mean_of_methods(one, "accuracy", "rate"), mean_of_methods(one, "rankme", "rate"))
        for one, _ in against
    ]
    return Advice(
        "**Even `val.rankme` can mislead.** Within one method, its rho is above 0 in "
        f"{len(along)} of {len(within)} pairs, and below 0 in {len(against)} ({named}). In those "
        f"{len(against)}, a higher learning rate lowers the accuracy and raises the rank.",
        bool(against)
        and len(along) > max(len(against), *others)
        and all(low < -0.5 and up > 0.5 for low, up in rates),
    )


def _untrained(study: Study) -> Advice:
    worse = {
        short(one.dataset): float(np.mean(one.column("untrained_accuracy") > one.accuracy))
        for one in study.coloured
    }
    said = {
        score: [beaten_by_untrained(one, score) for one in study.coloured]
        for score in ("rankme", "uniformity", "feature_std")
    }
    told = "; ".join(f"`val.{score}` {_shares(shares)}" for score, shares in said.items())
    return Advice(
        f"**No score shows whether training helped.** On {' and '.join(worse)}, training made "
        f"{_shares(worse.values())} of the trials worse than the untrained encoder. According to the scores, "
        f"the shares are: {told}.",
        min(worse.values()) > 0.5 and all(min(shares) < 0.5 for shares in said.values()),
    )


def _views(study: Study) -> Advice:
    plain = next(one for one in study.encoders if one not in study.coloured)
    lidar, alignment = (over_methods(plain, score, "min_crop") for score in ("lidar", "alignment"))
    fixed = over_methods(plain, "lidar", "accuracy", "min_crop")
    free = over_methods(plain, "lidar", "accuracy")
    return Advice(
        f"**Fix the views for `val.alignment` and `val.lidar`.** On {plain.dataset}, they mostly measure how "
        f"small the crops are (rho {alignment.rho:.2f} and {lidar.rho:.2f}). With the crop held fixed, the "
        f"rho of LiDAR with the accuracy changes from {free.rho:.2f} to {fixed.rho:.2f}.",
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
        f"**The collapse warning is not enough.** {ruined} trials lost more than half of the untrained "
        f"encoder's accuracy. `show` calls only {called} of them collapsed; the others have a "
        f"`val.feature_std` of {spread:.2f} or more.",
        0 < called < ruined / 2 and spread > 0.2,
    )


def _shares(shares: Iterable[float]) -> str:
    return " and ".join(map(percent, shares))


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
