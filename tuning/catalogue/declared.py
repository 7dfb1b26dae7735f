"""The declarations of methods, datasets, encoders and samplers, without importing torch.

A method is defined beside the code that trains it, so importing one imports torch, which takes seconds. What
users type is checked before that, against `declared.json`: what our own methods and datasets declare, written
by `make catalogue` (see `writing`). Plug-ins are imported when their names are used.
"""

import json
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from contrasweep.data.facts import DatasetFacts, DatasetSpec, TransductiveSpec
from contrasweep.data.options import DatasetOption, OptionsInName, OptionValue
from contrasweep.names import unknown
from contrasweep.plugin_packages import plugin_names
from contrasweep.plugins import Named
from contrasweep.rules import Number, OneOf, Rule
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods.declaration import Declaration, Hyperparameter

FILE = "declared.json"
KINDS = {"float": float, "int": int, "str": str}

T = TypeVar("T", bound=Named)


class Declared(Mapping[str, T], Generic[T]):
    """Our own objects of one kind, as they are declared, and those of plug-ins, each imported on use.

    The names of plug-ins that cannot be used are among the names, because to find out they must be imported;
    `items` and `values` leave them out.

    Args:
        kind: one of `plugins.KINDS`.
        own: returns our own objects.
        registry: returns the registry of the kind; it imports the plug-ins.
        declare: returns what an object of the registry declares.
    """

    def __init__(
        self,
        kind: str,
        own: Callable[[], Mapping[str, T]],
        registry: Callable[[], Mapping[str, Any]],
        declare: Callable[[Any], T],
    ) -> None:
        self._kind = kind
        self._own = own
        self._registry = registry
        self._declare = declare

    def __getitem__(self, name: str) -> T:
        own = self._own()
        if name in own:
            return own[name]
        if name in self._others:
            return self._declare(self._registry()[name])
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self._own() or name in self._others

    def __iter__(self) -> Iterator[str]:
        return chain(self._own(), self._others)

    def __len__(self) -> int:
        return len(self._own()) + len(self._others)

    def checked(self, name: str) -> T:
        """Return an object as `[]` does, but none of ours whose name a plug-in has too.

        To find that out, Python reads a file of every installed distribution.

        Raises:
            PluginError: both have the name, so that the registry, and every run, refuses it.
        """
        return self._declare(self._registry()[name]) if name in plugin_names(self._kind) else self[name]

    def items(self) -> ItemsView[str, T]:
        """Return the objects that can be used, with their names."""
        return self._usable().items()

    def values(self) -> ValuesView[T]:
        """Return the objects that can be used."""
        return self._usable().values()

    def _usable(self) -> dict[str, T]:
        usable = set(self._registry()) if self._others else set()
        return {**self._own(), **{name: self[name] for name in self._others if name in usable}}

    @cached_property
    def _others(self) -> list[str]:
        """The names that plug-ins add; to find them, Python reads a file of every installed distribution."""
        return [name for name in plugin_names(self._kind) if name not in self._own()]


@dataclass(frozen=True)
class DeclaredDataset(OptionsInName):
    """A family of datasets as it is declared.

    Attributes:
        name: what users type.
        options: the options in its name.
        facts: of the member without options; None where they are in files, or an option must be given.
        settings: defaults for an experiment, of a plug-in; None for those of `search_spaces/datasets.yaml`.
        library: the optional library that reads the datasets, "" for none.
    """

    name: str
    options: Mapping[str, DatasetOption]
    facts: DatasetFacts | None = None
    settings: Mapping[str, OptionValue] | None = None
    library: str = ""


@dataclass(frozen=True)
class DeclaredEncoder:
    """An encoder as it is declared: its name, and whether it takes images or vectors."""

    name: str
    takes: str


@dataclass(frozen=True)
class DeclaredSampler:
    """A sampler as it is declared: its name, and whether it proposes each point of a finite space once."""

    name: str
    exhaustive: bool = False


def _registered_methods() -> Mapping[str, Declaration]:
    from contrasweep.tuning.methods import METHODS

    return METHODS


def _registered_datasets() -> Mapping[str, Any]:
    from contrasweep.data import DATASETS

    return DATASETS


