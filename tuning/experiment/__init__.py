"""The settings of one run: frozen, in sections, read from YAML, with the nearest name for an unknown one."""

from contrasweep.tuning.experiment.experiment import (
    Experiment,
    Value,
    default_settings,
    differing_settings,
    experiment_in_file,
    flat_settings,
    identities,
    parse_experiment,
    setting_names,
)
from contrasweep.tuning.experiment.settings import (
    ComputeSettings,
    EncoderSettings,
    HeadSettings,
    OptimizerSettings,
    ProbeSettings,
    ScheduleSettings,
    ValidationSettings,
    ViewSettings,
)

__all__ = [
    "ComputeSettings",
    "EncoderSettings",
    "Experiment",
    "HeadSettings",
    "OptimizerSettings",
    "ProbeSettings",
    "ScheduleSettings",
    "ValidationSettings",
    "Value",
    "ViewSettings",
    "default_settings",
    "differing_settings",
    "experiment_in_file",
    "flat_settings",
    "identities",
    "parse_experiment",
    "setting_names",
]
