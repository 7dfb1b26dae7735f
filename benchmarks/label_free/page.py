"""Render docs/label-free.md and its figure from the kept records of `benchmarks.label_free`."""

from collections.abc import Iterator
from typing import Final

from benchmarks.label_free.advice import advice
from benchmarks.label_free.reads import Study, chance_share, noise, read_study
from benchmarks.label_free.searches import HELD_OUT, RECORDS, SEARCHES
from benchmarks.label_free.sections import FIGURE, SECTIONS, percent, points, short

PAGE: Final = RECORDS.with_suffix(".md")


def page(study: Study) -> str:
    """Return the page as Markdown."""
    return "\n\n".join([*_head(study), *advice(study), *_sections(study)]) + "\n"


def _head(study: Study) -> Iterator[str]:
    yield "# Scores without labels: do they find good encoders?"
    yield (
        "[Scores that need no label](without-labels.md) can select trials. This study hides the labels, "
        "selects a trial by such a score, and then looks at its hidden accuracy. `python -m "
        "benchmarks.label_free page` renders this page and all its numbers from [the "
        "records](label-free.parquet), which have a row for each trial."
    )
    trials = len(study.rows)
    yield (
        f"The study has {trials} trials. They sample the search space of each method at random (trial 0 has "
        "the defaults), with one seed a trial and without early stopping. Scores are computed after the last "
        f"epoch, on the validation split ({percent(HELD_OUT)} of the training images). The hidden accuracy "
        "is that of the usual probe on the same split. The test split was never read."
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
        "We wrote down the questions and the statistics before the first run, in the docstring of "
        "`benchmarks/label_free/__main__.py`. `python -m benchmarks.label_free run` repeats the study, one "
        f"trial at a time. It took {_minutes(study)} minutes on a machine with two cores that also did other "
        "work."
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
        f"{points(noise(one, study.setups[one.dataset]['held_out']))} points ({short(one.dataset)})"
        for one in study.encoders
    ]
    return "\n".join(
        [
            "- **Accuracies are noisy.** The best accuracy of a dataset is uncertain by "
            f"{', '.join(halves)}. In {sum(share > 0.5 for share in chances)} of {len(chances)} pairs of "
            "dataset and method, the choice of the held-out images could explain more than half of the "
            "variance between trials. There a low rho says little, and a loss of one point is no difference.",
            "- **One seed, one split.** All trials of a dataset share the split and the untrained encoder.",
            "- **Small and short.** Networks and images are small, and runs are short. The trial with the "
            "best score was not trained again on fresh seeds. On large images and in long runs, the scores "
            "may do better or worse: their authors report that RankMe and LiDAR choose well on ImageNet.",
            "- **Random configurations.** A sweep that maximises a score exploits its weaknesses; a random "
            "search does not. So `--metric val.rankme` may find a worse trial than the one it selects here.",
        ]
    )


def write_page() -> None:
    """Render the page and its figure."""
    from benchmarks.label_free.figure import draw

    study = read_study(RECORDS)
    PAGE.write_text(page(study), encoding="utf-8")
    draw(study.encoders, FIGURE)


if __name__ == "__main__":
    write_page()
