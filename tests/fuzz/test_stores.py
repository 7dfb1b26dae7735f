"""Damaged results folders: files of other kinds and contents, odd names, heartbeats of no driver."""

import json
import math
import os
import random
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrasweep.tuning.store import ResultsStore
from tests.fuzz.harness import fuzz, random_of
from tests.fuzz.stores import FINAL, OTHER, Reader, write_studies
from tests.studies import STUDY

CASES = 100
COMPACT_EVERY = 10

Damage = Callable[[Path, random.Random], str]


def test_damaged_stores(tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A heartbeat of another machine is watched before a merge, and here nobody beats.
    monkeypatch.setattr("contrasweep.tuning.store.heartbeat.STALE_SECONDS", 0.0)
    whole, results = tmp_path / "whole", tmp_path / "results"
    write_studies(whole)
    for number in range(CASES * times):
        draws = random_of("store", number)
        shutil.rmtree(results, ignore_errors=True)
        shutil.copytree(whole, results)
        damage = draws.choice(DAMAGES)
        what = f"case {number}: {damage.__name__}: {damage(results, draws)}"
        reader = Reader(results, tmp_path)
        reader.check(what, number)
        fuzz("show", OTHER, "--results", results, allowed=[0], case=what)
        if number % COMPACT_EVERY == 0:
            _compact(results, what)


@pytest.mark.parametrize("folder", ["studies", "trials", "epochs", "."])
def test_folders_of_the_store_of_the_wrong_kind(tmp_path: Path, folder: str) -> None:
    results = tmp_path / "results"
    write_studies(results)
    path = results / folder if folder != "." else results
    kept = path.rename(tmp_path / "kept")
    for what, make in _kinds(path).items():
        make()
        for command in (["studies"], ["show", STUDY], ["compact", STUDY]):
            fuzz(*command, "--results", results, case=f"{folder}: {what}")
        _remove(path)
    kept.rename(path)
    fuzz("show", STUDY, "--results", results, allowed=[0])


def test_every_command_refuses_a_study_without_a_file_with_the_same_words(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_studies(results)
    file = results / f"studies/{STUDY}.json"
    file.unlink()
    file.mkdir()
    reader = Reader(results, tmp_path)
    for number in range(len(reader.refusing())):
        reader.check("a folder", number)


def _compact(results: Path, case: str) -> None:
    """Compaction must lose no row that could be read before."""
    before = _rows(results)
    ended = fuzz("compact", STUDY, "--results", results, case=case)
    assert _rows(results) == before, f"{case}\n{ended.err}"


def _rows(results: Path) -> object:
    try:
        tables = ResultsStore(results).tables(STUDY)
    except ValueError:
        return None
    return repr((tables.trials.to_pylist(), tables.epochs.to_pylist()))


def _victim(results: Path, draws: random.Random, pattern: str) -> Path:
    """Return a file or folder of the study at random."""
    return draws.choice([path for path in sorted(results.rglob(pattern)) if STUDY in str(path)])


def truncated(results: Path, draws: random.Random) -> str:
    part = _victim(results, draws, "*.parquet")
    content = part.read_bytes()
    end = draws.choice([0, 4, len(content) - 1, len(content) - 8, draws.randrange(len(content))])
    part.write_bytes(content[:end])
    return f"{part.name}: {end} of {len(content)} bytes"


def garbled(results: Path, draws: random.Random) -> str:
    part = _victim(results, draws, "*.parquet")
    content, count = bytearray(part.read_bytes()), draws.choice([1, 1, 2, 10])
    for _ in range(count):
        content[draws.randrange(len(content))] = draws.randrange(256)
    part.write_bytes(content)
    return f"{part.name}: {count} bytes changed"


def other_cells(results: Path, draws: random.Random) -> str:
    part = _victim(results, draws, "*.parquet")
    table = pq.read_table(part, partitioning=None)
    name = draws.choice([column for column in table.column_names if draws.random() < 0.3 or _is_key(column)])
    odd = draws.choice(_ODD_CELLS[str(table.schema.field(name).type).partition("[")[0]])
    field = table.schema.field(name)
    cells = odd if isinstance(odd, pa.Array) else pa.array([odd], field.type)
    cells = pa.concat_arrays([cells] * table.num_rows)
    changed = table.set_column(table.column_names.index(name), field, cells)
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), part)
    return f"{part.name}: {name} is {odd!r}"


