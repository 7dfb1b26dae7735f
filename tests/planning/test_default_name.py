"""The name of a study that the user has not named."""

from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.planning.request import default_name, study_of
from contrasweep.tuning.store import FINAL_SUFFIX, check_study_name
from tests.studies import CREATED


def test_the_default_name_of_a_dataset_with_a_long_path_is_allowed() -> None:
    long = f"image-folder:path=/home/{'a' * 90},size=64"
    for method in METHODS:
        for name in (
            default_name(method, long, CREATED),
            study_of(default_name("methods", long, CREATED), method),
        ):
            assert check_study_name(name + FINAL_SUFFIX)
