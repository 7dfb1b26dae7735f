"""docs/label-free.md is what the stored records of the study say, and its statistics are right."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.label_free.advice import Advice, borne_out
from benchmarks.label_free.page import PAGE, page
from benchmarks.label_free.reads import (
    Correlation,
    Encoders,
    above,
    beaten_by_untrained,
    chosen,
    costs,
    encoders_of,
    over_methods,
    read_study,
)
from benchmarks.label_free.searches import MEASURES, RECORDS, Search, records_of, study_name
from contrasweep.tuning.methods.metrics import LABEL_FREE
from tests.studies import METRICS, Run, WrittenStudy, make_record

SCORES = dict.fromkeys(LABEL_FREE, 0.5)


def row(method: str = "infonce", *, status: str = "completed", crop: float = 0.4, **given: float) -> dict:
    before = {f"untrained_{name}": value for name, value in SCORES.items()}
    values = json.dumps({"views.min_crop": crop, "optimizer.lr": 0.1})
    fixed = {"dataset": "digits", "method": method, "status": status, "values": values}
    return {**fixed, **SCORES, "accuracy": 0.9, "untrained_accuracy": 0.8, **before, **given}


def encoders(*rows: dict) -> Encoders:
    (one,) = encoders_of(rows)
    return one


def test_the_page_is_what_the_records_say() -> None:
    assert page(read_study(RECORDS)) == PAGE.read_text(encoding="utf-8"), (
        "python -m benchmarks.label_free page renders it again"
    )


def test_a_score_chooses_its_best_trial_and_smaller_alignment_is_better() -> None:
    one = encoders(
        row(accuracy=0.90, rankme=3.0, alignment=0.1),
        row(accuracy=0.96, rankme=2.0, alignment=0.3),
        row(accuracy=0.84, rankme=1.0, alignment=0.2),
    )
    by_rank, by_alignment = chosen(one, "rankme"), chosen(one, "alignment")
    assert by_rank.row is by_alignment.row is one.rows[0]
    assert (by_rank.lost, by_rank.random) == pytest.approx((0.06, 0.06))


def test_failed_trials_are_not_chosen_and_not_correlated() -> None:
    failed = {**row(status="failed"), "accuracy": None, "rankme": None}
    assert len(encoders(row(), failed, row()).rows) == 2


def test_a_score_that_always_finds_the_best_loses_nothing() -> None:
    pairs = [
        encoders(*(row(accuracy=0.9 + 0.01 * place, rankme=place, lidar=-place) for place in range(5)))
    ] * 8
    found = costs(pairs)
    assert (found["rankme"].lost, found["rankme"].better, found["rankme"].worst) == (0.0, 8, 0.0)
    assert found["rankme"].random == pytest.approx(0.02)
    assert found["lidar"].lost == pytest.approx(0.04)
    # The smallest p of eight pairs, times the five scores.
    assert found["rankme"].p == pytest.approx(5 * 2 / 2**8)


def test_the_interval_is_of_trials_drawn_within_their_methods() -> None:
    # Methods differ, trials of one do not go together: methods drawn anew could give a rho of 0.
    rng = np.random.default_rng(1)
    rows = [
        row(method, rankme=shift + rng.normal(), accuracy=shift + rng.normal())
        for method, shift in (("one", 0.0), ("two", 100.0))
        for _ in range(30)
    ]
    found = over_methods(encoders(*rows), "rankme", "accuracy")
    assert 0.6 < found.low < found.rho < found.high < 0.9
    same = over_methods(encoders(*rows), "rankme", "rankme")
    assert (same.rho, same.low, same.high, same.n) == (
        pytest.approx(1),
        pytest.approx(1),
        pytest.approx(1),
        60,
    )


def test_what_the_crop_alone_explains_is_gone_when_it_is_held_fixed() -> None:
    rng = np.random.default_rng(2)
    crops = rng.uniform(size=80)
    noise = 0.1 * rng.normal(size=(2, 80))
    rows = [
        row(crop=crop, rankme=crop + first, accuracy=crop + second)
        for crop, first, second in zip(crops, *noise, strict=True)
    ]
    one = encoders(*rows)
    assert over_methods(one, "rankme", "accuracy").low > 0.7
    fixed = over_methods(one, "rankme", "accuracy", "min_crop")
    assert fixed.low < 0.0 < fixed.high


def test_a_correlation_is_above_only_with_its_whole_interval() -> None:
    high, wide, low = (Correlation(0.6, *ends, 20) for ends in ((0.55, 0.8), (0.4, 0.8), (0.1, 0.45)))
    assert above([high, high], 0.5) == "yes"
    assert above([high, wide], 0.5) == "undecided"
    assert above([high, wide, low], 0.5) == "no"


def test_the_untrained_encoder_beats_trials_with_worse_scores() -> None:
    one = encoders(row(alignment=0.4), row(alignment=0.6), row(alignment=0.7), row(alignment=0.5))
    assert beaten_by_untrained(one, "alignment") == 0.5
    assert beaten_by_untrained(one, "rankme") == 0.0


def test_advice_that_the_records_do_not_bear_out_is_refused() -> None:
    assert list(borne_out(iter([Advice("True.", True)]))) == ["True."]
    with pytest.raises(ValueError, match="do not say: False"):
        list(borne_out(iter([Advice("False.", False)])))


def test_records_have_failed_trials_and_the_scores_before_training(tmp_path: Path) -> None:
    searches = [Search("colour-digits", ("infonce",), trials=3, epochs=2, seed=0)]
    metrics = (*METRICS, *(f"val.{name}" for name in LABEL_FREE))
    name = study_name("colour-digits", "infonce")
    study = WrittenStudy(tmp_path, make_record(name, metrics=metrics, method="infonce"))
    values = {"kernel": "cosine", "optimizer.lr": 0.1}
    curve = {0: {"val.accuracy": 0.5, "val.rankme": 2.0}, 2: {"val.accuracy": 0.9, "val.rankme": 7.0}}
    study.write(
        Run(values=values, curve=curve, final=curve[2]),
        Run(values=values, curve={0: curve[0]}, status="failed", error="loss nan"),
        Run(values=values, curve={0: curve[0]}, status="running"),
    )
    table = records_of(str(tmp_path), searches)
    done, failed = table.to_pylist()
    assert (done["accuracy"], done["rankme"], done["untrained_rankme"]) == (0.9, 7.0, 2.0)
    assert (failed["status"], failed["error"], failed["accuracy"]) == ("failed", "loss nan", None)
    assert failed["untrained_accuracy"] == 0.5
    assert set(MEASURES) < set(done)
    setup = json.loads(table.schema.metadata[b"datasets"])["colour-digits"]
    assert setup["held_out"] > 0
