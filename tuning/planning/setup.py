"""A description of a run before it starts: network, images, views, batches, epochs, device."""

from collections.abc import Collection, Sequence
from pathlib import Path

from contrasweep.data import DatasetFacts
from contrasweep.names import counted
from contrasweep.search_spaces import Space
from contrasweep.tuning.experiment import Experiment, ViewSettings
from contrasweep.tuning.experiment.schedulers import Scheduler, stops_by_rank
from contrasweep.tuning.methods.metrics import OF_VIEWS, VALIDATION
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.weights import weights_in_words

FEW_IMAGES = 100
"""A validation split of fewer images is warned of: one image changes the accuracy by more than 0.01."""


FEW_STEPS = 30
"""A trial of fewer steps is warned of: it hardly moves the weights, and the warmup takes a part of them."""


def setup_in_words(
    experiment: Experiment, facts: DatasetFacts, device: str, searched: Collection[str] = ()
) -> str:
    """Return what a run consists of, as one line.

    Args:
        experiment: the run; of a sweep, that of the defaults.
        facts: its dataset's, with the size of view that the experiment asks for.
        device: torch's name of the device.
        searched: the names of the settings that differ from trial to trial.
    """
    share = experiment.validation.fraction
    start = weights_in_words(experiment.encoder, facts)
    trained, held_out = facts.trained_size(share), facts.validation_size(share)
    batches = f"batches of {_value(f'{_batch(experiment, trained):,}', 'batch_size', searched)}"
    return "; ".join(
        [
            f"{_value(experiment.encoder.name, 'encoder.name', searched)} on {_inputs(facts)}",
            _views(experiment.views, facts, searched),
            batches if trained is None else f"{batches} from {counted(trained, 'image')}",
            *([f"{held_out:,} held out for validation"] if share else []),
            counted(experiment.epochs, "epoch"),
            f"on {device}",
            *([] if start is None else [start]),
        ]
    )


def few_images_in_words(experiment: Experiment, facts: DatasetFacts) -> str | None:
    """Return a warning of a validation split that is too small to tell trials apart; None of a larger one."""
    share = experiment.validation.fraction
    images = _selecting_images(experiment, facts)
    if not images or images >= FEW_IMAGES or experiment.validation.split == "folds":
        return None
    if not facts.has_labels:
        return (
            f"the validation split has {images} images, which no rank can exceed. More images, or --set "
            f"validation.fraction={min(0.5, 3 * share):g}, would help."
        )
    return (
        f"the validation split has {images} images: one of them changes the accuracy by "
        f"{1 / images:.2g}, so trials that are close cannot be told apart. More images, or --set "
        f"validation.fraction={min(0.5, 3 * share):g}, would help."
    )


def stops_before_end(rungs: Sequence[int], epochs: int) -> bool:
    """Whether a trial of so many epochs may be stopped after one of these, before its last."""
    return min(rungs, default=epochs) < epochs


def late_rung_in_words(rungs: Sequence[int], scheduler: Scheduler, experiment: Experiment) -> str | None:
    """Return a warning of early stopping that comes too late to stop a trial; None where it does not.

    Args:
        rungs: the epochs after which trials are compared.
        scheduler: what compares them.
        experiment: of a trial.
    """
    epochs, warmup = experiment.epochs, experiment.schedule.warmup_epochs
    if scheduler == "none" or stops_before_end(rungs, epochs) or epochs == 1:
        return None
    others = ", fewer schedule.warmup_epochs or --grace" if stops_by_rank(scheduler) else ""
    return (
        f"no trial is stopped early: a trial has {epochs} epochs, and is compared with others only after "
        f"these, because the learning rate rises for {_epochs_in_words(warmup)}. More --epochs"
        f"{others or ' or fewer schedule.warmup_epochs'} would help."
    )


