import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import real_root
from sklearn.model_selection import StratifiedKFold

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    dataset_spec,
    load_test,
    load_transductive,
)
from contrasweep.data.sources.folds import unshuffled_folds
from contrasweep.data.sources.scene import (
    CLASS_NAMES,
    noisy_views,
    read_label_names,
    read_multilabel_arff,
    read_scene,
)

ARFF = """% a comment
@relation Toy

@ATTRIBUTE a numeric
@attribute Sunny {0,1}
@attribute 'b' real
@attribute Wet {0,1}

@data
0.5,1,-2e-1,0
1,0,3,1

2.25,1,4,1
"""


def _arff(folder: Path, text: str) -> Path:
    path = folder / "toy.arff"
    path.write_text(text)
    return path


def test_an_arff_file_is_read_by_its_attributes_names(tmp_path: Path) -> None:
    features, labels = read_multilabel_arff(_arff(tmp_path, ARFF), ("Wet", "Sunny"))
    assert features.tolist() == torch.tensor([[0.5, -0.2], [1, 3], [2.25, 4]]).tolist()
    assert labels.tolist() == [[0, 1], [1, 0], [1, 1]]
    assert (features.dtype, labels.dtype) == (torch.float32, torch.int64)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("Wet", "Dry", "has no attribute Wet"),
        ("@data", "", "is not an ARFF file"),
        ("2.25,1,4,1", "2.25,1,4,2", "row 3 holds a label that is neither 0 nor 1"),
        ("2.25,1,4,1", "2.25,1,4,0.5", "row 3 holds a label"),
        ("1,0,3,1", "1,0,nan,1", "row 2 holds a value that is not finite"),
        ("1,0,3,1", "1,0,?,1", "is not a table of numbers"),
        ("1,0,3,1", "1,0,3", "is not a table of numbers"),
        ("@attribute 'b' real\n", "", "rows of 4 values for 3 attributes"),
    ],
)
def test_a_wrong_arff_file_is_named_with_the_reason(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    assert ARFF.count(before) == 1
    path = _arff(tmp_path, ARFF.replace(before, after))
    with pytest.raises(DatasetDamaged, match=message) as refused:
        read_multilabel_arff(path, ("Sunny", "Wet"))
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("text", ["", "no markup", "<labels/>", '<labels><label name=""/></labels>'])
def test_a_wrong_label_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.xml"
    path.write_text(text)
    with pytest.raises(DatasetDamaged, match=r"x\.xml"):
        read_label_names(path)
    path.write_text('<labels xmlns="http://x"><label name="A"></label><label name="B"/></labels>')
    assert read_label_names(path) == ("A", "B")


def test_files_of_another_set_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "scene"
    folder.mkdir()
    (folder / "scene.xml").write_text('<labels><label name="Sunny"/></labels>')
    with pytest.raises(DatasetDamaged, match="names the labels Sunny, not those of Scene"):
        read_scene(tmp_path)
    (folder / "scene.xml").write_text(
        "<labels>" + "".join(f'<label name="{name}"/>' for name in CLASS_NAMES) + "</labels>"
    )
    attributes = "".join(f"@attribute {name} {{0,1}}\n" for name in ("x", *CLASS_NAMES))
    (folder / "scene-train.arff").write_text(f"{attributes}@data\n0.5,1,0,0,0,0,0\n")
    with pytest.raises(DatasetDamaged, match="holds 1 x 1 features, Scene has 1211 x 294"):
        read_scene(tmp_path)


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    for use in (load_transductive, load_test):
        with pytest.raises(DatasetMissing) as missing:
            use("scene", tmp_path)
        for word in (str(tmp_path / "scene"), "scene-train.arff", "scene.xml", "mulan", "CONTRASWEEP_DATA"):
            assert word in str(missing.value)


@settings(max_examples=60, deadline=None)
@given(
    groups=st.lists(st.integers(0, 6), min_size=8, max_size=60).filter(
        lambda given: max(map(given.count, given)) >= 4
    ),
    folds=st.integers(2, 4),
)
def test_the_folds_are_scikit_learn_s(groups: list[int], folds: int) -> None:
    fold_of = unshuffled_folds(np.array(groups), folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for fold, (_, held_out) in enumerate(StratifiedKFold(folds).split(groups, groups)):
            assert np.flatnonzero(fold_of == fold).tolist() == held_out.tolist()


def test_each_view_has_noise_on_its_half_of_the_rows() -> None:
    features = torch.rand(2001, 40) * 3 + 1
    first, second = noisy_views(features, 0.01)
    assert torch.equal(first[1::2], features[1::2])
    assert torch.equal(second[::2], features[::2])
    for start, view in enumerate((first, second)):
        rows = features[start::2].double()
        added = view[start::2].double() - rows
        assert float(added.mean()) == pytest.approx(0.01 * float(rows.mean()), rel=0.02)
        assert float(added.std()) == pytest.approx(0.01 * float(rows.std()), rel=0.02)
    assert not torch.allclose(first[::2][:1000] - features[::2][:1000], second[1::2] - features[1::2])
    again = noisy_views(features, 0.01)
    assert torch.equal(first, again[0])
    assert torch.equal(noisy_views(features, 0.0)[0], features)


def test_the_level_is_checked() -> None:
    with pytest.raises(ValueError, match=r"level of dataset scene must be 0 to 1, given 1\.5"):
        dataset_spec("scene:level=1.5")
    assert dataset_spec("scene:level=0.05").name == "scene:level=0.05"
    assert dataset_spec("scene:views=1").views == ((294,),)


def test_real_scene_s_folds_are_the_released_ones() -> None:
    root = real_root("scene")
    table, spec = read_scene(root), dataset_spec("scene")
    assert table.views[0][0, :2].tolist() == torch.tensor([0.646467, 0.666435]).tolist()
    assert table.labels.sum(dim=0).tolist() == [427, 364, 397, 433, 533, 431]
    # The released code numbers the label sets by their text.
    texts = np.unique(["".join(map(str, row)) for row in table.labels.tolist()], return_inverse=True)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        folds = [held_out for _, held_out in StratifiedKFold(20).split(texts, texts)]
    assert tuple(map(len, folds)) == spec.labelled
    for fold in (0, 4):
        data, test = load_transductive("scene", root, fold), load_test("scene", root, fold)
        (one,) = load_transductive("scene:views=1", root, fold).labelled.views
        # The first view has its noise on the even rows, the second on the odd ones: neither is the table.
        assert all(bool((one == view).all(dim=1).any()) for view in data.labelled.views)
        assert not any(torch.equal(one, view) for view in data.labelled.views)
        assert torch.equal(data.labelled.labels, table.labels[folds[fold]])
        rest = np.setdiff1d(np.arange(2407), folds[fold])
        assert torch.equal(test, table.labels[rest])
        # Rows with an odd number are without noise in the first view.
        assert torch.equal(data.unlabelled.views[0][rest % 2 == 1], table.views[0][rest[rest % 2 == 1]])
        assert len(data.unlabelled) == len(test) == spec.unlabelled[fold]
