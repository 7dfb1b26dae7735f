"""The figures of the progress and of the learning curves: which score each mark and each line shows."""

from dataclasses import replace

import plotly.graph_objects as go
import pytest

from contrasweep.tuning.reports.figures import draw_curves, draw_progress
from contrasweep.tuning.results.study import StudyData, read_study
from tests.studies import Run, scored


def exact(cheap: float, final: float, control: float = 0.4) -> Run:
    """Return a completed run whose exact final scores differ from those of the fast probe."""
    run = scored([0.5, cheap])
    curve = {**run.curve, 0: {"val.ridge_accuracy": 0.5, "val.accuracy": control}}
    return replace(run, curve=curve, final={"val.ridge_accuracy": cheap, "val.accuracy": final})


def lines_of(figure: go.Figure) -> dict[str, tuple[object, object]]:
    """Return the places across and up of each trace by its name; None where it is there for the legend."""
    return {trace.name: (trace.x, trace.y) for trace in figure.data}


def written(write_study, store) -> StudyData:
    write_study([exact(0.60, 0.7), exact(0.65, 0.9), scored([0.5, 0.55], "stopped"), exact(0.62, 0.8)])
    return read_study(store, "demo")


def test_completed_trials_have_their_final_score_and_others_their_last_cheap_one(write_study, store) -> None:
    data = written(write_study, store)
    figure = draw_progress(data, data.trials)
    drawn = lines_of(figure)
    assert drawn["completed: val.accuracy"] == ((0, 1, 3), (0.7, 0.9, 0.8))
    assert drawn["stopped: last val.ridge_accuracy"] == ((2,), (0.55,))
    assert drawn["best final val.accuracy"] == ((0, 1, 3), (0.7, 0.9, 0.9))
    shapes = {trace.name: trace.line.shape for trace in figure.data}
    assert shapes["best final val.accuracy"] == "hv", "a score holds from its own trial on"
    hover = {trace.name: trace.hovertemplate for trace in figure.data}
    assert "val.ridge_accuracy %{y" in hover["stopped: last val.ridge_accuracy"]
    # The mean of three controls at 0.4, and the stopped trial's at 0.5.
    assert [shape.y0 for shape in figure.layout.shapes] == [pytest.approx(0.425)]
    assert "untrained encoder (0.425)" in drawn


def test_curves_stand_beside_the_cheap_score_of_the_untrained_encoder(write_study, store) -> None:
    data = written(write_study, store)
    figure = draw_curves(data, data.trials)
    assert figure.layout.yaxis.title.text == "val.ridge_accuracy"
    assert [shape.y0 for shape in figure.layout.shapes] == [0.5]
    assert {"completed (3)", "stopped (1)", "selected: trial 1"} <= set(lines_of(figure))