def _is_key(column: str) -> bool:
    return column in ("trial", "seed", "attempt", "epoch", "status", "time", "started", "finished")


_TIME = pa.timestamp("us", tz="UTC")
_ODD_TIMES = (0, -1, 2**63 - 1, -(2**63), 253_402_300_800_000_000)
_BROKEN_TEXT = pa.Array.from_buffers(
    pa.string(),
    1,
    [None, pa.py_buffer((0).to_bytes(4, "little") + (2).to_bytes(4, "little")), pa.py_buffer(b"\xff\xfe")],
)
_ODD_CELLS: Mapping[str, tuple[Any, ...]] = {
    "int64": (None, -1, 0, 5, 10**7, 2**40, 2**63 - 1, -(2**63)),
    "double": (None, 0.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324),
    "string": (None, "", "x", "completed", "running", "a\nb", "\0", "é" * 1000, "<b>", _BROKEN_TEXT),
    "timestamp": (
        None,
        *(
            pa.array([time], pa.int64()).cast(_TIME)
            for time in (0, -1, 2**63 - 1, -(2**63), 253402300800000000)
        ),
    ),
    "bool": (None, True, False),
}


def other_schema(results: Path, draws: random.Random) -> str:
    part = _victim(results, draws, "*.parquet")
    table = pq.read_table(part, partitioning=None)
    metadata, name = table.schema.metadata, draws.choice(table.column_names)
    place = table.column_names.index(name)
    changes: Mapping[str, Callable[[], pa.Table]] = {
        "without": lambda: table.drop_columns([name]),
        "twice": lambda: table.append_column(name, table[name]),
        "renamed": lambda: table.rename_columns(
            [f"{one}\n" if one == name else one for one in table.column_names]
        ),
        "as text": lambda: table.set_column(place, name, table[name].cast(pa.string())),
        "nested": lambda: table.set_column(place, name, pa.array([{"x": 1}] * table.num_rows)),
        "coded": lambda: table.set_column(place, name, table[name].dictionary_encode()),
        "reversed": lambda: table.select(table.column_names[::-1]),
        "no metadata": lambda: table.replace_schema_metadata(None),
        "another version": lambda: table.replace_schema_metadata(
            {**metadata, b"contrasweep.schema_version": b"\xff7\n"}
        ),
        "no rows": lambda: table.slice(0, 0),
        "rows twice": lambda: pa.concat_tables([table, table]),
        "no columns": lambda: table.select([]),
        "foreign": lambda: pa.table({"a": [1]}),
    }
    what = draws.choice(sorted(changes))
    changed = changes[what]()
    kept = (
        changed
        if what in ("no metadata", "another version", "foreign")
        else changed.replace_schema_metadata(metadata)
    )
    pq.write_table(kept, part)
    return f"{part.name}: {name} {what}"


def wrong_kind(results: Path, draws: random.Random) -> str:
    pattern = draws.choice(["*.parquet", "*.json", "*.heartbeat", "study=*", "studies/*"])
    (results / f"studies/{STUDY}.heartbeat").write_text("{}")
    path = _victim(results, draws, pattern)
    _remove(path)
    kinds = _kinds(path)
    what = draws.choice(sorted(kinds))
    kinds[what]()
    return f"{path.relative_to(results)}: {what}"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _kinds(path: Path) -> Mapping[str, Callable[[], object]]:
    """Return what makes something else in the place of a file or folder that is not there any more."""
    return {
        "an empty file": lambda: path.write_bytes(b""),
        "a folder": path.mkdir,
        "a full folder": lambda: (path / "x.parquet").mkdir(parents=True),
        "a pipe": lambda: os.mkfifo(path),
        "a socket": lambda: _bind(path),
        "a broken link": lambda: path.symlink_to("nowhere"),
        "a link to itself": lambda: path.symlink_to(path.name),
        "a link to its folder": lambda: path.symlink_to("."),
        "a link to a folder above": lambda: path.symlink_to(path.parent.parent),
        "a device": lambda: path.symlink_to("/dev/zero"),
    }


