"""The names of studies: of one that the user has not named, and of a group."""

from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.planning.request import default_name, prefix_of, studies_of, study_of
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


def test_studies_of_a_group_begin_with_its_name_and_a_single_study_has_the_name() -> None:
    group = studies_of("both-runs", ["infonce", "fair-cclk"])
    assert group == {"infonce": "both-runs-infonce", "fair-cclk": "both-runs-fair-cclk"}
    assert {prefix_of(study, method) for method, study in group.items()} == {"both-runs"}
    assert studies_of("alone", ["infonce"]) == {"infonce": "alone"}
