"""Collect the results of a planned table from the store, and facts of the data from their files.

A run or a search that is already in the results folder is never repeated, whichever table asked for it. A
final run is recognised by the hash of its experiment and by its seed, a search by its whole plan, except for
its name and the machine.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from contrasweep.data import InformationCurve, load_clusterings
from contrasweep.search_spaces import Space
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.experiment import Experiment, flat_settings, identities
from contrasweep.tuning.experiment.schedulers import USUAL_SCHEDULER
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.spaces import space_of
from contrasweep.tuning.results.best import rule_in_words
from contrasweep.tuning.results.selection import SelectedTrial, best_trials
from contrasweep.tuning.results.trials import other_version
from contrasweep.tuning.statistics import is_number
from contrasweep.tuning.store import FINAL_SUFFIX, ResultsStore, StudyRecord, study_names
from contrasweep.tuning.store.schema import metric_column
from contrasweep.tuning.tables.checks import tables_read
from contrasweep.tuning.tables.plan import STUDY_PREFIX, own_prefix, plan_table
from contrasweep.tuning.tables.planned import RUNS, CellPlan, TablePlan
from contrasweep.tuning.tables.results import CellInfo, Key, RowSearch, RunValue, TableResults, runs_done_of

INFORMATION_CURVES = ("I(Z;T)", "H(Z|T)", "-H(Z|T)", "clusters")
"""The values kept for each number k of attributes: three curves in bits, and the number of clusters."""

ELSEWHERE = "under this name: use another results folder"

_OF_THE_MACHINE = ("concurrency", "cpus", "workers", "gpus", "max_failures", "trial_timeout", "data_root")


@dataclass(frozen=True)
class HeldRun:
    """A final run in the store: its row, and the study that it was run for, without `-final`."""

    study: str
    row: Mapping[str, Any]


@dataclass(frozen=True)
class StoredRuns:
    """The final runs of all tables in a results folder. They are read once."""

    store: ResultsStore

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of the final runs of tables, by the name of the study without `-final`."""
        return {study: rows for study, (_, rows) in self._studies.items()}

    @cached_property
    def other_versions(self) -> dict[str, str]:
        """The versions of contrasweep that may have trained differently, by the study that they made.

        None of the runs of these studies counts.
        """
        made = ((name, other_version(record)) for name, (record, _) in self._studies.items())
        return {name: version for name, version in made if version is not None}

    @cached_property
    def completed(self) -> dict[tuple[str, int], list[HeldRun]]:
        """The completed runs by identity and seed; several where tables ran the same twice."""
        found: dict[tuple[str, int], list[HeldRun]] = {}
        for study, own in self.rows.items():
            for row in own if study not in self.other_versions else ():
                if row["status"] == "completed":
                    found.setdefault((row["config"], row["seed"]), []).append(HeldRun(study, row))
        return found

    @cached_property
    def _studies(self) -> dict[str, tuple[StudyRecord, list[dict[str, Any]]]]:
        """The record and the rows of each study; one that cannot be read is left out, with a warning."""

        def read(record: StudyRecord) -> tuple[str, tuple[StudyRecord, list[dict[str, Any]]]]:
            name = record.name
            return name.removesuffix(FINAL_SUFFIX), (record, self.store.trials(name).to_pylist())

        return dict(self.store.of_all(read, lambda name: _of_a_table(name) and name.endswith(FINAL_SUFFIX)))

    def of(self, known: Sequence[str], seed: int) -> list[HeldRun]:
        """Return the completed runs of a seed that have one of the identities."""
        return [run for identity in known for run in self.completed.get((identity, seed), [])]


def identities_of_final(experiment: Experiment) -> tuple[str, ...]:
    """Return the identities of an experiment's final runs, which train on all training images."""
    return identities(experiment.on_all_training_data())


def plan_search(
    plan: TablePlan, cell: CellPlan, results: str | Path, data_root: Path | None = None, **more: Any
) -> SweepPlan:
    """Return the plan of a tuned row's search; `more` are further arguments of `plan_sweep`."""
    assert plan.table.run.tune is not None, "the table has a searched form"
    return plan_sweep(
        cell.planned.method,
        cell.planned.dataset,
        trials=plan.trials,
        values=cell.settings,
        metric=plan.table.run.tune.metric,
        # The usual one depends on how many trials run at once, and so on the machine.
        scheduler=USUAL_SCHEDULER,
        data_root=data_root,
        results=results,
        name=cell.study,
        **more,
    )


def search_space(cell: CellPlan) -> Space:
    """Return the space that a tuned row is searched in."""
    return space_of(cell.planned.method, cell.planned.dataset, None, cell.settings)


