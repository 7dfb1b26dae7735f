"""`contrasweep verify`: verdicts on claims about anybody's table, and the refusal of wrong files."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from contrasweep.tuning.cli import app

TRUE = {"text": "Ours is better.", "check": 'row["ours"].acc > row["theirs"].acc'}
FALSE = {"text": "Theirs is better.", "check": 'row["theirs"].acc > row["ours"].acc'}
HEIGHTS = {"ours": [90, 91, 92, 94, 95], "theirs": [80, 82, 81, 83, 84]}
HEADER = "row,column,seed,value\n"
RUNS = HEADER + "".join(
    f"{row},acc,{seed},{value}\n" for row, own in HEIGHTS.items() for seed, value in enumerate(own, start=1)
)

Verify = Callable[..., Result]


@pytest.fixture
def verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    monkeypatch.chdir(tmp_path)

    def run(claims: Sequence[dict[str, object]] | str, runs: str = RUNS, *options: str) -> Result:
        text = claims if isinstance(claims, str) else json.dumps({"claims": claims})
        Path("claims.yaml").write_text(text, encoding="utf-8")
        Path("runs.csv").write_text(runs, encoding="utf-8")
        return CliRunner().invoke(app, ["verify", "claims.yaml", "runs.csv", *options])

    return run


def test_a_true_claim_holds_and_exits_with_0(verify: Verify) -> None:
    result = verify([TRUE])
    assert result.exit_code == 0
    assert "| Ours is better. | holds |" in result.output
    assert "ours.acc > theirs.acc" in result.output


def test_a_planted_false_claim_is_contradicted_and_exits_with_1(verify: Verify) -> None:
    result = verify([TRUE, FALSE])
    assert result.exit_code == 1
    assert "| Theirs is better. | contradicted |" in result.output
    assert "2 claims: 1 holds, 1 contradicted." in result.output


def test_json_has_p_values_comparisons_and_the_rate_of_chance(verify: Verify) -> None:
    result = verify([TRUE, FALSE], RUNS, "--json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)["claims"]
    assert (first["verdict"], first["seeds"], second["verdict"]) == ("holds", 5, "contradicted")
    assert first["p_false"] == second["p_true"] < 0.001
    assert 0 <= first["chance"] < 0.1
    (only,) = first["comparisons"]
    assert (only["text"], only["finding"]) == ("ours.acc > theirs.acc", "supports")
    assert 0 < only["low"] < only["margin"] < only["high"]


def test_json_has_no_numbers_that_json_lacks(verify: Verify) -> None:
    runs = RUNS + "".join(f"none,acc,{seed},0\n" for seed in range(1, 6))
    ratio = [{"text": "ratio", "check": 'row["ours"].acc / row["none"].acc > 1'}]
    (found,) = json.loads(verify(ratio, runs, "--json").output, parse_constant=pytest.fail)["claims"]
    assert found["comparisons"][0]["margin"] is None
    assert "| ratio | ours.acc / none.acc > 1 | undecided |" in verify(ratio, runs).output


def test_equal_differences_of_all_seeds_have_no_interval(verify: Verify) -> None:
    runs = RUNS + "".join(f"less,acc,{seed},{value - 1}\n" for seed, value in enumerate(HEIGHTS["ours"], 1))
    claims = [{"text": "one more", "check": 'row["ours"].acc > row["less"].acc'}]
    (found,) = json.loads(verify(claims, runs, "--json").output)["claims"]
    (only,) = found["comparisons"]
    assert (found["p_false"], only["low"], only["high"]) == (0.5**5, None, None)
    assert "| one more | ours.acc > less.acc | 1 | supports |" in verify(claims, runs).output


def test_parquet_with_columns_of_its_own_says_the_same_as_csv(verify: Verify, tmp_path: Path) -> None:
    expected = verify([TRUE, FALSE]).output
    runs = pyarrow.csv.read_csv("runs.csv")
    # As pandas writes it: whole numbers as floats, and columns that mean nothing here.
    runs = runs.set_column(2, "seed", runs["seed"].cast(pa.float64())).append_column("host", runs["row"])
    pq.write_table(runs, "runs.parquet")
    result = CliRunner().invoke(app, ["verify", "claims.yaml", "runs.parquet"])
    assert (result.output, result.exit_code) == (expected, 1)


def test_nan_in_parquet_is_no_untrained_score(verify: Verify) -> None:
    verify([TRUE])
    runs = pyarrow.csv.read_csv("runs.csv")
    runs = runs.append_column("untrained", pa.array([float("nan")] * len(runs)))
    pq.write_table(runs, "runs.parquet")
    result = CliRunner().invoke(app, ["verify", "claims.yaml", "runs.parquet"])
    assert "| Ours is better. | holds |" in result.output


def test_fewer_than_five_seeds_are_undecided_and_said_to_be_too_few(verify: Verify) -> None:
    few = HEADER + "".join(line + "\n" for line in RUNS.splitlines()[1:] if ",1," in line or ",2," in line)
    result = verify([TRUE], few)
    assert result.exit_code == 0
    assert "undecided" in result.output
    assert "too few seeds in common: 5 are needed" in result.output


def test_a_difference_within_the_margin_is_equal(verify: Verify) -> None:
    close = RUNS + "".join(f"same,acc,{seed},{80 + seed % 2}\n" for seed in range(1, 6))
    close += "".join(f"again,acc,{seed},{80 + (seed + 1) % 2}\n" for seed in range(1, 6))
    claims = 'margins: {acc: 2}\nclaims: [{text: alike, check: \'row["same"].acc > row["again"].acc\'}]'
    assert "| alike | equal |" in verify(claims, close).output


def test_a_row_that_did_not_leave_its_untrained_encoder_is_inert(verify: Verify) -> None:
    lines = [f"{line},{line.rpartition(',')[2]}" for line in RUNS.splitlines()[1:]]
    result = verify([TRUE], HEADER.strip() + ",untrained\n" + "\n".join(lines))
    assert (result.exit_code, "inert" in result.output) == (0, True)


def test_planned_rows_without_runs_are_not_run_and_curves_are_read(verify: Verify) -> None:
    claims = dedent(
        """
        rows: [later]
        curves:
          both:
            - {row: theirs, column: acc, x: 1}
            - {row: ours, column: acc, x: 2}
        claims:
          - {text: not yet, check: 'row["later"].acc > row["ours"].acc'}
          - {text: it rises, check: increasing("both")}
        """
    )
    result = verify(claims)
    assert "| not yet | not run | not measured: later in acc |" in result.output
    assert "| it rises | holds |" in result.output


def test_a_check_may_read_the_runs_of_another_table(verify: Verify) -> None:
    runs = (
        "table,"
        + RUNS.replace("\n", "\n,").rstrip(",")
        + "".join(f"earlier,ours,acc,{seed},{70 + seed}\n" for seed in range(1, 6))
    )
    check = 'row["ours"].acc > table["earlier"].row["ours"].acc'
    assert "| since then | holds |" in verify([{"text": "since then", "check": check}], runs).output
    runs += "".join(f"earlier,first,acc,{seed},{80 + seed}\n" for seed in range(1, 6))
    best = 'argmax(table["earlier"].rows["ours", "first"].acc) == "{}"'
    result = verify([{"text": name, "check": best.format(name)} for name in ("first", "ours")], runs)
    assert "| first | holds |" in result.output
    assert "| ours | contradicted |" in result.output
    unknown = verify([{"text": "none", "check": best.format("theirs")}], runs)
    assert "claim 1: unknown row 'theirs'" in unknown.stderr


def test_a_division_by_nothing_names_its_claim(verify: Verify) -> None:
    nothing = {"text": "no ratio", "check": 'row["ours"].acc / (row["ours"].acc - row["ours"].acc) > 1'}
    result = verify([TRUE, nothing])
    assert result.exit_code == 2
    assert "claims.yaml: claim 2: ours.acc / 0 divides by 0" in result.stderr


@pytest.mark.parametrize(
    ("claims", "parts"),
    [
        ("claims: []", ["claims.yaml: claims: given a list of 0; allowed: at least one"]),
        ("claim: []", ["unknown key 'claim'", "Did you mean 'claims'?"]),
        ("[1, 2]", ["claims.yaml: given a list of 2; allowed: a mapping such as claims: [{text"]),
        ("claims: 3", ["claims.yaml: claims: given 3; allowed: a list"]),
        ("claims: [a > b]", ["claim 1: given 'a > b'; allowed: a mapping such as {text: \"New"]),
        ("margins: {acc: x}\nclaims: [{text: a, check: 1 < 2}]", ["the margin of 'acc': given 'x'"]),
        ("curves: {c: [{row: a}]}\nclaims: [{text: a, check: 1 < 2}]", ["curve 'c': point 1: there is no"]),
        ("claims: [", ["claims.yaml", "not valid YAML"]),
        ([{"text": "no check"}], ["claim 1: there is no 'check'; it is needed, as in claims: ["]),
        ([TRUE | {"colums": ["acc"]}], ["claim 1: unknown key 'colums'. Did you mean 'columns'?"]),
        ([TRUE, FALSE | {"check": "row["}], ["claim 2", "check 'row['", "at 3"]),
        ([TRUE | {"check": 'row["ours"].acc'}], ["claim 1", "at 0", "a comparison was expected"]),
        (
            [TRUE | {"check": "theirs > ours"}],
            ["at 0: theirs names no cell; ", 'such as row["theirs"].acc > row["ours"].acc'],
        ),
        ([TRUE | {"check": "ours.acc > 1"}], ["ours names no cell; ", 'row["ours"].acc > row["theirs"].acc']),
        ([TRUE | {"check": 'row["our"].acc > 1'}], ["claim 1", "unknown row 'our'", "'ours'"]),
        ([TRUE | {"check": 'row["ours"].acd > 1'}], ["unknown column 'acd'", "Did you mean 'acc'?"]),
        ([TRUE | {"check": 'argmax(rows[:].acc) == "our"'}], ["unknown row 'our'", "'ours'"]),
        ([TRUE | {"check": 'max(rows_except["our"].acc) > 1'}], ["unknown row 'our'", "'ours'"]),
        ([TRUE | {"check": 'increasing("loss")'}], ["claim 1", "unknown curve 'loss'"]),
        ([TRUE | {"check": 'table["t"].row["ours"].acc > 1'}], ["claim 1", "unknown table 't'"]),
        ([TRUE | {"columns": ["ac"]}], ["claim 1", "unknown column 'ac'", "'acc'"]),
        ([TRUE | {"columns": ["acc"]}], ["claim 1: columns, given acc, say what [:] stands for"]),
        # What is true of any runs would seem to be confirmed by them.
        ([TRUE | {"check": 'argmax(rows["ours"].acc) == "ours"'}], ["claim 1: the check compares nothing"]),
        ([TRUE | {"check": "1 < 2"}], ["compares nothing: it is true whatever the runs are"]),
        # And what is true of none would seem to be contradicted, or to need more runs.
        ([TRUE | {"check": 'row["ours"].acc > 1 and 2 < 1'}], ["claim 1: the check is false whatever the"]),
        ([TRUE | {"check": 'row["ours"].acc > max(rows[:].acc)'}], ["leave it out: rows_except"]),
        (
            [TRUE | {"check": 'approx(row["ours"].acc, 90, 1 - 2)'}],
            ["given the tolerance 1 - 2; allowed:"],
        ),
        (
            [TRUE | {"check": 'max(rows_except["ours", "theirs"].acc) > 1'}],
            ["claim 1: rows_except leaves out every row: ours, theirs"],
        ),
        (
            [TRUE | {"check": 'row["ours"][:] > 1', "columns": ["acc", "acc"]}],
            ["claim 1: columns: 'acc' is given 2 times; allowed: once"],
        ),
        ([TRUE | {"text": " "}], ["claim 1: text: given ' '; allowed: text of one letter or more"]),
        (
            "rows: [a, no, a]\nclaims: [{text: a, check: 1 < 2}]",
            ["rows: 'a' is given 2 times; allowed:"],
        ),
        ("columns: [a, a]\nclaims: [{text: a, check: 1 < 2}]", ["columns: 'a' is given 2 times"]),
        ("margins: {acc: true}\nclaims: [{text: a, check: 1 < 2}]", ["given True; allowed: a number"]),
        ("margins: {acc: '1'}\nclaims: [{text: a, check: 1 < 2}]", ["given '1'; allowed: a number"]),
        (
            [TRUE | {"check": 'argmax(rows_except["ours"].acc) == "ours"'}],
            ["claim 1: row 'ours' is not in the group that it is said to be the best of: theirs"],
        ),
        ("margins: {ac: 1}\nclaims: [{text: a, check: 1 < 2}]", ["margins", "unknown column 'ac'", "'acc'"]),
        (
            "margins: {acc: -1}\nclaims: [{text: a, check: 1 < 2}]",
            ["margin of 'acc': given -1", "at least 0"],
        ),
        (
            "curves: {c: [{row: our, column: acc, x: 1}]}\nclaims: [{text: a, check: 1 < 2}]",
            ["curve 'c'", "unknown row 'our'", "'ours'"],
        ),
        (
            "curves: {c: [{row: ours, column: acc, x: 1}, {row: theirs, column: acc, x: 1}]}\n"
            "claims: [{text: a, check: 1 < 2}]",
            ["curve 'c'", "2 points lie at x = 1"],
        ),
        (
            "curves: {c: [{row: ours, column: acc, x: 1}, {row: theirs, column: acc, x: all}]}\n"
            "claims: [{text: a, check: 1 < 2}]",
            ["curve 'c': x is a word at some points and a number at others; allowed: the same at all"],
        ),
        (
            "curves: {c: [{row: ours, column: acc, x: 1}, {row: theirs, column: acc, x: 1, y: 2}]}\n"
            "claims: [{text: a, check: 1 < 2}]",
            ["curve 'c': y is given at some points and left out at others"],
        ),
    ],
)
def test_wrong_claims_are_refused(
    verify: Verify, claims: Sequence[dict[str, object]] | str, parts: list[str]
) -> None:
    says(verify(claims), *parts)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ('at("c", 3) > 1', "at: curve 'c' has no place 3; its places are 1, 2"),
        ("max_at(3) > 1", "max_at: curve 'c' has no place 3"),
        # What is true, or false, of all curves with so few places would seem to be found by the runs.
        ('linear_in_x("c")', "linear_in_x needs 3 places: a line passes through the 2 of c"),
        ('quadratic_in_x("c")', "quadratic_in_x needs 4 places: a parabola passes through the 2 of c"),
        ('rises_then_falls("c")', "rises_then_falls needs 3 places: no place of c is between its ends"),
        ('std("one") < 1', "std needs 2 places: the 1 of one has no deviation"),
        ('argmax_xy("c") == (1, 2)', "argmax_xy takes a map over two axes; c is a curve over one"),
        ('increasing("map")', "increasing takes a curve over one axis; map is a map over two"),
        ('max_at(1, ["map"]) > 1', "max_at takes a curve over one axis; map is a map over two"),
        ('argmax_x("map") > 1', "argmax_x takes a curve over one axis; map is a map over two"),
        ('argmax_x("words") > 1', "words is a curve over few, many; a function of x takes one over numbers"),
        ('crossing_x("low", "c") > 1', "crossing_x interpolates over log x: low has x = 0; allowed: above 0"),
    ],
)
def test_what_a_curve_cannot_decide_is_refused(verify: Verify, check: str, said: str) -> None:
    places = {"c": [1, 2], "words": ["few", "many"], "low": [0, 2], "one": [1], "map": [1, 2]}
    curves = {
        name: [
            {"row": row, "column": "acc", "x": x} | ({"y": x} if name == "map" else {})
            for row, x in zip(HEIGHTS, xs, strict=False)
        ]
        for name, xs in places.items()
        if name == "c" or name in check
    }
    says(
        verify(json.dumps({"curves": curves, "claims": [{"text": "t", "check": check}]})), f"claim 1: {said}"
    )


@pytest.mark.parametrize(
    ("runs", "parts"),
    [
        (HEADER, ["runs.csv holds no runs"]),
        (RUNS.replace(",", ";"), ["runs.csv: its columns are separated by semicolons; allowed: commas"]),
        ("", ["runs.csv cannot be read", "Empty CSV file"]),
        (RUNS.replace("value", "Values", 1), ["has no column 'value'", "Did you mean 'Values'?"]),
        (RUNS.replace("seed,value", "seed,seed,value").replace("acc,", "acc,1,"), ["2 columns 'seed'"]),
        (RUNS + "ours,acc,1,3\n", ["row 'ours', column 'acc', seed 1 is given 2 times"]),
        (RUNS + "ours,acc,6,nan\n", ["column 'acc', seed 6 has no value: a finite number is needed"]),
        (RUNS + "ours,acc,6,inf\n", ["row 'ours', column 'acc', seed 6 has the value inf"]),
        (RUNS + "ours,acc,6,high\n", ["column 'value' is not double", "high"]),
        (RUNS + "ours,acc,first,1\n", ["column 'seed' is not int64", "first"]),
        (RUNS + "ours,acc,1.5,1\n", ["column 'seed' is not int64"]),
        (RUNS + ",acc,6,1\n", ["run 11 has no row"]),
        (RUNS + "ours,acc,,1\n", ["row 'ours', column 'acc', without a seed stands beside runs"]),
        (RUNS + "ours,acc\n", ["runs.csv cannot be read", "Expected 4 columns"]),
    ],
)
def test_wrong_runs_are_refused(verify: Verify, runs: str, parts: list[str]) -> None:
    says(verify([TRUE], runs), *parts)


def test_a_typo_in_a_key_is_told_once_and_without_what_follows_from_it(verify: Verify) -> None:
    wrong = {"text": "a", "chek": "1 < 2"}
    said = " ".join(verify([wrong]).output.split())
    assert said == "Error: claims.yaml: claim 1: unknown key 'chek'. Did you mean 'check'?"


def test_files_in_the_wrong_order_are_told_apart(verify: Verify) -> None:
    verify([TRUE])
    says(
        CliRunner().invoke(app, ["verify", "runs.csv", "claims.yaml"]),
        "runs.csv: claims are read from a YAML file, and come first: contrasweep verify claims.yaml runs.csv",
    )


def test_files_that_are_not_there_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    claims, text = tmp_path / "claims.yaml", tmp_path / "runs.parquet"
    says(CliRunner().invoke(app, ["verify", str(claims), str(text)]), "claims.yaml: there is no such file")
    claims.write_text(json.dumps({"claims": [TRUE]}))
    says(CliRunner().invoke(app, ["verify", str(claims), str(text)]), "there is no such file")
    says(CliRunner().invoke(app, ["verify", str(claims), "runs.json"]), "ends in .parquet or .csv")
    text.write_text(RUNS)
    says(CliRunner().invoke(app, ["verify", str(claims), str(text)]), "runs.parquet cannot be read")
    os.mkfifo(tmp_path / "runs.csv")  # opening it would wait for a writer
    says(CliRunner().invoke(app, ["verify", str(claims), str(tmp_path / "runs.csv")]), "runs.csv: is a pipe")


def test_too_many_columns_and_runs_are_refused(tmp_path: Path, verify: Verify) -> None:
    columns = ",".join(map(str, range(100_000)))
    says(verify([TRUE], columns + "\n"), "has 100,000 columns; allowed: at most 1,000")
    claims, runs = tmp_path / "claims.yaml", tmp_path / "runs.parquet"
    claims.write_text(json.dumps({"claims": [TRUE]}))
    pq.write_table(pa.table({"row": pa.array(["a"] * 1_000_001).dictionary_encode()}), runs)
    found = CliRunner().invoke(app, ["verify", str(claims), str(runs)])
    says(found, "1,000,001 runs; allowed: at most 1,000,000")


def test_the_example_of_the_document_prints_what_the_document_shows(verify: Verify) -> None:
    text = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text.partition("## Your own table")[2], re.DOTALL)
    claims, runs, printed = blocks
    result = verify(claims, runs)
    assert (result.output.strip(), result.exit_code) == (printed.strip(), 1)


def test_the_command_loads_no_large_library(verify: Verify) -> None:
    assert verify([TRUE]).exit_code == 0
    program = (
        "import sys; from contrasweep.tuning.cli import app\n"
        "app(['verify', 'claims.yaml', 'runs.csv'], standalone_mode=False)\n"
        "print('loaded:', sorted({'torch', 'ray', 'pandas', 'scipy.stats'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "holds" in done.stdout
    assert "loaded: []" in done.stdout


def says(result: Result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    text = " ".join(result.output.split())
    assert text.startswith("Error:")
    for part in parts:
        assert part in text, text
