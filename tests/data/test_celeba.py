"""CelebA: the labels, the draw of the labelled images, and HeroCon's two views."""

from pathlib import Path

import numpy as np
import pytest
import torch
from encoded_files import pixels
from listed_archives import write_celeba, write_image

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_transductive,
)
from contrasweep.data.sources import celeba
from contrasweep.data.sources.celeba import _views_of, noisy_lower_half

LABELS = np.where(np.random.default_rng(0).random((7, 40)) < 0.25, 1, -1)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven images with their own cache: the first six are used, and two of these are labelled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(celeba, "IMAGES", 6)
    monkeypatch.setattr(celeba, "LABELLED", 2)
    write_celeba(tmp_path, LABELS)
    return tmp_path


def test_a_fold_parts_the_first_images_and_keeps_their_labels(root: Path) -> None:
    check_available("celeba", root)
    drawn = []
    for fold in (0, 1):
        data = load_transductive("celeba:size=8", root, fold)
        test = load_test("celeba:size=8", root, fold)
        assert data.labelled.labels is not None
        assert (len(data.labelled), len(data.unlabelled)) == (2, 4)
        assert data.unlabelled.labels is None
        both = torch.cat([data.labelled.labels, test]).tolist()
        assert sorted(both) == sorted((LABELS[:6] == 1).astype(int).tolist())
        drawn.append(data.labelled.labels.tolist())
    assert drawn[0] != drawn[1]


def test_view_1_is_cropped_and_view_2_is_noisy(root: Path) -> None:
    data = load_transductive("celeba:size=178", root)
    rows = celeba._fold_rows(0)[0].tolist()
    for position, row in enumerate(rows):
        picture = torch.from_numpy(pixels(row, 218, 178)).permute(2, 0, 1)
        # At 178 pixels a side only the height is resized, so that each column keeps its own mean.
        cropped = picture[:, 20:180].float().mean(dim=1)
        view = data.labelled.views[0][position].float().mean(dim=1)
        assert (view - cropped).abs().max() < 3
        noisy = noisy_lower_half(picture, row)
        assert torch.equal(noisy[[0, 2]], picture[[0, 2]])
        assert torch.equal(noisy[1, :109], picture[1, :109])
        added = noisy[1, 109:].int() - picture[1, 109:].int()
        assert (int(added.min()), int(added.max())) == (0, 49)
        view = data.labelled.views[1][position].float().mean(dim=1)
        assert (view - noisy.float().mean(dim=1)).abs().max() < 3
    assert not torch.equal(noisy_lower_half(picture, 0), noisy_lower_half(picture, 1))


def test_views_are_made_once_and_kept_until_a_file_changes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_transductive("celeba:size=8", root)
    made: list[Path] = []

    def counted(file: Path, row: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        made.append(file)
        return _views_of(file, row, size)

    monkeypatch.setattr(celeba, "_views_of", counted)
    again, other_fold = (load_transductive("celeba:size=8", root, fold) for fold in (0, 1))
    assert made == []
    for one, two in zip(first.unlabelled.views, again.unlabelled.views, strict=True):
        assert torch.equal(one, two)
    with monkeypatch.context() as patch:
        patch.setattr(celeba, "RESIDENT_LIMIT", 0)
        not_kept = load_transductive("celeba:size=8", root, 1)
    assert len(made) == 6
    for one, two in zip(other_fold.unlabelled.views, not_kept.unlabelled.views, strict=True):
        assert torch.equal(one, two)
    write_image(root / "celeba/img_align_celeba/000001.jpg", 99, 218, 178)
    changed = load_transductive("celeba:size=8", root)
    both = torch.cat([changed.labelled.views[0], changed.unlabelled.views[0]])
    before = torch.cat([first.labelled.views[0], first.unlabelled.views[0]])
    assert int((both != before).flatten(1).any(dim=1).sum()) == 1


def test_noise_does_not_wrap_around() -> None:
    white = torch.full((3, 4, 5), 255, dtype=torch.uint8)
    assert torch.equal(noisy_lower_half(white, 0), white)


def test_the_facts_are_known_without_the_files() -> None:
    spec = dataset_spec("celeba")
    assert (spec.folds, spec.labelled[0], spec.unlabelled[0], spec.classes) == (5, 500, 49_500, 40)
    assert spec.views == ((3, 64, 64),) * 2
    assert dataset_spec("celeba:size=224").views[0] == (3, 224, 224)


def test_missing_and_damaged_files_are_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match=r"nowhere/celeba does not exist\. Get it from http"):
        check_available("celeba", tmp_path / "nowhere")
    (root / "celeba/img_align_celeba/000003.jpg").unlink()
    with pytest.raises(DatasetMissing, match=r"1 of its 6 images are not there, the first is .*000003\.jpg"):
        check_available("celeba", root)
    table = root / "celeba/list_attr_celeba.txt"
    table.write_text(table.read_text().replace(" 1", " 0", 1))
    with pytest.raises(DatasetDamaged, match=r"the line of '0.*' should hold 40 times 1 or -1"):
        check_available("celeba", root)
