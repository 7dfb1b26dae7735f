"""The labels of parallel coordinates: none leaves the figure or touches another on a phone."""

from itertools import pairwise

from contrasweep.tuning.reports.parallel import ENDS, LETTER, MOST_LETTERS, draw_parallel
from contrasweep.tuning.results.study import read_study
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
