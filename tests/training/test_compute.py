"""Half precision, compiled backbones and deterministic algorithms change only what they should."""

import json
import os
import sys
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
from contrasweep.tuning.training.compute import computing, training_steps
from contrasweep.tuning.training.final_scores import scores_of_final_run
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


@pytest.mark.parametrize(
    "changed", [{"precision": "bf16"}, {"precision": "tf32"}, {"compile": True}, {"deterministic": True}]
)
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


def _tf32() -> list[object]:
    """Return what torch allows on a GPU, by its newer and its older switches; its compiler reads both."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    newer = [part.fp32_precision for part in (matmul, cudnn.conv, cudnn.rnn)]  # type: ignore[attr-defined]
    return [*newer, matmul.allow_tf32, cudnn.allow_tf32]


EXACT, ROUNDED = ["ieee", "ieee", "ieee", False, False], ["tf32", "tf32", "tf32", True, True]


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_float32_is_float32_and_tf32_is_for_the_training_steps_of_who_asks(precision: str) -> None:
    before, settings = _tf32(), ComputeSettings(precision=precision)
    assert before[1] == "tf32", "torch rounds convolutions unless told otherwise"
    with computing(settings, torch.device("cpu")):
        assert _tf32() == EXACT
        with training_steps(settings):
            assert _tf32() == (ROUNDED if precision == "tf32" else EXACT)
        assert _tf32() == EXACT
    assert _tf32() == before


def test_what_the_caller_allowed_is_allowed_afterwards() -> None:
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = True, False
    before = _tf32()
    with computing(ComputeSettings(precision="tf32"), torch.device("cpu")):
        pass
    found = _tf32()
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True
    torch.backends.cuda.matmul.fp32_precision = "none"
    assert found == before


def test_on_a_cpu_tf32_is_float32(experiment: Make, small_data: Small) -> None:
    data = small_data("colour-digits")
    of = {
        precision: [
            r.metrics for r in pretrain(experiment(values={"compute.precision": precision}), data=data)
        ]
        for precision in ("float32", "tf32")
    }
    assert of["tf32"] == of["float32"]


@pytest.mark.parametrize("deterministic", [True, False])
def test_convolutions_are_chosen_by_trial_only_where_shapes_stay_and_runs_may_differ(
    deterministic: bool,
) -> None:
    settings, cpu = ComputeSettings(deterministic=deterministic), torch.device("cpu")
    with computing(settings, cpu):
        assert not torch.backends.cudnn.benchmark
        with training_steps(settings):
            assert torch.backends.cudnn.benchmark is not deterministic
            assert torch.are_deterministic_algorithms_enabled() is deterministic
        assert not torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.benchmark


@pytest.mark.parametrize(("method", "by_trial"), [("fair-cclk", True), ("fair-infonce", False)])
def test_a_run_tries_convolutions_only_if_all_batches_have_one_shape(
    method: str, by_trial: bool, experiment: Make, small_data: Small
) -> None:
    """Batches from one cluster have many sizes; each trial of each size would make the host wait."""
    seen: set[bool] = set()

    def watch(epoch: int, step: int, steps: int) -> None:
        seen.add(torch.backends.cudnn.benchmark)

    for _ in pretrain(experiment(method), data=small_data("colour-digits"), on_step=watch):
        pass
    assert seen == {by_trial}


def test_matrix_products_on_a_gpu_can_be_deterministic_from_the_first_run_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """cuBLAS reads its setting once in a process, so it is there before anyone asks for it."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with computing(ComputeSettings(), torch.device("cpu")):
        assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    with computing(ComputeSettings(), torch.device("cuda")):
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")


def test_all_of_a_run_is_deterministic(
    experiment: Make, small_data: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its start, its epochs, and the scores of its end; nothing between them, where others compute."""
    seen: set[tuple[str, bool]] = set()

    def watched(name: str, module: str) -> None:
        function = getattr(sys.modules[module], name)

        def watching(*args: Any, **options: Any) -> Any:
            seen.add((name, torch.are_deterministic_algorithms_enabled()))
            return function(*args, **options)

        monkeypatch.setattr(f"{module}.{name}", watching)

    training = "contrasweep.tuning.training"
    for name in ("build_objective", "validation_scores"):
        watched(name, f"{training}.pretrain")
    for name in ("load_test", "build_objective", "scores_on_test"):
        watched(name, f"{training}.final_scores")
    settings, data = experiment(values={"compute.deterministic": True}), small_data("colour-digits")
    run = pretrain(settings, data=data)
    while not (record := next(run)).finished:
        assert not torch.are_deterministic_algorithms_enabled()
    scores_of_final_run(record)
    assert not torch.are_deterministic_algorithms_enabled()
    names = {"build_objective", "validation_scores", "load_test", "scores_on_test"}
    assert seen == {(name, True) for name in names}
