"""What a search knows before its first trial: trials of earlier studies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contrasweep.tuning.search import PastTrial


@dataclass(frozen=True)
class WarmStart:
    """Trials of earlier studies that fit a new one, and what its user should know of them.

    They are no trials of the new study: they are not counted, and not in its rows. Its record keeps them, so
    that it resumes to the same search whatever became of the earlier studies.
    """

    studies: tuple[str, ...] = ()
    trials: tuple[PastTrial, ...] = ()
    remarks: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return what the record of the new study keeps."""
        trials = [
            {"values": dict(t.values), "state": t.state, "epochs": dict(t.epochs), "value": t.value}
            for t in self.trials
        ]
        return {"studies": list(self.studies), "trials": trials}

    @classmethod
    def of_record(cls, content: Mapping[str, Any]) -> "WarmStart":
        """Return what `record` wrote."""
        trials = tuple(
            PastTrial(
                number,
                held["values"],
                held["state"],
                {int(epoch): value for epoch, value in held["epochs"].items()},
                held["value"],
            )
            for number, held in enumerate(content["trials"])
        )
        return cls(tuple(content["studies"]), trials)
