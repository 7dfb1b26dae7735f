"""A dataset and an encoder of another distribution: found, checked, and trained on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contrasweep.data import DATASETS, DatasetSpec, dataset_spec
from contrasweep.models import ENCODERS, VECTOR_ENCODERS, build_encoder
from contrasweep.plugin_packages import plugin_versions
from contrasweep.plugins import PluginError
from contrasweep.search_spaces import SpaceError, load_dataset_settings
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import pretrain

SPEC = "from contrasweep.models import EncoderSpec; ITEM = EncoderSpec('yours', '', None, lambda *_: None)"


@pytest.mark.usefixtures("stripes")
def test_a_run_trains_the_encoder_on_the_dataset() -> None:
    e = resolve("supcon", "stripes", {"epochs": 2, "probes.max_steps": 5, "schedule.warmup_epochs": 0})
    assert (e.encoder.name, e.batch_size, e.views.flip) == ("stripe-net", 32, 0.0)
    records = list(pretrain(e))
    assert [record.epoch for record in records] == [0, 1, 2]
    assert records[-1].objective.encoder.width == 16
    assert 0.0 <= records[-1].metrics["val.accuracy"] <= 1.0


@pytest.mark.usefixtures("stripes")
def test_the_dataset_stands_among_our_own() -> None:
    assert list(DATASETS)[-1] == "stripes"
    part = dataset_spec("stripes:images=40")
    assert isinstance(part, DatasetSpec)
    assert part.train_size == 40
    listed = CliRunner().invoke(app, ["datasets", "--json"])
    assert "stripes" in [row["dataset"] for row in json.loads(listed.stdout)]
    checked = CliRunner().invoke(app, ["datasets", "check", "stripes", "--json"])
    assert checked.exit_code == 0, checked.output


@pytest.mark.usefixtures("stripes")
def test_the_encoder_stands_among_our_own() -> None:
    assert list(ENCODERS)[-1] == "stripe-net"
    assert list(VECTOR_ENCODERS) == ["herocon-mlp"]
    assert build_encoder("stripe-net", 3, 8).width == 16
    assert plugin_versions()["contrasweep-stripes"] == "0.1.0"


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        ("raise OSError('no disk')", "mine", "my_plugin:ITEM fails with OSError: no disk"),
        ("ITEM = 3", "mine", "my_plugin:ITEM must be EncoderSpec or VectorEncoderSpec; it is int"),
        (SPEC, "mine", "its EncoderSpec is called 'yours': both names must be the same"),
        (SPEC, "lenet5", "the name is taken by contrasweep itself"),
    ],
)
def test_a_broken_encoder_is_named_with_its_distribution(
    bring: Callable[..., None], code: str, name: str, reason: str
) -> None:
    bring(code, {"contrasweep.encoders": {name: "my_plugin:ITEM"}})
    assert resolve("infonce", "digits").encoder.name == "small-conv"
    with pytest.raises(PluginError) as refused:
        resolve("infonce", "digits", {"encoder.name": name})
    assert str(refused.value).startswith(f"encoder {name!r} of the distribution my-plugin cannot be used: ")
    assert reason in str(refused.value)


NETWORK = """
import torch
from contrasweep.models import Encoder, EncoderSpec
from torch import nn

class Reading(nn.Flatten):
    def forward(self, images):
        return super().forward(images / float(images.max()))

class Halving(nn.Flatten):
    def forward(self, images):
        return super().forward(images).half()

ITEM = EncoderSpec("own-net", "", None, lambda channels, size: {})
"""


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("Encoder(Halving(), 64)", r"gives features of torch\.float16; allowed: torch\.float32"),
        ("Encoder(nn.Flatten(), 32)", r"states 32 features, but of 1 x 8 x 8 images it gives \(64,\) each"),
        ("Encoder(nn.ReLU(), 64)", r"of 1 x 8 x 8 images it gives \(1, 8, 8\) each"),
        ("nn.Flatten()", r"must return an Encoder\(body, width=...\), returned Flatten"),
        ("Encoder(nn.Linear(3, 64), 64)", "encoder 'own-net' does not take 1 x 8 x 8 images"),
    ],
)
def test_an_encoder_that_does_not_give_what_it_states_is_refused(
    bring: Callable[..., None], network: str, message: str
) -> None:
    bring(NETWORK.format(network), {"contrasweep.encoders": {"own-net": "my_plugin:ITEM"}})
    with pytest.raises(InputError, match=message):
        resolve("infonce", "digits", {"encoder.name": "own-net"})


def test_an_encoder_that_reads_numbers_is_taken(bring: Callable[..., None]) -> None:
    bring(NETWORK.format("Encoder(Reading(), 64)"), {"contrasweep.encoders": {"own-net": "my_plugin:ITEM"}})
    assert resolve("infonce", "digits", {"encoder.name": "own-net"}).encoder.name == "own-net"


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        (
            "ITEM = 'a folder'",
            "mine",
            "must be DatasetFamily or TransductiveFamily; it is str",
        ),
        ("", "digits", "the name is taken by contrasweep itself"),
        ("", "scene", "the name is taken by contrasweep itself"),
    ],
)
def test_a_broken_dataset_is_named_and_ends_a_command_that_asks_for_it(
    bring: Callable[..., None], code: str, name: str, reason: str
) -> None:
    bring(code, {"contrasweep.datasets": {name: "my_plugin:ITEM"}})
    with pytest.raises(PluginError, match=f"dataset '{name}' of the distribution my-plugin.*{reason}"):
        _ = DATASETS[name]
    shown = CliRunner().invoke(app, ["datasets", "--json"])
    listed = {row["dataset"] for row in json.loads(shown.stdout)}
    assert name not in listed
    assert {"colour-digits", "two-view-digits"} <= listed
    asked = CliRunner().invoke(app, ["datasets", "check", name])
    assert asked.exit_code == 2
    assert "pip uninstall my-plugin" in asked.stderr


FAMILY = """
from dataclasses import replace
from contrasweep.data.sources.digits import DIGITS
ITEM = replace(DIGITS, name="mine", settings={})
"""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encodr.name": "lenet5"}, "dataset mine brings: .*encodr"),
        ({"batch_size": 0}, "dataset mine brings: .*batch_size"),
    ],
)
def test_wrong_settings_of_a_dataset_are_refused(
    bring: Callable[..., None], settings: dict[str, object], message: str
) -> None:
    bring(FAMILY.format(settings), {"contrasweep.datasets": {"mine": "my_plugin:ITEM"}})
    with pytest.raises(InputError, match=message):
        resolve("infonce", "mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "given list; allowed: a mapping of setting to value"),
        ("batch_size: [1, 2]", r"batch_size: given \[1, 2\]; allowed: a number"),
        ("extends: digts", "extends unknown 'digts'. Did you mean 'digits'?"),
        ("batch_size: 1\nbatch_size: 2", "batch_size: given twice"),
    ],
)
def test_a_file_of_settings_is_checked(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(SpaceError, match=rf"mine\.yaml.*{message}"):
        load_dataset_settings(file)
