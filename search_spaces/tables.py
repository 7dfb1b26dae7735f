"""The papers' tables and figures as data: the printed cells, the claims, and how to run each cell.

`load_table` reads one file `tables/ID.yaml` for each table or figure. The first part of a file is the
paper's: rows, columns, printed figures, claims. The part `run` is ours: the method, the settings and the
dataset of each row and column. Comments keep what else the paper states: its settings, axes and remarks.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from contrasweep.names import did_you_mean, known_names
from contrasweep.search_spaces.files import shipped_names, shipped_text
from contrasweep.search_spaces.papers import PAPERS
from contrasweep.search_spaces.parameters import Scalar, SpaceError
from contrasweep.search_spaces.yaml_text import parse_yaml

Source = Literal["run", "cited", "setting", "definition", "statistic"]
Settings = Mapping[str, Scalar | list[Scalar]]
"""Settings of an experiment under dotted paths or bare hyperparameter names."""

Scale = Literal["paper", "quick", "released"]
"""The paper's settings, a small form that a laptop runs in minutes, or the released command's settings."""

Count = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    """Frozen content that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Column(Strict):
    """A printed column."""

    key: str
    dataset: str | None
    metric: str
    label: str | None = None


class Cell(Strict):
    """A printed cell: `mean` and `std` as numbers, and `printed` as it is printed; or a word (`value`).

    `source` is set where this cell alone is quoted from another paper.
    """

    column: str
    mean: float | None = None
    std: float | None = None
    printed: str | None = None
    value: str | None = None
    source: Source | None = None

    @property
    def digits(self) -> int | None:
        """The number of printed decimals; None where the cell is not a number."""
        if self.printed is None or self.mean is None:
            return None
        return len(self.printed.partition("±")[0].partition(".")[2])


class Row(Strict):
    """A printed row; `source` says whether the paper ran it (`run`) or quotes it (`cited`)."""

    key: str
    name: str
    method: str
    params: Mapping[str, Any] = Field(default_factory=dict)
    source: Source
    cells: tuple[Cell, ...]


class Claim(Strict):
    """A statement of the paper and the check that decides it; docs/checks.md defines how checks are written.

    Attributes:
        text: the claim, in our own words.
        check: the check; None where the claim cannot be written as a check.
        holds: whether the check holds on the printed cells; None where they cannot decide it.
        columns: the columns that `[:]` stands for; None for all.
        retest: whether another run can decide it; False for claims about exact printed figures.
        threshold_chosen_here: whether the bound is ours, because the paper only says `similar` or `close`.
        absolute: whether a bound is a number of the paper's data, which no quick form or other data decide.
    """

    text: str
    check: str | None
    holds: bool | None
    columns: tuple[str, ...] | None = None
    retest: bool = True
    threshold_chosen_here: bool = False
    absolute: bool = False


class ColumnRun(Strict):
    """How a column is measured here.

    Attributes:
        datasets: candidates; the first one whose files are here is used.
        metric: a test score of a final run, without the prefix `test.`.
        scale: the factor from our unit to the printed unit: 100 where the paper prints per cent.
        margin: the smallest difference that counts, in printed units; None for the rule in
            docs/verdict-statistics.md.
        control: the score of the untrained encoder; None for the score `metric` of that encoder.
        set: settings of this column alone.
        stands_in: what the column measures in place of the paper's; then nothing is compared with print.
        other_data: whether the data stand in for the paper's.
        repeats: the key of another column; its claims are judged on this column too.
        x: the place on the figure's axis, where columns are places.
        paper_only: whether all other forms leave the column out.
        label: the name of the column; by default the printed column's.
    """

    datasets: Annotated[tuple[str, ...], Field(min_length=1)]
    metric: str
    scale: float = 1.0
    margin: float | None = None
    control: str | None = None
    set: Settings = Field(default_factory=dict)
    stands_in: str | None = None
    other_data: bool = False
    repeats: str | None = None
    x: float | None = None
    paper_only: bool = False
    label: str | None = None


class Override(Strict):
    """Settings of a row in one column alone; `defines` and `set` are those of a row."""

    defines: Settings = Field(default_factory=dict)
    set: Settings = Field(default_factory=dict)


class RowRun(Strict):
    """How a row is run here.

    Attributes:
        method: the method; None for the method of the preset.
        preset: the name of a preset, or one for each column.
        without: settings of the preset that are left out.
        defines: settings that define the row; they hold in a searched form too.
        set: the paper's values of other settings; they win over the preset's.
        columns: settings of single columns.
        data: options of the row's own, added to the name of each column's dataset.
        never: why the row cannot be run here.
        series, x, y: the place of the row in the figure of a swept parameter.
    """

    method: str | None = None
    preset: str | Mapping[str, str] | None = None
    without: tuple[str, ...] = ()
    defines: Settings = Field(default_factory=dict)
    set: Settings = Field(default_factory=dict)
    columns: Mapping[str, Override] = Field(default_factory=dict)
    data: str | None = None
    never: str | None = None
    series: str | None = None
    x: float | None = None
    y: float | None = None

    @model_validator(mode="after")
    def _runs_or_says_why_not(self) -> Self:
        if self.never is None and self.method is None and self.preset is None:
            raise ValueError("a row needs a method or a preset, or `never: REASON` if it cannot be run")
        return self


