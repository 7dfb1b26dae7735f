"""The YAML of our files has plain values alone, each key once, and a bounded size."""

import os
from pathlib import Path

import pytest

from contrasweep.search_spaces import SpaceError, parse_yaml, read_yaml
from contrasweep.search_spaces.yaml_text import DEEPEST, MOST_BYTES, MOST_VALUES

LAUGHS = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("-.5", -0.5),
        ("017", 17),
        ("0x1F", 31),
        ("off", "off"),
        ("True", True),
        ("trueish", "trueish"),
        ("1:30", "1:30"),
        ("2024-13-45", "2024-13-45"),
        ("2024-01-01 99:99:99", "2024-01-01 99:99:99"),
        ("~", None),
        ("'1'", "1"),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_plain_values(text: str, value: object) -> None:
    found = parse_yaml(f"a: {text}", "here")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 9223372036854775808", "line 1: given 9223372036854775808; allowed: whole numbers of 64 bits"),
        ("a: " + "9" * 5000, "given a number of 5000 digits"),
        ("a: !!timestamp 2024-13-45", "given the tag tag:yaml.org,2002:timestamp; allowed: plain values"),
        ("a: !!python/object/apply:os.system [ls]", "given the tag .*os.system"),
        ("a: !!int x", "is no whole number"),
        ("a: !!bool maybe", "is no true or false"),
        ("a: !!map [1]", "is no mapping"),
        ("\n[1]: 2", "line 2: given a mapping or a list as a key"),
        ("a: 1\na: 2", "a: given twice in the mapping that starts on line 1"),
        ("a: &a [*a]", "is not valid YAML: line 1, column 4: found unconstructable recursive node"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), f"more than {DEEPEST} deep"),
        ("[" + "1," * MOST_VALUES + "]", f"more than {MOST_VALUES:,} values"),
        (LAUGHS, f"more than {MOST_VALUES:,} values"),
        (f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 100)}]", f"more than {MOST_VALUES:,} values"),
    ],
    ids=lambda text: text[:20],
)
def test_what_our_files_do_not_hold(text: str, reason: str) -> None:
    with pytest.raises(SpaceError, match=f"^here: .*{reason}") as caught:
        parse_yaml(text, "here")
    assert "\n" not in str(caught.value)


def test_an_anchor_may_be_used_again() -> None:
    assert parse_yaml("a: &a [1]\nb: *a", "here") == {"a": [1], "b": [1]}


def test_a_file_is_regular_and_small(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(SpaceError, match=r"pipe\.yaml: is a pipe"):
        read_yaml(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_bytes(b" " * (MOST_BYTES + 1))
    with pytest.raises(SpaceError, match=r"large\.yaml: has 1,048,577 bytes; allowed: at most 1,048,576"):
        read_yaml(tmp_path / "large.yaml")
