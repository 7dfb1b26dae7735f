"""Names in messages: which one is suggested, and when none is."""

import pytest
import typer
from typer.testing import CliRunner

from contrasweep.data import DATASETS
from contrasweep.models import ENCODERS, VECTOR_ENCODERS
from contrasweep.names import LISTED_BY, MOST_LISTED, counted, did_you_mean, few, few_quoted, nearest, unknown
from contrasweep.other_words import NOT_OFFERED, OTHER_WORDS
from contrasweep.tuning.cli import app
from contrasweep.tuning.experiment import Experiment, setting_names
from contrasweep.tuning.experiment.schedulers import SCHEDULERS
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.planning.options import SweepOptions
from contrasweep.tuning.search import SAMPLERS
from contrasweep.tuning.skeletons.writing import KINDS
from contrasweep.tuning.training.devices import DEVICES

REGISTERED = {
    "method": METHODS,
    "dataset": DATASETS,
    "encoder": {**ENCODERS, **VECTOR_ENCODERS},
    "vector encoder": VECTOR_ENCODERS,
    "sampler": SAMPLERS,
    "scheduler": SCHEDULERS,
    "device": DEVICES,
    "kind of plug-in": KINDS,
    "command": typer.main.get_group(app).commands,
    "option": [one.opts[0].lstrip("-") for one in typer.main.get_group(app).commands["sweep"].params],
    "argument": [*SweepOptions.__annotations__],
    "setting": ["temperature", *setting_names(Experiment(method="infonce", dataset="digits"))],
}


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        ("rfb", ["cosine", "rbf", "linear"], "rbf"),
        ("InfoNCE", ["fair-infonce", "infonce"], "infonce"),
        ("fair_infonce", ["infonce", "fair-infonce"], "fair-infonce"),
        ("lr", ["lam", "optimizer.lr"], "optimizer.lr"),
        ("weight-decay", ["optimizer.weight_decay", "height"], "optimizer.weight_decay"),
        ("momentm", ["optimizer.momentum", "moment.size"], "optimizer.momentum"),
        ("small", ["small-images-of-digits-in-colour", "small-images-of-digits"], "small-images-of-digits"),
        ("acc", ["val.accuracy_of_the_classifier"], "val.accuracy_of_the_classifier"),
        ("acc", ["val.accuracy", "val.auc"], "val.accuracy"),
        ("ac", ["auc", "accuracy"], "auc"),
        ("name", ["encoder.name", "optimizer.name"], "encoder.name"),
        ("a.b", ["A.B", "a.b.c"], "A.B"),
        ("qqq", ["infonce"], None),
        ("", ["infonce"], None),
        ("?", ["infonce"], None),
    ],
)
def test_the_nearest_name(given: str, known: list[str], expected: str | None) -> None:
    assert nearest(given, known) == expected


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("method", "simclr", "infonce"),
        ("method", "SimCLR", "infonce"),
        ("method", "NT-Xent", "infonce"),
        ("method", "nt_xent", "infonce"),
        ("method", "supervised-contrastive", "supcon"),
        ("method", "SupCon", "supcon"),
        ("method", "moco", "moco-v2"),
        ("method", "mocov2", "moco-v2"),
        ("method", "BYOL", "byol"),
        ("method", "Barlow_Twins", "barlow-twins"),
        ("method", "barlow", "barlow-twins"),
        ("method", "mae", None),
        ("method", "VICRegL", None),
        ("dataset", "cifar-10", "cifar10"),
        ("dataset", "CIFAR10", "cifar10"),
        ("dataset", "ImageNet", "imagenet1k"),
        ("dataset", "fashion-mnist", None),
        ("encoder", "resnet-18", "resnet18"),
        ("encoder", "ResNet18", "resnet18"),
        ("encoder", "ResNet-50", "resnet50"),
        ("device", "gpu", "cuda"),
        ("device", "cuda:0", "cuda"),
        ("device", "tpu", None),
        ("sampler", "bayesian", "gp"),
        ("setting", "learning_rate", "optimizer.lr"),
        ("setting", "optimizer.learning_rate", "optimizer.lr"),
    ],
)
def test_other_words_of_the_field(kind: str, given: str, expected: str | None) -> None:
    assert nearest(given, list(REGISTERED[kind]), kind) == expected


@pytest.mark.parametrize("kind", OTHER_WORDS)
def test_other_words_lead_to_names_that_there_are_and_hide_none(kind: str) -> None:
    names = list(REGISTERED[kind])
    assert set(OTHER_WORDS[kind].values()) - {NOT_OFFERED} <= set(names)
    assert all(nearest(name, names, kind) == name for name in names)


def test_a_word_for_a_name_that_is_not_there_is_compared_as_any_other() -> None:
    assert nearest("moco", ["cacr-moco", "supcon"], "method") == "cacr-moco"


def test_what_is_not_offered_is_said() -> None:
    told = unknown("method", "mae", ["mane", "infonce"], "; but infonce is")
    assert told == "unknown method 'mae'. It is not offered; but infonce is. Known: mane, infonce."


def test_the_text_of_a_suggestion() -> None:
    assert did_you_mean("nam", ["name"], prefix="head.") == " Did you mean 'head.name'?"
    assert unknown("key", "x", []) == "unknown key 'x'. Known: none."


def test_of_many_names_the_command_that_lists_them_is_said() -> None:
    many = [f"name-{number}" for number in range(MOST_LISTED + 1)]
    told = "unknown method 'nam-3'. Did you mean 'name-3'? There are 13: `contrasweep methods` lists them."
    assert unknown("method", "nam-3", many) == told
    assert unknown("method", "nam-3", many[:-1]).endswith(", name-10, name-11."), "a short list is shown"
    assert unknown("column", "nam-3", many).endswith(", name-11, name-12."), "no command lists columns"


@pytest.mark.parametrize("command", LISTED_BY.values())
def test_the_commands_that_list_names_are_there(command: str) -> None:
    result = CliRunner().invoke(app, command.split()[1:])
    assert result.exit_code == 0, result.output


def test_what_is_counted_has_the_right_plural() -> None:
    assert [counted(n, "final run") for n in (0, 1, 2, 1_000)] == [
        "0 final runs",
        "1 final run",
        "2 final runs",
        "1,000 final runs",
    ]


def test_of_many_names_the_first_stand_with_how_many_more() -> None:
    assert few(["a", "b", "c", "d"]) == "a, b, c, d"
    assert few([str(number) for number in range(1_002)], 2) == "0, 1 and 1,000 more"
    assert few_quoted("abc") == "'a', 'b', 'c'"
    assert few_quoted("abcd") == "'a', 'b', 'c' and 1 more"
