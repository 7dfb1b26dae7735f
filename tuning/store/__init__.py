"""The results store: Parquet files that any number of workers write and any tool reads, without a server."""

from contrasweep.tuning.store.attempts import TrialOvertaken, row_of
from contrasweep.tuning.store.compact import compact
from contrasweep.tuning.store.filesystem import (
    Location,
    StoreError,
    StoreUnavailable,
    StudyBusy,
    open_location,
)
from contrasweep.tuning.store.heartbeat import Heartbeat
from contrasweep.tuning.store.naming import (
    FINAL_SUFFIX,
    check_new_name,
    check_study_name,
    final_name,
    is_final_name,
    name_before_final,
    shown_name,
)
from contrasweep.tuning.store.reader import ResultsStore
from contrasweep.tuning.store.record import (
    FinalRecord,
    SearchRecord,
    StudyRecord,
    WarmStartRecord,
    WarmTrialRecord,
)
from contrasweep.tuning.store.schema import StudySchema
from contrasweep.tuning.store.study import save_study, study_names
from contrasweep.tuning.store.writer import TrialInfo, TrialWriter, end_trial

__all__ = [
    "FINAL_SUFFIX",
    "FinalRecord",
    "Heartbeat",
    "Location",
    "ResultsStore",
    "SearchRecord",
    "StoreError",
    "StoreUnavailable",
    "StudyBusy",
    "StudyRecord",
    "StudySchema",
    "TrialInfo",
    "TrialOvertaken",
    "TrialWriter",
    "WarmStartRecord",
    "WarmTrialRecord",
    "check_new_name",
    "check_study_name",
    "compact",
    "end_trial",
    "final_name",
    "is_final_name",
    "name_before_final",
    "open_location",
    "row_of",
    "save_study",
    "shown_name",
    "study_names",
]