def few_steps_in_words(experiment: Experiment, facts: DatasetFacts) -> str | None:
    """Return a warning of a trial that makes too few steps to learn; None of a longer one."""
    images = facts.trained_size(experiment.validation.fraction)
    if images is None:
        return None
    batches = images // _batch(experiment, images)
    steps = batches * experiment.epochs
    if steps >= FEW_STEPS:
        return None
    return (
        f"a trial makes {counted(steps, 'step')} in all: {counted(experiment.epochs, 'epoch')} of "
        f"{batches} batch{'es' * (batches != 1)} each. Smaller batches, --set batch_size=N, or more --epochs "
        "would help."
    )


def unreached_in_words(experiment: Experiment) -> list[str]:
    """Return warnings of settings that a run of so few epochs does not reach."""
    epochs, warmup = experiment.epochs, experiment.schedule.warmup_epochs
    told, end = [], f"ends after {counted(epochs, 'epoch')}"
    if late := [one for one in experiment.probes.at_epochs if one > epochs]:
        told.append(f"probes.at_epochs has {', '.join(map(str, late))}, and the run {end}.")
    if warmup > epochs and experiment.schedule.name != "cosine-min-ramp":
        told.append(
            f"the learning rate never reaches optimizer.lr: it rises for {_epochs_in_words(warmup)} "
            f"(schedule.warmup_epochs), and the run {end}."
        )
    return told


def _epochs_in_words(epochs: float) -> str:
    """Return a number of epochs, of which a part counts, in words."""
    return f"{epochs:g} epoch{'s' * (epochs != 1)}"


def searched_views_in_words(metrics: Collection[str], space: Space) -> str | None:
    """Return a warning of scores of views in a search that varies the views; None without such scores.

    Args:
        metrics: the metrics that decide, as the store spells them.
        space: what is searched.
    """
    views = [one.name for one in space.searched if one.name.startswith("views.")]
    scores = [name for name in dict.fromkeys(metrics) if name.removeprefix(VALIDATION) in OF_VIEWS]
    if not views or not scores:
        return None
    defaults = space.defaults()
    fixed = " ".join(f"--set {name}={defaults[name]}" for name in views if name in defaults)
    return (
        f"the search varies {' and '.join(views)}, which change {' and '.join(scores)} by themselves: a "
        f"trial may win by mild or by strong views alone. To hold them fixed: {fixed}"
    )


def scored_images(experiment: Experiment, seeds: int, data_root: Path | None) -> int:
    """Return the number of different validation images that a trial of so many seeds is scored on."""
    images = _selecting_images(experiment, spec_for(experiment, data_root))
    return images * min(seeds, experiment.validation.rounds)


def _selecting_images(experiment: Experiment, facts: DatasetFacts) -> int:
    """Return the number of validation images that one run of a search is scored on."""
    images = facts.validation_size(experiment.validation.fraction)
    return images - images // 2 if experiment.validation.halves else images


def _batch(experiment: Experiment, images: int | None) -> int:
    """Return the images of a batch: all of fewer images are one."""
    return experiment.batch_size if images is None else min(experiment.batch_size, images)


def _value(value: object, name: str, searched: Collection[str]) -> str:
    return f"{value} (searched)" if name in searched else str(value)


def _inputs(facts: DatasetFacts) -> str:
    if not facts.has_images:
        return "vectors"
    return f"{facts.channels} x {facts.view_size} x {facts.view_size} images"


def _views(views: ViewSettings, facts: DatasetFacts, searched: Collection[str]) -> str:
    """Return what makes the views of an image differ."""
    if "images" not in facts.offers:
        return "views of the data's own"
    jitter = (views.brightness, views.contrast, views.saturation, views.hue)
    there = {
        f"crops of {100 * views.min_crop:.3g} to {100 * views.max_crop:.3g} %": views.min_crop < 1,
        f"shifts of up to {counted(views.padding, 'pixel')}": views.padding,
        "flips": views.flip,
        "colour jitter": views.jitter_probability and any(jitter),
        "greyscale": views.grayscale,
        "blur": views.blur,
        counted(views.local_crops, "local crop"): views.local_crops,
    }
    told = ", ".join(name for name, is_there in there.items() if is_there) or "unchanged images"
    varied = [name.removeprefix("views.") for name in searched if name.startswith("views.")]
    return f"views: {told}" + (f" ({', '.join(varied)} searched)" if varied else "")
