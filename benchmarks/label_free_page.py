"""Render docs/label-free.md and its figure from the kept records of `benchmarks.label_free`."""

from collections.abc import Iterator
from typing import Final

from benchmarks.label_free import HELD_OUT, RECORDS, SEARCHES
from benchmarks.label_free_advice import advice
from benchmarks.label_free_reads import Study, chance_share, noise, read_study
from benchmarks.label_free_sections import FIGURE, SECTIONS, percent, points, short

PAGE: Final = RECORDS.with_suffix(".md")


def page(study: Study) -> str:
    """Return the page as Markdown."""
    return "\n\n".join([*_head(study), *advice(study), *_sections(study)]) + "\n"


def _head(study: Study) -> Iterator[str]:
    yield "# Scores without labels: do they find good encoders?"
    yield (
        "[Scores that need no label](without-labels.md) can choose among trials. This study hides the "
        "labels, chooses by such a score, and then looks at the accuracy that was hidden. `python -m "
        "benchmarks.label_free page` renders this page from [the records](label-free.parquet), a row for "
        "each trial: no number here was typed in."
    )
    trials = len(study.rows)
    yield (
        f"{trials} trials: the search space of each method, sampled at random (trial 0 has the defaults), "
        "one seed a trial, none stopped early. Scores are those after the last epoch, on the validation "
        f"split, {percent(HELD_OUT)} of the training images. The hidden accuracy is that of the usual "
        "probe on the same split; the test split was never read."
    )
    lines = []
    for search in SEARCHES:
        setup = study.setups[search.dataset]["setup"]
        lines.append(
            f"- **{search.dataset}**: {', '.join(f'`{name}`' for name in search.methods)}, "
            f"{search.trials} trials each; {setup}."
        )
    yield "\n".join(lines)
    yield (
        "The questions and the statistics below were written down before the first run, in the docstring of "
        "`benchmarks/label_free.py`. `python -m benchmarks.label_free run` runs all of it again, one trial "
        f"at a time; it took {_minutes(study)} minutes of a machine of two cores that was busy "
        "with other work."
    )


def _minutes(study: Study) -> int:
    seconds: float = sum(row["seconds"] for row in study.rows)
    return round(seconds / 60)


def _sections(study: Study) -> Iterator[str]:
    for number, section in enumerate(SECTIONS, start=1):
        title, *blocks = section(study)
        yield f"## {number}. {title}"
        yield from blocks
    yield "## What this study cannot say"
    yield _limits(study)


def _limits(study: Study) -> str:
    chances = [chance_share(one, study.setups[one.dataset]["held_out"]) for one in study.pairs]
    halves = [
        f"{short(one.dataset)} {points(noise(one, study.setups[one.dataset]['held_out']))}"
        for one in study.encoders
    ]
    return "\n".join(
        [
            "- **Accuracies are noisy.** The best accuracy of a dataset is known to so many points: "
            f"{', '.join(halves)}. In {sum(share > 0.5 for share in chances)} of {len(chances)} pairs of "
            "dataset and method, the choice of the held-out images could explain more than half of the "
            "variance between trials. There a low rho says little, and a loss of a point is a tie.",
            "- **One seed, one split.** All trials of a dataset share the split and the untrained encoder.",
            "- **Small and short.** Networks, images and runs are small; the trial with the best score was "
            "not trained again on fresh seeds. On large images and long runs the scores may do better or "
            "worse: their authors report that RankMe and LiDAR choose well on ImageNet.",
            "- **Random configurations.** A sweep that maximises a score looks for its weak spots; a random "
            "one does not. What `--metric val.rankme` finds may be worse than what it picks here.",
        ]
    )


def write_page() -> None:
    """Render the page and its figure."""
    from benchmarks.label_free_figure import draw

    study = read_study(RECORDS)
    PAGE.write_text(page(study), encoding="utf-8")
    draw(study.encoders, FIGURE)


if __name__ == "__main__":
    write_page()
