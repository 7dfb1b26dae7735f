"""Write docs/sensitivity-example.md: the sensitivity of Fair-CCLK on ColorMNIST, from docs/sensitivity/.

    python -m docs.sensitivity_example                   from the rows that are there
    python -m docs.sensitivity_example RESULTS STUDY     from a study, whose rows are kept there

docs/sensitivity/ is a results folder: `contrasweep sensitivity STUDY --results docs/sensitivity` reads it.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.experiment.statuses import ENDED
from contrasweep.tuning.reports.page import Table
from contrasweep.tuning.results.numbers import cell_text
from contrasweep.tuning.sensitivity.analyse import StudySensitivity, analyse
from contrasweep.tuning.sensitivity.marginals import Marginal
from contrasweep.tuning.sensitivity.page import sensitivity_sections
from contrasweep.tuning.sensitivity.paper import draw_paper_figures
from contrasweep.tuning.store import ResultsStore, StudyRecord, open_location, save_study
from contrasweep.tuning.store.heartbeat import HeartbeatRecord
from contrasweep.tuning.store.layout import heartbeat_path
from contrasweep.tuning.store.parts import compacted_path, write_table

_DOCS = Path(__file__).parent
_ROWS = _DOCS / "sensitivity"
_PAGE = _DOCS / "sensitivity-example.md"
_FIGURES = {"Importance": "importance", "One parameter at a time": "marginals"}
_MOST_ROWS = 16
_WIDTHS = (1.0, 10.0, 100.0, 500.0, 1000.0, 10_000.0, 100_000.0)


def take(results: str, study: str) -> None:
    """Replace the rows of the example by the ended trials of a study."""
    store = ResultsStore(results)
    record, tables = store.study(study), store.tables(study)
    ended = tables.trials.filter(pc.is_in(tables.trials["status"], pa.array(ENDED)))
    epochs = tables.epochs.filter(pc.is_in(tables.epochs["trial"], ended["trial"].combine_chunks()))
    shutil.rmtree(_ROWS, ignore_errors=True)
    location = open_location(_ROWS, writable=True)
    # The folders of results and data mean nothing to others.
    command = re.sub(r" --(results|data-root) \S+", "", record.command)
    if "--sampler" not in command:
        # The default may change.
        command += f" --sampler {record.require_search().sampler}"
    save_study(location, record.with_search(data_root=None).model_copy(update={"command": command}))
    for kind, rows, columns in (
        ("trials", ended, record.columns.trials),
        ("epochs", epochs, record.columns.epochs),
    ):
        write_table(location, compacted_path(kind, study), rows.select(columns.names).cast(columns))
    end = HeartbeatRecord(driver="stored", host="", machine=None, pid=1, time=0.0, state="ended")
    location.write(heartbeat_path(study), end.model_dump_json().encode())


def write_example() -> None:
    """Analyse the rows of the example, and write the document and its figures."""
    store = ResultsStore(_ROWS)
    (summary,) = store.studies()
    record = store.study(summary.name)
    found = analyse(store, [summary.name])
    (one,) = found.studies
    drawn = _draw(one)
    blocks = [*_head(one, record)]
    for section in sensitivity_sections(one):
        blocks += [f"## {section.title}", section.text]
        if section.title in drawn:
            blocks.append(f"![{section.title}](images/{drawn[section.title]})")
        blocks += [_markdown(table) for table in section.tables if len(table.rows) <= _MOST_ROWS]
    blocks += ["## Beside the paper", *_kernels(one), *_widths(one)]
    _PAGE.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _head(one: StudySensitivity, record: StudyRecord) -> Iterator[str]:
    o = one.observations
    yield f"# A sensitivity page in full: {record.method} on {record.dataset}"
    yield (
        "This page shows the sensitivity analysis of a real search; [sensitivity](sensitivity.md) explains "
        "each analysis, and [our interpretation](sensitivity-interpretation.md) says what we conclude. "
        "`python -m docs.sensitivity_example` renders it from the rows in `sensitivity/`. "
        "These commands ran the sweep and write the page:"
    )
    yield f"    {record.command}\n    contrasweep sensitivity {record.name} --results docs/sensitivity"
    yield (
        f"n = {len(o.trial)} ended trials of {record.require_search().trials} that were planned, seeds "
        f"{', '.join(map(str, np.unique(o.replicates.seed)))}; {o.hardware or record.host}; "
        + ", ".join(f"{name} {version}" for name, version in record.versions.items())
        + "."
    )


def _draw(one: StudySensitivity) -> dict[str, str]:
    """The figures of the document by section, drawn into docs/images."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for path in draw_paper_figures(one, Path(scratch)):
            section = next((s for s, name in _FIGURES.items() if path.name.endswith(f"-{name}.png")), None)
            if section is not None:
                found[section] = f"sensitivity-{_FIGURES[section]}.png"
                shutil.copy(path, _DOCS / "images" / found[section])
    return found


