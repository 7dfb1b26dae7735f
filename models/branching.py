"""A head whose tasks share layers at first and part into groups later, from the top down."""

import torch
from torch import Tensor, nn


class BranchingHead(nn.Module):
    """Three linear layers to one score a task; the tasks of a group share a column of the first two.

    A column of the first layer is `width - width / 2`, of the second `width / 2 - width / 4`; the third has
    one unit a task. At the start all tasks are in column 0. Both layers hold a column for each task from the
    start, so that optimizers and checkpoints know all parameters; columns in no use get no gradient.

    Attributes:
        columns: int64 `(2, tasks)`, the column of each task in the first and in the second layer.

    Source: DeepMTMV's released code (Zheng et al. 2019, model.py), which has no activation between the layers
    and draws weights and biases from U(-0.1, 0.1).
    """

    columns: Tensor

    def __init__(self, width: int, tasks: int) -> None:
        super().__init__()
        if width < 4 or tasks < 1:
            raise ValueError(f"width must be at least 4 and tasks at least 1, got {width} and {tasks}")
        half, quarter = width // 2, width // 4
        self.first = nn.ModuleList(_linear(width, half) for _ in range(tasks))
        self.second = nn.ModuleList(_linear(half, quarter) for _ in range(tasks))
        self.third = _linear(quarter, tasks)
        self.register_buffer("columns", torch.zeros(2, tasks, dtype=torch.int64))
        self._columns = self.columns.tolist()
        self.register_load_state_dict_post_hook(_read_columns)  # type: ignore[no-untyped-call]

    def forward(self, features: Tensor) -> Tensor:
        """Return the score of each task `(N, tasks)` for `features` `(N, width)`."""
        first, second = self._columns
        lower = {column: self.first[column](features) for column in set(first)}
        # A column of the second layer lies above one of the first, the same for all of its tasks.
        below = dict(zip(second, first, strict=True))
        upper = {column: self.second[column](lower[own]) for column, own in below.items()}
        by_task = torch.stack([upper[column] for column in second], dim=1)
        return (by_task * self.third.weight).sum(2) + self.third.bias

    @torch.no_grad()
    def part(self, layer: int, groups: Tensor) -> None:
        """Give each group of tasks its own column of a layer (0 or 1).

        Args:
            layer: the layer.
            groups: int64 `(tasks,)`, numbers from 0. Group 0 keeps the column that has been trained.

        Raises:
            ValueError: the groups are no numbers 0..k-1, or tasks that share a column above are not together.
        """
        found = torch.unique(groups)
        if groups.shape != self.columns[0].shape or not torch.equal(
            found, torch.arange(len(found)).to(found)
        ):
            raise ValueError(f"groups must be one number of 0..k-1 a task, got {groups.tolist()}")
        above = self.columns[1] if layer == 0 else torch.arange(len(groups), device=groups.device)
        if len(set(zip(above.tolist(), groups.tolist(), strict=True))) != len(set(above.tolist())):
            raise ValueError(f"tasks that share a column above must be together, got {groups.tolist()}")
        self.columns[layer] = groups
        _read_columns(self)


def _read_columns(head: BranchingHead, _: object = None) -> None:
    """Read the columns once they have changed: in every step, reading them would make an accelerator wait."""
    head._columns = head.columns.tolist()


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -0.1, 0.1)
    return layer
