"""The results store: Parquet files that any number of workers write and any tool reads, without a server."""

from contrasweep.tuning.store.attempts import TrialOvertaken, next_attempt, row_of
from contrasweep.tuning.store.compact import Compaction, compact
from contrasweep.tuning.store.filesystem import (
    Location,
    Retry,
    StoreError,
    StoreUnavailable,
    StudyBusy,
    open_location,
)
from contrasweep.tuning.store.heartbeat import Heartbeat, HeartbeatRecord, driver_alive, read_heartbeat
from contrasweep.tuning.store.parts import DamagedFile
from contrasweep.tuning.store.reader import ResultsStore, StudySummary, StudyTables
from contrasweep.tuning.store.schema import SCHEMA_VERSION, StudySchema
from contrasweep.tuning.store.study import (
    FINAL_SUFFIX,
    FinalRecord,
    SearchRecord,
    StudyRecord,
    WarmStartRecord,
    check_study_name,
    load_study,
    save_study,
    study_names,
)
from contrasweep.tuning.store.writer import TrialInfo, TrialWriter, end_trial

__all__ = [
    "FINAL_SUFFIX",
    "SCHEMA_VERSION",
    "Compaction",
    "DamagedFile",
    "FinalRecord",
    "Heartbeat",
    "HeartbeatRecord",
    "Location",
    "ResultsStore",
    "Retry",
    "SearchRecord",
    "StoreError",
    "StoreUnavailable",
    "StudyBusy",
    "StudyRecord",
    "StudySchema",
    "StudySummary",
    "StudyTables",
    "TrialInfo",
    "TrialOvertaken",
    "TrialWriter",
    "WarmStartRecord",
    "check_study_name",
    "compact",
    "driver_alive",
    "end_trial",
    "load_study",
    "next_attempt",
    "open_location",
    "read_heartbeat",
    "row_of",
    "save_study",
    "study_names",
]
