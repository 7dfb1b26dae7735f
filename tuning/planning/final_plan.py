"""Final runs before they start: the study that will hold them, and which experiment runs on which seed."""

import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from contrasweep.data import check_available, dataset_spec, scored_dataset
from contrasweep.data import data_root as folder_of_data
from contrasweep.search_spaces import Scalar, Space, TypeName
from contrasweep.search_spaces.parameters import type_name
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment, identities
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import final_metrics
from contrasweep.tuning.objectives.ranks import check_batch_size
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.plugin_changes import warn_of_other_code
from contrasweep.tuning.planning.resolve import check_experiment
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.planning.resume_check import without_column
from contrasweep.tuning.planning.selected import Selected, selected_of
from contrasweep.tuning.planning.weights import refuse_other_file
from contrasweep.tuning.provenance import origin_of_results
from contrasweep.tuning.results.commands import results_folder
from contrasweep.tuning.results.final_runs import TrialSeed, is_of_earlier_search
from contrasweep.tuning.results.selection import SelectedTrial, data_root_of
from contrasweep.tuning.store import (
    FinalRecord,
    Location,
    ResultsStore,
    StudyRecord,
    StudySchema,
    check_study_name,
    final_name,
    open_location,
    save_study,
    study_names,
)
from contrasweep.tuning.trials.trial import TrialRequest

ANOTHER_NAME: Final = "use another results folder, or change `study` in a best.yaml"
"""What the user of a name that is taken can do."""


@dataclass(frozen=True)
class FinalPlan:
    """The final runs of one study: where they are stored, and a request for each."""

    location: Location
    record: StudyRecord
    requests: tuple[TrialRequest, ...]
    data_root: Path | None

    def missing(self, held: Mapping[TrialSeed, Mapping[str, Any]]) -> list[TrialRequest]:
        """Return the requests that are not among the completed runs `held` by the study.

        Raises:
            InputError: the study holds a run of the same trial with other settings, or it lacks the column of
                a metric that new runs would report.
        """
        missing, study = [], self.record
        for request in self.requests:
            row = held.get(trial_and_seed(request))
            if row is None:
                missing.append(request)
            elif row["config"] not in identities(request.experiment):
                raise InputError(
                    f"study {study.name} holds trial {request.trial} with other settings: {ANOTHER_NAME}"
                )
        facts = dataset_spec(study.dataset, self.data_root)
        probes = study.experiment.probes
        differences = without_column(study, final_metrics(METHODS[study.method], facts, probes))
        if missing and differences:
            raise InputError(
                f"study {study.name} cannot go on: {'; '.join(differences)}. Give another results folder."
            )
        return missing


def plan_final_runs(
    selected: Selected | str | Path | Sequence[Selected | str | Path],
    resources: Resources,
    *,
    seeds: int,
    first_seed: int | None = None,
    epochs: int | None = None,
    elsewhere: Collection[tuple[str, int]] = (),
    results: str | Path | None = None,
    data_root: Path | None = None,
    snapshots: int | None = None,
    command: str = "",
) -> list[FinalPlan]:
    """Plan each configuration on the same `seeds` fresh seeds; record the studies of runs that are not there.

    The arguments are those of `ray.final.final_runs`. There is a plan for each study of a configuration.

    Raises:
        InputError: a method, encoder or metric that is not installed here, no seed or too many, no epoch,
            snapshots after every 0 epochs, no configuration, one that is given twice, configurations on other
            datasets or of several results folders, a batch that does not divide among the workers, a dataset
            whose images have changed, or a name that another study has.
        DatasetMissing: the dataset's files are not in place.
        StoreError: the results folder cannot be used.
    """
    check_count("seeds", seeds)
    check_count("epochs", epochs)
    check_count("snapshots", snapshots)
    named = list(selected) if isinstance(selected, list | tuple) else [selected]
    found = [config for one in named for config in _selected(one, results, data_root)]
    if not found:
        raise InputError("final runs take one configuration or more, given none")
    trials = [one for one in found if isinstance(one, SelectedTrial)]
    results = _results_of(trials) if results is None else results
    asked = by_study(found)
    studies = {study: [with_epochs(one, epochs) for one in own] for study, own in asked.items()}
    roots = {study: data_root_of(data_root, _root_of_search(own)) for study, own in studies.items()}
    for study, own in studies.items():
        _check(own, resources, roots[study])
    location = open_location(results, writable=True)
    first = fresh_seed(found, location) if first_seed is None else first_seed
    plans = []
    for study, own in studies.items():
        name, root = final_name(study, None if own == asked[study] else epochs), roots[study]
        record = _study(location, name, own, root, command)
        planned = [
            replace(_request(location, record, config, seed, root, resources), snapshots=snapshots)
            for config in own
            for seed in range(first, first + seeds)
        ]
        requests = tuple(one for one in planned if not _is_held(one.experiment, elsewhere))
        plans.append(FinalPlan(location, record, requests, root))
    return plans


