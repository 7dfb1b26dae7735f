"""`contrasweep methods`, `spaces` and `datasets`: what there is to choose from. `compact` tidies a study."""

from pathlib import Path
from typing import Annotated

import typer

from tuning.cli.options import RESULTS, AsJson, DataRoot, Results
from tuning.cli.rendering import print_json, print_rows, say


def methods(json: AsJson = False) -> None:
    """List the methods: what each does, its source, its hyperparameters.

    Example: contrasweep methods
    """
    from tuning.methods import METHODS

    rows = [
        {
            "method": method.name,
            "what it does": method.summary,
            "source": f"{method.paper}, {method.equation}",
            "needs": "a conditioning variable" if method.needs_condition else "images alone",
            "hyperparameters": ", ".join(method.hyperparameters),
        }
        for method in METHODS.values()
    ]
    print_json(rows) if json else print_rows("Methods", rows)


def spaces(
    method: Annotated[str, typer.Argument(help="Method whose search space to print.")],
    json: AsJson = False,
) -> None:
    """Print the search space of a method: ranges, defaults, conditions, sources.

    Example: contrasweep spaces fair-cclk
    """
    from search_spaces import method_space
    from tuning.errors import unknown_name
    from tuning.methods import METHODS

    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    rows = [
        {
            "parameter": parameter.name,
            "range": parameter.describe(),
            "default": parameter.default,
            "when": "; ".join(f"{name} in {list(values)}" for name, values in parameter.when.items()) or None,
            "source": parameter.source,
        }
        for parameter in method_space(method).parameters
    ]
    print_json(rows) if json else print_rows(f"Search space of {method}", rows)


def datasets(data_root: DataRoot = None, json: AsJson = False) -> None:
    """List the datasets, and whether their files are there.

    Example: contrasweep datasets --data-root /data
    """
    from data import DATASETS, dataset_spec

    rows = [
        {
            "dataset": spec.name,
            "what it is": spec.summary,
            "train": spec.train_size,
            "test": spec.test_size,
            "condition": spec.condition_name,
            "licence": spec.licence,
            "there": _state(spec.name, data_root),
        }
        for spec in map(dataset_spec, DATASETS)
    ]
    print_json(rows) if json else print_rows("Datasets", rows)


def compact(
    study: Annotated[str, typer.Argument(help="Name of the study.")],
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Merge a study's many small files into one of trials and one of epochs; a sweep does so when it ends.

    Example: contrasweep compact my-study
    """
    from tuning.store import compact as merge
    from tuning.store import open_location

    done = merge(open_location(results), study)
    content = {
        "trials": done.trials,
        "epochs": done.epochs,
        "removed": done.removed,
        "damaged": len(done.damaged),
    }
    if json:
        print_json(content)
    else:
        say(
            f"{study}: {done.trials} trials and {done.epochs} epochs in two files; "
            f"{done.removed} small files removed, {len(done.damaged)} damaged ones left"
        )


def _state(name: str, data_root: Path | None) -> str:
    from data import DatasetMissing, check_available

    try:
        check_available(name, data_root)
    except DatasetMissing:
        return "no"
    return "yes"
