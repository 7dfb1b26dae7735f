"""Damaged and foreign study files: every command refuses them in one line, or reads them to the end."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.fuzz.damages import CHANGES, GARBLINGS, Change
from tests.fuzz.harness import random_of
from tests.fuzz.stores import Reader, write_studies
from tests.studies import STUDY

CASES = 250


def test_damaged_study_files(tmp_path: Path, times: int) -> None:
    results = tmp_path / "results"
    write_studies(results)
    file = results / f"studies/{STUDY}.json"
    whole = file.read_bytes()
    reader = Reader(results, tmp_path)
    for number in range(CASES * times):
        draws = random_of("study file", number)
        damaged, what = draws.choice(DAMAGES)(whole, draws)
        file.write_bytes(damaged)
        reader.check(f"case {number}: {what}", number)


Damage = Callable[[bytes, random.Random], tuple[bytes, str]]


def _of_json(change: Change) -> Damage:
    def damage(whole: bytes, draws: random.Random) -> tuple[bytes, str]:
        content = json.loads(whole)
        what = change(content, draws)
        return json.dumps(content).encode(), what

    return damage


def _disagree(content: Any, draws: random.Random) -> str:
    """Change one of two parts that belong together."""
    columns, search = content["columns"], content["search"]
    changes: Mapping[str, Callable[[], Any]] = {
        "no columns": lambda: columns.update(hyperparameters={}, metrics=[]),
        "no space": lambda: content.update(space={}),
        "other space": lambda: content.update(space={"x": {"uniform": [0, 1], "default": 0.5}}),
        "the type of a column": lambda: columns["hyperparameters"].update({"optimizer.lr": "string"}),
        "fewer metrics": lambda: columns.update(metrics=columns["metrics"][:2]),
        "another metric": lambda: search.update(metric="val.recall"),
        "one metric": lambda: search.update(metric="val.accuracy"),
        "a metric twice": lambda: search.update(metric="val.accuracy,val.accuracy"),
        "an empty metric": lambda: search.update(metric="val.accuracy,"),
        "another method": lambda: content.update(method="infonce"),
        "an unknown method": lambda: (
            content.update(method="x"),
            content["experiment"].update(method="x"),
        ),
        "an unknown dataset": lambda: (
            content.update(dataset="x"),
            content["experiment"].update(dataset="x"),
        ),
        "final runs": lambda: content.update(search={"metric": "test.accuracy"}),
        "another name": lambda: content.update(name="other"),
        "a later store": lambda: content.update(schema_version=2),
        "another series": lambda: content["versions"].update(contrasweep="9.1.0"),
        "more trials": lambda: search.update(trials=10**12, concurrency=10**12),
        "fewer trials": lambda: search.update(trials=1),
        "more seeds": lambda: search.update(seeds=3),
        "the first date": lambda: content.update(created="0001-01-01T00:00:00+14:00"),
        "the last date": lambda: content.update(created="9999-12-31T23:59:59-14:00"),
        "a date ahead": lambda: content.update(created="9998-12-31T23:59:59-14:00"),
        "a naive date": lambda: content.update(created="2026-01-02T12:00:00"),
        "one epoch": lambda: content["experiment"].update(epochs=1),
        "many epochs": lambda: content["experiment"].update(epochs=10**9),
    }
    what = draws.choice(sorted(changes))
    changes[what]()
    return what


def _foreign(whole: bytes, draws: random.Random) -> tuple[bytes, str]:
    texts = (
        b"",
        b"\xef\xbb\xbf" + whole,
        whole.decode().encode("utf-16"),
        b"\0" * 1000,
        b"null",
        b"3",
        b'"text"',
        b"[]",
        b"{}",
        b'{"name": "package", "version": "1.0.0", "dependencies": {}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"name": ' + b"[" * 150 + b"]" * 150 + b"}",
        b"9" * 5000,
        whole.replace(b'"seed": 0', b'"seed": ' + b"9" * 5000),
        whole.replace(b'"host"', b'"\\ud800"'),
        whole.replace(b'"command": "', b'"command": "\\ud83d'),
        whole * 2,
        whole.replace(b"0.1", b"NaN"),
        whole.replace(b"0.1", b"-Infinity"),
        b"PAR1" + whole + b"PAR1",
    )
    number = draws.randrange(len(texts))
    return texts[number], f"foreign text {number}"


DAMAGES: list[Damage] = [
    *map(_of_json, (*CHANGES, _disagree)),
    *(*GARBLINGS, _foreign),
]
