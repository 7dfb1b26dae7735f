"""The figure of `contrasweep show --plot`: colours, ticks and counts."""

from pathlib import Path

import pytest

from contrasweep.tuning.reports import matplotlib_figures
from contrasweep.tuning.reports.matplotlib_figures import draw_study
from tests.studies import Run, scored


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch):
    """The figures that are drawn, in place of files."""
    kept = []

    def keep(figure, title: str, path: Path) -> None:
        figure.suptitle(title)
        figure.canvas.draw()
        kept.append(figure)

    monkeypatch.setattr(matplotlib_figures, "_save", keep)
    return kept


def colours_of(figure) -> dict[str, str]:
    """Return the colour of each entry of the legend."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    return {label: handle.get_color() for label, handle in zip(labels, handles, strict=True)}


def with_choices(count: int) -> dict[str, object]:
    names = [f"choice-{number}" for number in range(count)]
    return {"kernel": {"choice": names, "default": names[0]}}


@pytest.mark.parametrize("count", [3, 12])
def test_no_two_values_of_a_choice_have_one_colour(write_study, store, drawn, count: int) -> None:
    runs = [scored(values={"kernel": f"choice-{number}"}) for number in range(count)]
    write_study(runs, space=with_choices(count))
    draw_study(store, "demo", Path("any.png"))
    colours = colours_of(drawn[0])
    assert len(set(colours.values())) == len(colours)
    assert ("choice-1" in colours) == (count == 3)


def test_a_trial_without_the_choice_is_named(write_study, store, drawn) -> None:
    space = {
        "flip": {"choice": [True, False], "default": True},
        "kernel": {"choice": ["rbf", "cosine"], "default": "rbf", "when": {"flip": [True]}},
    }
    write_study([scored(values={"flip": True, "kernel": "rbf"}), scored(values={"flip": False})], space=space)
    draw_study(store, "demo", Path("any.png"))
    assert set(colours_of(drawn[0])) == {"rbf", "no kernel", "untrained encoder"}


def test_a_single_trial_has_whole_numbers_along_the_axes(write_study, store, drawn) -> None:
    write_study([scored([0.5, 0.7])])
    draw_study(store, "demo", Path("any.png"))
    ticks = drawn[0].axes[1].get_xticks()
    assert all(tick == round(tick) for tick in ticks)


def test_trials_without_a_curve_are_counted(write_study, store, drawn) -> None:
    write_study([scored(), Run(status="failed", error="lost")])
    draw_study(store, "demo", Path("any.png"))
    assert drawn[0].get_suptitle().endswith(": 2 trials")
