"""Search spaces, the papers' settings and the datasets' defaults: YAML files and their readers."""

from contrasweep.search_spaces.dataset_settings import load_dataset_settings, shipped_dataset_settings
from contrasweep.search_spaces.files import (
    Preset,
    available_presets,
    available_spaces,
    learning_rates,
    load_space,
    method_space,
    preset,
)
from contrasweep.search_spaces.parameters import (
    WHOLE_NUMBERS,
    Choice,
    Fixed,
    Parameter,
    Range,
    Scalar,
    SpaceError,
    TypeName,
)
from contrasweep.search_spaces.scale import Scale
from contrasweep.search_spaces.space import Space
from contrasweep.search_spaces.yaml_text import parse_yaml, read_yaml

__all__ = [
    "WHOLE_NUMBERS",
    "Choice",
    "Fixed",
    "Parameter",
    "Preset",
    "Range",
    "Scalar",
    "Scale",
    "Space",
    "SpaceError",
    "TypeName",
    "available_presets",
    "available_spaces",
    "learning_rates",
    "load_dataset_settings",
    "load_space",
    "method_space",
    "parse_yaml",
    "preset",
    "read_yaml",
    "shipped_dataset_settings",
]