class Form(Strict):
    """A form of a table other than the paper's settings.

    Attributes:
        what: the form in one sentence, without the number of runs, which the user may choose.
        seeds: the number of final runs of each cell.
        columns: the columns of this form; by default all.
        rows: settings of single rows; they win over what defines a row.
        datasets: smaller datasets, by the name of the one that they replace.
        set: settings of all cells.
        epochs_share: the share of its epochs that each cell trains, where columns have lengths of their own.
    """

    what: str
    seeds: Count
    epochs_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    columns: tuple[str, ...] = ()
    rows: Mapping[str, Settings] = Field(default_factory=dict)
    datasets: Mapping[str, str] = Field(default_factory=dict)
    set: Settings = Field(default_factory=dict)


class TunedRun(Strict):
    """The searched form: each row has `trials` trials; `metric` is maximised, `set` holds in every trial."""

    trials: Count
    metric: str
    set: Settings = Field(default_factory=dict)


class Axis(Strict):
    """The axes of a table's figure, by their labels; with a `y`, the figure is a map over both."""

    x: str
    y: str | None = None
    log: bool = False


class Run(Strict):
    """How a table is run here.

    Attributes:
        columns: how each column is measured; a printed column that is absent here is not run. A figure
            prints no columns, so we name them.
        rows: how each row is run.
        seeds: the number of final runs of each cell at paper scale.
        published_runs: the number of runs behind the printed deviations; None where the paper does not say.
        seconds_per_epoch: the measured cost of an epoch on one core, by dataset.
        quick: the small form, which a laptop runs in minutes; None where there is none.
        released: the settings of the released command, where they contradict the paper's; None elsewhere.
        tune: the searched form; None where there is none.
        shown_in: figures that show rows of this table and run nothing; their claims are judged with it.
        axis: the figure of a swept parameter; None where there is none.
        selection: how settings were chosen, if not all were fixed before a run (the searched form says it
            itself).
        information: the set of clusterings whose information curves the figure shows.
        deviations: how the runs of every form differ from the paper.
        full_deviations: how those of every form but the quick one do.
        paper_deviations: how the runs with the paper's settings differ from the paper.
        never: why nothing of the table can be run here.
    """

    columns: Mapping[str, ColumnRun] = Field(default_factory=dict)
    rows: Mapping[str, RowRun] = Field(default_factory=dict)
    seeds: Count = 5
    published_runs: Count | None = None
    seconds_per_epoch: Mapping[str, float] = Field(default_factory=dict)
    quick: Form | None = None
    released: Form | None = None
    tune: TunedRun | None = None
    shown_in: tuple[str, ...] = ()
    axis: Axis | None = None
    selection: str | None = None
    information: str | None = None
    deviations: tuple[str, ...] = ()
    full_deviations: tuple[str, ...] = ()
    paper_deviations: tuple[str, ...] = ()
    never: str | None = None

    def form(self, scale: str) -> Form | None:
        """Return the form of a scale; None for the paper's settings, and where the table has no such form."""
        return {"quick": self.quick, "released": self.released}.get(scale)

    def seeds_at(self, scale: Scale) -> int:
        """Return how many final runs a cell has unless the user asks for another number."""
        form = self.form(scale)
        return self.seeds if form is None else form.seeds

    def place(self, row: str, column: str) -> float | None:
        """Return the x of a cell in the figure: the row's, else the column's; None where neither has one."""
        if row in self.rows and self.rows[row].x is not None:
            return self.rows[row].x
        return self.columns[column].x if column in self.columns else None


