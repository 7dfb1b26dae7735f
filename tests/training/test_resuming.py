"""A killed and resumed run gives the numbers of an uninterrupted one, bit by bit."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.checkpoint import DIGEST_BYTES, checkpoint_epoch
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain

Make = Callable[..., Experiment]
THREE_EPOCHS = {"epochs": 3, "schedule.warmup_epochs": 1}


def _until(e: Experiment, data: PreparedData, epoch: int) -> bytes:
    """The checkpoint of a run that stops after `epoch`."""
    for record in pretrain(e, data=data):
        if record.epoch == epoch:
            return record.checkpoint()
    raise AssertionError(f"no epoch {epoch}")


def _assert_same_end(resumed: EpochRecord, whole: EpochRecord) -> None:
    assert resumed.metrics == whole.metrics
    there, here = whole.objective.state_dict(), resumed.objective.state_dict()
    assert there.keys() == here.keys()
    assert all(torch.equal(there[name], here[name]) for name in there)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "lars"])
@pytest.mark.parametrize("method", ["infonce", "fair-cclk"])
def test_resuming_is_exact(
    method: str, optimizer: str, experiment: Make, small_data: Callable[[str], PreparedData]
) -> None:
    e = experiment(method, {**THREE_EPOCHS, "optimizer.name": optimizer})
    whole = list(pretrain(e, data=small_data("colour-digits")))
    state = _until(e, small_data("colour-digits"), 1)
    torch.manual_seed(12345)
    rest = list(pretrain(e, state, data=small_data("colour-digits")))
    assert [record.epoch for record in rest] == [2, 3]
    assert rest[0].metrics == whole[2].metrics
    _assert_same_end(rest[-1], whole[-1])


def test_resuming_is_exact_with_an_average_of_the_weights(
    experiment: Make, small_data: Callable[[str], PreparedData]
) -> None:
    settings = {"optimizer.ema": 0.8, "optimizer.clip_norm": 0.1, "optimizer.name": "adamw"}
    e = experiment("moco-v2", {**THREE_EPOCHS, **settings, "optimizer.decay_norm_and_bias": False})
    whole = list(pretrain(e, data=small_data("colour-digits")))
    for epoch in (0, 2):
        state = _until(e, small_data("colour-digits"), epoch)
        rest = list(pretrain(e, state, data=small_data("colour-digits")))
        assert [record.metrics for record in rest] == [record.metrics for record in whole[epoch + 1 :]]
        _assert_same_end(rest[-1], whole[-1])
    without = torch.load(io.BytesIO(state[DIGEST_BYTES:]), weights_only=True)
    del without["average"]
    with pytest.raises(InputError, match="the average in it is of other weights"):
        next(pretrain(e, _stored(without), data=small_data("colour-digits")))


def _stored(content: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    state = buffer.getvalue()
    return hashlib.blake2b(state, digest_size=DIGEST_BYTES).digest() + state


@pytest.mark.parametrize("epoch", [0, 2])
def test_any_epoch_s_state_will_do(epoch: int, experiment: Make, data: PreparedData) -> None:
    e = experiment("infonce", THREE_EPOCHS)
    whole = list(pretrain(e, data=data))
    rest = list(pretrain(e, _until(e, data, epoch), data=data))
    assert [record.epoch for record in rest] == list(range(epoch + 1, 4))
    _assert_same_end(rest[-1], whole[-1])


def test_a_run_may_be_killed_again_and_again(experiment: Make, data: PreparedData) -> None:
    e = experiment("fair-infonce", THREE_EPOCHS)
    whole = list(pretrain(e, data=data))
    state = _until(e, data, 0)
    for _ in range(3):
        record = next(pretrain(e, state, data=data))
        state = record.checkpoint()
    _assert_same_end(record, whole[-1])


def test_a_finished_run_has_nothing_left(experiment: Make, data: PreparedData) -> None:
    e = experiment("infonce")
    assert list(pretrain(e, _until(e, data, 2), data=data)) == []


def test_a_checkpoint_may_be_a_file(experiment: Make, data: PreparedData, tmp_path: Path) -> None:
    e = experiment("infonce")
    file = tmp_path / "state.pt"
    file.write_bytes(_until(e, data, 1))
    assert [record.epoch for record in pretrain(e, file, data=data)] == [2]


def test_a_checkpoint_says_its_epoch(experiment: Make, data: PreparedData) -> None:
    e = experiment("infonce")
    assert [checkpoint_epoch(record.checkpoint()) for record in pretrain(e, data=data)] == [0, 1, 2]


def test_a_checkpoint_of_another_experiment_is_refused(experiment: Make, data: PreparedData) -> None:
    state = _until(experiment("infonce"), data, 1)
    for values, named in (
        ({"optimizer.lr": 0.25}, ("lr", "0.05", "0.25")),
        ({"seed": 4}, ("seed", "0 there", "4 here")),
        ({"temperature": 0.3}, ("temperature", "0.1", "0.3")),
        ({"views.padding": 2}, ("views.padding: 0 there, 2 here",)),
    ):
        with pytest.raises(InputError, match="another experiment") as refused:
            next(pretrain(experiment("infonce", values), state, data=data))
        for part in named:
            assert part in str(refused.value)


def test_a_difference_is_named_without_what_is_equal(experiment: Make, data: PreparedData) -> None:
    state = _until(experiment("infonce"), data, 1)
    with pytest.raises(InputError) as refused:
        next(pretrain(experiment("infonce", {"optimizer.lr": 0.25}), state, data=data))
    assert "optimizer.lr" in str(refused.value)
    for equal in ("momentum", "seed", "epochs"):
        assert equal not in str(refused.value)


def test_a_checkpoint_of_before_a_setting_existed_goes_on(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = experiment("infonce")
    settings = Experiment.model_dump

    def earlier(self: Experiment, **options: Any) -> dict[str, Any]:
        content = settings(self, **options)
        del content["views"]["padding"]
        return content

    with monkeypatch.context() as patch:
        patch.setattr(Experiment, "model_dump", earlier)
        state = _until(e, data, 1)
    assert b"padding" not in state
    assert [record.epoch for record in pretrain(e, state, data=data)] == [2]


def _broken(whole: bytes) -> dict[str, bytes]:
    buffer = io.BytesIO()
    torch.save({"format": 0}, buffer)
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 0xFF
    return {
        "empty": b"",
        "text": b"not a checkpoint",
        "cut in the middle": whole[: len(whole) // 2],
        "short by one byte": whole[:-1],
        "another format": buffer.getvalue(),
        "one byte changed": bytes(changed),
    }


@pytest.mark.parametrize(
    "damage",
    ["empty", "text", "cut in the middle", "short by one byte", "another format", "one byte changed"],
)
def test_a_damaged_checkpoint_is_refused(damage: str, experiment: Make, data: PreparedData) -> None:
    e = experiment("infonce")
    state = _broken(_until(e, data, 1))[damage]
    with pytest.raises(InputError, match="checkpoint"):
        next(pretrain(e, state, data=data))
    with pytest.raises(InputError, match="checkpoint"):
        checkpoint_epoch(state)


def test_nothing_in_a_checkpoint_is_executed(experiment: Make, data: PreparedData) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (exec, ("raise SystemExit('executed')",))

    buffer = io.BytesIO()
    torch.save({"format": 1, "experiment": "{}", "epoch": 0, "objective": Hostile(), "optimizer": {}}, buffer)
    with pytest.raises(InputError, match="checkpoint"):
        next(pretrain(experiment("infonce"), buffer.getvalue(), data=data))
