import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from contrasweep.tuning.store import StoreError, StudySchema


def test_a_schema_survives_json(columns):
    again = StudySchema.model_validate_json(columns.model_dump_json())
    assert again == columns
    assert again.trials.equals(columns.trials, check_metadata=True)
    assert again.epochs.equals(columns.epochs, check_metadata=True)


def test_every_column_has_a_type(columns):
    assert columns.trials.field("hp.optimizer.lr").type == pa.float64()
    assert columns.trials.field("hp.layers").type == pa.int64()
    assert columns.epochs.field("metric.val.accuracy").type == pa.float64()
    for schema in (columns.trials, columns.epochs):
        assert not any(pa.types.is_null(column.type) for column in schema)
        assert schema.metadata == {b"contrasweep.schema_version": b"1"}


@pytest.mark.parametrize(
    ("name", "value", "cell"),
    [
        ("sigma2", 3, 3.0),
        ("sigma2", np.float32(0.5), 0.5),
        ("layers", np.int64(2), 2),
        ("flip", np.bool_(True), True),
        ("kernel", "rbf", "rbf"),
        ("kernel", None, None),
    ],
)
def test_values_become_the_declared_type(columns, name, value, cell):
    written = columns.hyperparameter_cells({name: value})[f"hp.{name}"]
    assert written == cell
    assert type(written) is type(cell)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sigma2", "3"), ("sigma2", True), ("layers", 2.0), ("layers", True), ("flip", 1), ("kernel", 3)],
)
def test_values_of_another_type_are_refused(columns, name, value):
    with pytest.raises(StoreError, match=rf"{name}.*but .*{type(value).__name__}"):
        columns.hyperparameter_cells({name: value})


def test_undeclared_names_are_refused_with_the_nearest(columns):
    with pytest.raises(StoreError, match=r"no hyperparameter 'sigma'\. Did you mean 'sigma2'\?"):
        columns.hyperparameter_cells({"sigma": 1.0})
    with pytest.raises(StoreError, match=r"no metric 'val\.acuracy'\. Did you mean 'val\.accuracy'\?"):
        columns.metric_cells({"val.acuracy": 1.0})


def test_an_unknown_type_and_a_repeated_metric_are_refused():
    with pytest.raises(ValidationError):
        StudySchema(hyperparameters={"x": "double"}, metrics=())
    with pytest.raises(ValidationError, match="named twice: loss"):
        StudySchema(hyperparameters={}, metrics=("loss", "loss"))
