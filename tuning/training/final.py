"""The end of a final run: scores on the test split, read once, and the encoder as a file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from data import load_test
from models import encoder_bytes
from tuning.config import Experiment
from tuning.training.evaluation import probe_scores
from tuning.training.prepared import PreparedData
from tuning.training.pretrain import EpochRecord, build_objective


@dataclass(frozen=True)
class FinalScores:
    """Callable at the end of a run: test scores of its encoder and of the untrained one, and the export.

    `export` is given the content of the encoder's file (safetensors, with the experiment in its header).
    """

    experiment: Experiment
    data_root: Path | None
    data: PreparedData
    export: Callable[[bytes], None]

    def __call__(self, record: EpochRecord) -> dict[str, float]:
        """Return `test.accuracy`, `test.untrained_accuracy` and, with a condition, the colour errors."""
        data, settings = self.data, self.experiment.probes
        test = load_test(self.experiment.dataset, self.data_root).to(data.device)
        untrained = build_objective(self.experiment, data)
        scores: dict[str, float] = {}
        for prefix, objective in (("test.", record.objective), ("test.untrained_", untrained)):
            found = probe_scores(objective, data.train, test, data.spec, settings, "logistic")
            scores |= {prefix + name: score for name, score in found.items()}
        self.export(self._encoder_file(record))
        return scores

    def _encoder_file(self, record: EpochRecord) -> bytes:
        spec = self.data.spec
        return encoder_bytes(
            record.objective.encoder,
            name=self.experiment.encoder.name,
            channels=spec.channels,
            image_size=spec.view_size,
            experiment=self.experiment.model_dump_json(),
        )
