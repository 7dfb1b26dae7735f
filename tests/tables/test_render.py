"""Formats, figures and the page, rendered from stored rows; nothing is trained."""

import csv
import dataclasses
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from contrasweep.search_spaces.tables import Claim, Scale, load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.statistics import Summary
from contrasweep.tuning.tables.collect import StoredRuns, collect
from contrasweep.tuning.tables.document import main, write_document
from contrasweep.tuning.tables.figure import draw_table, has_figure
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.render import CSV_COLUMNS, comma_separated, content, latex, markdown
from contrasweep.tuning.tables.results import CellInfo, RowSearch, RunValue, TableResults, save_results
from contrasweep.tuning.tables.runs import runs_of
from contrasweep.tuning.tables.text import ours_text, selection, signed
from contrasweep.tuning.tables.verdict import judge, judge_all
from contrasweep.tuning.tables.verdict_text import verdict_line
from tests.tables.stored import score, store_runs

PLAN = plan_table(load_table("cclk-t3"), scale="quick", seeds=3)


@pytest.fixture
def found(tmp_path: Path) -> TableResults:
    return collect(PLAN, StoredRuns(store_runs(PLAN, tmp_path / "store", score)))


@pytest.fixture
def half(tmp_path: Path) -> TableResults:
    """One of three seeds, and one row that failed."""
    store = store_runs(
        PLAN, tmp_path / "half", lambda c, s: None if c.row == "infonce" else score(c, s), seeds=range(1, 2)
    )
    return collect(PLAN, StoredRuns(store))


def as_printed(rows: dict[str, list[float]]) -> TableResults:
    values = tuple(
        RunValue(row, "acc", seed, value, untrained=80.0)
        for row, own in rows.items()
        for seed, value in enumerate(own, start=1)
    )
    return TableResults(load_table("cclk-t3"), "paper", False, 3, values)


def test_markdown_shows_ours_beside_the_printed() -> None:
    results = as_printed({"infonce": [84.0, 85.0, 86.0]})
    text = markdown(results, judge_all(results))
    assert "| InfoNCE | 84.1 ± 1.8 | 85.0 ± 1.0 (3) | +0.9 [\u22121.6, +3.4] |" in text
    assert "| untrained encoder (control) |  | 80.0 ± 0.0 (3) |  |" in text
    assert "Selection: nothing is selected" in text
    assert "| FairCCLK beats InfoNCE on both metrics. | holds | not run |" in text


