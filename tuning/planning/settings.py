"""The settings of one run that are known without the data: which default or given value applies.

Nothing here imports torch; `planning.resolve` completes them.
"""

from collections.abc import Mapping
from typing import Any

from contrasweep.given_files import check_given
from contrasweep.libraries import library_and_model, of_library, unknown_encoder
from contrasweep.search_spaces import Space
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_ENCODERS, DECLARED_METHODS
from contrasweep.tuning.errors import Faults, InputError, told_to_user
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Declaration
from contrasweep.tuning.planning.needs import check_needs
from contrasweep.tuning.planning.spaces import (
    check_names,
    dataset_settings,
    preset_beside,
    refuse_unknown,
    space_of,
)


def settled(
    method: str,
    dataset: str,
    values: Mapping[str, Any] | None = None,
    *,
    space: Space | None = None,
    use_preset: bool = False,
) -> tuple[Experiment, dict[str, Any], dict[str, Any]]:
    """Return an experiment without settings, what the dataset suggests for it, and what comes before that.

    The arguments are those of `planning.resolve.resolve`.

    Raises:
        InputError: a name is unknown (the message has the nearest), a value is not allowed or has no effect,
            or there is no such preset.
    """
    check_names(method, dataset)
    values = values or {}
    given = {**(preset_beside(method, dataset, values) if use_preset else {}), **values}
    pinned = space_of(method, dataset, space, given)
    defaults = pinned.defaults()
    declared = DECLARED_METHODS[method]
    for name in given:
        if name in declared.hyperparameters and name not in defaults:
            raise no_effect(name, declared, defaults)
    # Without the defaults: some go with settings that come later, as a small `max_crop` with `min_crop`.
    base = Experiment(method=method, dataset=dataset)
    refuse_unknown(base, given)
    suggested = {name: value for name, value in dataset_settings(dataset).items() if name not in pinned}
    # The space turns a whole number given for a float into one: 1 and 1.0 are the same experiment.
    return base, suggested, {**given, **defaults}


def no_effect(name: str, method: Declaration, values: Mapping[str, Any]) -> InputError:
    """Return the error about a hyperparameter that has no effect beside these values of the others."""
    parents = method.search_space()[name].when
    because = ", ".join(f"{parent}={values[parent]}" for parent in parents if parent in values)
    return InputError(f"{name} has no effect with {because}: leave it out")


def known_experiment(
    method: str,
    dataset: str,
    values: Mapping[str, Any] | None = None,
    *,
    space: Space | None = None,
    use_preset: bool = False,
) -> Experiment:
    """Return the experiment as far as it is known without the data; `resolve` returns the whole.

    The arguments are those of `planning.resolve.resolve`.

    Raises:
        InputError: see `settled` and `check_declared`.
    """
    base, suggested, chosen = settled(method, dataset, values, space=space, use_preset=use_preset)
    experiment = base.with_values({**suggested, **chosen})
    check_declared(experiment)
    return experiment


def check_declared(experiment: Experiment) -> None:
    """Raise InputError unless an experiment has what its method, dataset and encoder declare.

    The facts of a dataset count where they are known without its files, and its name has no options.
    """
    check_names(experiment.method, experiment.dataset)
    method, given = DECLARED_METHODS[experiment.method], experiment.hyperparameters
    method.check(given)
    faults = Faults()
    with faults.noted():
        _check_encoder(experiment.encoder.name)
    with faults.noted(), told_to_user("encoder.weights: "):
        if experiment.encoder.weights is not None:
            check_given(experiment.encoder.weights)
    dataset = DECLARED_DATASETS.get(experiment.dataset)
    if dataset is not None and dataset.facts is not None:
        with faults.noted():
            check_needs(method, dataset.facts, given)
    with faults.noted():
        _check_batch(experiment, method)
    with faults.noted():
        if experiment.views.local_crops and not method.local_crops:
            using = ", ".join(name for name, one in DECLARED_METHODS.items() if one.local_crops)
            raise InputError(f"views.local_crops has no effect with {method.name}; these use them: {using}")
    with faults.noted():
        active = method.search_space().active(given)
        missing = [name for name in active if name in method.hyperparameters and name not in given]
        if missing:
            raise InputError(f"{method.name} with {dict(given)} needs {', '.join(missing)}")
    faults.tell()


def with_declared_types(experiment: Experiment) -> Experiment:
    """Return an experiment that passed `check_declared` with a float wherever its method declares one.

    A file may have been written anew by a program that writes 1 for 1.0; both are the same experiment.
    """
    declared = DECLARED_METHODS[experiment.method].hyperparameters
    floats = {
        name: float(value)
        for name, value in experiment.hyperparameters.items()
        if type(value) is int and declared[name].type == "float"
    }
    return experiment.with_values(floats) if floats else experiment


def _check_encoder(name: str) -> None:
    """Raise InputError for an encoder that is not declared; a library's models are looked up later."""
    if of_library(name):
        with told_to_user():
            library_and_model(name)
    elif name not in DECLARED_ENCODERS:
        raise InputError(unknown_encoder(name, DECLARED_ENCODERS))


def _check_batch(experiment: Experiment, method: Declaration) -> None:
    """Raise InputError if the method cannot learn from batches of this size."""
    if experiment.batch_size < method.smallest_batch:
        raise InputError(
            f"{method.name} needs batches of at least {method.smallest_batch} images, "
            f"batch_size is {experiment.batch_size}"
        )
