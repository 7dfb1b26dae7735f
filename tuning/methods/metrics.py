"""The metrics that runs record, known before a study starts, and which of them a search maximises."""

from contrasweep.data import DatasetSpec, TransductiveSpec
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.datasets import Facts

TOP_FIVE_FROM = 21
"""Classes from which accuracy is reported of five guesses too: of fewer, they would say little."""

VALIDATION = "val."

ALWAYS = ("train.loss", "train.dropped_fraction", "train.lr")


def search_metrics(method: Method, spec: Facts) -> tuple[str, ...]:
    """Return the metrics of a search trial: training, and scores on the validation split."""
    return (
        *_training(method),
        *_probed("val.ridge_", spec),
        *_classified("val.", method, spec),
        *_probed("val.", spec),
    )


def final_metrics(method: Method, spec: Facts) -> tuple[str, ...]:
    """Return the metrics of a final run: training, and test scores of the trained and untrained encoder."""
    return (
        *_training(method),
        *_probed("test.", spec),
        *_classified("test.", method, spec),
        *_probed("test.untrained_", spec),
        *(_classified("test.untrained_", method, spec) if isinstance(spec, TransductiveSpec) else ()),
    )


def goals(method: Method, spec: Facts) -> dict[str, str]:
    """Return what a search can maximise, and the form of it that is known after every epoch.

    A larger colour error means that less of the colour is kept, so all of them are maximised.
    """
    probed = zip(_probed("val.", spec), _probed("val.ridge_", spec), strict=True)
    return {**dict(probed), **{name: name for name in _classified("val.", method, spec)}}


def default_goal(method: Method, spec: Facts) -> str:
    """Return what is maximised unless the user says otherwise: a linear probe's accuracy, for every method.

    On biased data, accuracy would choose the biased model: there it is averaged over (class, bias). A
    transductive dataset has no probe: there it is the classifier's first score.
    """
    if isinstance(spec, TransductiveSpec):
        return _classified("val.", method, spec)[0]
    return "val.accuracy" if spec.bias_classes is None else "val.balanced_accuracy"


def chosen_goals(given: str | None, method: Method, spec: Facts) -> tuple[str, ...]:
    """Return the metrics named in `given` (commas between them, `val.` may be left out), or the default one.

    Every goal is maximised: a larger colour error means that less of the colour is kept.

    Raises:
        InputError: a metric that this method is not scored on (with the nearest), or one named twice.
    """
    if given is None:
        return (default_goal(method, spec),)
    chosen = tuple(full_name(name.strip(), method, spec) for name in given.split(","))
    if len(set(chosen)) < len(chosen):
        raise InputError(f"metric: given {given}; allowed: each once")
    return chosen


def full_name(given: str, method: Method, spec: Facts) -> str:
    """Return the name of a goal as the store spells it.

    Raises:
        InputError: this method is not scored on it here (with the nearest name).
    """
    known = goals(method, spec)
    for name in (given, VALIDATION + given):
        if name in known:
            return name
    error = unknown_name("metric", given, known)
    raise InputError(f"{error} So {method.name} is scored on {spec.name}.")


def _training(method: Method) -> tuple[str, ...]:
    return (*ALWAYS, *(f"train.{name}" for name in method.train_metrics))


def _probed(prefix: str, spec: Facts) -> tuple[str, ...]:
    if isinstance(spec, TransductiveSpec):
        return ()
    colour = ("colour_mse",) if spec.has_colour else ()
    return tuple(prefix + name for name in (*_measures(prefix, spec), *colour))


def _classified(prefix: str, method: Method, spec: Facts) -> tuple[str, ...]:
    if isinstance(spec, TransductiveSpec):
        names = ("f1", "auc") if spec.multi_label else ("accuracy", "f1", "auc")
        return tuple(prefix + name for name in names)
    if not method.classifies:
        return ()
    return tuple(f"{prefix}classifier_{name}" for name in _measures(prefix, spec))


def _measures(prefix: str, spec: DatasetSpec) -> tuple[str, ...]:
    balanced = ("balanced_accuracy",) if spec.bias_classes is not None else ()
    top_five = ("top5_accuracy",) if spec.classes >= TOP_FIVE_FROM else ()
    unbiased = ("unbiased_accuracy",) if spec.groupings and prefix.startswith("test.") else ()
    return ("accuracy", *balanced, *top_five, *unbiased)
