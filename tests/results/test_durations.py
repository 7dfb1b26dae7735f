"""Durations as text, and the time that spans cover."""

from datetime import UTC, datetime, timedelta

import pytest

from contrasweep.tuning.durations import covered, in_one_unit, in_words, on_a_clock, unit_for


@pytest.mark.parametrize(
    ("seconds", "words", "clock", "one_unit"),
    [
        (0, "0.0 s", "0:00", "0.0 min"),
        (59.6, "59.6 s", "1:00", "1.0 min"),
        (61, "1 min 01 s", "1:01", "1.0 min"),
        (3599, "59 min 59 s", "59:59", "60.0 min"),
        (3600, "1 h 00 min", "1:00:00", "1.0 h"),
        (360_000, "100 h 00 min", "100:00:00", "4.2 days"),
    ],
)
def test_each_form_of_a_duration(seconds: float, words: str, clock: str, one_unit: str) -> None:
    assert (in_words(seconds), on_a_clock(seconds), in_one_unit(seconds)) == (words, clock, one_unit)


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [(0.5, "seconds"), (119, "seconds"), (120, "minutes"), (7200, "hours"), (172_800, "days")],
)
def test_an_axis_has_the_largest_unit_that_it_holds_twice(seconds: float, unit: str) -> None:
    assert unit_for(seconds)[1] == unit


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0),
        ([(0, 10)], 10),
        ([(20, 25), (0, 10)], 15),  # apart, in any order
        ([(0, 10), (5, 12)], 12),  # overlapping
        ([(0, 10), (2, 3), (4, 11)], 11),  # one inside another
    ],
)
def test_time_that_several_spans_cover_counts_once(spans: list[tuple[int, int]], seconds: int) -> None:
    zero = datetime(2026, 1, 1, tzinfo=UTC)
    given = [(zero + timedelta(seconds=begin), zero + timedelta(seconds=end)) for begin, end in spans]
    assert covered(given) == seconds
