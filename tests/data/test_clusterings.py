import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from contrasweep.data import (
    CLUSTERINGS,
    Clusterings,
    DatasetMissing,
    cluster_information,
    data_root,
    instance_clusters,
    label_clusters,
    load_clusterings,
    read_clusterings,
)

# As the authors of Cl-InfoNCE write it: clusters for k = 2 and 10, out of order; the last line counts values.
_READY = """\
,path,class,label_gran_10,label_gran_2
7,a.jpg,0,4,0
3,b.jpg,2,4,0
5,c.jpg,2,9,1
9,d.jpg,1,0,1
-1,num_per_label_gran,3,3,2
"""

_ATTRIBUTES = """\
path,class,rare,half,shade
a.jpg,boot,0,0,dark
b.jpg,boot,0,0,light
c.jpg,shoe,0,1,light
d.jpg,shoe,1,1,light
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metadata.csv"


def _clusters(found: Clusterings) -> dict[int, list[int]]:
    return {k: clusters.tolist() for k, clusters in found.of(found.ks)}


def test_ready_clusters_are_read_without_the_line_of_counts(file: Path) -> None:
    file.write_text(_READY)
    found = read_clusterings(file)
    assert found.labels.tolist() == [0, 2, 2, 1]
    assert found.ks == (2, 10)
    # Numbered anew in the order of their numbers, which have gaps.
    assert _clusters(found) == {2: [0, 0, 1, 1], 10: [1, 1, 2, 0]}
    assert found.ranked == ()


def test_labels_of_ready_clusters_may_be_names(file: Path) -> None:
    rows = (
        _READY.replace("a.jpg,0", "a.jpg,boot").replace("d.jpg,1", "d.jpg,shoe").replace("jpg,2", "jpg,boat")
    )
    file.write_text(rows)
    found = read_clusterings(file)
    assert found.labels.tolist() == [0, 1, 1, 2]
    assert _clusters(found)[2] == [0, 0, 1, 1]
    file.write_text(rows.replace(",path,", ",file,").replace("b.jpg,boat", "b.jpg,"))
    with pytest.raises(ValueError, match=r"1 images have no 'class'$"):
        read_clusterings(file)


def test_a_file_without_a_line_of_counts_is_read_whole(file: Path) -> None:
    file.write_text("".join(_READY.splitlines(keepends=True)[:-1]))
    assert _clusters(read_clusterings(file))[2] == [0, 0, 1, 1]


def test_lost_lines_show_in_the_counts(file: Path) -> None:
    file.write_text(_READY.replace("9,d.jpg,1,0,1\n", ""))
    with pytest.raises(ValueError, match=r"damaged: 'label_gran_10' has 2 clusters, its last line says 3"):
        read_clusterings(file)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("3,b.jpg,2,4,0", "3,b.jpg,2,four,0", "'label_gran_10' should hold whole numbers, found 'four'"),
        ("3,b.jpg,2,4,0", "3,b.jpg,,4,0", r"1 images have no 'class': 'b\.jpg'"),
        ("label_gran_2", "label_gran_x", "'label_gran_x' should end in a number"),
        ("class", "klass", r"unknown column 'class'\. Did you mean 'klass'\?"),
    ],
)
def test_damaged_ready_clusters_are_refused(file: Path, before: str, after: str, message: str) -> None:
    ready = _READY.replace("-1,num_per_label_gran,3,3,2\n", "")
    file.write_text(ready.replace(before, after))
    with pytest.raises(ValueError, match=message):
        read_clusterings(file)


def test_attributes_give_clusters_for_every_k(file: Path) -> None:
    file.write_text(_ATTRIBUTES)
    found = read_clusterings(file, categorical=["shade"])
    assert found.labels.tolist() == [0, 0, 1, 1]
    assert found.ks == (1, 2, 3, 4)
    assert found.ranked == ("half", "rare", "shade=dark", "shade=light")
    assert _clusters(found) == {1: [0, 0, 1, 1], 2: [0, 0, 1, 2], 3: [1, 0, 2, 3], 4: [1, 0, 2, 3]}
    assert read_clusterings(file, ignore=["shade", "rare"]).ranked == ("half",)


def test_an_image_without_a_label_is_named(file: Path) -> None:
    file.write_text(_ATTRIBUTES.replace("b.jpg,boot", "b.jpg,"))
    with pytest.raises(ValueError, match=r"1 images have no 'class': 'b\.jpg'"):
        read_clusterings(file, categorical=["shade"])


def test_k_out_of_range_is_refused(file: Path) -> None:
    file.write_text(_ATTRIBUTES)
    attributes = read_clusterings(file, categorical=["shade"])
    with pytest.raises(ValueError, match=r"k must lie in 1\.\.4 \(there are 4 attributes\), given 1\.\.5"):
        attributes.curve(high=5)
    file.write_text(_READY)
    ready = read_clusterings(file)
    with pytest.raises(ValueError, match=r"lie in 2\.\.10 \(there are no other clusters\), given 1\.\.10"):
        ready.curve(low=1)
    with pytest.raises(ValueError, match=r"no clusters for k in 3\.\.9; there are those for k = 2, 10"):
        ready.curve(3, 9)
    assert ready.curve(2, 9).ks == (2,)
    assert ready.curve().ks == (2, 10)


def test_an_unknown_set_is_named_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'ut-zapos50k'.*'ut-zappos50k'"):
        load_clusterings("ut-zapos50k")


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_a_set_that_is_not_there_says_where_to_get_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match=rf"'{name}' not found.*Get it from https://"):
        load_clusterings(name, tmp_path)


def test_instances_and_labels_are_clusters() -> None:
    assert instance_clusters(3).tolist() == [0, 1, 2]
    assert label_clusters(torch.tensor([7, 3, 7])).tolist() == [1, 0, 1]
    assert label_clusters(torch.tensor([1, 0], dtype=torch.uint8)).dtype == torch.int64
    with pytest.raises(ValueError, match="at least one image, got 0"):
        instance_clusters(0)
    for wrong in (torch.zeros(2), torch.zeros(0, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.int64)):
        with pytest.raises(ValueError, match="whole numbers"):
            label_clusters(wrong)


@pytest.fixture
def zappos() -> tuple[Clusterings, Path]:
    folder = data_root() / "attributes" / "UT-zappos50K"
    if not (folder / "meta_data_train_stats_metrics.csv").is_file():
        pytest.skip(f"needs {folder}")
    try:
        return load_clusterings("ut-zappos50k"), folder
    except DatasetMissing as error:
        pytest.skip(str(error))


def test_ut_zappos_has_the_information_its_authors_publish(zappos: tuple[Clusterings, Path]) -> None:
    found, folder = zappos
    assert (len(found.labels), int(found.labels.max()) + 1) == (35_017, 21)
    with (folder / "meta_data_train_stats_metrics.csv").open() as file:
        theirs = {row[""]: (float(row["I(Y;T)"]), float(row["H(Y|T)"])) for row in csv.DictReader(file)}
    curve = found.curve(3, 150)
    ours = dict(zip(curve.ks, zip(curve.information, curve.conditional_entropy, strict=True), strict=True))
    for k, both in ours.items():
        if f"label_gran_{k}" in theirs:
            assert both == pytest.approx(theirs[f"label_gran_{k}"], abs=1e-12)
    assert set(ours) == {3, 5, 7, 10, 13, 15, 20, 30, 50, 70, 90, 110, 130, 150}
    instances = instance_clusters(len(found.labels))
    assert cluster_information(instances, found.labels) == pytest.approx(theirs["instance_id"], abs=1e-11)
    labels = label_clusters(found.labels)
    assert cluster_information(labels, found.labels) == pytest.approx(theirs["class"], abs=1e-12)


def test_ut_zappos_has_the_information_of_its_table_of_counts(zappos: tuple[Clusterings, Path]) -> None:
    """Exact values, from a table of counts and H(Z, T) - H(T) instead of sums over the pairs."""
    found, _ = zappos
    curve = found.curve()
    for index, (_, clusters) in enumerate(found.of(curve.ks)):
        counts = np.zeros((int(clusters.max()) + 1, 21))
        np.add.at(counts, (clusters.numpy(), found.labels.numpy()), 1)
        cluster, label, both = (_entropy(counts.sum(1)), _entropy(counts.sum(0)), _entropy(counts.ravel()))
        assert curve.information[index] == pytest.approx(cluster + label - both, abs=1e-11)
        assert curve.conditional_entropy[index] == pytest.approx(both - label, abs=1e-11)


def test_the_crossing_of_ut_zappos(zappos: tuple[Clusterings, Path]) -> None:
    crossing = zappos[0].curve(3, 150).crossing
    assert crossing is not None
    assert crossing.k == 10
    assert crossing.at == pytest.approx(10.66, abs=0.005)


def _entropy(counts: np.ndarray) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log2(share)).sum())
