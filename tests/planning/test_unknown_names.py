import pytest

from contrasweep.tuning.errors import InputError, SweepFailed, TrainingDiverged, unknown_name
from contrasweep.tuning.planning.plan_sweep import plan_sweep


def test_the_error_says_what_was_given_what_is_nearest_and_what_is_known() -> None:
    error = unknown_name("kernel", "rfb", ["rbf", "cosine", "linear"])
    assert isinstance(error, InputError)
    assert str(error) == "unknown kernel 'rfb'. Did you mean 'rbf'? Known: cosine, linear, rbf."


def test_capitals_are_no_reason_for_not_finding_the_name() -> None:
    assert "Did you mean 'infonce'?" in str(unknown_name("method", "InfoNCE", ["infonce", "fair-cclk"]))


def test_where_nothing_is_near_nothing_is_suggested() -> None:
    assert (
        str(unknown_name("metric", "qqq", ["val.accuracy"])) == "unknown metric 'qqq'. Known: val.accuracy."
    )


@pytest.mark.parametrize("error", [SweepFailed, TrainingDiverged])
def test_what_went_wrong_in_the_work_is_no_wrong_input(error: type[Exception]) -> None:
    assert issubclass(InputError, ValueError)
    assert not issubclass(error, ValueError)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "temperature",
            "vicreg has no hyperparameter 'temperature'; it has: invariance_weight, variance_weight",
        ),
        ("method", "'method' is no setting: `contrasweep sweep METHOD` or the file of"),
        ("dataset", "'dataset' is no setting: `contrasweep sweep --data DATASET` or the file of"),
        ("hyperparameters.form", "'hyperparameters.form'. Did you mean 'form'?"),
    ],
)
def test_a_name_from_elsewhere_is_answered_with_what_there_is_here(name: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        plan_sweep("vicreg", "digits", values={name: 0.3})