def _registered_encoders() -> Mapping[str, Any]:
    from contrasweep.models.encoders.registry import ENCODER_REGISTRY

    return ENCODER_REGISTRY


def _registered_samplers() -> Mapping[str, Any]:
    from contrasweep.tuning.search import SAMPLERS

    return SAMPLERS


def _same(declared: T) -> T:
    return declared


def _declared_dataset(family: Any) -> DeclaredDataset:
    return DeclaredDataset(family.name, family.options, settings=family.settings, library=family.library)


def _declared_encoder(encoder: Any) -> DeclaredEncoder:
    from contrasweep.models import EncoderSpec

    return DeclaredEncoder(encoder.name, "images" if isinstance(encoder, EncoderSpec) else "vectors")


def _declared_sampler(sampler: Any) -> DeclaredSampler:
    return DeclaredSampler(sampler.name, sampler.exhaustive)


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(
        files("contrasweep.tuning.catalogue").joinpath(FILE).read_text(encoding="utf-8")
    )
    return content


@cache
def _methods() -> Mapping[str, Declaration]:
    return {name: _method(name, content) for name, content in _content()["methods"].items()}


@cache
def _datasets() -> Mapping[str, DeclaredDataset]:
    return {name: _dataset(name, content) for name, content in _content()["datasets"].items()}


@cache
def _encoders() -> Mapping[str, DeclaredEncoder]:
    return {name: DeclaredEncoder(name, **content) for name, content in _content()["encoders"].items()}


@cache
def _samplers() -> Mapping[str, DeclaredSampler]:
    return {name: DeclaredSampler(name, **content) for name, content in _content()["samplers"].items()}


DECLARED_METHODS: Declared[Declaration] = Declared("method", _methods, _registered_methods, _same)
DECLARED_DATASETS: Mapping[str, DeclaredDataset] = Declared(
    "dataset", _datasets, _registered_datasets, _declared_dataset
)
DECLARED_ENCODERS: Mapping[str, DeclaredEncoder] = Declared(
    "encoder", _encoders, _registered_encoders, _declared_encoder
)
DECLARED_SAMPLERS: Mapping[str, DeclaredSampler] = Declared(
    "sampler", _samplers, _registered_samplers, _declared_sampler
)


def unknown_method(given: str) -> InputError:
    """Return the error for a name that no method has; of a well-known one it names others."""
    alone = ", ".join(sorted(name for name, one in DECLARED_METHODS.items() if not one.needs))
    instead = f"; methods that need nothing but images: {alone}"
    return InputError(unknown("method", given, sorted(DECLARED_METHODS), instead))


def _method(name: str, content: Mapping[str, Any]) -> Declaration:
    settings = {one: _hyperparameter(own) for one, own in content["hyperparameters"].items()}
    sets = {"needs": frozenset(content.get("needs", ()))}
    tuples = {"train_metrics": tuple(content.get("train_metrics", ()))}
    return Declaration(name=name, **{**content, "hyperparameters": settings, **sets, **tuples})


def _hyperparameter(content: Mapping[str, Any]) -> Hyperparameter:
    needs = MappingProxyType(content.get("needs", {}))
    counts = bool(content.get("counts_columns", False))
    return Hyperparameter(content["summary"], _rule(content["rule"]), needs, counts)


def _rule(content: Mapping[str, Any]) -> Rule:
    return OneOf(tuple(content["choices"])) if "choices" in content else Number(**content)


def _dataset(name: str, content: Mapping[str, Any]) -> DeclaredDataset:
    options = {one: _option(own) for one, own in content["options"].items()}
    return DeclaredDataset(name, options, _facts(content.get("facts")), library=content.get("library", ""))


def _option(content: Mapping[str, Any]) -> DatasetOption:
    choices = tuple(content.get("choices", ()))
    return DatasetOption(**{"default": None, **content, "kind": KINDS[content["kind"]], "choices": choices})


def _facts(content: Mapping[str, Any] | None) -> DatasetFacts | None:
    if content is None:
        return None
    fields = {name: _tuples(value) for name, value in content.items()}
    return TransductiveSpec(**fields) if "views" in fields else DatasetSpec(**fields)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