def _root_of_search(configs: Sequence[Selected]) -> Path | None:
    return next((one.data_root for one in configs if one.data_root), None)


def _check(configs: Sequence[Selected], resources: Resources, data_root: Path | None) -> None:
    """Refuse configurations of a study that cannot be run here."""
    for config in configs:
        check_experiment(config.experiment, data_root)
        check_batch_size(config.experiment.batch_size, resources.workers)
        refuse_other_file(config.experiment.encoder)
    check_available(configs[0].experiment.dataset, data_root)


def by_study(configs: Sequence[Selected]) -> dict[str, list[Selected]]:
    """Return configurations by study; all must be comparable.

    Raises:
        InputError: they are scored on different datasets, or one is given twice.
    """
    datasets = sorted({config.experiment.dataset for config in configs})
    if len(set(map(scored_dataset, datasets))) > 1:
        raise InputError(
            f"final runs are compared on one dataset, given {', '.join(datasets)}; only the options of its "
            "condition may differ"
        )
    found: dict[str, list[Selected]] = {}
    for config in configs:
        own = found.setdefault(config.study, [])
        if config.trial in [other.trial for other in own]:
            raise InputError(f"trial {config.trial} of study {config.study} is given twice")
        own.append(config)
    return found


def _selected(given: object, results: str | Path | None, data_root: Path | None) -> Sequence[Selected]:
    """Return what was given, what the file holds, or the best trial of the study that was named."""
    if isinstance(given, BestConfig | SelectedTrial):
        return [given]
    if not isinstance(given, str | Path):
        raise InputError(
            "final runs take configurations, as `best_trials` and `load_best` return them, their files, or "
            f"names of studies; given {reprlib.repr(given)}"
        )
    return selected_of(given, results, data_root)


def with_epochs(config: Selected, epochs: int | None) -> Selected:
    """Return a configuration that trains for `epochs`; as it is if they are its own, or None."""
    if epochs is None or config.experiment.epochs == epochs:
        return config
    searched = {"epochs": epochs} if "epochs" in config.values else {}
    longer = config.experiment.with_values({"epochs": epochs})
    return replace(config, experiment=longer, values={**config.values, **searched})


def _is_held(experiment: Experiment, elsewhere: Collection[tuple[str, int]]) -> bool:
    return any((identity, experiment.seed) in elsewhere for identity in identities(experiment))


def _results_of(trials: Sequence[SelectedTrial]) -> str:
    folders = sorted({trial.results for trial in trials}) or [str(results_folder(None))]
    if len(folders) > 1:
        raise InputError(f"final runs take trials of one results folder, given {', '.join(folders)}")
    return folders[0]


def trial_and_seed(request: TrialRequest) -> TrialSeed:
    """Return the trial and the seed of a request, which identify a run within its study."""
    return request.trial, request.experiment.seed


def fresh_seed(configs: Iterable[Selected], location: Location) -> int:
    """Return the lowest seed above every seed that the store says the searches for `configs` used."""
    used = {config.experiment.seed + config.seeds - 1 for config in configs}
    there = set(study_names(location))
    for study in {config.study for config in configs} & there:
        used |= set(ResultsStore(location).trials(study)["seed"].to_pylist())
    return max(used) + 1


