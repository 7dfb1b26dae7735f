"""The sections of docs/label-free.md, one for each question: a title, then its blocks of Markdown."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from benchmarks.label_free.reads import (
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
from benchmarks.label_free.searches import RECORDS
from contrasweep.tuning.methods.metrics import LABEL_FREE
from contrasweep.tuning.results.collapse import COLLAPSED_RANK, COLLAPSED_STD
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.tables.verdict_text import pipes

FIGURE: Final = RECORDS.parent / "images/label-free.png"


def _accuracy(study: Study) -> Iterator[str]:
    yield "Does a better score go with a higher accuracy?"
    yield (
        "The table shows Spearman's rho of score and accuracy over the trials of all methods of a dataset, "
        "with its 95 % interval (bootstrap within methods). At 1, a better score always goes with a higher "
        "accuracy; at 0, the score says nothing. Smaller alignment and uniformity are better, so their sign "
        "is reversed."
    )
    found = {score: [over_methods(one, score, "accuracy") for one in study.encoders] for score in LABEL_FREE}
    rows = [[f"`val.{score}`", *map(_rho, own), above(own, 0.5)] for score, own in found.items()]
    yield pipes(["score", *_names(study.encoders), "above 0.5 everywhere?"], rows)
    yield f"![Each score against the hidden accuracy, by dataset](images/{FIGURE.name})"
    yield (
        "*Each dot is a trial; scores are better to the right. The line is the accuracy of the untrained "
        "encoder. The black bars are its scores; alignment and LiDAR depend on the views, so there are "
        "several. A trial that collapsed to an alignment of 0 is not on the logarithmic axis.*"
    )


def _within(study: Study) -> Iterator[str]:
    yield "Is this also true within one method?"
    yield (
        "The table shows rho for each method, with Fisher's interval (Bonett and Wright 2000). **Bold**: the "
        "whole interval is above 0."
    )
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
        "The table shows the best accuracy among the trials, and how many percentage points the trial with "
        "the best score has less. The column `random` is the mean of this loss over all trials."
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
        "The next table summarises the pairs of dataset and method. p compares the losses of the score and "
        "of a random trial by Wilcoxon's signed-rank test, corrected by Holm for the five scores. It is only "
        "a hint, because pairs share datasets."
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
    heads = ["chosen by", "mean loss", "mean loss, random", "largest loss", "better than random in", "p"]
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
        "The table shows the share of the trials that are worse than their encoder before training, by "
        "accuracy and by score. A score that agrees with the accuracy has about the same share."
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
    yield "On colour data: does a better score go with more colour?"
    yield (
        "The colour MSE is the error of predicting the background's colour from the features, in squared "
        "8-bit levels. The table shows its rho with the score over all methods: above 0, a better score goes "
        "with *less* colour; below 0, with more. The last columns show the trial with the best score of all."
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
    yield "How much does the score depend on the views?"
    yield (
        "The table shows the rho of the score with the smallest crop, `views.min_crop`, which every space "
        "searches. Alignment and LiDAR compare random views of an image, so they also measure the crops. The "
        "last line shows the rho of the accuracy."
    )
    rows = [
        [f"`val.{score}`", *(_rho(over_methods(one, score, "min_crop")) for one in study.encoders)]
        for score in LABEL_FREE
    ]
    own = [_rho(over_methods(one, "accuracy", "min_crop")) for one in study.encoders]
    yield pipes(["", *_names(study.encoders)], [*rows, ["accuracy", *own]])
    yield (
        "The untrained encoder of a dataset is the same in all trials. Only the crops of the trials change "
        "its scores, from the smallest to the largest:"
    )
    ranges = [
        [f"`val.{score}`", *(_span(one.column(f"untrained_{score}")) for one in study.encoders)]
        for score in LABEL_FREE
    ]
    yield pipes(["score", *map(short, (one.dataset for one in study.encoders))], ranges)
    yield (
        "We asked for the next two tables only after the runs. The first shows the rho of score and accuracy "
        "with the crop held fixed (partial rank correlation). A search without `views.min_crop` might see it."
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
        "The learning rate changes both score and accuracy. The second table shows their rho with the "
        "learning rate within each method, as a mean over the methods of a dataset. If a score and the "
        "accuracy have opposite signs, a search by the score prefers the wrong learning rates."
    )
    columns = (("accuracy", "accuracy"), *((f"`val.{score}`", score) for score in LABEL_FREE))
    rows = [
        [name, *(f"{mean_of_methods(one, column, 'rate'):z.2f}" for one in study.encoders)]
        for name, column in columns
    ]
    yield pipes(["rho with the learning rate", *_names(study.encoders)], rows)


def _failures(study: Study) -> Iterator[str]:
    yield "Failures and collapses"
    yield "Failed trials have no scores, so no score can choose them."
    failed = [row for row in study.rows if row["status"] != "completed"]
    yield pipes(
        ["dataset", "method", "trial", "learning rate", "why"],
        [
            [short(row["dataset"]), f"`{row['method']}`", str(row["trial"]), _rate(row), _reason(row)]
            for row in failed
        ],
    )
    yield (
        f"`show` calls a trial collapsed if `val.feature_std` is below {COLLAPSED_STD} or `val.rankme` below "
        f"{COLLAPSED_RANK:g} after the last epoch. All figures above include such trials:"
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
        "We asked for the next table only after the runs. It counts the trials whose accuracy fell below "
        "half of the untrained encoder's, and how many of these are called collapsed:"
    )
    yield pipes(
        ["dataset", "lost more than half", "called collapsed", "their median RankMe", "that of the others"],
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
    yield "The table of question 1, without the collapsed trials:"
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
