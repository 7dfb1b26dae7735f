"""`Experiment`: everything about one run, as frozen, validated settings.

An experiment comes from a YAML file or from `planning.resolve`. It never changes in place: `with_values`
returns a new one, and derived quantities (such as a scaled learning rate) are kept elsewhere.
"""

import hashlib
import json
import math
import re
import reprlib
from collections.abc import Container, Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, field_validator

from contrasweep.names import did_you_mean
from contrasweep.search_spaces import WHOLE_NUMBERS
from contrasweep.tuning.errors import InputError, told_to_user, unknown_name
from contrasweep.tuning.experiment.settings import (
    ComputeSettings,
    Count,
    EncoderSettings,
    HeadSettings,
    OptimizerSettings,
    ProbeSettings,
    ScheduleSettings,
    Seed,
    Settings,
    ValidationSettings,
    ViewSettings,
)
from contrasweep.tuning.limits import MOST

ADDED_LATER = (
    "views.padding",
    "views.local_crops",
    "views.local_size",
    "views.local_min_crop",
    "views.local_max_crop",
    "encoder.views",
    "encoder.weights",
    "encoder.weights_sha256",
    "optimizer.norm_and_bias_lr_factor",
    "optimizer.larc_clip",
    "optimizer.decay_norm_and_bias",
    "optimizer.clip_norm",
    "optimizer.ema",
    "validation.split",
    "validation.halves",
    "data_revision",
    "data_fingerprint",
    "probes.images",
    "probes.views",
    "probes.min_crop",
    "probes.centre",
    "probes.at_epochs",
    "probes.kmeans_starts",
    "probes.label_free_views",
    "probes.metrics",
    "compute",
)
"""Settings that are younger than some stored studies. At its default, such a setting is not part of an
experiment's identity, so older stored experiments keep theirs."""

Value = bool | int | float | str


class Experiment(Settings):
    """One run: the method and its hyperparameters, the data, the network, the training, the seed.

    `data_revision` and `data_fingerprint` are the dataset's (`data.SharedFacts`), so runs on images made
    otherwise, or on others of the same name, are other runs.
    """

    method: str
    dataset: str
    data_revision: Count = 1
    data_fingerprint: str = ""
    hyperparameters: Mapping[str, Value] = Field(default_factory=dict)
    views: ViewSettings = ViewSettings()
    encoder: EncoderSettings = EncoderSettings()
    head: HeadSettings = HeadSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    epochs: Count = 10
    batch_size: Annotated[int, Field(ge=2, le=MOST)] = 256
    seed: Seed = 0
    validation: ValidationSettings = ValidationSettings()
    probes: ProbeSettings = ProbeSettings()
    compute: ComputeSettings = ComputeSettings()

    @field_validator("hyperparameters", mode="before")
    @classmethod
    def _plain_values(cls, values: Any) -> Any:
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if not isinstance(value, bool | int | float | str):
                # A ValueError is what pydantic turns into an error of the field.
                raise ValueError(  # noqa: TRY004
                    f"hyperparameters.{name} must be a number, a word, true or false"
                )
            if isinstance(value, int) and value not in WHOLE_NUMBERS:
                raise ValueError(f"hyperparameters.{name} must fit into 64 bits")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"hyperparameters.{name} must be finite")
        return values

    def with_values(self, values: Mapping[str, Any]) -> "Experiment":
        """Return this experiment with `values` set, each under a dotted path or a hyperparameter's bare name.

        Raises:
            InputError: a path does not exist (the message gives the nearest), or a value is not allowed.
        """
        content = self.model_dump()
        for path, value in values.items():
            _place(content, path, value)
        return parse_experiment(content)

    def on_all_training_data(self) -> "Experiment":
        """Return this experiment without a validation split, whose settings then say nothing."""
        nothing = {"validation.fraction": 0.0, "validation.split": "class", "validation.halves": False}
        return self.with_values(nothing)

    def with_searched(self, names: Iterable[str], values: Mapping[str, Any]) -> "Experiment":
        """Return this experiment with the searched settings `names` at `values`.

        A searched name without a value is inactive: a hyperparameter is then left out, another setting has
        its default.

        Raises:
            InputError: see `with_values`.
        """
        content, known = self.model_dump(), setting_names(self)
        defaults = Experiment(method=self.method, dataset=self.dataset).model_dump()
        for name in names:
            section, _, field = name.partition(".")
            if field:
                if name not in known:
                    raise unknown_name("setting", name, known)
                content[section][field] = defaults[section][field]
            elif name in defaults:
                content[name] = defaults[name]
            else:
                content["hyperparameters"].pop(name, None)
        return parse_experiment(content).with_values(values)

    def value(self, path: str) -> Value:
        """Return the value of a setting by its dotted path, or of a hyperparameter by its bare name."""
        content: Any = self.model_dump()
        if path in self.hyperparameters:
            return self.hyperparameters[path]
        for part in path.split("."):
            if not isinstance(content, Mapping) or part not in content:
                raise unknown_name("setting", path, setting_names(self))
            content = content[part]
        result: Value = content
        return result

    def content(self) -> dict[str, Any]:
        """Return all settings as plain values, without settings of `ADDED_LATER` at their defaults."""
        content = self.model_dump(mode="json")
        defaults = Experiment(method=self.method, dataset=self.dataset).model_dump(mode="json")
        for path in ADDED_LATER:
            *sections, field = path.split(".")
            held, usual = content, defaults
            for section in sections:
                held, usual = held[section], usual[section]
            if held[field] == usual[field]:
                del held[field]
        return content

    def identity(self) -> str:
        """Return the hash of the experiment without its seed: only replicates have the same.

        A file of weights counts by its digest, wherever it lies.
        """
        content = self.content()
        del content["seed"]
        if self.encoder.weights_sha256 is not None:
            content["encoder"].pop("weights", None)
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()