def test_markdown_tables_are_whole(found: TableResults) -> None:
    lines = [line for line in markdown(found, judge_all(found)).splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    assert len(lines) > 12
    for line, width, before in zip(lines[1:], widths[1:], widths, strict=False):
        assert width == before or "these runs" in line or "claim" in line


def test_the_line_of_a_claim_tells_what_its_verdict_rests_on() -> None:
    rows = {"fair-cclk": [90.0, 91, 92, 93, 94], "infonce": [80.0, 82, 81, 83, 84]}
    found = as_printed({**rows, "fair-infonce": [95.0, 97, 96, 99, 98]})
    check = 'argmax(rows[:].acc) == "fair-cclk"'
    verdict = judge(Claim(text="It is the best.", check=check, holds=True), runs_of(found))
    text, printed, ours, remarks = verdict_line(verdict)
    assert (text, printed, ours) == ("It is the best.", "holds", "contradicted")
    assert remarks.startswith(
        "of 2: 1 supported, 1 contradicted; against it: fair-cclk.acc > fair-infonce.acc; p < 0.001; "
    )
    assert re.search(r"; \d+ % by chance; n = 5$", remarks)
    same = judge(Claim(text="A", check='row["fair-cclk"].acc > 5', holds=True), runs_of(as_printed(rows)))
    assert verdict_line(same)[3] == "p < 0.001; n = 5"


def test_an_inert_claim_shows_that_status_in_every_format() -> None:
    found = as_printed({row: [80.0, 80.1, 79.9, 80.0, 80.0] for row in ("fair-cclk", "infonce")})
    check = 'row["fair-cclk"].acc > row["infonce"].acc'
    verdicts = [judge(Claim(text="Higher.", check=check, holds=True), runs_of(found))]
    assert "| Higher. | holds | inert |" in markdown(found, verdicts)
    assert "Our runs: inert" in latex(found, verdicts)
    assert [row["verdict"] for row in content(found, verdicts)["claims"]] == ["inert"]
    rows = csv.DictReader(io.StringIO(comma_separated(found, verdicts)))
    assert [row["verdict"] for row in rows if row["claim"]] == ["inert"]


def test_quick_numbers_say_so_everywhere(found: TableResults) -> None:
    verdicts = judge_all(found)
    assert markdown(found, verdicts).startswith("### CCL-K, Table 3: QUICK")
    assert "\\caption{CCL-K, Table 3: QUICK" in latex(found, verdicts)
    rows = list(csv.DictReader(io.StringIO(comma_separated(found, verdicts))))
    assert all("QUICK" in row["form"] for row in rows)
    assert "QUICK" in content(found, verdicts)["form"]


def test_csv_keeps_all_digits(found: TableResults) -> None:
    rows = list(csv.DictReader(io.StringIO(comma_separated(found, []))))
    assert tuple(rows[0]) == CSV_COLUMNS
    ours = next(row for row in rows if (row["row"], row["column"]) == ("fair-cclk", "acc"))
    assert float(ours["mean"]) == pytest.approx(82.0)
    assert float(ours["std"]) == pytest.approx(1.0)
    assert (ours["published"], ours["printed"], ours["n"]) == ("86.4", "86.4±0.9", "3")


def test_csv_and_latex_have_a_verdict_for_every_claim(found: TableResults) -> None:
    verdicts = judge_all(found)
    rows = list(csv.DictReader(io.StringIO(comma_separated(found, verdicts))))
    judged = [(row["claim"], row["verdict"]) for row in rows if row["claim"]]
    assert judged == [(verdict.claim.text, verdict.status) for verdict in verdicts]
    below = latex(found, verdicts).partition("\\end{tabular}")[2]
    assert below.count("As printed:") == len(verdicts)
    for verdict in verdicts:
        assert f"{verdict.claim.text} As printed:".replace("%", "\\%") in below


def test_latex_has_a_table_of_equal_rows(found: TableResults) -> None:
    text = latex(found, judge_all(found))
    body = text.partition("\\toprule")[2].partition("\\bottomrule")[0].splitlines()
    rows = [line for line in body if line.endswith("\\\\") and "multicolumn" not in line]
    assert {line.count(" & ") for line in rows} == {3}
    assert len(rows) == 1 + 2 * 4
    for name in ("table", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    written = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert written.count("{") == written.count("}")
    assert not re.search(r"(?<!\\)[%#]", written)
    assert written.isascii()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_latex_compiles(found: TableResults, tmp_path: Path) -> None:
    wrapped = ["\\documentclass{article}", "\\usepackage{booktabs}", "\\begin{document}"]
    (tmp_path / "t.tex").write_text("\n".join([*wrapped, latex(found, judge_all(found)), "\\end{document}"]))
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-draftmode", "t.tex"]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_half_finished_table_renders_with_its_gaps(half: TableResults) -> None:
    verdicts = judge_all(half)
    text = markdown(half, verdicts)
    assert "| InfoNCE | 84.1 ± 1.8 |  | 0 of 3 runs done, 1 failed: loss nan at epoch 1 |" in text
    assert "| FairCCLK (ours) | 86.4 ± 0.9 | 81.0 (1) | 1 of 3 runs done |" in text
    assert (
        "- fair-infonce in acc, fair-cclk in acc, fair-infonce in mse, fair-cclk in mse: 1 of 3 runs done"
        in text
    )
    assert "loss nan at epoch 1.\\par" in latex(half, verdicts)
    assert "1 failed" in comma_separated(half, verdicts)


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_a_small_form_shows_the_columns_that_ran_and_names_the_others_once(scale: Scale) -> None:
    rows = ("cacr", "no-pos", "no-neg", "uaur")
    values = tuple(RunValue(row, "cifar10", seed, 30.0 + seed) for row in rows for seed in (1, 2, 3))
    gaps = {(row, column): "no such files" for row in rows for column in ("cifar100", "stl10")}
    found = TableResults(load_table("cacr-t8"), scale, False, 3, values, gaps=gaps)
    text = markdown(found, judge_all(found))
    assert ("| STL-10 | printed |" in text) is (scale == "paper")
    assert ("85.59" in latex(found, [])) is (scale == "paper")
    assert "- all of CIFAR-100, all of STL-10: no such files\n" in text
    nothing = TableResults(load_table("cacr-t8"), scale, False, 3, gaps=gaps)
    assert "| STL-10 | printed |" in markdown(nothing, [])


def test_each_form_tells_the_deviations_that_it_has_and_a_small_one_compares_with_no_print() -> None:
    def text(scale: Scale, tuned: bool) -> str:
        values = tuple(RunValue("rbf", "acc", seed, 80.0) for seed in (1, 2, 3))
        return markdown(TableResults(load_table("cclk-t5a"), scale, tuned, 3, values), [])

    forms = {"paper": text("paper", False), "tuned": text("paper", True), "quick": text("quick", False)}
    assert [name for name, section in forms.items() if "The length is open" in section] == ["paper"]
    assert all("does not say how it regresses the colour" in section for section in forms.values())
    assert [name for name, section in forms.items() if "Nothing is compared with print" in section] == [
        "quick"
    ]


def test_an_empty_table_renders() -> None:
    empty = TableResults(load_table("cclk-t3"), "paper", False, 5, gaps={("infonce", "acc"): "no data"})
    for render in (markdown, latex, comma_separated):
        assert "InfoNCE" in render(empty, judge_all(empty)) or render is comma_separated


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "0.0"), (-0.04, "0.0"), (0.06, "+0.1"), (-1.25, "\u22121.2"), (-12.5, "\u221212.5")],
)
def test_signs(value: float, text: str) -> None:
    assert signed(value, 1) == text
    assert ours_text(Summary(value, 0.5, 3), 1) == f"{text.removeprefix('+')} ± 0.5 (3)"


