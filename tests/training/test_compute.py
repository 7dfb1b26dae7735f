"""Half precision, compiled backbones and deterministic algorithms change only what they should."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from contrasweep.models import Encoder
from contrasweep.tuning.experiment import ComputeSettings, Experiment
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training import checkpoint
from contrasweep.tuning.training.compute import computing
from contrasweep.tuning.training.pretrain import build_objective, pretrain

Make = Callable[..., Experiment]
Small = Callable[[str], PreparedData]

# The identity in the version before these settings existed.
IDENTITIES = {
    ("infonce", "colour-digits"): "c358b324e75ee7b7",
    ("fair-cclk", "colour-digits"): "358b79c2f28ff6ab",
    ("herocon", "two-view-digits"): "0e0f4658254e6838",
}


@pytest.mark.parametrize(("method", "dataset"), IDENTITIES)
def test_an_experiment_that_leaves_them_alone_keeps_its_name(method: str, dataset: str) -> None:
    """A changed identity would keep stored studies from going on and orphan committed scores."""
    assert resolve(method, dataset, {}).identity() == IDENTITIES[method, dataset]


@pytest.mark.parametrize("changed", [{"precision": "bf16"}, {"compile": True}, {"deterministic": True}])
def test_what_changes_numbers_is_part_of_the_name(changed: dict[str, object]) -> None:
    names = {f"compute.{name}": value for name, value in changed.items()}
    one = resolve("infonce", "colour-digits", names)
    assert one.identity() != IDENTITIES["infonce", "colour-digits"]
    back = {f"compute.{name}": getattr(ComputeSettings(), name) for name in changed}
    assert one.with_values(back).identity() == IDENTITIES["infonce", "colour-digits"]


def test_a_checkpoint_from_before_the_settings_is_gone_on_with(
    experiment: Make, small_data: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, data = experiment("infonce"), small_data("colour-digits")
    dumps = json.dumps

    def without_compute(content: dict[str, object], **options: object) -> str:
        return dumps({name: value for name, value in content.items() if name != "compute"}, **options)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.json, "dumps", without_compute)
        records = pretrain(settings, data=data)
        next(records)
        saved = next(records).checkpoint()
    assert b'"compute"' not in saved
    assert [record.epoch for record in pretrain(settings, saved, data=data)] == [2]


@pytest.mark.parametrize("method", ["infonce", "moco-v2"])
def test_bf16_trains_near_float32_and_only_the_backbone_is_in_it(
    method: str, experiment: Make, small_data: Small
) -> None:
    data, losses, seen = small_data("colour-digits"), {}, []

    def see(module: nn.Module, _: Any, output: Any) -> None:
        # A module of a loss returns terms, not a tensor.
        if isinstance(output, Tensor):
            seen.append((type(module), module.training, output.dtype))

    for precision in ("float32", "bf16"):
        settings = experiment(method, {"compute.precision": precision})
        handle = nn.modules.module.register_module_forward_hook(see)
        records = list(pretrain(settings, data=data))
        handle.remove()
        losses[precision] = [record.metrics["train.loss"] for record in records[1:]]
        assert all(value.dtype != torch.bfloat16 for value in records[-1].objective.state_dict().values())
        found = {training for _, training, dtype in seen if dtype == torch.bfloat16}
        assert found == (set() if precision == "float32" else {True}), "probes are exact"
        assert all(dtype == torch.float32 for kind, _, dtype in seen if issubclass(kind, Encoder))
    assert losses["bf16"] != losses["float32"]
    assert losses["bf16"] == pytest.approx(losses["float32"], rel=0.06)


def test_compiled_are_the_backbones_of_who_asks(
    experiment: Make, small_data: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[nn.Module] = []

    def compile(self: nn.Module) -> None:
        compiled.append(self)

    monkeypatch.setattr(nn.Module, "compile", compile)
    plain = build_objective(experiment("infonce"), small_data("colour-digits"))
    assert compiled == []
    asked = build_objective(experiment("infonce", {"compute.compile": True}), small_data("colour-digits"))
    assert compiled == [asked.encoder.body]
    assert list(asked.state_dict()) == list(plain.state_dict())


def test_deterministic_algorithms_hold_in_the_run_alone() -> None:
    cpu = torch.device("cpu")
    with computing(ComputeSettings(), cpu):
        assert not torch.are_deterministic_algorithms_enabled()

    def interrupted() -> None:
        with computing(ComputeSettings(deterministic=True), cpu):
            assert torch.are_deterministic_algorithms_enabled()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not torch.are_deterministic_algorithms_enabled()
