"""The heartbeat of a study's driver: a small file that a living driver rewrites every few seconds."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, Literal, Self

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contrasweep.tuning.errors import first_reason
from contrasweep.tuning.experiment.statuses import StudyState
from contrasweep.tuning.store.filesystem import ONCE, Location, StoreRefuses, StudyBusy, WrongKind
from contrasweep.tuning.store.layout import STUDIES, heartbeat_path
from contrasweep.tuning.store.study import study_names

BEAT_SECONDS: Final = 5.0
# Six missed beats: longer than a slow write to an object store, shorter than a user waits.
STALE_SECONDS: Final = 30.0
# Between two looks at the heartbeat of another machine: a living driver is known after one beat.
_LOOK_SECONDS: Final = 1.0
# How many of the store's waits between tries (0.5 + 1 + 2 + 4 s) the end of a driver is worth.
_WAITS_AT_END: Final = 4
# No clock that is set at all is wrong by more: such a beat comes from a damaged file, and would never age.
_MOST_AHEAD_SECONDS: Final = 86_400.0
# The widest type that a system has for the number of a process; 0 and below name groups of processes.
_MAX_PID: Final = 2**31 - 1

log = logging.getLogger(__name__)

# The drivers of this process. A driver that ended while the store was away could not record its end there.
_beating: Final[dict[str, Heartbeat]] = {}


class HeartbeatRecord(BaseModel):
    """The last sign of life of a driver.

    Attributes:
        driver: a random name for each driver; it tells a driver from its successor.
        machine: the boot and the process namespace in which ``pid`` counts; None where they are unknown.
        time: seconds since 1970 UTC.
        state: ``interrupted`` means that the driver ended by an error or Ctrl-C.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    driver: str
    host: str
    machine: str | None
    pid: Annotated[int, Field(ge=1, le=_MAX_PID)]
    time: Annotated[float, Field(allow_inf_nan=False)]
    state: StudyState


def read_heartbeat(location: Location, study: str) -> HeartbeatRecord | None:
    """Return the study's last heartbeat; None if there is none, or the file is damaged."""
    try:
        return HeartbeatRecord.model_validate_json(location.read(heartbeat_path(study)), strict=True)
    except FileNotFoundError:
        return None
    except WrongKind as error:
        log.warning("A heartbeat is ignored: %s", error)
    except ValidationError as error:
        path = location.path(heartbeat_path(study))
        log.warning("The heartbeat %s is damaged and is ignored: %s", path, first_reason(error))
    return None


def seems_alive(heartbeat: HeartbeatRecord | None, now: float) -> bool:
    """Whether a driver seems to run the study; for readers, which do not wait.

    A driver is dead if it recorded its end, if its last beat is older than ``STALE_SECONDS`` or more than a
    day ahead, or if it ran on this machine and its process no longer exists. The clock of another machine may
    be wrong: what changes a study must ask `living_driver`.

    Args:
        heartbeat: as read from the store.
        now: seconds since 1970 UTC.
    """
    if heartbeat is None or heartbeat.state != "running":
        return False
    if not -_MOST_AHEAD_SECONDS <= now - heartbeat.time <= STALE_SECONDS:
        return False
    if not _is_of_this_machine(heartbeat):
        return True
    if heartbeat.pid == os.getpid():
        return heartbeat.driver in _beating
    return _process_exists(heartbeat.pid)


def living_driver(
    location: Location, study: str, now: Callable[[], float] = time.time
) -> HeartbeatRecord | None:
    """Return the last beat of the driver that runs the study; None if no driver does.

    A driver of this machine is known by its process, at once. One of another machine lives if it beats while
    we watch. Clocks of two machines need not agree, so a dead driver costs the whole ``STALE_SECONDS``.

    Args:
        location: the results folder; its ``retry.wait`` waits between two looks.
        study: its name.
        now: seconds since 1970 UTC, by the clock of this machine.

    Raises:
        OSError: the store cannot be read.
    """
    first = read_heartbeat(location, study)
    if first is None or first.state != "running":
        return None
    if _is_of_this_machine(first):
        return first if seems_alive(first, now()) else None
    log.warning(
        "Process %d on %s has not recorded that it ended study %s: for up to %g s, we watch if it lives.",
        first.pid,
        first.host,
        study,
        STALE_SECONDS,
    )
    for _ in range(round(STALE_SECONDS / _LOOK_SECONDS)):
        location.retry.wait(_LOOK_SECONDS)
        latest = read_heartbeat(location, study)
        if latest != first:
            return latest if latest is not None and latest.state == "running" else None
    return None


