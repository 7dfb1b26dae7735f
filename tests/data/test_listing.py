"""What a process remembers of a tree: a change below is noticed, and an unchanged one is not read again."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from contrasweep.data import listing
from contrasweep.data.fingerprint import state_below
from contrasweep.data.listing import names_below


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files in nested folders, and one behind a link. All are old, because clocks tick slowly."""
    (tmp_path / "other").mkdir()
    (tmp_path / "tree/cat/deep").mkdir(parents=True)
    (tmp_path / "tree/cat/link").symlink_to(tmp_path / "other")
    for name in ("tree/a.png", "tree/cat/b.png", "tree/cat/deep/c.png", "other/d.png"):
        (tmp_path / name).write_bytes(b"image")
    for place in (tmp_path / "tree", *(tmp_path / "tree").rglob("*"), tmp_path / "other/d.png"):
        os.utime(place, (1, 1))
    return tmp_path / "tree"


def _swap(tree: Path) -> None:
    (tree / "cat/link").unlink()
    (tree / "cat/link").symlink_to(tree.parent / "none")


NAMES = ("a.png", "cat/b.png", "cat/deep/c.png", "cat/link/d.png")
CHANGES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "a file is added": (lambda tree: (tree / "cat/deep/e.png").touch(), {*NAMES, "cat/deep/e.png"}),
    "a file goes": (lambda tree: (tree / "cat/deep/c.png").unlink(), set(NAMES) - {NAMES[2]}),
    "a file is renamed": (
        lambda tree: (tree / "cat/b.png").rename(tree / "cat/b.txt"),
        {*NAMES} - {NAMES[1]},
    ),
    "a folder moves": (
        lambda tree: (tree / "cat/deep").rename(tree / "deep"),
        {*NAMES, "deep/c.png"} - {NAMES[2]},
    ),
    "a linked folder changes": (
        lambda tree: (tree.parent / "other/e.png").touch(),
        {*NAMES, "cat/link/e.png"},
    ),
    "a link leads elsewhere": (_swap, set(NAMES) - {NAMES[3]}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_name_that_changes_at_any_depth_is_noticed(tree: Path, change: str) -> None:
    make, expected = CHANGES[change]
    assert names_below(tree, (".png",)) == NAMES
    before = state_below(tree)
    make(tree)
    assert names_below(tree, (".png",)) == tuple(sorted(expected))
    assert state_below(tree) != before


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_another_size_or_time_is_another_state(tree: Path, name: str) -> None:
    states = {state_below(tree)}
    (tree / name).write_bytes(b"another image")
    os.utime(tree / name, (1, 1))
    states.add(state_below(tree))
    os.utime(tree / name, (1, 2))
    states |= {state_below(tree), state_below(tree)}
    assert len(states) == 3


def test_an_unchanged_tree_is_not_read_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = names_below(tree, (".png",))
    monkeypatch.setattr(listing.os, "walk", None)
    assert names_below(tree, (".png",)) is first


def test_a_folder_that_is_not_there_holds_nothing_until_it_is(tree: Path) -> None:
    assert names_below(tree / "none", (".png",)) == ()
    (tree / "none").mkdir()
    (tree / "none/a.png").touch()
    assert names_below(tree / "none", (".png",)) == ("a.png",)


def test_many_folders_that_are_listed_one_after_the_other_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = [tmp_path / str(number) for number in range(300)]
    for place in classes:
        place.mkdir()
        assert names_below(place, (".png",)) == ()
    monkeypatch.setattr(listing.os, "walk", None)
    assert [names_below(place, (".png",)) for place in classes] == [()] * len(classes)
