"""A copy of the search in a database of Optuna's, for optuna-dashboard to watch."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage, RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from contrasweep.tuning.errors import InputError

log = logging.getLogger(__name__)

FAULTS = (OptunaError, SQLAlchemyError, OSError)


@contextmanager
def quiet_optuna(level: int = optuna.logging.WARNING) -> Iterator[None]:
    """Hold back what Optuna says below `level`: by default its line about each new study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, level))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def open_storage(url: str) -> BaseStorage:
    """Return the database at `url`, made if it is not there.

    Raises:
        InputError: it is no URL of a database, or cannot be opened.
    """
    try:
        with quiet_optuna():
            return RDBStorage(url)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        raise InputError(f"storage: given {url!r}; allowed: sqlite:///FILE, say ({_line(error)})") from None
    except FAULTS as error:
        raise InputError(f"storage {url} cannot be opened: {_line(error)}") from None


def checked_storage(url: str, name: str) -> str:
    """Return the URL, once the database behind it opens; a relative SQLite file becomes an absolute one.

    Raises:
        InputError: see `open_storage`; or it holds a study called `name`.
    """
    prefix = "sqlite:///"
    if url.startswith(prefix):
        url = prefix + str(Path(url.removeprefix(prefix)).absolute())
    if name in (study.study_name for study in open_storage(url).get_all_studies()):
        raise InputError(f"storage {url} holds a study {name!r}; choose another --name or another storage")
    return url


class Mirror:
    """Writes each change of a search to a database; it is never read from.

    A study of that name there is an earlier copy, of the same search before it was resumed: it is replaced.
    A database that fails takes nothing with it: that is said once, and the search goes on without.

    Args:
        url: of the database.
        name: of the study there.
        metrics: what its values are.
        directions: of these values.

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
        # Under this key Optuna keeps the names that its dashboard shows.
        self._storage.set_study_system_attr(self._study_id, "study:metric_names", list(metrics))
        self._ids: dict[int, int] = {}
        self._broken = False

    def put(self, trial: FrozenTrial) -> None:
        """Write a trial as it is now; trials come in the order of their numbers."""
        self._try(self._put, trial)

    def report(self, number: int, epoch: int, value: float) -> None:
        """Write the value that a running trial reached at an epoch."""
        self._try(self._report, number, epoch, value)

    def _put(self, trial: FrozenTrial) -> None:
        if trial.number not in self._ids:
            self._ids[trial.number] = self._storage.create_new_trial(self._study_id, template_trial=trial)
            return
        held = self._ids[trial.number]
        if self._storage.get_trial(held).state is TrialState.WAITING:
            for name, value in trial.params.items():
                dist = trial.distributions[name]
                self._storage.set_trial_param(held, name, dist.to_internal_repr(value), dist)
        self._storage.set_trial_state_values(held, trial.state, trial.values)

    def _report(self, number: int, epoch: int, value: float) -> None:
        self._storage.set_trial_intermediate_value(self._ids[number], epoch, value)

    def _try(self, write: Any, *arguments: Any) -> None:
        if self._broken:
            return
        try:
            write(*arguments)
        except FAULTS as error:
            self._broken = True
            log.warning("Storage %s is given up, the search goes on: %s", self._url, _line(error))


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


MirrorOf = Callable[[Sequence[StudyDirection]], Mirror]
