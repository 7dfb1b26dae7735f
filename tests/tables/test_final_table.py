"""The files that `contrasweep run -o` writes: tables for a paper, and runs for `contrasweep verify`."""

from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.results.final_runs import FinalRuns
from contrasweep.tuning.tables.final_table import write_final_table
from contrasweep.tuning.tables.own_table import read_own_table
from contrasweep.tuning.tables.tex import tex, tex_row

SEEDS = range(1, 6)


def _row(method: str, seed: int, gain: float) -> dict[str, Any]:
    untrained = 0.5 + 0.01 * seed
    scores = {"accuracy": untrained + gain + 0.001 * (seed % 2), "untrained_accuracy": untrained}
    scores |= {"colour_mse": 40.0, "untrained_colour_mse": 30.0}
    of_method = {"study": f"of_{method}-final", "method": method, "trial": 3, "seed": seed}
    return of_method | {f"metric.test.{name}": score for name, score in scores.items()}


@pytest.fixture
def runs() -> FinalRuns:
    rows = [_row(method, seed, gain) for method, gain in (("mine", 0.2), ("supcon", 0.1)) for seed in SEEDS]
    return FinalRuns("of_mine-final, of_supcon-final", rows, failed=0)


def test_a_table_in_latex(runs: FinalRuns, tmp_path: Path) -> None:
    write_final_table(runs, tmp_path / "new" / "table.tex")
    text = (tmp_path / "new" / "table.tex").read_text(encoding="utf-8")
    assert "\\caption{of\\_mine-final, of\\_supcon-final: mean $\\pm$ sample standard deviation" in text
    rows = [line for line in text.splitlines() if line.endswith(" \\\\")]
    assert rows[0] == (
        "encoder & test accuracy & 95 \\% interval & colour MSE & 95 \\% interval of colour MSE & n \\\\"
    )
    assert rows[1].startswith("mine, trial 3 of of\\_mine & 0.731 $\\pm$ 0.016 & ")
    assert [row.partition(" &")[0] for row in rows[1:]] == [
        "mine, trial 3 of of\\_mine",
        "supcon, trial 3 of of\\_supcon",
        "untrained",
        "baseline",
        "supcon, trial 3 of of\\_supcon",
        "untrained",
    ]
    loss = FinalRuns("lost", [_row("top-1", seed, -0.2) for seed in SEEDS], failed=0)
    write_final_table(loss, tmp_path / "table.tex")
    lost = (tmp_path / "table.tex").read_text(encoding="utf-8")
    assert "untrained & $-$0.199" in lost
    assert "top-1, trial 3 & " in lost
    assert lost.count("\\medskip") == 1
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 2


def test_what_latex_would_misread_is_written_in_its_own_way() -> None:
    assert tex_row(["[7] a_b~", "τ = ½ → ∞"]) == (
        "{}[7] a\\_b\\textasciitilde{} & $\\tau$ = ½ $\\to$ $\\infty$ \\\\"
    )
    assert tex_row(["*SimCLR", "1 [0, 2]*"]) == "{}*SimCLR & 1 [0, 2]* \\\\"
    assert tex("\\^") == "\\textbackslash{}\\textasciicircum{}"


def test_a_table_in_markdown(runs: FinalRuns, tmp_path: Path) -> None:
    write_final_table(runs, tmp_path / "table.md")
    lines = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()
    assert "| encoder | test accuracy | 95 % interval |" in lines[2]
    assert "Test accuracy: mine, trial 3 of of_mine minus each baseline, seed by seed." in lines


def test_without_paired_seeds_there_is_one_table(runs: FinalRuns, tmp_path: Path) -> None:
    write_final_table(FinalRuns("once", runs.rows[:1], failed=0), tmp_path / "table.md")
    assert "baseline" not in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_single_runs_are_what_verify_reads(runs: FinalRuns, tmp_path: Path) -> None:
    mine, other = "mine, trial 3 of of_mine", "supcon, trial 3 of of_supcon"
    claims = tmp_path / "claims.yaml"
    claims.write_text(
        "claims:\n"
        f'  - {{text: a, check: \'row["{mine}"].accuracy > max(rows["{other}", "untrained"].accuracy)\'}}\n'
        f'  - {{text: b, check: \'row["{mine}"].colour_mse < row["untrained"].colour_mse\'}}\n'
    )
    rows = [*runs.rows, _row("mine", 6, float("nan"))]  # a score that is no number is no run
    write_final_table(FinalRuns(runs.study, rows, failed=0), tmp_path / "runs.csv")
    table = read_own_table(claims, tmp_path / "runs.csv")
    assert [verdict.status for verdict in table.verdicts()] == ["holds", "contradicted"]
    own, untrained = (table.runs.values[row, "accuracy"] for row in (mine, "untrained"))
    assert set(own) == set(SEEDS)
    assert (own[1].value, own[1].untrained) == (runs.rows[0]["metric.test.accuracy"], 0.51)
    assert {run.untrained for run in untrained.values()} == {None}