def _kernels(one: StudySensitivity) -> Iterator[str]:
    """Table 5 (left): the kernels as printed, and as the trials score."""
    yield (
        "**Table 5 (left), kernels for Fair-CCLK on ColorMNIST.** The paper trains each kernel at one "
        "setting; here the other parameters are searched, so a kernel is what its best trial reaches, "
        "and what it reaches on average over the space. Ours are validation accuracies of one seed."
    )
    o = one.observations
    place = [axis.name for axis in o.axes].index("kernel")
    curve = next((m for m in one.end.forest.marginals if m.axis.name == "kernel"), None)
    table = load_table("cclk-t5a")
    printed = {
        row.params["kernel"]: next(c for c in row.cells if c.column == "acc").printed for row in table.rows
    }
    rows: list[list[object]] = []
    for code, kernel in enumerate(o.axes[place].choices):
        own = o.codes[:, place] == code
        scores = o.score[own & o.completed]
        rows.append(
            [
                kernel,
                printed.get(kernel),
                int(np.count_nonzero(own & o.over)),
                len(scores),
                _percent(scores.max()) if len(scores) else None,
                _percent(curve.mean[code], curve.high[code] - curve.mean[code])
                if curve is not None
                else None,
            ]
        )
    columns = ("kernel", "printed, %", "trials", "completed", "best, %", "mean over the space, % (95 %)")
    yield _markdown(Table("", columns, rows))


def _widths(one: StudySensitivity) -> Iterator[str]:
    """Table 7: the scale of the rbf kernel; the paper's data are others."""
    yield (
        "**Table 7, the scale of the rbf kernel.** The paper's is on CUB with attributes as the "
        "condition, ours on colours from 0 to 255: only the shapes compare. A scale below the distances "
        "between conditions makes all of them unlike, one above makes all alike."
    )
    curve = next(
        (
            m
            for m in one.end.forest.marginals
            if m.axis.name == "sigma2" and m.condition.get("kernel") == "rbf"
        ),
        None,
    )
    printed = {float(row.params["sigma2"]): row.cells[0].printed for row in load_table("cclk-t7").rows}
    rows: list[list[object]] = [[f"{width:,.0f}", printed.get(width), _at(curve, width)] for width in _WIDTHS]
    note = "" if curve is None else f" ({len(curve.points.code)} trials with this kernel)"
    columns = ("sigma2", "CUB, printed, %", f"ColorMNIST, mean over the others, % (95 %){note}")
    yield _markdown(Table("", columns, rows))


def _at(curve: Marginal | None, width: float) -> str | None:
    if curve is None:
        return None
    code = float(curve.axis.to_unit(np.array([width]))[0])
    mean, half = (np.interp(code, curve.code, values) for values in (curve.mean, curve.high - curve.mean))
    return _percent(float(mean), float(half))


def _percent(value: float, half: float | None = None) -> str:
    return f"{100 * value:.1f}" + ("" if half is None else f" ± {100 * half:.1f}")


def _markdown(table: Table) -> str:
    lines: list[Sequence[str]] = [table.columns, ["---"] * len(table.columns)]
    lines += [[cell_text(value) for value in row] for row in table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) not in (1, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 3:
        take(*sys.argv[1:])
    write_example()
