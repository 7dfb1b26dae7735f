"""The commands, settings and versions that reproduce the numbers of a study."""

import shlex
from collections.abc import Iterable
from typing import Any

from contrasweep.tuning.reports.page import Section
from contrasweep.tuning.results.study import StudyData, hardware_of


def reproduce_section(data: StudyData) -> Section:
    """Return the section with the command of the sweep and of its final runs."""
    record = data.record
    commands = [record.command or equivalent_command(data)]
    commands.append(
        data.final_record.command
        if data.final_record is not None and data.final_record.command
        else f"contrasweep run {data.name} --seeds 5"
    )
    listed = "\n".join(f"    {command}" for command in commands)
    revision = f"Code: revision {record.git_revision}. " if record.git_revision else ""
    slots = data.search.concurrency
    order = (
        ""
        if slots == 1
        else f"{slots} trials ran at once: what is proposed next depends on which of them ends first, so a "
        "repeated sweep can take another path; --concurrency 1 always takes the same. "
    )
    origin = "" if record.command else "The sweep was started from Python; this is the same as a command. "
    return Section(
        "Reproduce",
        f"{origin}{revision}{order}Equal settings and seeds give equal numbers on a CPU.\n\n{listed}\n\n"
        f"Settings of every trial, space and versions: studies/{data.name}.json in the results folder.",
    )


def equivalent_command(data: StudyData) -> str:
    """Return a command line that does the same as a sweep that was started from Python."""
    record = data.record
    words = ["contrasweep", "sweep", record.method, "--data", record.dataset]
    for name in ("trials", "sampler", "grid_points", "scheduler", "metric", "seed", "concurrency"):
        value = getattr(data.search, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for path, value in data.search.given.items():
        words += ["--epochs", str(value)] if path == "epochs" else ["--set", f"{path}={_yaml(value)}"]
    return shlex.join(words)


def footer_lines(studies: Iterable[StudyData], written: str) -> list[str]:
    """Return the foot of a page: n, seeds, selection rule, hardware, versions and damaged files."""
    lines: list[str] = []
    studies = list(studies)
    for data in studies:
        prefix = f"{data.name}: " if len(studies) > 1 else ""
        lines += [prefix + line for line in _study_lines(data)]
    return [*lines, f"Written {written} from the store alone; nothing was run again."]


def _study_lines(data: StudyData) -> list[str]:
    record = data.record
    seeds = sorted({seed for trial in data.trials for seed in trial.seeds})
    final = sorted({row["seed"] for row in data.final_rows})
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    rules = {name: getattr(data.search, name) for name in ("sampler", "scheduler", "seed", "mode")}
    lines = [
        f"n = {len(data.trials):,} trials, search seeds {_list(seeds)}"
        + (f"; final runs: n = {len(data.final_rows)}, seeds {_list(final)}" if final else ""),
        f"Selection: {data.metric}, by {data.rung_metric} after every epoch; "
        + ", ".join(f"{name} {value}" for name, value in rules.items()),
        f"Hardware: {hardware_of(data.rows) or record.host}",
        f"Versions: {versions}; revision {record.git_revision or 'unknown'}; store {record.schema_version}",
    ]
    if data.damaged:
        files = "; ".join(f"{file.path} {file.reason}" for file in data.damaged[:5])
        more = f"; and {len(data.damaged) - 5} more" if len(data.damaged) > 5 else ""
        lines.append(f"Left out, damaged: {files}{more}")
    return lines


def _list(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds[:10])) + (" ..." if len(seeds) > 10 else "") or "none"


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
