"""Tables as text: nothing is cut, at any width."""

import pytest

from contrasweep.tuning.cli.columns import Note, Row, separated, table_lines, wrapped

TRIALS = [
    Row(
        {"trial": 0, "status": "completed", "accuracy": 0.90281},
        {"kernel": "rbf", "sigma2": 3000.0, "lam": 1.0, "flip": 0.5},
    ),
    Row(
        {"trial": 11, "status": "failed", "accuracy": None},
        {"kernel": "cosine", "sigma2": None, "lam": 0.0123, "flip": 0.5},
        [
            Note(
                "error",
                "TrainingDiverged: loss nan at epoch 1, step 3: fair-cclk on colour-digits",
                named=False,
            )
        ],
    ),
]


def test_searched_values_stand_in_columns_where_all_fit() -> None:
    assert table_lines(TRIALS, 100) == [
        "trial  status     accuracy  kernel  sigma2     lam",
        "─" * 50,
        "    0  completed    0.9028  rbf       3000       1",
        "   11  failed            -  cosine       -  0.0123",
        "    TrainingDiverged: loss nan at epoch 1, step 3: fair-cclk on colour-digits",
        "",
        "In all rows: flip 0.5",
    ]


def test_else_they_stand_below_the_trial_without_those_it_has_not() -> None:
    assert table_lines(TRIALS, 40) == [
        "trial  status     accuracy",
        "─" * 26,
        "    0  completed    0.9028",
        "    kernel rbf · sigma2 3000 · lam 1",
        "   11  failed            -",
        "    kernel cosine · lam 0.0123",
        "    TrainingDiverged: loss nan at epoch",
        "    1, step 3: fair-cclk on",
        "    colour-digits",
        "",
        "In all rows: flip 0.5",
    ]


def test_a_column_that_does_not_fit_goes_below_under_its_name() -> None:
    rows = [Row({"study": "demo", "endings": "2 completed, 6 stopped", "created": "2026-11-23 01:06"})]
    assert table_lines(rows, 24) == [
        "study  created",
        "───────────────────────",
        "demo   2026-11-23 01:06",
        "    endings 2 completed,",
        "    6 stopped",
    ]


SCORES = [
    Row({"dataset": data, "encoder": "photos", "probe": probe, "trained": score, "n": "3 seeds"})
    for data, probe, score in [
        ("digits", "logistic", "0.513 ± 0.040"),
        ("digits", "knn", "0.48 ± 0.10"),
        ("colour-digits", "logistic", "0.238 ± 0.052"),
    ]
]
HEADS = ("dataset", "encoder", "n")


def test_what_never_changes_is_said_once_above_the_table() -> None:
    assert table_lines(SCORES, 80, HEADS) == [
        "In all rows: encoder photos · n 3 seeds",
        "",
        "dataset        probe     trained",
        "─" * 38,
        "digits         logistic  0.513 ± 0.040",
        "digits         knn       0.48 ± 0.10",
        "colour-digits  logistic  0.238 ± 0.052",
    ]


def test_rows_are_put_together_under_what_has_no_column() -> None:
    assert table_lines(SCORES[1:], 30, HEADS) == [
        "In all rows: encoder photos",
        "n 3 seeds",
        "",
        "probe     trained",
        "─" * 23,
        "dataset digits",
        "knn       0.48 ± 0.10",
        "",
        "dataset colour-digits",
        "logistic  0.238 ± 0.052",
    ]


def test_rows_of_one_head_stand_together_wherever_they_come() -> None:
    found = table_lines([SCORES[0], SCORES[2], SCORES[1]], 30, HEADS)
    assert [line.split()[0] for line in found[4:] if line] == [
        "─" * 23,
        "dataset",
        "logistic",
        "knn",
        "dataset",
        "logistic",
    ]


def test_numbers_are_whole_at_80_columns_whatever_the_encoders_are_called() -> None:
    long = "supcon on image-folder:path=photographs,size=64"
    scores = {"score": "accuracy", "trained": "0.513 ± 0.040", "95 % interval": "0.4133 to 0.6129"}
    rows = [
        Row({"dataset": data, "encoder": name, "probe": "logistic", "shots": "all", **scores, "n": "3 seeds"})
        for data in ("digits", "colour-digits")
        for name in (long, f"{long} (2)")
    ]
    found = table_lines(rows, 80, ("dataset", "encoder", "score", "n"))
    assert max(map(len, found)) <= 80
    assert found.count("logistic  all    0.513 ± 0.040  0.4133 to 0.6129") == 4


@pytest.mark.parametrize("width", range(20, 130, 7))
def test_every_word_is_whole_at_every_width(width: int) -> None:
    lines = table_lines(TRIALS, width)
    words = " ".join(lines).split()
    for word in ("0.9028", "completed", "3000", "cosine", "0.0123", "0.5", "TrainingDiverged:", "lam"):
        assert word in words
    assert all(len(line) <= width or " " not in line.strip() for line in lines[2:] if width > 26)


def test_another_program_gets_a_line_a_row_with_tabs_and_no_break() -> None:
    late = [Note("licence", "of two\nlines"), Note("error", "none")]
    rows = [*TRIALS, Row({"trial": 12, "status": "failed", "accuracy": None}, {}, late)]
    assert separated(rows) == [
        "trial\tstatus\taccuracy\tkernel\tsigma2\tlam\tflip\terror\tlicence",
        "0\tcompleted\t0.9028\trbf\t3000\t1\t0.5\t-\t-",
        "11\tfailed\t-\tcosine\t-\t0.0123\t0.5\t"
        "TrainingDiverged: loss nan at epoch 1, step 3: fair-cclk on colour-digits\t-",
        "12\tfailed\t-\t-\t-\t-\t-\tnone\tof two lines",
    ]


def test_below_a_row_a_text_has_its_name_unless_it_speaks_for_itself() -> None:
    notes = [Note("what it is", "digits", named=False), Note("licence", "CC BY 4.0\nof two lines")]
    assert table_lines([Row({"dataset": "digits"}, {}, notes)], 40)[2:] == [
        "digits",
        "    digits",
        "    licence: CC BY 4.0",
        "    of two lines",
    ]


def test_a_setting_that_no_row_has_takes_no_room() -> None:
    rows = [Row({"trial": number}, {"sigma2": None, "lam": 1.0}) for number in range(2)]
    assert table_lines(rows, 40) == ["trial", "─────", "    0", "    1", "", "In all rows: lam 1"]


def test_a_line_is_broken_at_points_before_words() -> None:
    assert wrapped("a b · c d · e f", 9) == ["a b · c d", "e f"]
    assert wrapped("a b c d", 4) == ["a b", "c d"]
    assert wrapped("short", 40, "  ") == ["  short"]
