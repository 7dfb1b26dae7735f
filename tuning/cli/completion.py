"""Shell completion: names of methods, datasets, metrics and studies, without importing torch."""

from collections.abc import Iterable

import typer

from contrasweep.tuning.results.commands import RESULTS


def complete_methods(incomplete: str) -> list[str]:
    """Return the methods that begin so."""
    from contrasweep.tuning.catalogue.declared import DECLARED_METHODS

    return _beginning(DECLARED_METHODS, incomplete)


def complete_datasets(incomplete: str) -> list[str]:
    """Return the datasets that begin so."""
    from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS

    return _beginning(DECLARED_DATASETS, incomplete)


def complete_samplers(incomplete: str) -> list[str]:
    """Return the samplers that begin so."""
    from contrasweep.tuning.catalogue.declared import DECLARED_SAMPLERS

    return _beginning(DECLARED_SAMPLERS, incomplete)


def complete_tables(incomplete: str) -> list[str]:
    """Return the papers' tables whose ids begin so."""
    from contrasweep.search_spaces.tables import available_tables

    return _beginning(available_tables(), incomplete)


def complete_metrics(incomplete: str) -> list[str]:
    """Return the metrics that begin like the last of several with commas between them, after the others."""
    from contrasweep.plugin_packages import plugin_names
    from contrasweep.tuning.methods.metrics import MEASURES

    others, comma, last = incomplete.rpartition(",")
    return [others + comma + name for name in _beginning([*MEASURES, *plugin_names("metric")], last)]


def complete_studies(context: typer.Context, incomplete: str) -> list[str]:
    """Return the studies that begin so, of the results folder that the command line names."""
    from contrasweep.tuning.store import StoreError, open_location, study_names

    try:
        return _beginning(study_names(open_location(context.params.get("results") or RESULTS)), incomplete)
    except (StoreError, OSError):
        # A shell shows no error while a line is typed.
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
