"""Warnings of settings and hyperparameters that another choice switches off."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from contrasweep.data import DatasetFacts
from contrasweep.search_spaces import Space
from contrasweep.search_spaces.parameters import among
from contrasweep.tuning.experiment import Experiment

_NO_TRUST = ("sgd", "adam", "adamw")
_NO_STEPS = ("cosine", "cosine-min-ramp", "constant")

WITHOUT_EFFECT: Final[Mapping[str, tuple[str, Collection[object]]]] = {
    "head.hidden": ("head.name", ("linear", "none")),
    "head.width": ("head.name", ("none",)),
    "optimizer.trust": ("optimizer.name", _NO_TRUST),
    "optimizer.exclude_norm_and_bias": ("optimizer.name", (*_NO_TRUST, "larc")),
    "optimizer.momentum": ("optimizer.name", ("adam", "adamw")),
    "schedule.factor": ("schedule.name", _NO_STEPS),
    "schedule.milestones": ("schedule.name", _NO_STEPS),
    "schedule.final_fraction": ("schedule.name", ("constant", "step")),
    "views.local_size": ("views.local_crops", (0,)),
    "views.local_min_crop": ("views.local_crops", (0,)),
    "views.local_max_crop": ("views.local_crops", (0,)),
    "probes.min_crop": ("probes.views", ("whole", "training")),
}
"""For each setting another one, and the values of the other with which the setting changes nothing."""


def unused_in_words(
    experiment: Experiment, given: Iterable[str], facts: DatasetFacts, searched: Collection[str] = ()
) -> list[str]:
    """Return warnings of settings that were given, and that the run does not use.

    A setting at its default is not told, unless it is searched: the file of a best configuration holds all
    settings.

    Args:
        experiment: the run; of a sweep, that of the defaults.
        given: the settings that the user gave or that a space names, by dotted paths.
        facts: the dataset's.
        searched: the names of the settings that differ from trial to trial.
    """
    defaults, told = Experiment(method=experiment.method, dataset=experiment.dataset), []
    for name in given:
        if "." not in name or (name not in searched and experiment.value(name) == defaults.value(name)):
            continue
        other, without = WITHOUT_EFFECT.get(name, ("", ()))
        if name.startswith("views.") and "images" not in facts.offers:
            told.append(f"{name} has no effect with {experiment.dataset}: its objects have their own views.")
        elif other and other not in searched and (value := experiment.value(other)) in without:
            told.append(f"{name} has no effect with {other}={value}: leave it out.")
    return told


def idle_in_words(space: Space, own: Space) -> list[str]:
    """Return warnings of hyperparameters in a space for a search in which they change nothing.

    Args:
        space: what is searched, with everything fixed that the user fixed.
        own: the method's own space, whose conditions say when a hyperparameter has an effect.
    """
    told = []
    for parameter in (one for one in space.parameters if one.name in own):
        for parent, values in own[parameter.name].when_given.items():
            held = space[parent].values() if parent in space else ()
            if held and not any(among(value, values) for value in held):
                shown = ", ".join(map(str, held))
                told.append(f"{parameter.name} has no effect with {parent}={shown}: leave it out.")
    return told


def large_batch_in_words(experiment: Experiment, facts: DatasetFacts) -> list[str]:
    """Return a warning of a batch that is to have more images than the run trains on; none of a smaller."""
    images = facts.trained_size(experiment.validation.fraction)
    if images is None or experiment.batch_size <= images:
        return []
    return [
        f"batch_size {experiment.batch_size:,} is above the {images:,} images that the run trains on: each "
        "batch has all of them."
    ]
