"""`export_encoder`: what `contrasweep export` does, as a function."""

from pathlib import Path

from contrasweep.models.formats import FORMATS
from contrasweep.tuning.export.checks import check_format
from contrasweep.tuning.export.folder import export
from contrasweep.tuning.export.source import find_source
from contrasweep.tuning.results.commands import results_folder


def export_encoder(
    source: str | Path,
    form: str,
    folder: str | Path,
    *,
    results: str | Path | None = None,
    trial: int | None = None,
    seed: int | None = None,
) -> list[str]:
    """Write a trained encoder so that another library loads it; return the names of the files.

    Args:
        source: a study (its final runs, or else what its search kept), or an encoder file.
        form: the format: `torchvision`, `timm`, `hf` or `onnx`.
        folder: the folder to write, new or empty. Its README.md has the lines that load the encoder.
        results: the results folder of the study; None: CONTRASWEEP_RESULTS, else `results`.
        trial, seed: of a study, the run to take; by default the first seed of the best trial.

    Raises:
        InputError: the format is unknown or cannot hold the network, the folder is not empty, or there is no
            such run or file.
        StoreError: there is no such study.
    """
    check_format(form)
    return export(
        find_source(str(source), str(results_folder(results)), trial, seed), FORMATS[form], Path(folder)
    )
