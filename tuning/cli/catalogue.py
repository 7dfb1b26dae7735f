"""`contrasweep methods`, `spaces` and `metrics`: list the choices. `compact` merges the files of a study."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from contrasweep.names import counted
from contrasweep.tuning.cli.columns import text
from contrasweep.tuning.cli.completion import complete_datasets, complete_methods, complete_studies
from contrasweep.tuning.cli.options import AsJson, DataRoot, Results
from contrasweep.tuning.cli.rendering import print_entries, print_json, source_line, tell
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.data.facts import DatasetFacts
    from contrasweep.search_spaces import Parameter
    from contrasweep.tuning.methods.declaration import Declaration
    from contrasweep.tuning.planning.measured import Measured


_IMAGES_ALONE = "images alone"


def methods(
    data: Annotated[
        str | None,
        typer.Option(help="Only the methods that run on this dataset.", autocompletion=complete_datasets),
    ] = None,
    data_root: DataRoot = None,
    json: AsJson = False,
) -> None:
    """List the methods: what each does, its paper and equation, what it needs, its hyperparameters.

    Example: contrasweep methods

    Example: contrasweep methods --data cifar10
    """
    from contrasweep.tuning.catalogue.declared import DECLARED_METHODS

    every = DECLARED_METHODS.values()
    rows = [_method_row(method) for method in (every if data is None else _running_on(data, data_root))]
    if json:
        print_json(rows)
        return
    entries = {row["method"]: _method_lines(row) for row in rows}
    print_entries(f"{len(entries)} methods" + ("" if data is None else f" run on {data}"), entries)
    tell("A method's parameters, their ranges and sources: contrasweep spaces METHOD")


def _running_on(dataset: str, data_root: Path | None) -> "list[Declaration]":
    """Return the methods whose needs a dataset has."""
    from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
    from contrasweep.tuning.planning.needs import lacking

    facts = _facts_of(dataset, data_root)
    return [method for method in DECLARED_METHODS.values() if not lacking(method, facts)]


def _facts_of(dataset: str, data_root: Path | None) -> "DatasetFacts":
    from contrasweep.tuning.errors import told_to_user
    from contrasweep.tuning.planning.needs import facts_of

    with told_to_user():
        return facts_of(dataset, data_root)


def spaces(
    method: Annotated[
        str, typer.Argument(help="Method whose search space to print.", autocompletion=complete_methods)
    ],
    json: AsJson = False,
) -> None:
    """Print a method's source and needs, and its search space: ranges, defaults, conditions, sources.

    Example: contrasweep spaces fair-cclk
    """
    from contrasweep.tuning.catalogue.declared import DECLARED_METHODS, unknown_method

    if method not in DECLARED_METHODS:
        raise unknown_method(method)
    chosen = DECLARED_METHODS.checked(method)
    space = chosen.search_space()
    if json:
        print_json([_parameter_row(chosen, parameter) for parameter in space.parameters])
        return
    print_entries(f"{chosen.name}: {chosen.summary}", _facts(_method_row(chosen)))
    fixed = [parameter for parameter in space.parameters if parameter.name in space.fixed]
    for title, parameters in (("Searched", list(space.searched)), ("Fixed, unless set", fixed)):
        if parameters:
            print_entries(title, {p.name: _parameter_lines(chosen, p) for p in parameters})


def _method_row(method: "Declaration") -> dict[str, Any]:
    from contrasweep.search_spaces import available_presets

    return {
        "method": method.name,
        "what it does": method.summary,
        "paper": method.paper,
        "equation": method.equation,
        "needs": _needs(method),
        "hyperparameters": {name: one.summary for name, one in method.hyperparameters.items()},
        "reports": list(method.train_metrics),
        "classifies": method.classifies,
        "presets": [dataset for name, dataset in available_presets() if name == method.name],
    }


def _method_lines(row: dict[str, Any]) -> list[str | Text]:
    settings = f"with {', '.join(row['hyperparameters'])}" if row["hyperparameters"] else ""
    needs = "" if row["needs"] == _IMAGES_ALONE else f"needs {row['needs']}"
    return [
        row["what it does"],
        "; ".join(filter(None, [settings, needs])),
        source_line(f"{row['paper']}, {row['equation']}"),
    ]


def _facts(row: dict[str, Any]) -> dict[str, list[str]]:
    facts = {
        "paper": row["paper"],
        "equation": row["equation"],
        "needs": row["needs"],
        "reports": ", ".join(row["reports"]),
        "scored by": "its own classifier, and a probe" if row["classifies"] else "",
        "presets": ", ".join(row["presets"]),
    }
    return {name: [fact] for name, fact in facts.items() if fact}


def _needs(method: "Declaration") -> str:
    from contrasweep.tuning.planning.needs import NEED_IN_WORDS

    always = " and ".join(NEED_IN_WORDS[need] for need in sorted(method.needs))
    needs = [always] if always else []
    for name, hyperparameter in method.hyperparameters.items():
        asking: dict[str, list[str]] = {}
        for choice, need in hyperparameter.needs.items():
            asking.setdefault(NEED_IN_WORDS[need], []).append(choice)
        needs += [f"{words} where {name} is {_either(choices)}" for words, choices in asking.items()]
    return ", ".join(needs) or _IMAGES_ALONE


def _parameter_row(method: "Declaration", parameter: "Parameter") -> dict[str, Any]:
    return {
        "parameter": parameter.name,
        "what it is": _meaning(method, parameter),
        "range": parameter.describe(),
        "default": parameter.default,
        "when": "; ".join(f"{name} in {list(values)}" for name, values in parameter.when.items()) or None,
        "given": "; ".join(f"{name} in {list(values)}" for name, values in parameter.given.items()) or None,
        "source": parameter.source,
    }


def _parameter_lines(method: "Declaration", parameter: "Parameter") -> list[str | Text]:
    meaning = _meaning(method, parameter)
    conditions = [f"{name} is {_either(values)}" for name, values in parameter.when.items()]
    return [
        _range(parameter),
        *([meaning] if meaning else []),
        *([f"only where {' and '.join(conditions)}"] if conditions else []),
        *(
            f"left out where {name} is {_either(values)}, unless set"
            for name, values in parameter.given.items()
        ),
        source_line(parameter.source),
    ]


def _range(parameter: "Parameter") -> str:
    from contrasweep.search_spaces import Choice, Fixed

    default = text(parameter.default)
    if isinstance(parameter, Fixed):
        others = [value for value in parameter.of if value != parameter.default]
        return f"{default} (or {_either(others)})" if others else default
    if isinstance(parameter, Choice):
        return f"{_either(parameter.choices)}, default {default}"
    scale = " on a log scale" if parameter.is_log else ""
    return f"{text(parameter.low)} to {text(parameter.high)}{scale}, default {default}"


def _meaning(method: "Declaration", parameter: "Parameter") -> str | None:
    own = method.hyperparameters.get(parameter.name)
    return None if own is None else own.summary


def _either(values: Iterable[Any]) -> str:
    *first, last = (text(value) for value in values)
    return f"{', '.join(first)} or {last}" if first else last


def metrics(
    data: Annotated[
        str | None,
        typer.Option(help="Only the metrics that this dataset has.", autocompletion=complete_datasets),
    ] = None,
    data_root: DataRoot = None,
    json: AsJson = False,
) -> None:
    """List the metrics: what each measures, which direction is better, when it is measured.

    Example: contrasweep metrics

    Example: contrasweep metrics --data cifar10
    """
    from contrasweep.tuning.planning.measured import measured_metrics

    found = measured_metrics(None if data is None else _facts_of(data, data_root))
    if json:
        print_json([_metric_row(metric) for metric in found])
        return
    title = f"{len(found)} metrics" + ("" if data is None else f" on {data}")
    print_entries(title, {metric.name: _metric_lines(metric) for metric in found})
    tell(
        "`ridge_` is of the fast probe, `classifier_` of a method's own classifier. Final runs also score "
        "the untrained encoder: `test.untrained_`. Options take a metric with or without `val.`."
    )


def _metric_row(metric: "Measured") -> dict[str, Any]:
    return {
        "metric": metric.name,
        "what it measures": metric.summary,
        "better": _better(metric),
        "after every epoch": list(metric.every_epoch),
        "before training and at the end": list(metric.at_ends),
        "in final runs": list(metric.final),
        "only with": metric.setting or None,
    }


def _metric_lines(metric: "Measured") -> list[str | Text]:
    row = _metric_row(metric)
    times = ("after every epoch", "before training and at the end", "in final runs")
    setting = f"; only with {metric.setting}" if metric.setting else ""
    implied = ", which --metric and --keep set" if metric.implied else ""
    return [
        metric.summary,
        f"{_better(metric)} is better{setting}{implied}",
        source_line("; ".join(f"{', '.join(row[time])} {time}" for time in times if row[time])),
    ]


def _better(metric: "Measured") -> str:
    return "smaller" if metric.minimised else "larger"


def compact(
    study: Annotated[str, typer.Argument(help="Name of the study.", autocompletion=complete_studies)],
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Merge the small files of a study into one file of trials and one of epochs, as a sweep does at its end.

    Trials that have not ended keep files of their own.

    Example: contrasweep compact my-study
    """
    from contrasweep.tuning.store import compact as merge
    from contrasweep.tuning.store import open_location

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
        tell(
            f"{study}: {counted(done.removed, 'file')} merged. The merged files hold {done.trials} rows "
            f"of trials and {done.epochs} of epochs; damaged files, left as they are: {len(done.damaged)}."
        )