class Heartbeat:
    """Context manager around a driver's work: it beats inside the block and records the end on leaving.

    Raises on entry:
        StudyBusy: another driver of the study is alive; `living_driver` says how long it takes to know.
    """

    def __init__(
        self,
        location: Location,
        study: str,
        *,
        interval: float = BEAT_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._retry = location.retry
        # A late beat must not be written: another driver may have taken over the study by then.
        self._location = replace(location, retry=ONCE)
        self._study = study
        self._interval = interval
        self._now = now
        self._driver = uuid.uuid4().hex
        self._left = threading.Event()
        self._recorded = False
        self.superseded = False
        """Whether this driver must stop: it missed its beats, and another one took the study over, or it was
        deleted."""
        self._thread = threading.Thread(target=self._beat_until_left, name=f"heartbeat-{study}", daemon=True)

    def beat(self) -> None:
        """Write one beat, unless another driver has taken over the study, or it was deleted."""
        if self.holds():
            self._write("running")

    def holds(self) -> bool:
        """Whether the store still has the study, and names no other driver.

        Raises:
            OSError: the store cannot be read.
        """
        current = read_heartbeat(self._location, self._study)
        if current is not None and current.driver != self._driver:
            if not self.superseded:
                log.error("Process %d on %s has taken over study %s.", current.pid, current.host, self._study)
            self.superseded = True
        if current is None and self._recorded and self._is_deleted():
            if not self.superseded:
                log.error("Study %s was deleted.", self._study)
            self.superseded = True
        return not self.superseded

    def _is_deleted(self) -> bool:
        """Whether the study's record is gone; a whole folder may be away for a moment."""
        return self._study not in study_names(self._location) and self._location.is_folder(STUDIES)

    def in_charge(self) -> bool:
        """Whether the driver may go on. A store that is away for a moment does not stop it."""
        try:
            return self.holds()
        except OSError:
            return not self.superseded

    def __enter__(self) -> Self:
        living = living_driver(replace(self._location, retry=self._retry), self._study, self._now)
        if living is not None:
            raise StudyBusy(
                f"Study {self._study!r} is being run by process {living.pid} on {living.host}; stop it first."
            )
        self._recorded = self._study in study_names(self._location)
        self._write("running")
        _beating[self._driver] = self
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join()
        _beating.pop(self._driver, None)
        self.record_end("ended" if kind is None else "interrupted", self._retry.waits[:_WAITS_AT_END])

    def record_end(self, state: Literal["ended", "interrupted"], waits: Sequence[float] = ()) -> None:
        """Record that the driver has ended, unless another one has taken over the study.

        Args:
            state: how it ended.
            waits: seconds before the second try, the third, ...
        """
        for wait in (*waits, None):
            try:
                # Asked before each try: another driver may take over while this one waits.
                if self.holds():
                    self._write(state)
                return
            except (OSError, pa.ArrowException) as problem:
                if wait is None or isinstance(problem, StoreRefuses):
                    # The missing beats will show it; the error that ended the work matters more.
                    log.warning("The driver of study %s could not record its end: %s", self._study, problem)
                    return
            self._retry.wait(wait)

    def _beat_until_left(self) -> None:
        while not self._left.wait(self._interval) and not self.superseded:
            try:
                self.beat()
            except (OSError, pa.ArrowException) as error:
                log.warning("A heartbeat of study %s could not be written: %s", self._study, error)

    def _write(self, state: StudyState) -> None:
        record = HeartbeatRecord(
            driver=self._driver,
            host=socket.gethostname(),
            machine=_machine(),
            pid=os.getpid(),
            time=self._now(),
            state=state,
        )
        self._location.write(heartbeat_path(self._study), record.model_dump_json().encode())


def record_interruptions() -> None:
    """Record that all drivers of this process were interrupted: it must end at once, without clean-up."""
    for driver in list(_beating.values()):
        driver.record_end("interrupted")


def _machine() -> str | None:
    """Name this machine by boot and process namespace (Linux only): containers can share a host name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _is_of_this_machine(heartbeat: HeartbeatRecord) -> bool:
    here = _machine()
    return here is not None and heartbeat.machine == here


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
