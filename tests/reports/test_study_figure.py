"""The figure of `contrasweep show --plot`: colours, ticks and counts."""

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from contrasweep.tuning.reports import matplotlib_figures
from contrasweep.tuning.reports.matplotlib_figures import CUT, WHOLE, draw_study
from contrasweep.tuning.reports.style import BREAKS
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


def test_the_lines_are_those_of_the_scores_on_their_axes(write_study, store, drawn) -> None:
    runs = [scored([0.5, 0.6]), scored([0.5, 0.55], "stopped"), scored([0.5, 0.8]), scored([0.5, 0.7])]
    control = {0: {"val.ridge_accuracy": 0.5, "val.accuracy": 0.4}}
    write_study([replace(run, curve={**run.curve, **control}) for run in runs])
    draw_study(store, "demo", Path("any.png"))
    left, right = drawn[0].axes
    assert [line.get_ydata()[0] for line in (left.lines[-1], right.lines[-1])] == [0.5, 0.4], "the controls"
    assert [line.get_linewidth() for line in left.lines[:4]] == [
        look["linewidth"] for look in (WHOLE, CUT, WHOLE, WHOLE)
    ]
    labels = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert labels == ["cosine", "not completed", "untrained encoder"]
    points, best = right.lines[:2]
    assert (list(points.get_xdata()), list(points.get_ydata())) == ([0, 2, 3], [0.6, 0.8, 0.7])
    assert (list(best.get_xdata()), list(best.get_ydata())) == ([0, 2, 3], [0.6, 0.8, 0.8])
    assert best.get_drawstyle() == "steps-post"


def test_trials_that_break_a_condition_have_open_marks(write_study, store, drawn) -> None:
    keep = {"keep": [{"metric": "val.colour_mse", "comparison": ">=", "bound": 200.0}]}
    write_study([scored([0.5, 0.9], colour=10.0), scored([0.5, 0.8], colour=300.0)], search=keep)
    draw_study(store, "demo", Path("any.png"))
    right = drawn[0].axes[1]
    kept, broken = right.lines[:2]
    assert (list(kept.get_xdata()), list(broken.get_xdata())) == ([1], [0])
    assert (broken.get_markerfacecolor(), broken.get_label()) == ("none", BREAKS)


def test_a_long_title_is_whole_and_no_formula(tmp_path: Path) -> None:
    figure, folder = Figure(figsize=(9, 3.4)), "/$home/a_$" + "folder-of-images/" * 8
    title = f"infonce on image-folder:path={folder},size=16: 8 trials"
    matplotlib_figures._save(figure, title, tmp_path / "any.png")
    (shown,) = figure.texts
    assert "".join(shown.get_text().split()) == title.replace(" ", "")
    assert not shown.get_parse_math()
    across = shown.get_window_extent()
    assert 0 <= across.x0 < across.x1 <= figure.bbox.width
