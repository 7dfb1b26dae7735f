"""Rows of several studies in one table. Studies differ in their columns, and sometimes in the type of one."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.tuning.store.schema import HYPERPARAMETER, METRIC

_BLOCKS = (HYPERPARAMETER, METRIC)


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Return all rows of the tables, at least one, under the columns of all of them.

    A column that a table lacks is null in its rows. The columns that every study has come first, then
    hyperparameters, then metrics. A column that is a whole number here and a fraction there becomes a
    fraction (rounded beyond 2^53); other types that differ become text, in which a truth value is `true` or
    `false`.
    """
    if len(tables) == 1:
        return tables[0]
    types: dict[str, pa.DataType] = {}
    for table in tables:
        for field in table.schema:
            types[field.name] = _shared(types.get(field.name, field.type), field.type)
    schema = pa.schema([(name, types[name]) for name in sorted(types, key=_block)])
    return pa.concat_tables([_under(schema, table) for table in tables])


def _block(name: str) -> int:
    return next((place for place, prefix in enumerate(_BLOCKS, 1) if name.startswith(prefix)), 0)


def _shared(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other:
        return one
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else pa.string()


def _under(schema: pa.Schema, table: pa.Table) -> pa.Table:
    held = set(table.column_names)
    return pa.table(
        [
            pc.cast(table[field.name], field.type, safe=False)
            if field.name in held
            else pa.nulls(len(table), field.type)
            for field in schema
        ],
        schema=schema,
    )
