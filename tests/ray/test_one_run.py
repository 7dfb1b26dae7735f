"""One run from Python, as the command `train` makes it, without Ray."""

from pathlib import Path

from contrasweep.tuning.planning.experiment_file import read_experiment
from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.planning.train_plan import plan_training
from contrasweep.tuning.ray.one_run import records_of


def test_a_run_of_a_file_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("method: infonce\ndataset: digits\nepochs: 2\nhyperparameters:\n  temperature: 0.2\n")
    method, dataset, values = read_experiment(file)
    alone = AskedResources(1, device="cpu")
    assert alone.in_one_process
    assert not AskedResources(1, gpus=0.5).in_one_process
    plan = plan_training(method, dataset, values, alone)
    assert (plan.experiment.hyperparameters["temperature"], plan.device) == (0.2, "cpu")
    assert plan.setup.endswith("2 epochs; on cpu")
    epochs, state = [], b""
    for record, saved in records_of(plan):
        epochs.append(record.epoch)
        if record.epoch == 1:
            state = saved()
    assert epochs == [0, 1, 2]
    later = plan_training(method, dataset, values, alone, state=state)
    assert [record.epoch for record, _ in records_of(later)] == [2]