def search_held(
    plan: TablePlan, cell: CellPlan, store: ResultsStore, data_root: Path | None = None
) -> str | None:
    """Return the study that holds the search of a tuned row; None where there is none.

    The study is the row's own, else one of another table that searched the same. It may be incomplete. A
    study of the row in another search space, as an earlier version had, is not the row's. One of another
    table that cannot be read is left out, with a warning.
    """
    if cell.study in study_names(store.location):
        held = store.study(cell.study).space
        return None if search_space(cell).difference(held) else cell.study
    wanted = (cell.planned.method, cell.planned.dataset)
    images = ("", cell.planned.data_fingerprint)  # of older studies the images are not known
    records = store.of_all(
        lambda record: record, lambda name: _of_a_table(name) and not name.endswith(FINAL_SUFFIX)
    )
    # This contrasweep must read what the one that made the study wrote, and be able to continue it.
    ours = [record for record in records if other_version(record) is None]
    alike = [
        record
        for record in ours
        if (record.method, record.dataset) == wanted and record.experiment.data_fingerprint in images
    ]
    if not alike:
        return None
    search = _searched_by(plan_search(plan, cell, store.location.uri, data_root).record())
    return next((record.name for record in alike if _searched_by(record) == search), None)


def _of_a_table(study: str) -> bool:
    return study.startswith(STUDY_PREFIX)


def _searched_by(record: StudyRecord) -> dict[str, Any]:
    """Return everything that decides what a search finds, as JSON holds it."""
    fields = {"method", "dataset", "experiment", "space", "search"}
    content: dict[str, Any] = json.loads(record.model_dump_json(include=fields))
    content["experiment"].pop("data_fingerprint", None)  # compared before, because some have none
    content["search"] = {k: v for k, v in content["search"].items() if k not in _OF_THE_MACHINE}
    return content


def collect(plan: TablePlan, runs: StoredRuns, data_root: Path | None = None) -> TableResults:
    """Return the stored results of a planned table; a cell without all its runs is a gap.

    Raises:
        DatasetMissing: the table is a figure of clusterings, and their file is not in place.
    """
    table, information = plan.table, plan.table.run.information
    if information is not None:
        return TableResults(table, plan.scale, plan.tuned, 0, information_values(information, data_root))
    reader = _Reader(plan, runs, data_root)
    gaps: dict[Key, str] = {(cell.row, cell.column): cell.why for cell in plan.cells if cell.why}
    values: list[RunValue] = []
    cells: dict[Key, CellInfo] = {}
    for cell in plan.cells:
        if cell.experiment is None:
            continue
        key = cell.row, cell.column
        found, info, reason = reader.cell(cell)
        values += found
        if found or cell.state == RUNS:
            cells[key] = info
            gaps[key] = reason or runs_done_of(len(found), plan.seeds)
        if len(found) == plan.seeds:
            gaps.pop(key, None)
    return TableResults(
        table, plan.scale, plan.tuned, plan.seeds, tuple(values), cells, gaps, reader.provenance
    )


def collect_others(
    plan: TablePlan, runs: StoredRuns, data_root: Path | None = None
) -> dict[str, TableResults]:
    """Return the results of the tables that a table's claims read, in the same form, by id.

    A table without that form is left out: its cells were not measured.
    """
    found = {}
    for name in tables_read(plan.table.claims):
        try:
            other = plan_table(load_table(name), scale=plan.scale, tune=plan.tuned, data_root=data_root)
        except InputError:
            continue
        found[name] = collect(other, runs, data_root)
    return found


def runs_done(plan: TablePlan, runs: StoredRuns) -> int:
    """Return the number of final runs in the store, of those that can be run here."""
    here = {(cell.row, cell.column) for cell in plan.running}
    values = collect(plan, runs).values
    return len({(v.study, v.trial, v.seed) for v in values if (v.row, v.column) in here})


