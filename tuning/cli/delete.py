"""`contrasweep delete`: remove a study from its results folder."""

from typing import TYPE_CHECKING, Annotated

import typer

from contrasweep.tuning.cli.completion import complete_studies
from contrasweep.tuning.cli.options import Results
from contrasweep.tuning.cli.rendering import print_rows, remark, say
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.tuning.store import Location
    from contrasweep.tuning.store.removal import Held


def delete(
    study: Annotated[
        str, typer.Argument(help="Name of the study to delete.", autocompletion=complete_studies)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
    results: Results = RESULTS,
) -> None:
    """Delete a study: its record, trials, epochs, checkpoints, encoders and TensorBoard files.

    Final runs are studies of their own (NAME-final), which stay. A study that is being run is not deleted.
    What is left of a study whose record is damaged or gone is deleted too.

    Example: contrasweep delete my-study
    """
    from contrasweep.tuning.store import check_study_name, open_location
    from contrasweep.tuning.store.removal import delete_study, held_by

    location = open_location(results)
    held = held_by(location, check_study_name(study))
    footer = _footer(location, study, remains=bool(held))
    print_rows(f"Of study {study} in {results}", _rows(held), footer=footer)
    if not yes and not typer.confirm(f"Delete study {study}?", err=True):
        remark("Nothing was deleted.")
        raise typer.Exit(1)
    delete_study(location, study)
    say(f"Deleted study {study}.")


def _footer(location: "Location", study: str, *, remains: bool) -> str:
    """Say what becomes of a study's record, also of one that is damaged or gone, and which final runs stay.

    Raises:
        StoreError: there is neither a record nor anything that `remains` of the study.
    """
    from contrasweep.tuning.store import StoreError, study_names
    from contrasweep.tuning.store.layout import record_path
    from contrasweep.tuning.store.study import final_studies_of, load_study

    is_there, damage = study in study_names(location), ""
    try:
        load_study(location, study)
    except StoreError as error:
        if not is_there and not remains:
            raise
        damage = f"{error}. " if is_there else ""
    goes = "goes last" if is_there else "is gone already"
    finals = final_studies_of(location, study)
    stay = f". Its final runs stay: {', '.join(finals)}" if finals else ""
    return f"{damage}Its record, {record_path(study)}, {goes}{stay}."


def _rows(held: "list[Held]") -> list[dict[str, object]]:
    return [{"place": one.place, "files": one.files, "kB": round(one.size / 1e3)} for one in held]