def _request(
    location: Location,
    record: StudyRecord,
    config: Selected,
    seed: int,
    data_root: Path | None,
    resources: Resources,
) -> TrialRequest:
    return TrialRequest(
        location=location,
        study=record,
        trial=config.trial,
        experiment=config.experiment.on_all_training_data().with_values({"seed": seed}),
        values=config.values,
        phase="final",
        data_root=folder_of_data(data_root).absolute(),
        cpus=resources.cpus,
        workers=resources.workers,
        gpus=resources.gpus,
        keeps_encoder=True,
    )


def _study(
    location: Location, name: str, configs: Sequence[Selected], data_root: Path | None, command: str
) -> StudyRecord:
    """Return the study of the final runs; record it if it is not there."""
    first = configs[0]
    if check_study_name(name) in study_names(location):
        store = ResultsStore(location)
        record = store.study(name)
        if not record.is_final:
            raise InputError(f"study {name} is a search and takes no final runs: use another results folder")
        if record.searched_study != first.study:
            raise InputError(f"study {name} holds runs of study {record.searched_study}: {ANOTHER_NAME}")
        if is_of_earlier_search(store, record):
            earlier = f"study {name} holds runs of an earlier search named {first.study}"
            raise InputError(f"{earlier}: delete it, or {ANOTHER_NAME}")
        _refuse_without_column(record, configs)
        warn_of_other_code(record)
        return record
    searched = _search_of(first, location)
    if searched is not None:
        warn_of_other_code(searched)
    experiment = first.experiment
    spec = dataset_spec(experiment.dataset, data_root)
    record = StudyRecord(
        name=name,
        created=datetime.now(UTC),
        command=command,
        method=experiment.method,
        dataset=experiment.dataset,
        experiment=experiment,
        space=Space(parameters=()),
        search=FinalRecord(
            searched=first.study, **({} if spec.has_labels else {"metric": f"test.{spec.headline}"})
        ),
        columns=StudySchema(
            hyperparameters=_column_types(location, configs),
            metrics=final_metrics(METHODS[experiment.method], spec, experiment.probes),
        ),
        **origin_of_results(),
    )
    save_study(location, record)
    return record


def _search_of(config: Selected, location: Location) -> StudyRecord | None:
    """Return the stored search that a configuration comes from; None where its folder has none."""
    there = open_location(config.results) if isinstance(config, SelectedTrial) else location
    return ResultsStore(there).study(config.study) if config.study in study_names(there) else None


def _refuse_without_column(record: StudyRecord, configs: Sequence[Selected]) -> None:
    """Refuse configurations with searched values that the stored study has no column for.

    Raises:
        InputError: it has none of that name, or the value does not fit the type of the column.
    """
    columns = record.columns.hyperparameters
    for config in configs:
        for name, value in config.values.items():
            if name not in columns or not _fits(value, columns[name]):
                has = f"a column of type {columns[name]}" if name in columns else "no column"
                raise InputError(
                    f"study {record.name} has {has} for {name} = {value!r} of trial {config.trial}: "
                    f"{ANOTHER_NAME}"
                )


def _fits(value: Scalar, column: TypeName) -> bool:
    numbers = column in ("int", "float") and type_name(value) in ("int", "float")
    return type_name(value) == column or (numbers and (column == "float" or float(value).is_integer()))


def _types_of(config: Selected) -> dict[str, Any]:
    """Return the type of each searched value: a hyperparameter's own, also where a whole number stands."""
    own = METHODS[config.experiment.method].hyperparameters
    return {n: own[n].type if n in own else type_name(value) for n, value in config.values.items()}


def _column_types(location: Location, configs: Sequence[Selected]) -> dict[str, Any]:
    """Return the hyperparameter columns of `configs` and, if the store has it, of the searched study."""
    types: dict[str, Any] = {name: kind for config in configs for name, kind in _types_of(config).items()}
    study = configs[0].study
    if study in study_names(location):
        types = {**types, **ResultsStore(location).study(study).columns.hyperparameters}
    return types
