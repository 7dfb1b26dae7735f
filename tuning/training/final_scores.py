"""The end of a final run: scores on the test split, read once, and the encoder as a file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from contrasweep.data import MultiView, load_test, load_transductive_test
from contrasweep.models import encoder_bytes
from contrasweep.models.export import multiview_encoder_bytes
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import Prepared, PreparedData
from contrasweep.tuning.objectives.transductive import PreparedTransductive, fold_of, transductive_scores
from contrasweep.tuning.training.evaluation import classifier_scores, probe_scores
from contrasweep.tuning.training.pretrain import EpochRecord, build_objective


@dataclass(frozen=True)
class FinalScores:
    """Callable at the end of a run: test scores of its encoder and of the untrained one, and the export.

    `export` is given the content of the encoder's file (safetensors, with the experiment in its header).
    """

    experiment: Experiment
    data_root: Path | None
    data: Prepared
    export: Callable[[bytes], None]

    def __call__(self, record: EpochRecord) -> dict[str, float]:
        """Return the test scores under `test.` and the untrained encoder's under `test.untrained_`."""
        data = self.data
        if isinstance(data, PreparedTransductive):
            scores = self._transductive(data, record)
        else:
            scores = self._of_images(data, record)
        self.export(_encoder_file(self.experiment, data, record))
        return scores

    def _of_images(self, data: PreparedData, record: EpochRecord) -> dict[str, float]:
        test = load_test(self.experiment.dataset, self.data_root).to(data.device)
        probes = self.experiment.probes
        scores = self._trained_and_untrained(
            record,
            lambda objective: probe_scores(
                objective, data.labelled, test, data.spec, probes, probes.classifier
            ),
        )
        if METHODS[self.experiment.method].classifies:
            own = classifier_scores(record.objective, test, data.spec)
            scores |= {f"test.classifier_{name}": score for name, score in own.items()}
        return scores

    def _transductive(self, data: PreparedTransductive, record: EpochRecord) -> dict[str, float]:
        fold = fold_of(self.experiment, data.spec)
        labels = load_transductive_test(self.experiment.dataset, self.data_root, fold).to(data.device)
        # The test objects come first among the unlabelled ones, in the order of their labels.
        views = tuple(view[: len(labels)] for view in data.data.unlabelled.views)
        test = MultiView(views, labels)
        return self._trained_and_untrained(
            record,
            lambda objective: transductive_scores(objective, test, data.spec, self.experiment.probes),
        )

    def _trained_and_untrained(
        self, record: EpochRecord, score: Callable[[Objective], dict[str, float]]
    ) -> dict[str, float]:
        untrained = build_objective(self.experiment, self.data)
        scores: dict[str, float] = {}
        for prefix, objective in (("test.", record.objective), ("test.untrained_", untrained)):
            scores |= {prefix + name: value for name, value in score(objective).items()}
        return scores


def _encoder_file(experiment: Experiment, data: Prepared, record: EpochRecord) -> bytes:
    settings, content = experiment.encoder, experiment.model_dump_json()
    name, encoder = settings.name, record.objective.encoder
    if isinstance(data, PreparedTransductive):
        return multiview_encoder_bytes(encoder, name=name, views=data.spec.views, experiment=content)
    return encoder_bytes(
        encoder,
        name=name,
        channels=data.spec.channels,
        image_size=data.spec.view_size,
        mean=settings.mean,
        std=settings.std,
        experiment=content,
    )
