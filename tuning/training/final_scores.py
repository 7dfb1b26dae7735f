"""The end of a final run: it reads the test data once and scores the encoder."""

from pathlib import Path

from contrasweep.data import load_test
from contrasweep.tuning.objectives.prepared import fold_and_part
from contrasweep.tuning.objectives.ranks import ONE
from contrasweep.tuning.training.compute import computing
from contrasweep.tuning.training.evaluation import scores_on_test
from contrasweep.tuning.training.pretrain import EpochRecord, build_objective


def scores_of_final_run(record: EpochRecord, data_root: Path | None = None) -> dict[str, float]:
    """Return the scores of a run's last record on the test data.

    Of several ranks, the first one scores alone.

    Args:
        record: the last one of the run.
        data_root: the folder of the datasets.

    Returns:
        The encoder's test scores under `test.` and the untrained encoder's under `test.untrained_`.
    """
    experiment, data = record.experiment, record.data.shared(ONE)
    with computing(experiment.compute, data.device):
        fold, _ = fold_and_part(experiment, data.spec)
        test = data.test_data(load_test(experiment.dataset, data_root, fold, device=data.device))
        untrained = build_objective(experiment, data)
        return scores_on_test(record.objective, untrained, data, test, experiment)
