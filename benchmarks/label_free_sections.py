"""The sections of docs/label-free.md, one for each question: a title, then its blocks of Markdown."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from benchmarks.label_free import RECORDS
from benchmarks.label_free_reads import (
    Correlation,
    Encoders,
    Row,
    Study,
    above,
    beaten_by_untrained,
    chosen,
    costs,
    mean_of_methods,
    over_methods,
    within_method,
)
from contrasweep.tuning.methods.metrics import LABEL_FREE
from contrasweep.tuning.results.collapse import COLLAPSED_RANK, COLLAPSED_STD
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.tables.verdict_text import pipes

FIGURE: Final = RECORDS.parent / "images/label-free.png"


def _accuracy(study: Study) -> Iterator[str]:
    yield "Does a better score go with a higher accuracy?"
    yield (
        "Spearman's rho over the trials of all methods of a dataset, with its 95 % interval (bootstrap "
        "within methods). 1: a better score always goes with a higher accuracy; 0: it says nothing. "
        "Alignment and uniformity are better when they are smaller; their sign is turned."
    )
    found = {score: [over_methods(one, score, "accuracy") for one in study.encoders] for score in LABEL_FREE}
    rows = [[f"`val.{score}`", *map(_rho, own), above(own, 0.5)] for score, own in found.items()]
    yield pipes(["score", *_names(study.encoders), "above 0.5 everywhere?"], rows)
    yield f"![Each score against the hidden accuracy, by dataset](images/{FIGURE.name})"
    yield (
        "*Each dot is a trial; to the right is better. The line is the accuracy of the untrained encoder, "
        "the black bars are its scores (alignment and LiDAR depend on the views, so it has several). A "
        "trial that collapsed to an alignment of 0 is not on the logarithmic axis.*"
    )


def _within(study: Study) -> Iterator[str]:
    yield "And among the trials of one method?"
    yield "The same by method, with Fisher's interval (Bonett and Wright 2000). **Bold**: it is above 0."
    found = {score: [within_method(one, score) for one in study.pairs] for score in LABEL_FREE}
    rows = [
        [short(one.dataset), f"`{one.methods[0]}`", *(_marked(found[score][place]) for score in LABEL_FREE)]
        for place, one in enumerate(study.pairs)
    ]
    counts = [
        f"{sum(one.low > 0 for one in own)} above 0, {sum(one.high < 0 for one in own)} below"
        for own in found.values()
    ]
    yield pipes(["dataset", "method", *LABEL_FREE], [*rows, [f"of {len(rows)}", "", *counts]])


def _choice(study: Study) -> Iterator[str]:
    yield "What does it cost to choose by the score?"
    yield (
        "The best accuracy among the trials, and how many percentage points the trial with the best score "
        "has less, beside what a trial picked at random has less on average."
    )
    yield pipes(
        ["dataset", "method", "best, %", "untrained, %", "random", *LABEL_FREE],
        [
            _cost_row(one)
            for dataset in study.encoders
            for one in (*map(dataset.of, dataset.methods), dataset)
        ],
    )
    yield (
        "Over the pairs of dataset and method (p: Wilcoxon's signed-rank test that the score loses as much "
        "as the random pick, corrected by Holm for the five scores; pairs share datasets, so it is a hint):"
    )
    rows = [
        [
            f"`val.{score}`",
            points(cost.lost),
            points(cost.random),
            points(cost.worst),
            f"{cost.better} of {cost.pairs}",
            f"{cost.p:.2g}",
        ]
        for score, cost in costs(study.pairs).items()
    ]
    heads = ["chosen by", "loses, mean", "random loses", "loses at worst", "better than random in", "p"]
    yield pipes(heads, rows)


def _cost_row(one: Encoders) -> list[str]:
    methods = one.methods
    return [
        short(one.dataset),
        f"`{methods[0]}`" if len(methods) == 1 else "**all methods**",
        f"{100 * one.accuracy.max():.1f}",
        f"{100 * one.column('untrained_accuracy').mean():.1f}",
        points(chosen(one, LABEL_FREE[0]).random),
        *(points(chosen(one, score).lost) for score in LABEL_FREE),
    ]


def _untrained(study: Study) -> Iterator[str]:
    yield "Does the score see what training did?"
    yield (
        "The share of the trials that score worse than their encoder before training. By accuracy, training "
        "made that share worse; a score that agrees has about the same share."
    )
    rows = [
        [
            short(one.dataset),
            percent(float(np.mean(one.column("untrained_accuracy") > one.accuracy))),
            *(percent(beaten_by_untrained(one, score)) for score in LABEL_FREE),
        ]
        for one in study.encoders
    ]
    yield pipes(["dataset", "by accuracy", *(f"by {score}" for score in LABEL_FREE)], rows)


def _colour(study: Study) -> Iterator[str]:
    yield "On colour data: what is spread out, the digit or the colour?"
    yield (
        "Rho of the score with the colour MSE over all methods. The colour MSE is the error of reading the "
        "background's colour from the features, in squared 8-bit levels: above 0, a better score goes with "
        "*less* colour; below 0, with more. Beside it, the trial with the best score of all."
    )
    rows = []
    for one in study.coloured:
        best = one.rows[int(np.argmax(one.accuracy))]
        before = f"untrained: {100 * one.column('untrained_accuracy').mean():.1f} %, colour MSE "
        before += f"{one.column('untrained_colour_mse').mean():,.0f}"
        rows.append([short(one.dataset), "accuracy, the labels", "", *_picked(best)])
        rows += [
            [
                short(one.dataset),
                f"`val.{score}`",
                _rho(over_methods(one, score, "colour_mse")),
                *_picked(chosen(one, score).row),
            ]
            for score in LABEL_FREE
        ]
        rows.append([short(one.dataset), before, "", "", "", ""])
    heads = ["dataset", "chosen by", "rho with the colour MSE", "chosen", "accuracy, %", "colour MSE"]
    yield pipes(heads, rows)


def _picked(row: Row) -> list[str]:
    return [
        f"`{row['method']}`, trial {row['trial']}",
        f"{100 * row['accuracy']:.1f}",
        f"{row['colour_mse']:,.0f}",
    ]


def _views(study: Study) -> Iterator[str]:
    yield "How much of the score is the views?"
    yield (
        "Rho of the score with the smallest crop, `views.min_crop`, which every space searches. Alignment "
        "and LiDAR compare random views of an image, so they measure the crops too; the accuracy's own rho "
        "stands in the last line."
    )
    rows = [
        [f"`val.{score}`", *(_rho(over_methods(one, score, "min_crop")) for one in study.encoders)]
        for score in LABEL_FREE
    ]
    own = [_rho(over_methods(one, "accuracy", "min_crop")) for one in study.encoders]
    yield pipes(["", *_names(study.encoders)], [*rows, ["accuracy", *own]])
    yield (
        "One encoder, many views: the untrained encoder of a dataset is the same in all trials, yet its "
        "scores differ by the crops of the trial alone, from the smallest to the largest:"
    )
    ranges = [
        [f"`val.{score}`", *(_span(one.column(f"untrained_{score}")) for one in study.encoders)]
        for score in LABEL_FREE
    ]
    yield pipes(["score", *map(short, (one.dataset for one in study.encoders))], ranges)
    yield (
        "Not among the questions, asked after the runs: rho of score and accuracy with the crop held fixed "
        "(partial rank correlation). It is what a search without `views.min_crop` might see."
    )
    fixed = [
        [
            f"`val.{score}`",
            *(_rho(over_methods(one, score, "accuracy", "min_crop")) for one in study.encoders),
        ]
        for score in LABEL_FREE
    ]
    yield pipes(["score", *_names(study.encoders)], fixed)
    yield from _rates(study)


def _rates(study: Study) -> Iterator[str]:
    yield (
        "Nor was this: the learning rate changes both. Rho with the learning rate within each method, as a "
        "mean over the methods of a dataset. Where it has one sign for the accuracy and the other for a "
        "score, a search by the score goes to the wrong end of the rates."
    )
    columns = (("accuracy", "accuracy"), *((f"`val.{score}`", score) for score in LABEL_FREE))
    rows = [
        [name, *(f"{mean_of_methods(one, column, 'rate'):z.2f}" for one in study.encoders)]
        for name, column in columns
    ]
    yield pipes(["rho with the learning rate", *_names(study.encoders)], rows)


def _failures(study: Study) -> Iterator[str]:
    yield "Failures and collapses"
    yield "Trials that failed have no scores, so no score can choose them."
    failed = [row for row in study.rows if row["status"] != "completed"]
    yield pipes(
        ["dataset", "method", "trial", "learning rate", "why"],
        [
            [short(row["dataset"]), f"`{row['method']}`", str(row["trial"]), _rate(row), _reason(row)]
            for row in failed
        ],
    )
    yield (
        f"Collapsed, as `show` calls it (`val.feature_std` below {COLLAPSED_STD} or `val.rankme` below "
        f"{COLLAPSED_RANK:g} after the last epoch). Such trials are part of all figures above:"
    )
    rows = [
        [
            short(one.dataset),
            f"`{one.methods[0]}`",
            f"{one.collapsed.sum()} of {len(one.rows)}",
            _range(one.accuracy[one.collapsed]),
            _range(one.accuracy[~one.collapsed]),
        ]
        for one in study.pairs
        if one.collapsed.any()
    ]
    heads = ["dataset", "method", "collapsed", "their accuracy, %", "accuracy of the others, %"]
    yield pipes(heads, rows) if rows else "None."
    yield (
        "Not among the questions, asked after the runs: trials whose accuracy fell below half of that of the "
        "untrained encoder, and how many of them are called collapsed:"
    )
    yield pipes(
        ["dataset", "lost more than half", "called collapsed", "RankMe of them, median", "of the others"],
        [
            [
                short(one.dataset),
                f"{one.ruined.sum()} of {len(one.rows)}",
                str((one.ruined & one.collapsed).sum()),
                _median(one.column("rankme")[one.ruined]),
                _median(one.column("rankme")[~one.ruined]),
            ]
            for one in study.encoders
        ],
    )
    yield "Question 1 without the collapsed trials:"
    kept = [one.without(one.collapsed) for one in study.encoders]
    yield pipes(
        ["score", *_names(kept)],
        [
            [f"`val.{score}`", *(_rho(over_methods(one, score, "accuracy")) for one in kept)]
            for score in LABEL_FREE
        ],
    )


def _rate(row: Row) -> str:
    return f"{json.loads(row['values'])['optimizer.lr']:.3g}"


def _reason(row: Row) -> str:
    """Return the error without the configuration, which the records have."""
    return str(row["error"]).partition(f": {row['method']} with")[0]


def _rho(found: Correlation) -> str:
    rho, low, high = (f"{value:z.2f}" for value in (found.rho, found.low, found.high))
    return f"{rho} ({low} to {high})"


def _marked(found: Correlation) -> str:
    return f"**{_rho(found)}**" if found.low > 0 else _rho(found)


def points(share: float) -> str:
    return f"{100 * share:.1f}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _median(values: Floats) -> str:
    return number_text(float(np.median(values))) if len(values) else "-"


def _span(values: Floats) -> str:
    low, high = number_text(values.min()), number_text(values.max())
    return low if low == high else f"{low} to {high}"


def _range(shares: Floats) -> str:
    return f"{100 * shares.min():.1f} to {100 * shares.max():.1f}" if len(shares) else "-"


def short(dataset: str) -> str:
    return dataset.partition(":")[0]


def _names(encoders: Sequence[Encoders]) -> list[str]:
    return [f"{short(one.dataset)} (n = {len(one.rows)})" for one in encoders]


SECTIONS: Final = (_accuracy, _within, _choice, _untrained, _colour, _views, _failures)
"""In the order of the questions."""