def _bind(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket has at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def odd_names(results: Path, draws: random.Random) -> str:
    folder = draws.choice(
        ["studies", "trials", "epochs", f"trials/study={STUDY}", f"epochs/study={FINAL}", "tensorboard", "."]
    )
    names = (
        *(
            b"\xff\xfe.json",
            b"\xff.parquet",
            b"\xc3\x28.heartbeat",
            b"a\nb.json",
            b"a b.json",
            b".json",
            b"..json",
        ),
        *(b"-x.json", b"\xf0\x9f\x98\x80.json", b"A" * 150 + b".json", b"x" * 255, b"%s.json~", b"=.parquet"),
        *(b"trial-9-seed-0-attempt-9.parquet", b"trial-" + b"9" * 200 + b"-seed-0-attempt-1.parquet"),
        *(
            b"compacted-x.parquet",
            b"study=",
            b"study=\xff",
            b"study=..",
            b"from-000100",
            b"study-2-final.json",
        ),
        "trial-٣-seed-0-attempt-1.parquet".encode(),
    )
    name = draws.choice(names)
    path = os.path.join(os.fsencode(results / folder), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if draws.random() < 0.3:
        os.mkdir(path)
    else:
        Path(os.fsdecode(path)).write_bytes(draws.choice([b"", b"{}", b"PAR1PAR1", b"\xff" * 20]))
    return f"{name!r} in {folder}"


def heartbeats(results: Path, draws: random.Random) -> str:
    usual = {"driver": "d", "host": "h", "machine": None, "pid": 7, "time": 1.7e9, "state": "running"}
    odd = (
        None,
        True,
        "",
        "x",
        "running",
        -1,
        0,
        1,
        2**31,
        2**64,
        10**400,
        -1.5,
        1e18,
        1e308,
        math.nan,
        math.inf,
        [],
        {},
    )
    beat = {**usual, draws.choice(sorted(usual)): draws.choice(odd)}
    if draws.random() < 0.5:
        beat["machine"] = _this_machine(results)
        beat["time"] = draws.choice([4e9, 1e300, 1.7e9, beat["time"]])
    texts = (b"", b"{", b"[]", b"\xff", b"[" * 10_000, json.dumps([usual]).encode())
    text = draws.choice(texts) if draws.random() < 0.2 else json.dumps(beat).encode()
    (results / f"studies/{STUDY}.heartbeat").write_bytes(text)
    return repr(text[:300])


def _this_machine(results: Path) -> str | None:
    from contrasweep.tuning.store.heartbeat import Heartbeat, read_heartbeat

    location = ResultsStore(results).location
    with Heartbeat(location, OTHER):
        beat = read_heartbeat(location, OTHER)
    (results / f"studies/{OTHER}.heartbeat").unlink()
    return None if beat is None else beat.machine


def leftovers(results: Path, draws: random.Random) -> str:
    path = results / draws.choice(
        [
            f"tensorboard/{STUDY}/events.out.tfevents.1.h.2.0",
            f"tensorboard/{STUDY}",
            f"checkpoints/{STUDY}/trial-000008-seed-0.safetensors",
            "checkpoints",
            f"exports/{FINAL}/trial-0-seed-1/encoder.safetensors",
            f"trials/study={STUDY}/_trial-000000-seed-0-attempt-1.parquet.0123abcd",
            f"trials/study={STUDY}/.crc",
            f"epochs/study={STUDY}/_SUCCESS",
            f"trials/study={STUDY}/from-000100/x/y/z.txt",
            "_write-check-01234567",
        ]
    )
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draws.randbytes(draws.choice([0, 1, 100])))
    return str(path.relative_to(results))


DAMAGES: list[Damage] = [
    *(truncated, garbled, other_cells, other_cells, other_schema),
    *(wrong_kind, wrong_kind, odd_names, heartbeats, leftovers),
]