def identities(experiment: Experiment) -> tuple[str, ...]:
    """Return the identities under which the store may hold runs of an experiment: its own comes first.

    The other one is that of runs from before its dataset had a fingerprint.
    """
    before = experiment.model_copy(update={"data_fingerprint": ""})
    return tuple(dict.fromkeys((experiment.identity(), before.identity())))


def parse_experiment(content: object) -> Experiment:
    """Return the experiment that a mapping (for example from a YAML file) describes.

    Raises:
        InputError: a key is unknown (the message gives the nearest), or a value is not allowed.
    """
    if not isinstance(content, Mapping):
        raise InputError(f"an experiment is a mapping of settings, not {type(content).__name__}")
    try:
        return Experiment.model_validate(dict(content))
    except ValidationError as error:
        raise InputError("; ".join(_explain(item) for item in error.errors())) from None


def experiment_in_file(text: str, place: str) -> Experiment | None:
    """Return the experiment that a file of an encoder holds as JSON; None if it holds none.

    Raises:
        InputError: it cannot be read; the message names the file, `place`.
    """
    if not text:
        return None
    with told_to_user(f"{place}: the experiment in it: "):
        return parse_experiment(json.loads(text))


def default_settings(method: str, dataset: str) -> dict[str, Any]:
    """Return all settings of an experiment that sets nothing else, by dotted paths, as JSON holds them."""
    return flat_settings(Experiment(method=method, dataset=dataset).model_dump(mode="json"))


def flat_settings(content: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted paths, the form that `with_values` takes."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def differing_settings(
    here: Mapping[str, Any], there: Mapping[str, Any], left_out: Container[str]
) -> list[tuple[str, Any, Any]]:
    """Return the settings in which two experiments differ: the name, the value here, the value there.

    Args:
        here, there: the settings by dotted paths (`flat_settings`); one that is only on one side is None on
            the other.
        left_out: names that may differ; a hyperparameter is named without its section.
    """
    names = sorted(name for name in {**here, **there} if here.get(name) != there.get(name))
    bare = {name: name.removeprefix("hyperparameters.") for name in names}
    return [(bare[name], here.get(name), there.get(name)) for name in names if bare[name] not in left_out]


def setting_names(experiment: Experiment) -> list[str]:
    """Return every path that `with_values` takes: dotted fields, top-level fields, bare hyperparameters."""
    names = list(experiment.hyperparameters)
    for field, content in experiment:
        if isinstance(content, Settings):
            names += [f"{field}.{inner}" for inner in type(content).model_fields]
        elif field not in ("hyperparameters", "method", "dataset"):
            names.append(field)
    return names


def _place(content: dict[str, Any], path: str, value: Any) -> None:
    section, _, field = path.partition(".")
    if not field and path not in Experiment.model_fields:
        content["hyperparameters"][path] = value
    elif not field:
        content[path] = value
    else:
        if not isinstance(content.get(section), dict):
            raise unknown_name("setting", path, setting_names(parse_experiment(content)))
        content[section][field] = value


def _explain(item: Any) -> str:
    path = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        allowed = _fields_beside(item["loc"])
        section, dot, _ = path.rpartition(".")
        hint = did_you_mean(path, [section + dot + name for name in allowed], "setting")
        return f"unknown setting {path!r}.{hint} Known there: {', '.join(allowed)}"
    if item["type"] == "missing":
        return f"setting {path!r} is missing"
    if item["type"] == "literal_error":
        words = re.findall(r"'([^']*)'", item["ctx"]["expected"])
        near = did_you_mean(str(item["input"]), words)
        return f"setting {path!r}: must be {item['ctx']['expected']}, given {item['input']!r}.{near}"
    is_list = item["type"] == "tuple_type"
    reason = "allowed: a list, such as [0.5]" if is_list else str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "value_error" and path != "hyperparameters" and isinstance(item["input"], Mapping):
        return reason  # of several settings of a section: it names them
    return f"setting {path!r}: {reason}, given {reprlib.repr(item['input'])}" if path else reason


def _fields_beside(location: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Experiment
    for part in location[:-1]:
        annotation = model.model_fields[str(part)].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return list(model.model_fields)
