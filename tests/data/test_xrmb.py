"""XRMB: the two MATLAB files, the objects and folds of HeroCon's released code, and wrong files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat
from sklearn.model_selection import StratifiedKFold
from xrmb_files import ROWS, write_xrmb

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_transductive,
)
from contrasweep.data.sources import xrmb
from contrasweep.data.sources.xrmb import FILES, FOLDER, read_xrmb

OF_EACH, FOLDS = 10, 4


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(xrmb, "OF_EACH", OF_EACH)
    monkeypatch.setattr(xrmb, "FOLDS", FOLDS)
    write_xrmb(tmp_path)
    return tmp_path


def _stored(root: Path) -> np.ndarray:
    from scipy.io import loadmat

    return np.asarray(loadmat(root / FOLDER / FILES[1])["trainLabel"]).ravel()


def test_objects_are_the_first_rows_of_twenty_labels_in_both_views(root: Path) -> None:
    whole, labels = read_xrmb(root), _stored(root)
    assert whole.labels is not None
    assert [tuple(view.shape) for view in whole.views] == [(200, 273), (200, 112)]
    for view in whole.views:
        assert torch.equal(view[:, 1].long(), whole.labels)
    assert torch.equal(whole.views[0][:, 0], whole.views[1][:, 0])
    expected = np.concatenate([np.flatnonzero(labels == label)[:OF_EACH] for label in range(20)])
    assert sorted(whole.views[0][:, 0].int().tolist()) == sorted(expected.tolist())
    # Shuffled, as the released code has them: its unshuffled folds would follow the file otherwise.
    assert whole.labels.tolist() != sorted(whole.labels.tolist())


def test_folds_are_those_of_the_released_code(root: Path) -> None:
    whole = read_xrmb(root)
    assert whole.labels is not None
    splits = StratifiedKFold(FOLDS).split(np.zeros((200, 1)), whole.labels.numpy())
    for fold, (others, labelled) in enumerate(splits):
        data, test = load_transductive("xrmb", root, fold), load_test("xrmb", root, fold)
        assert data.labelled.labels is not None
        assert data.labelled.views[0][:, 0].tolist() == whole.views[0][labelled, 0].tolist()
        assert data.labelled.labels.tolist() == whole.labels[labelled].tolist()
        assert data.unlabelled.labels is None
        assert test.tolist() == whole.labels[others].tolist() == data.unlabelled.views[1][:, 1].tolist()


def test_the_spec_has_the_published_numbers() -> None:
    spec = dataset_spec("xrmb")
    assert (spec.views, spec.classes, spec.folds) == (((273,), (112,)), 20, 200)
    assert {*spec.labelled} == {250}
    assert {*spec.unlabelled} == {49_750}


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing) as missing:
        check_available("xrmb", tmp_path)
    for word in (str(tmp_path / FOLDER), *FILES, "klivescu", "--data-root"):
        assert word in str(missing.value)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / FILES[0]).write_bytes(b"")
    with pytest.raises(DatasetMissing, match=f"lacks {FILES[1]}"):
        load_transductive("xrmb", tmp_path)


def test_a_file_that_holds_something_else_is_named(root: Path) -> None:
    file = root / FOLDER / FILES[0]
    whole = file.read_bytes()
    for content in (whole[:2000], b"nothing of the kind", b""):
        file.write_bytes(content)
        with pytest.raises(DatasetDamaged, match=f"{FILES[0]}"):
            load_transductive("xrmb", root)
    savemat(file, {"X1": np.zeros((ROWS - 1, 273), dtype=np.float32)})
    with pytest.raises(DatasetDamaged, match=rf"X1 is {ROWS - 1} x 273, XRMB has {ROWS} x 273"):
        load_transductive("xrmb", root)
    savemat(file, {"X2": np.zeros((ROWS, 273))})
    with pytest.raises(DatasetDamaged, match="holds no variable X1"):
        load_transductive("xrmb", root)
    savemat(file, {"X1": np.full((ROWS, 273), np.nan)})
    with pytest.raises(DatasetDamaged, match="X1 holds a value that is not finite"):
        load_transductive("xrmb", root)


def test_a_label_with_too_few_rows_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xrmb, "OF_EACH", 25)
    with pytest.raises(DatasetDamaged, match="label 0 has 24 rows, 25 of each are needed"):
        load_transductive("xrmb", root)