@dataclass
class _Reader:
    """Finds a plan's runs among those of all tables; it reads each study and each search once."""

    plan: TablePlan
    runs: StoredRuns
    data_root: Path | None
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    searches: dict[str, tuple[SelectedTrial, RowSearch] | None] = field(default_factory=dict)

    def cell(self, cell: CellPlan) -> tuple[list[RunValue], CellInfo, str]:
        """Return the values of a cell, how it was run, and what went wrong (empty: nothing)."""
        experiment, study, trial, selected, search = cell.planned, cell.study, cell.trial, "", None
        if self.plan.tuned and study not in self.searches:
            # The columns of a row share its search.
            self.searches[study] = self._searched(cell)
        if (chosen := self.searches.get(study)) is not None:
            best, search = chosen
            experiment, study, trial = best.experiment, best.study, best.trial
            selected = f"{rule_in_words(best.metric)} of {search.trials}"
        # Final runs train on all training images, each with its own seed.
        own = {k: v for k, v in experiment.content().items() if k not in ("seed", "validation")}
        info = CellInfo(experiment.dataset, experiment.method, flat_settings(own), selected, search)
        # Without its search a tuned row has no settings: no run in the store is its own.
        unchosen = self.plan.tuned and search is None
        known = () if unchosen else identities_of_final(experiment)
        seeds = self.plan.seeds_of(experiment)
        found = [self._chosen(self.runs.of(known, seed)) for seed in seeds]
        held = [run for run in found if run is not None]
        values = [_value(cell, run) for run in held if is_number(run.row.get(_score(cell)))]
        there = [row for row in self.runs.rows.get(study, []) if unchosen or row["trial"] == trial]
        asked = [row for row in there if row["seed"] in seeds]
        unscored = len(held) - len(values)
        return values, info, self._wrong(study, asked, known, done=len(values), unscored=unscored)

    def _chosen(self, held: Sequence[HeldRun]) -> HeldRun | None:
        """Return the table's own run where there is one, else another table's."""
        if not held:
            return None
        own = (run for run in held if run.study.startswith(own_prefix(self.plan.table)))
        chosen = next(own, held[0])
        if chosen.study not in self.sources:
            self.sources[chosen.study] = self._source(chosen.study)
        return chosen

    def _wrong(
        self, study: str, rows: Sequence[Mapping[str, Any]], known: Sequence[str], *, done: int, unscored: int
    ) -> str:
        """Return why runs of a cell are missing; empty where none is, or where they were not made yet.

        Args:
            study: the study of the cell.
            rows: the rows of that study with the seeds of the cell.
            known: the identities of the cell's runs.
            done: how many runs have a score.
            unscored: how many completed, and have none.
        """
        if version := self.runs.other_versions.get(study):
            return f"the store holds runs of contrasweep {version} {ELSEWHERE}"
        if any(row["status"] == "completed" and row["config"] not in known for row in rows):
            return f"the store holds runs with other settings {ELSEWHERE}"
        so_far = runs_done_of(done, self.plan.seeds)
        failed = [row for row in rows if row["status"] == "failed"]
        if failed:
            # The errors of some libraries end in lines of advice; the first line names the error.
            reason = str(failed[0]["error"]).strip().partition("\n")[0]
            return f"{so_far}, {len(failed)} failed: {reason}"
        return f"{so_far}, {unscored} without a finite score" if unscored else ""

    def _searched(self, cell: CellPlan) -> tuple[SelectedTrial, RowSearch] | None:
        """Return the trial that the search of a row selected, and the search as it was made.

        Its budget may differ from the plan's.
        """
        store = self.runs.store
        study = search_held(self.plan, cell, store, self.data_root)
        if study is None:
            return None
        try:
            best = best_trials(store, study)[0]
        except SweepFailed:
            return None
        seconds = sum(row["seconds"] or 0.0 for row in store.trials(study).to_pylist())
        trials = store.study(study).require_search().trials
        return best, RowSearch(study, trials, seconds, search_space(cell).in_words())

    def _source(self, study: str) -> dict[str, str]:
        record = self.runs.store.study(study + FINAL_SUFFIX)
        return {
            "contrasweep": record.versions.get("contrasweep", "unknown"),
            "torch": record.versions.get("torch", "unknown"),
            "git": record.git_revision or "unknown",
            "device": ", ".join(sorted({str(row["device"]) for row in self.runs.rows[study]})),
        }

    @property
    def provenance(self) -> dict[str, str]:
        """The versions and devices behind the values; where studies differ, all of them."""
        names = dict.fromkeys(name for source in self.sources.values() for name in source)
        return {n: ", ".join(sorted({s[n] for s in self.sources.values()})) for n in names}


def _score(cell: CellPlan) -> str:
    return metric_column(f"test.{cell.metric}")


def _value(cell: CellPlan, run: HeldRun) -> RunValue:
    control = run.row.get(metric_column(f"test.untrained_{cell.control}"))
    return RunValue(
        cell.row,
        cell.column,
        run.row["seed"],
        cell.scale * run.row[_score(cell)],
        cell.scale * control if is_number(control) else None,
        run.row["seconds"],
        run.study,
        run.row["trial"],
    )


def information_values(clusterings: str, data_root: Path | None = None) -> tuple[RunValue, ...]:
    """Return the curves of a set of clusterings; `kK` is the row and the name of the curve the column.

    Raises:
        DatasetMissing: the file of the clusterings is not in place.
    """
    curve = load_clusterings(clusterings, data_root).curve()
    entropy = curve.conditional_entropy
    heights = (curve.information, entropy, [-bits for bits in entropy], map(float, curve.clusters))
    return tuple(
        RunValue(f"k{k}", name, None, height, study=clusterings)
        for name, values in zip(INFORMATION_CURVES, heights, strict=True)
        for k, height in zip(curve.ks, values, strict=True)
    )


def information_of(results: TableResults) -> InformationCurve:
    """Return the curves that a table's results hold."""
    heights: dict[str, dict[int, float]] = {}
    for value in results.values:
        heights.setdefault(value.column, {})[int(value.row.removeprefix("k"))] = value.value
    ks = sorted(heights[INFORMATION_CURVES[0]])
    information, entropy, _, clusters = (tuple(heights[name][k] for k in ks) for name in INFORMATION_CURVES)
    return InformationCurve(tuple(ks), tuple(map(int, clusters)), information, entropy)
