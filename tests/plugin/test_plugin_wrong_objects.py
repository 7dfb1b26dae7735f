"""A transductive dataset of a plug-in that returns something wrong is named."""

from collections.abc import Callable

import pytest
from wrong_returns import told

from contrasweep.data import load_test, load_transductive

Bring = Callable[..., None]

OBJECTS = """
import torch
from contrasweep.data import MultiView, TransductiveFamily, TransductiveSpec

def describe(root, options):
    views, labelled, unlabelled = ((3,), (2,)), (8, 8), (16, 16)
    {describe}
    return TransductiveSpec(
        name="mine", summary="", classes=2, licence="", source="", folder=None, views=views,
        labelled=labelled, unlabelled=unlabelled,
    )

def read(root, fold, options):
    labels = torch.arange(8) % 2
    one, other = (MultiView((torch.ones(rows, 3), torch.ones(rows, 2))) for rows in (8, 16))
    one = MultiView(one.views, labels)
    {read}
    return one, other

def read_test(root, fold, options):
    labels = torch.arange(16) % 2
    {test}
    return labels

ITEM = TransductiveFamily("mine", "", describe, lambda root, options: None, read, read_test)
"""


@pytest.fixture
def objects(bring: Bring) -> Bring:
    """Installs a transductive dataset, some lines of which are wrong."""

    def install(describe: str = "", read: str = "", test: str = "") -> None:
        code = OBJECTS.format(describe=describe, read=read, test=test)
        bring(code, {"contrasweep.datasets": {"mine": "my_plugin:ITEM"}})

    return install


def test_good_objects_pass(objects: Bring) -> None:
    objects()
    assert len(load_transductive("mine", fold=1, validation=0.25).labelled) == 6
    assert len(load_test("mine")) == 16


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"describe": "return None"}, "its describe must return TransductiveSpec, returned None"),
        ({"describe": "views = ()"}, "states views=(); allowed: (d,) or (C, H, W) for each view"),
        ({"describe": "views = ((3, 3),)"}, "states views=((3, 3),); allowed: (d,) or (C, H, W)"),
        (
            {"describe": "labelled = (8,)"},
            "states 1 folds in labelled and 2 in unlabelled; allowed: the same",
        ),
        ({"describe": "labelled = (8, 0)"}, "states labelled=(8, 0); allowed: tuple[int, ...] of 1 or more"),
        ({"read": "return one"}, "its read of fold 0 must return a tuple (MultiView, MultiView), returned ("),
        ({"read": "other = one"}, "its fold 0 has 8 unlabelled objects; allowed: 16, its unlabelled"),
        ({"read": "one = other"}, "its fold 0 has 16 labelled objects; allowed: 8, its labelled"),
        ({"read": "one = MultiView(one.views)"}, "its labelled objects have no labels"),
        ({"read": "one = MultiView(one.views, labels - 1)"}, "have labels from -1 to 0; allowed: 0 to 1"),
        ({"read": "one = MultiView(one.views[:1], labels)"}, "have views of ((3,),); allowed: ((3,), (2,))"),
        ({"read": "other = MultiView(other.views, torch.arange(16) % 2)"}, "unlabelled objects have labels"),
        ({"read": "one = MultiView((torch.ones(8),))"}, "view 1 must be float32 (N, ...)"),
    ],
)
def test_wrong_objects_are_refused(objects: Bring, given: dict[str, str], message: str) -> None:
    objects(**given)
    assert message in told(lambda: load_transductive("mine"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("return labels.tolist()", "its read_test must return Tensor, returned list"),
        ("labels = labels.float()", "must return torch.int64 (N,) or (N, c), returned torch.float32 (16,)"),
        ("labels = labels[1:]", "its read_test of fold 1 gives 15 labels; allowed: 16, its unlabelled"),
        ("labels = labels - 1", "its unlabelled objects have labels from -1 to 0; allowed: 0 to 1"),
        ("labels = labels + 1", "its unlabelled objects have labels from 1 to 2; allowed: 0 to 1"),
    ],
)
def test_wrong_labels_of_test_objects_are_refused(objects: Bring, lines: str, message: str) -> None:
    objects(test=lines)
    assert load_transductive("mine", fold=1)
    assert message in told(lambda: load_test("mine", fold=1))
