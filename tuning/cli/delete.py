"""`contrasweep delete`: remove a study from its results folder."""

from typing import TYPE_CHECKING, Annotated

import typer

from contrasweep.tuning.cli.completion import complete_studies
from contrasweep.tuning.cli.options import Results
from contrasweep.tuning.cli.rendering import print_rows, remark, say
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.tuning.store import ResultsStore
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

    Example: contrasweep delete my-study
    """
    from contrasweep.tuning.store import ResultsStore, is_final_name, open_location, study_names
    from contrasweep.tuning.store.layout import record_path
    from contrasweep.tuning.store.removal import delete_study, held_by

    location = open_location(results)
    store = ResultsStore(location)
    record = store.study(study)
    held = held_by(location, study)
    names = [] if record.is_final else study_names(location)
    finals = [one for one in names if is_final_name(one, study) and _is_of(store, one, study)]
    stay = f". Its final runs stay: {', '.join(finals)}" if finals else ""
    print_rows(
        f"Of study {study} in {results}",
        _rows(held),
        footer=f"Its record, {record_path(study)}, goes last{stay}.",
    )
    if not yes and not typer.confirm(f"Delete study {study}?", err=True):
        remark("Nothing was deleted.")
        raise typer.Exit(1)
    delete_study(location, study)
    say(f"Deleted study {study}.")


def _is_of(store: "ResultsStore", final: str, study: str) -> bool:
    """Whether a study holds final runs of another; one that cannot be read counts by its name."""
    from contrasweep.tuning.store import StoreError

    try:
        return store.study(final).holds_runs_of(study)
    except StoreError:
        return True


def _rows(held: "list[Held]") -> list[dict[str, object]]:
    return [{"place": one.place, "files": one.files, "kB": round(one.size / 1e3)} for one in held]
