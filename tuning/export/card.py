"""The model card of an exported encoder: what it is, how well it does, how to load it. Markdown, for hubs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import yaml

from contrasweep.models.formats import Format, Network
from contrasweep.models.formats.network import RESIZED, SQUARE
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.export.source import Run, Source
from contrasweep.tuning.objectives.prepared import stored_size
from contrasweep.tuning.results.columns import score_in_words, score_interval, unit_note
from contrasweep.tuning.results.commands import final_runs_command
from contrasweep.tuning.results.final_runs import main_score
from contrasweep.tuning.results.numbers import interval_text, mean_and_std, number_text
from contrasweep.tuning.statistics import FEW_SEEDS, Summary
from contrasweep.version import __version__

NAME = "README.md"


def model_card(source: Source, network: Network, form: Format, example: str) -> str:
    """Return the card of an encoder, in Markdown with the metadata that model hubs read."""
    experiment = source.experiment
    parts = [
        _metadata(form, experiment),
        f"# {_title(network, experiment)}",
        _what(network, experiment, source.epoch),
        "## Scores",
        _scores(source.run, experiment),
        "## Load it",
        f"`images` are floats `(B, {network.channels}, {network.size}, {network.size})` in 0..1; `features` "
        f"are `(B, {network.encoder.width})`.",
        f"```python\n{example}```",
        _preprocessing(network, experiment),
        "## How it was trained",
        _training(source, experiment),
    ]
    return "\n\n".join(parts) + "\n"


def _metadata(form: Format, experiment: Experiment | None) -> str:
    tags = ["contrasweep", "self-supervised-learning", "feature-extraction"]
    if experiment is not None:
        tags.append(experiment.method)
    listed = "".join(f"\n- {tag}" for tag in tags)
    return f"---\nlibrary_name: {form.library}\npipeline_tag: image-feature-extraction\ntags:{listed}\n---"


def _title(network: Network, experiment: Experiment | None) -> str:
    if experiment is None:
        return network.name
    return f"{network.name} by {experiment.method} on {experiment.dataset}"


def _what(network: Network, experiment: Experiment | None, epoch: int | None) -> str:
    trained = ""
    if experiment is not None:
        epochs = f"{experiment.epochs}" if epoch is None else f"{epoch} of {experiment.epochs}"
        trained = f", trained by {experiment.method} on {experiment.dataset} for {epochs} epochs"
    return (
        f"An encoder of images: {network.name}{trained}. It turns an image of {network.size} x "
        f"{network.size} pixels with {network.channels} channels into {network.encoder.width} features. The "
        "projection head of the training is left out."
    )


def _scores(run: Run | None, experiment: Experiment | None) -> str:
    if run is None:
        return "None are known: the encoder was exported from its file alone, not from a study."
    said = _of_final_run(run) if run.final else _of_trial(run)
    control = None if experiment is None else experiment.encoder.control
    return "\n\n".join(filter(None, [said, control, unit_note(run.scores)]))


def _of_final_run(run: Run) -> str:
    names = _main_first(run.over_seeds)
    few = "" if run.over_seeds[names[0]].n >= FEW_SEEDS else f" Intervals need at least {FEW_SEEDS} seeds."
    header = ("score", "this run", "all seeds of the configuration", "95 % interval of the mean", "untrained")
    return "\n\n".join(
        [
            f"On the test split, which each run read once. This is the run with seed {run.seed}; it was not "
            "chosen by its test score.",
            _table(header, [_row(name, run) for name in names]),
            "Mean ± sample standard deviation over fresh seeds; intervals are Student's t. *Untrained* is "
            f"the same network before training, with the same seeds.{few}",
        ]
    )


def _of_trial(run: Run) -> str:
    rows = [
        (score_in_words(name), number_text(run.scores[name]), _control(name, run))
        for name in _main_first(run.scores)
    ]
    return "\n\n".join(
        [
            f"On the validation split, by which the search chose this trial{_mean_of(run)}, so they are "
            "optimistic. *Untrained* is the same network before training, with the same seed. The "
            f"test split was not read: `{final_runs_command([run.study], None)}` does that on fresh seeds.",
            _table(("score", "this run", "untrained"), rows),
        ]
    )


def _mean_of(run: Run) -> str:
    return f" (by the mean over {run.searched_seeds} seeds)" if run.searched_seeds > 1 else ""


def _main_first(scores: Mapping[str, object]) -> list[str]:
    main = main_score(list(scores))
    return sorted(scores, key=lambda name: name != main)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _row(name: str, run: Run) -> tuple[str, ...]:
    found, own = run.over_seeds[name], run.scores.get(name)
    ends = score_interval(name, found)
    return (
        score_in_words(name),
        "" if own is None else number_text(own),
        _words(found),
        interval_text(ends) or "",
        _control(name, run),
    )


def _control(name: str, run: Run) -> str:
    return _words(run.untrained[name]) if name in run.untrained else ""


def _words(one: Summary) -> str:
    return f"{mean_and_std(one)} (n = {one.n})"


def _preprocessing(network: Network, experiment: Experiment | None) -> str:
    """Say what turns an image into an input: `data.fit_square`, then `data.whole_image` with the centre."""
    centre = network.centre
    stored = None if experiment is None else stored_size(experiment)
    before = f" It is resized to {stored} x {stored} pixels first, as those of the training were."
    first = "" if stored in (None, network.resized) else before
    kept = "" if centre == 1 else f" Of its sides the central {number_text(centre)} is kept."
    lines = [
        f"An image becomes a square: {SQUARE}; a square image stays whole.{first}{kept} "
        f"The square is resized to {network.size} x {network.size} pixels "
        f"({RESIZED}) and divided by 255."
    ]
    if any(network.mean) or set(network.std) != {1.0}:
        lines.append(
            f"Then the mean {list(network.mean)} is subtracted, and they are divided by {list(network.std)}."
        )
    else:
        lines.append("No mean is subtracted.")
    return " ".join(lines)


def _as_yaml(source: Source) -> str:
    text: str = yaml.safe_dump(json.loads(source.file.experiment), sort_keys=False)
    return text


def _training(source: Source, experiment: Experiment | None) -> str:
    return "\n".join(_facts(source, experiment))


def _facts(source: Source, experiment: Experiment | None) -> Iterator[str]:
    if source.run is not None:
        yield f"- Study `{source.run.study}`, trial {source.run.trial}, seed {source.run.seed}"
    yield f"- Encoder file: SHA-256 `{source.file.digest}`"
    yield f"- Exported by contrasweep {__version__}"
    if experiment is not None:
        yield "- Experiment:\n"
        yield f"```yaml\n{_as_yaml(source)}```"
