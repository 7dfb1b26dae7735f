"""The end of a final run: it reads the test data once, scores the encoder and writes its file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from contrasweep.data import load_test
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.encoders import encoder_file
from contrasweep.tuning.objectives.prepared import Prepared, fold_and_part
from contrasweep.tuning.training.compute import computing
from contrasweep.tuning.training.evaluation import scores_on_test
from contrasweep.tuning.training.pretrain import EpochRecord, build_objective


@dataclass(frozen=True)
class FinalScores:
    """Called at the end of a run: scores its encoder and the untrained one on the test data, and exports it.

    `export` receives the content of the encoder's file (safetensors, with the experiment in its header).
    """

    experiment: Experiment
    data_root: Path | None
    data: Prepared
    export: Callable[[bytes], None]

    def __call__(self, record: EpochRecord) -> dict[str, float]:
        """Return the test scores under `test.` and the untrained encoder's under `test.untrained_`."""
        with computing(self.experiment.compute, self.data.device):
            return self._scores(record)

    def _scores(self, record: EpochRecord) -> dict[str, float]:
        experiment, data = self.experiment, self.data
        fold, _ = fold_and_part(experiment, data.spec)
        test = data.test_data(load_test(experiment.dataset, self.data_root, fold, device=data.device))
        untrained = build_objective(experiment, data)
        scores = scores_on_test(record.objective, untrained, data, test, experiment)
        self.export(encoder_file(data.spec, record.objective.encoder, experiment))
        return scores
