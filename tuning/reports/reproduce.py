"""The section on how to run a study again: the commands of its sweep, its best trial and its final runs."""

import shlex

from contrasweep.search_spaces import SpaceError
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.request import cut_into_levels
from contrasweep.tuning.planning.spaces import check_names, space_of
from contrasweep.tuning.reports.final import other_epochs
from contrasweep.tuning.reports.page import Section
from contrasweep.tuning.results.commands import YAML, best_command, final_runs_command, sweep_command
from contrasweep.tuning.results.study import StudyData
from contrasweep.tuning.store import StudyRecord
from contrasweep.tuning.store.layout import record_path

FROM_PYTHON = "The sweep was started from Python; this is the same as a command. "
NO_COMMAND = (
    "The sweep was started from Python, with a search space or with configurations of its own, which no "
    "command alone repeats. "
)


def reproduce_section(data: StudyData) -> Section:
    """Return the section with the commands of the sweep, of its best configuration and of its final runs."""
    record = data.record
    command = record.command or _equivalent(record)
    commands = [*([command] if command else []), *_final_commands(data)]
    listed = "\n".join(f"    {command}" for command in commands)
    revision = f"Code: revision {record.git_revision}. " if record.git_revision else ""
    slots = data.search.at_once
    order = (
        ""
        if slots == 1
        else f"{slots} trials ran at once: a sampler that learns, and early stopping, depend on which "
        "of them ends first, so a repeated sweep can take another path; --concurrency 1 always takes the "
        "same. "
    )
    origin = "" if record.command else FROM_PYTHON if command else NO_COMMAND
    return Section(
        "Reproduce",
        f"{origin}{revision}{order}Equal settings and seeds give equal numbers on a CPU.\n\n{listed}\n\n"
        f"Settings of every trial, space and versions: {record_path(data.name)} in the results folder.",
    )


def _equivalent(record: StudyRecord) -> str | None:
    """Return the command that does the same as a sweep from Python; None where none does, or none here."""
    search = record.require_search()
    try:
        check_names(record.method, record.dataset)
        own = space_of(record.method, record.dataset, None, search.given)
        return sweep_command(record, cut_into_levels(own, search.sampler, search.grid_points))
    except (InputError, SpaceError):
        # Another machine may have other plug-ins, another version other spaces.
        return None


def _final_commands(data: StudyData) -> list[str]:
    """Return the commands of the final runs, after the one that writes the file they take, if they take one.

    Where they take the files of several studies, only a file with this study's name is known to be its own.
    """
    final = data.final_record
    if final is None and not data.ranked:
        return []
    run = _run_command(data, final)
    files = [word for word in shlex.split(run) if word.endswith(YAML)]
    own = files if len(files) == 1 else [file for file in files if data.name in file]
    others = [_run_command(data, record) for record, _ in data.other_finals]
    return [*(best_command(data.name, data.results, file) for file in own[:1]), run, *others]


def _run_command(data: StudyData, final: StudyRecord | None) -> str:
    """Return the command of final runs: as it was given, else one that does the same."""
    if final is not None and final.command:
        return final.command
    return final_runs_command([data.name], data.results, other_epochs(data, final))
