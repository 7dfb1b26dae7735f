"""The labels of parallel coordinates: none leaves the figure or touches another on a phone."""

import math
from itertools import pairwise

import numpy as np
import pytest

from contrasweep.tuning.reports import sections
from contrasweep.tuning.reports.parallel import ENDS, LETTER, _tells, draw_parallel
from contrasweep.tuning.reports.style import MOST_LETTERS
from contrasweep.tuning.results.study import read_study
from tests.reports.test_sections import by_title
from tests.studies import scored


def test_long_names_of_many_choices_do_not_touch_each_other(write_study, store) -> None:
    names = [f"policy-{number:02d}-of-the-augmentations" for number in range(12)]
    space = {
        "policy": {"choice": names, "default": names[0]},
        "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
    }
    runs = [scored(values={"policy": name, "kernel": "rbf"}) for name in names]
    write_study(runs, space=space)
    data = read_study(store, "demo")
    found = draw_parallel(data, data.trials)
    assert found is not None
    heights = found.figure.layout.yaxis.tickvals
    labels = [a for a in found.figure.layout.annotations if a.text.startswith("policy-")]
    assert len({label.text for label in labels}) == 12
    lines: dict[float, list[tuple[float, float]]] = {}
    for label in labels:
        width = LETTER * len(label.text)
        assert len(label.text) <= MOST_LETTERS
        start = {"left": label.x, "right": label.x - width}.get(label.xanchor, label.x - width / 2)
        lines.setdefault(label.yshift, []).append((start, start + width))
        assert ENDS[0] <= round(start, 6)
        assert round(start + width, 6) <= ENDS[1]
    for line in lines.values():
        assert all(first[1] <= second[0] for first, second in pairwise(sorted(line)))
    # The next row stands below the last line.
    lowest = -min(lines)
    assert (heights[1] - heights[0]) * 72 > lowest + 14


def test_a_value_that_looks_like_markup_is_shown_as_it_is(write_study, store) -> None:
    names = ["<b>x", "a & b"]
    write_study(
        [scored(values={"kernel": names[n % 2]}) for n in range(6)],
        space={"kernel": {"choice": names, "default": names[0]}},
    )
    data = read_study(store, "demo")
    found = draw_parallel(data, data.trials)
    assert found is not None
    # Plotly reads these as the values; "<b>x" would be a bold x.
    assert {"&lt;b&gt;x", "a &amp; b"} <= {a.text for a in found.figure.layout.annotations}
    assert found.figure.layout.meta["alt"].startswith("The values of 1 searched parameter in 6 trials")


def test_rows_and_fifths_are_those_of_all_trials_where_a_sample_is_drawn(
    write_study, store, monkeypatch
) -> None:
    monkeypatch.setattr(sections, "MAX_LINES", 10)
    write_study([scored([0.5, 0.5 + n / 100]) for n in range(40)])
    (figure,) = by_title(read_study(store, "demo"))["Searched parameters"].figures
    lines = {trace.name: {n for n in trace.customdata if n is not None} for trace in figure.data}
    assert [*lines] == [
        "worst fifth: 0.5 to 0.57",
        "fourth: 0.58 to 0.65",
        "middle: 0.66 to 0.73",
        "second: 0.74 to 0.81",
        "best fifth: 0.82 to 0.89",
    ]
    assert figure.layout.legend.traceorder == "reversed", "the best fifth stands first"
    assert sum(map(len, lines.values())) == 10
    assert all(number >= 32 for number in lines["best fifth: 0.82 to 0.89"])


def test_what_a_parameter_explains_is_less_what_random_groups_would() -> None:
    # Ranks -1.5, -0.5, 0.5, 1.5: 4 of 5 lie between the groups, 1 within, of which each degree has 1 / 2.
    assert _tells(["a", "a", "b", "b"]) == pytest.approx((4 - 1 / 2) / 5)
    assert _tells(["a", "b", "b", "a"]) < 0
    draw, groups = np.random.default_rng(0), np.repeat(np.arange(12), 2)
    chance = [_tells(draw.permutation(groups).tolist()) for _ in range(200)]
    assert np.mean(chance) == pytest.approx(0.0, abs=0.05), "twelve random groups of 24 would explain half"
    assert _tells(["a"] * 4) == -math.inf, "what does not vary comes last"