class Table(Strict):
    """One table or figure of a paper.

    Attributes:
        id: the name of the file.
        paper: a key of `PAPERS`.
        number, caption: as printed.
        columns, rows: the printed cells.
        claims: the paper's conclusions from the table.
        findings: contradictions inside the table, or between the table and the text.
        run: how the table is run here.
    """

    id: str
    paper: str
    number: str
    caption: str
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    claims: tuple[Claim, ...] = ()
    findings: tuple[str, ...] = ()
    run: Run

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        columns, rows = {c.key for c in self.columns}, {r.key for r in self.rows}
        used = {cell.column for row in self.rows for cell in row.cells}
        used |= {column for claim in self.claims for column in claim.columns or ()}
        _refuse_strangers("column", used, columns)
        ours = {key for key, column in self.run.columns.items() if column.stands_in is not None}
        if columns:
            _refuse_strangers("column", set(self.run.columns) - ours, columns)
        repeated = [c.repeats for c in self.run.columns.values() if c.repeats is not None]
        _refuse_strangers("column", set(repeated), columns)
        if len(repeated) != len(set(repeated)):
            raise ValueError(f"at most one column may repeat another, given {', '.join(repeated)}")
        for form in filter(None, (self.run.quick, self.run.released)):
            _refuse_strangers("column", set(form.columns), set(self.run.columns))
            _refuse_strangers("row", set(form.rows), set(self.run.rows))
        if rows:
            _refuse_strangers("row", set(self.run.rows), rows)
        for row in self.run.rows.values():
            named = set(row.columns) | (set(row.preset) if isinstance(row.preset, Mapping) else set())
            _refuse_strangers("column", named, columns | set(self.run.columns))
        return self

    def cell(self, row: str, column: str) -> Cell | None:
        """Return the printed cell; None where nothing, or no number, is printed."""
        cells = (cell for one in self.rows if one.key == row for cell in one.cells)
        return next((cell for cell in cells if cell.column == column and cell.mean is not None), None)

    @property
    def row_names(self) -> dict[str, str]:
        """The names of the rows, or of a figure's points, by key."""
        names = {row.key: row.name for row in self.rows}
        return names or {key: self._point_name(row) or key for key, row in self.run.rows.items()}

    def column_name(self, column: str) -> str:
        """Return the name of a column for people to read."""
        run = self.run.columns.get(column)
        if run is not None and run.label is not None:
            return run.label
        printed = next((c for c in self.columns if c.key == column), None)
        if printed is None or printed.label is None:
            return column
        alike = [c for c in self.columns if c.label == printed.label]
        return printed.label if len(alike) == 1 else f"{printed.dataset}, {printed.label}"

    def _point_name(self, row: RowRun) -> str:
        axis, series = self.run.axis, row.series or ""
        if axis is None or row.x is None:
            return series
        places = [f"{axis.x.partition(' (')[0]} = {row.x:g}"]
        if axis.y is not None:
            places.append(f"{axis.y.partition(' (')[0]} = {row.y:g}")
        several = len({one.series for one in self.run.rows.values()}) > 1
        return ", ".join([series, *places] if several and series else places)


def available_tables() -> tuple[str, ...]:
    """Return the ids of all tables, ordered by paper; within a paper, tables come before figures."""
    return tuple(sorted(shipped_names("tables"), key=_order))


@cache
def load_table(table: str) -> Table:
    """Return the table with this id.

    Raises:
        SpaceError: there is no such table (the nearest id is named), or its file is wrong.
    """
    known = available_tables()
    if table not in known:
        raise SpaceError(f"no table {table!r}.{did_you_mean(table, known)} {known_names('table', known)}")
    return parse_table(shipped_text(f"tables/{table}.yaml"), f"search_spaces/tables/{table}.yaml")


def parse_table(text: str, origin: str) -> Table:
    """Return the table that YAML text describes.

    Raises:
        SpaceError: the text is not YAML, a key is unknown (the nearest is named), or a value is not allowed.
    """
    try:
        return Table.model_validate(parse_yaml(text, origin))
    except ValidationError as error:
        reasons = "; ".join(explain(item, _MODELS) for item in error.errors())
        raise SpaceError(f"{origin}: {reasons}") from None


def _order(table: str) -> tuple[Any, ...]:
    paper = next(key for key in sorted(PAPERS, key=len, reverse=True) if table.startswith(f"{key}-"))
    rest = table.removeprefix(f"{paper}-")
    digits = "".join(c for c in rest if c.isdigit())
    return list(PAPERS).index(paper), rest.startswith("fig"), int(digits or 99), rest


def _refuse_strangers(what: str, used: set[str], known: set[str]) -> None:
    for name in sorted(used - known):
        raise ValueError(f"{what} {name!r} is not among {', '.join(sorted(known)) or 'none'}")


def explain(item: Any, models: Iterable[type[BaseModel]]) -> str:
    """Return one of pydantic's errors as text; an unknown key gets the nearest one that `models` know."""
    path = ".".join(str(part) for part in item["loc"])
    if item["type"] != "extra_forbidden":
        return f"{path}: {item['msg'].removeprefix('Value error, ')}".removeprefix(": ")
    known = {name for model in models for name in model.model_fields}
    return f"unknown key {path!r}.{did_you_mean(str(item['loc'][-1]), sorted(known))}"


_MODELS = (Table, Run, RowRun, ColumnRun, Row, Column, Cell, Claim, Form, TunedRun, Axis)
