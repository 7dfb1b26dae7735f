"""A trial on a rank other than the first: it trains along, and leaves the store alone."""

from collections.abc import Iterator

from contrasweep.tuning.errors import TrainingDiverged
from contrasweep.tuning.objectives.ranks import Ranks
from contrasweep.tuning.planning.trial import DataCache, TrialReport, TrialRequest
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain


class Follower:
    """What a `Trial` is on the first rank, to a worker; it goes on from the checkpoint that the first reads.

    Epochs are advanced on all ranks together.
    """

    def __init__(self, request: TrialRequest, data: DataCache, ranks: Ranks) -> None:
        self._request = request
        self._data = data
        self._ranks = ranks
        self._records: Iterator[EpochRecord] | None = None
        self._epoch = 0

    def advance(self) -> TrialReport:
        """Train one epoch; report a loss that diverged, as the first rank does.

        Raises:
            RanksLost: another rank has ended.
        """
        try:
            record = next(self._begun())
        except TrainingDiverged as error:
            return TrialReport(self._epoch, {}, 0.0, error=str(error))
        self._epoch = record.epoch
        return TrialReport(record.epoch, record.metrics, record.train_seconds, finished=record.finished)

    def fail(self, error: str) -> None:
        """Leave it to the first rank to record the failure."""

    def close(self) -> None:
        """Train no further."""
        self._records = None

    def _begun(self) -> Iterator[EpochRecord]:
        if self._records is None:
            request = self._request
            data = self._data.get(request.experiment, request.data_root)
            self._records = pretrain(request.experiment, data=data, device=request.device, ranks=self._ranks)
        return self._records
