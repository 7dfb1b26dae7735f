"""A copy of the search in an Optuna database, which optuna-dashboard shows."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage, RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from contrasweep.tuning.errors import InputError

log = logging.getLogger(__name__)

CONSTRAINT = "constraints:"
"""Before the name of a condition, the key under which Optuna keeps how far a trial breaks it."""

FAULTS = (OptunaError, SQLAlchemyError, OSError)


@contextmanager
def quiet_optuna(level: int = optuna.logging.WARNING) -> Iterator[None]:
    """Silence Optuna's messages below `level`; by default its message about each new study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, level))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def open_storage(url: str) -> BaseStorage:
    """Return the database at `url`; a missing one is created.

    Raises:
        InputError: the URL is not that of a database, or the database cannot be opened.
    """
    try:
        with quiet_optuna():
            return RDBStorage(url)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        raise InputError(f"storage: given {url!r}; allowed: sqlite:///FILE, say ({_line(error)})") from None
    except FAULTS as error:
        raise InputError(f"storage {url} cannot be opened: {_line(error)}") from None


def checked_storage(url: str, name: str, own: str | None = None) -> str:
    """Return the URL after opening its database; the path of an SQLite file becomes absolute.

    Args:
        url: the URL.
        name: the name of the study that is to be copied there.
        own: the URL that the study has recorded: a study of its name in that database is its own copy.

    Raises:
        InputError: see `open_storage`; or the database holds a study called `name` that is not its own copy.
    """
    if not url.isprintable():
        raise InputError(f"storage: given {url!r}; allowed: sqlite:///FILE, say, in one line")
    prefix = "sqlite:///"
    if url.startswith(prefix):
        url = prefix + str(Path(url.removeprefix(prefix)).absolute())
    held = {study.study_name for study in open_storage(url).get_all_studies()}
    if name in held and url != own:
        raise InputError(
            f"storage {url} holds a study {name!r}; choose another storage, or another --name for a new study"
        )
    return url


class Mirror:
    """Writes each change of a search to a database, and never reads it.

    A study of that name in the database is an earlier copy of the same search; it is replaced. If the
    database fails, a warning is logged once and the search goes on without it.

    Args:
        url: the URL of the database.
        name: the name of the study in it.
        metrics: the names of the values.
        directions: the directions of the values.

    Raises:
        InputError: the database cannot be opened.
    """

    def __init__(
        self, url: str, name: str, metrics: Sequence[str], directions: Sequence[StudyDirection]
    ) -> None:
        self._url = url
        self._storage = open_storage(url)
        held = {study.study_name: study._study_id for study in self._storage.get_all_studies()}
        with quiet_optuna():
            if name in held:
                self._storage.delete_study(held[name])
            self._study_id = self._storage.create_new_study(list(directions), name)
        # Optuna's dashboard reads the names of the metrics from this key.
        self._storage.set_study_system_attr(self._study_id, "study:metric_names", list(metrics))
        self._ids: dict[int, int] = {}
        self._broken = False

    def put(self, trial: FrozenTrial) -> None:
        """Write the present state of a trial; new trials come in the order of their numbers."""
        self._try(lambda: self._put(trial))

    def report(self, number: int, epoch: int, value: float) -> None:
        """Write the value that a running trial reached at an epoch."""
        self._try(lambda: self._storage.set_trial_intermediate_value(self._ids[number], epoch, value))

    def _put(self, trial: FrozenTrial) -> None:
        if trial.number not in self._ids:
            self._ids[trial.number] = self._storage.create_new_trial(self._study_id, template_trial=trial)
            return
        held = self._ids[trial.number]
        if self._storage.get_trial(held).state is TrialState.WAITING:
            for name, value in trial.params.items():
                dist = trial.distributions[name]
                self._storage.set_trial_param(held, name, dist.to_internal_repr(value), dist)
        for name, violation in trial.constraints.items():
            self._storage.set_trial_system_attr(held, CONSTRAINT + name, violation)
        self._storage.set_trial_state_values(held, trial.state, trial.values)

    def _try(self, write: Callable[[], object]) -> None:
        if self._broken:
            return
        try:
            write()
        except FAULTS as error:
            self._broken = True
            log.warning("Storage %s is given up, the search goes on: %s", self._url, _line(error))


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


MirrorOf = Callable[[Sequence[StudyDirection]], Mirror]
