"""How large the tensors are that a computation makes."""

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class MadeTensors(TorchDispatchMode):
    """Records the sizes of all tensors that operations return, forward and backward.

    Attributes:
        entries: the number of entries of each.
        stored: the number of entries that the memory of each holds; a part of a tensor has that of the whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[int] = []
        self.stored: list[int] = []

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        result = function(*arguments, **(options or {}))
        for value in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(value, Tensor):
                self.entries.append(value.numel())
                self.stored.append(value.untyped_storage().nbytes() // value.element_size())
        return result
