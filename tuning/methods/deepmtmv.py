"""DeepMTMV: each label is a task, and tasks that find the same objects hard share layers.

It follows the authors' released code (Leo02016/DeepMTMV, model.py), in which every view has the errors of
the joined network, so clustering over several views equals clustering of a single affinity matrix. The code
passes eigenvectors where Laplacians are expected; we use standard spectral clustering. The code supports only
one label per object.

Shapes: n labelled objects, c labels, V views.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import named_seed
from contrasweep.models.branching import BranchingHead
from contrasweep.models.encoders.multiview import MultiViewEncoder
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import transductive_feed
from contrasweep.tuning.objectives.draws import StepDraws
from contrasweep.tuning.objectives.objective import Gather, Metrics, Objective, of_every_image
from contrasweep.tuning.objectives.prepared import PreparedTransductive, TransductiveBatch
from contrasweep.tuning.objectives.task_groups import TaskAffinity, best_partition, branch_affinity
from contrasweep.tuning.objectives.transductive import MultiViewClassifier, views_of

TOP = 3
"""The number of the layer of tasks, from which the cost of columns below it is counted."""


class GroupedTasks(MultiViewClassifier):
    """A head over the joined, L2-normalised features of all views; groups of tasks part from the top.

    After every `every` epochs, the affinities of tasks decide how the second layer parts, and later the
    first. Unlabelled objects are not read.
    """

    def __init__(self, experiment: Experiment, encoder: MultiViewEncoder, data: PreparedTransductive) -> None:
        super().__init__(encoder, data)
        settings = experiment.hyperparameters
        self.branches = BranchingHead(encoder.width, self.classes)
        self.affinity = TaskAffinity(self.classes)
        self.kept_share = 1.0 - float(settings["dropout"])
        self.every = int(settings["every"])
        self.separation = float(settings["separation"]) / len(encoder.encoders)
        self.seed, self.ranks = experiment.seed, data.ranks
        self.draws = StepDraws(experiment.seed, "dropout")

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Part the groups of tasks where it is time; return into how many the second layer has parted."""
        self.draws.begin(epoch)
        if epoch > 1 and (epoch - 1) % self.every == 0:
            self._part(epoch)
        return {"task_groups": float(self.branches.columns[1].max() + 1)}

    def after_step(self) -> None:
        """Go on to the next step's dropout."""
        self.draws.advance()

    def _part(self, epoch: int) -> None:
        """Group the tasks, or the columns of the second layer once it has parted, for the layer below."""
        first, second = (bool(columns.any()) for columns in self.branches.columns)
        if first:
            return
        layer = 0 if second else 1
        branches = self.branches.columns[1].cpu() if second else torch.arange(self.classes)
        affinity = branch_affinity(self.affinity.matrix().cpu(), branches)
        seed = named_seed(self.seed, "task groups", epoch)
        groups = self.ranks.once(
            lambda: best_partition(affinity, TOP - 1 + layer, seed, separation=self.separation)
        )
        self.branches.part(layer, groups[branches].to(self.branches.columns.device))

    def compute(self, batch: TransductiveBatch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the cross-entropy of the tasks, `classification`."""
        joined = gather(self._joined(views_of(batch.labelled)), 0)
        labels = batch.gathered_labels(gather)
        logits = self.branches(joined * self.draws.kept(joined, self.kept_share))
        if self.multi_label:
            loss = self.classification(logits, labels)
        else:
            loss = functional.cross_entropy(logits, labels)
        self.affinity.update(logits.detach(), self.rows_of(labels, logits))
        return of_every_image(loss, {"classification": loss})

    def _joined(self, views: list[Tensor]) -> Tensor:
        """Return the features of each view, of length 1, side by side."""
        return torch.cat([functional.normalize(own, dim=1) for own in self.encoder.by_view(views)], dim=1)

    def logits(self, views: list[Tensor]) -> Tensor:
        """Return the scores of the tasks."""
        scores: Tensor = self.branches(self._joined(views))
        return scores


def build(experiment: Experiment, encoder: MultiViewEncoder, data: PreparedTransductive) -> Objective:
    """Return the tasks' head on the views' encoders."""
    return GroupedTasks(experiment, encoder, data)


METHOD = Method(
    name="deepmtmv",
    summary="labels are tasks that share layers, until they find different objects hard",
    paper="DeepMTMV (Zheng et al. 2019); a baseline of HeroCon",
    equation="its released code, model.py",
    hyperparameters={
        "dropout": Hyperparameter(
            "the share of the joined features left out in training", Number(at_least=0, below=1)
        ),
        "every": Hyperparameter("epochs between two partings of tasks", Number(at_least=1, whole=True)),
        "separation": Hyperparameter(
            "what unlike tasks in one group cost, beside a column more", Number(at_least=0)
        ),
    },
    build=build,
    feed=transductive_feed,
    needs=frozenset({"labels", "own views"}),
    classifies=True,
    train_metrics=("classification", "task_groups"),
)