def swept(name: str, column: str) -> TableResults:
    table = load_table(name)
    values = tuple(
        RunValue(row, column, seed, 80.0 + index + seed / 10, untrained=70.0)
        for index, row in enumerate(table.run.rows)
        for seed in (1, 2, 3)
    )
    return TableResults(table, "paper", False, 3, values)


@pytest.mark.parametrize(("name", "column"), [("cclk-t8", "acc"), ("herocon-fig3a", "f1")])
def test_a_swept_parameter_is_drawn(name: str, column: str, tmp_path: Path) -> None:
    draw_table(swept(name, column), tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert text.count("<path") > 20


def test_the_figure_holds_ours_the_printed_and_the_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes

    drawn: list[tuple[list[float], list[float], str]] = []

    def errorbar(self: Axes, xs, heights, **more):  # type: ignore[no-untyped-def]
        drawn.append((list(xs), list(heights), more["label"]))

    monkeypatch.setattr(Axes, "errorbar", errorbar)
    draw_table(swept("cclk-t8", "acc"), tmp_path / "figure.png")
    xs = [3.0, 5.0, 10.0, 15.0, 20.0]
    ours, printed = drawn
    assert (ours[0], ours[2]) == (xs, "ours, FairInfoNCE")
    assert ours[1] == pytest.approx([80.2, 81.2, 82.2, 83.2, 84.2])
    assert printed == (xs, [82.12, 84.55, 85.9, 85.22, 84.23], "printed, FairInfoNCE")
    drawn.clear()
    draw_table(dataclasses.replace(swept("cclk-t8", "acc"), scale="quick"), tmp_path / "figure.png")
    assert [label for _, _, label in drawn] == ["ours, FairInfoNCE", "printed, FairInfoNCE"]


def test_a_small_form_has_the_printed_curve_in_a_panel_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: kept.append(figure))
    draw_table(dataclasses.replace(swept("cclk-t8", "acc"), scale="quick"), tmp_path / "figure.png")
    ours, printed = kept[0].axes
    assert [c.get_label() for c in ours.containers] == ["ours, FairInfoNCE"]
    assert [c.get_label() for c in printed.containers] == ["printed, FairInfoNCE"]
    assert (ours.get_ylabel(), printed.get_ylabel()) == ("Accuracy", "Accuracy, as printed")
    assert not printed.lines or all(line.get_label() != "untrained encoder" for line in printed.lines)
    figure = kept[0]
    figure.draw_without_rendering()
    title = figure.get_suptitle()
    assert "QUICK" in title
    (text,) = (one for one in figure.texts if one.get_text() == title)
    assert 0 <= text.get_window_extent().x0 < text.get_window_extent().x1 <= figure.bbox.width


def test_columns_that_are_places_are_one_curve_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: kept.append(figure))
    table = load_table("herocon-fig2b")
    levels = [0.0, 0.25, 0.5, 0.75, 1.0]
    values = tuple(
        RunValue(row, column, seed, 0.9 - how.x / 10 + seed / 100, untrained=0.1 + how.x / 10)
        for row in table.run.rows
        for column, how in table.run.columns.items()
        if how.x is not None
        for seed in (1, 2, 3)
    )
    draw_table(TableResults(table, "paper", False, 3, values), tmp_path / "figure.png")
    (axes,) = kept[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("share of the pixels with noise", "F1")
    assert list(axes.get_xticks()) == levels
    assert [c.get_label() for c in axes.containers] == [f"ours, {row}" for row in table.run.rows]
    control = next(line for line in axes.lines if line.get_label() == "untrained encoder")
    drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
    assert drawn[0] == pytest.approx([0.92 - level / 10 for level in levels])
    assert drawn[axes.lines.index(control)] == pytest.approx([0.1 + level / 10 for level in levels])


def test_each_network_has_its_own_control_curve_also_where_places_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: kept.append(figure))
    table = load_table("herocon-fig2b")
    *columns, last = [column for column, how in table.run.columns.items() if how.x is not None]
    heights = {"dnn": 0.1, "herocon-u": 0.2}
    places = [(row, column) for row in heights for column in columns] + [("dnn", last)]
    values = tuple(
        RunValue(row, column, seed, 0.9, untrained=heights[row] + seed / 1000)
        for row, column in places
        for seed in (1, 2, 3)
    )
    draw_table(TableResults(table, "paper", False, 3, values), tmp_path / "figure.png")
    (axes,) = kept[0].axes
    lines = {line.get_label(): line for line in axes.lines}
    drawn = {
        str(label).removeprefix("untrained encoder of "): np.asarray(line.get_ydata()).tolist()
        for label, line in lines.items()
        if str(label).startswith("untrained")
    }
    assert {name: len(own) for name, own in drawn.items()} == {
        "dnn": len(columns) + 1,
        "herocon-u": len(columns),
    }
    assert drawn["dnn"] == pytest.approx([0.102] * (len(columns) + 1))


