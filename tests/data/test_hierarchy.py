from pathlib import Path

import pytest
import torch

from contrasweep.data import Hierarchy, hierarchy_clusters, read_hierarchy

_TREE = """\
entity animal
entity artifact
animal bird
animal dog

bird sparrow
bird finch
artifact car
"""
_CLASSES = ["finch", "car", "sparrow", "dog"]
_LABELS = torch.tensor([0, 1, 2, 3, 2])


@pytest.fixture
def tree(tmp_path: Path) -> Hierarchy:
    path = tmp_path / "is_a.txt"
    path.write_text(_TREE)
    return read_hierarchy(path)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (1, [0, 0, 0, 0, 0]),  # entity
        (2, [0, 1, 0, 0, 0]),  # animal, artifact
        (3, [0, 1, 0, 2, 0]),  # bird, car, dog
        (4, [0, 1, 2, 3, 2]),  # the labels: car and dog end above this level
    ],
)
def test_clusters_are_the_ancestors_at_a_level(tree: Hierarchy, level: int, expected: list[int]) -> None:
    found = hierarchy_clusters(_LABELS, _CLASSES, tree, level)
    assert found.tolist() == expected
    assert found.dtype == torch.int64


def test_numbers_do_not_depend_on_the_images_at_hand(tree: Hierarchy) -> None:
    assert hierarchy_clusters(torch.tensor([3, 2]), _CLASSES, tree, 3).tolist() == [2, 0]


def test_the_way_from_the_root(tree: Hierarchy) -> None:
    assert tree.lineage("finch") == ("entity", "animal", "bird", "finch")
    assert tree.lineage("entity") == ("entity",)


@pytest.mark.parametrize("level", [0, 5])
def test_a_level_without_ancestors_is_refused(tree: Hierarchy, level: int) -> None:
    with pytest.raises(ValueError, match=rf"level must be 1 \(the root\) \.\. 4 .*, got {level}"):
        hierarchy_clusters(_LABELS, _CLASSES, tree, level)


def test_an_unknown_class_is_named_with_the_nearest(tree: Hierarchy) -> None:
    with pytest.raises(ValueError, match=r"class 'sparow' is not among the 8 nodes .*'sparrow'\?"):
        hierarchy_clusters(torch.tensor([0]), ["sparow"], tree, 1)


def test_several_parents_are_refused_or_the_first_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(_TREE + "artifact bird\nanimal bird\n")
    graph = read_hierarchy(path)
    # A line that is there twice adds no parent; only ways through the node are concerned.
    assert hierarchy_clusters(torch.tensor([0, 1]), ["dog", "car"], graph, 2).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"'bird' has several parents: 'animal', 'artifact' .*'finch'"):
        hierarchy_clusters(_LABELS, _CLASSES, graph, 2)
    found = hierarchy_clusters(_LABELS, _CLASSES, graph, 2, several_parents="first")
    assert found.tolist() == [0, 1, 0, 0, 0]
    with pytest.raises(ValueError, match=r"one of error, first, got 'last'"):
        hierarchy_clusters(_LABELS, _CLASSES, graph, 2, several_parents="last")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "circle"),
    [("a b\nb c\nc a\nc d\n", "c > a > b > c"), ("d d\n", "d > d")],
)
def test_a_circle_is_named(tmp_path: Path, lines: str, circle: str) -> None:
    path = tmp_path / "circle.txt"
    path.write_text(lines)
    with pytest.raises(ValueError, match=f"runs in a circle: {circle}$"):
        read_hierarchy(path).lineage("d")


def test_a_file_without_a_hierarchy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "is_a.txt"
    with pytest.raises(ValueError, match=r"is_a\.txt: there is no such file"):
        read_hierarchy(path)
    path.write_text("a b\n\na b c\n")
    with pytest.raises(ValueError, match=r"line 3: a line is PARENT CHILD, given 'a b c'"):
        read_hierarchy(path)
    path.write_text("\n")
    with pytest.raises(ValueError, match="holds no PARENT CHILD line"):
        read_hierarchy(path)


def test_labels_beyond_the_classes_are_refused(tree: Hierarchy) -> None:
    with pytest.raises(ValueError, match=r"labels must be 0\.\.3, one of 4 classes, got 0\.\.4"):
        hierarchy_clusters(torch.tensor([0, 4]), _CLASSES, tree, 1)
    with pytest.raises(ValueError, match=r"got -1\.\.0"):
        hierarchy_clusters(torch.tensor([0, -1]), _CLASSES, tree, 1)
    for wrong in (torch.zeros(2), torch.zeros(0, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.int64)):
        with pytest.raises(ValueError, match="whole numbers"):
            hierarchy_clusters(wrong, _CLASSES, tree, 1)