def test_rows_searched_with_other_budgets_say_so() -> None:
    cells = {
        (row, "acc"): CellInfo(
            "colormnist", "fair-cclk", {}, f"best of {trials}", RowSearch(row, trials, 1.0)
        )
        for row, trials in (("rbf", 2), ("cosine", 24))
    }
    found = TableResults(load_table("cclk-t5a"), "paper", True, 5, cells=cells)
    assert "best of 2 (rbf); best of 24 (cosine)" in selection(found)
    assert found.label == "each row searched"
    assert found.command == "contrasweep table cclk-t5a --tune"


@pytest.mark.parametrize(
    ("name", "column", "stands_in"), [("herocon-fig3b", "f1", True), ("cclk-t8", "acc", False)]
)
def test_a_table_without_any_run_on_the_papers_data_says_so(name: str, column: str, stands_in: bool) -> None:
    results = swept(name, column)
    assert ("Nothing was run on the paper's data" in markdown(results, judge_all(results))) == stands_in


def test_deviations_of_a_searched_table_are_about_the_papers_settings() -> None:
    fixed = swept("cclk-t8", "acc")
    searched = dataclasses.replace(fixed, tuned=True)
    assert "\nWhere the runs differ from the paper:\n" in markdown(fixed, [])
    assert "Where the runs with the paper's settings (searched rows: see Settings) differ" in markdown(
        searched, []
    )


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sweeps no parameter"):
        draw_table(as_printed({}), tmp_path / "figure.png")
    with pytest.raises(InputError, match="nothing of table cclk-t8"):
        draw_table(TableResults(load_table("cclk-t8"), "paper", False, 3), tmp_path / "figure.png")
    # The columns of this form are checkpoints, not numbers of clusters.
    values = tuple(RunValue("cl-infonce-kmeans", "e550_linear", seed, 33.0) for seed in (1, 2, 3))
    checkpoints = TableResults(load_table("cl-infonce-t4"), "quick", False, 3, values)
    assert not has_figure(checkpoints)
    with pytest.raises(InputError, match="at a value of number of clusters K"):
        draw_table(checkpoints, tmp_path / "figure.png")


def test_a_folder_without_results_is_refused_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["document", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "holds no results" in capsys.readouterr().err


def test_the_document_is_rendered_from_its_files(tmp_path: Path, half: TableResults) -> None:
    folder = tmp_path / "docs" / "reproduction"
    with pytest.raises(InputError, match="holds no results"):
        write_document(tmp_path / "docs")
    save_results(half, folder / "results")
    save_results(swept("cclk-t8", "acc"), folder / "results")
    (folder / "notes").mkdir()
    (folder / "notes" / "cclk-t8.md").write_text("More clusters, less colour.")
    front = write_document(tmp_path / "docs").read_text()
    assert "| [CCL-K](reproduction/cclk.md) |" in front
    text = (folder / "cclk.md").read_text()
    anchor = "ccl-k-table-3-quick-smaller-than-the-papers"
    assert f"| [Table 3](#{anchor}) | QUICK, smaller than the paper's | 2 |" in text
    assert "### CCL-K, Table 3: QUICK, smaller than the paper's\n" in text
    assert "![CCL-K, Table 8: the paper's settings](figures/cclk-t8.png)" in text
    for name in ("cclk-t8.png", "cclk-t8.forest.png", "claims.png"):
        assert (folder / "figures" / name).stat().st_size > 5_000
    assert "What we learned:\n\nMore clusters, less colour." in text
    assert "Settings: [settings/cclk-t3.quick.json](settings/cclk-t3.quick.json)." in text
    settings = json.loads((folder / "settings" / "cclk-t3.quick.json").read_text())
    assert settings["all rows"]["encoder.name"] == "small-conv"
    assert "| cclk-t5a | Table 5 (left) |" in text
    assert text.index("CCL-K, Table 3: QUICK") < text.index("CCL-K, Table 8:")
