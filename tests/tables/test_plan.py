"""Plans of tables: the cells that run here, their experiments and studies, and why other cells do not run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contrasweep.data import DatasetMissing, DatasetSpec, dataset_spec, parse_dataset
from contrasweep.search_spaces.tables import available_tables, load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import flat_settings
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.store import FINAL_SUFFIX
from contrasweep.tuning.store.naming import MAX_NAME_LENGTH
from contrasweep.tuning.tables.plan import needed_data, plan_table
from contrasweep.tuning.tables.planned import DATA, NEVER, RUNS, CellPlan

TABLES = {name: load_table(name) for name in available_tables()}
RUNNING = [name for name, table in TABLES.items() if table.run.rows]


ROBINSON = {
    "encoder.name": "resnet50-cifar",
    "encoder.views": "apart",
    "head.name": "mlp-bn",
    "head.hidden": 512,
    "head.width": 128,
    "optimizer.name": "adam",
    "optimizer.lr": 1e-3,
    "optimizer.weight_decay": 1e-6,
    "schedule.name": "constant",
    "schedule.warmup_epochs": 0.0,
    "epochs": 400,
    "batch_size": 256,
    "views.min_crop": 0.08,
    "views.hue": 0.1,
    "views.jitter_probability": 0.8,
    "views.blur": 0.5,
}
"""What the code of Robinson et al. 2021 fixes on CIFAR-10 (image/main.py, model.py, utils.py)."""


@pytest.fixture(autouse=True)
def all_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every dataset as present, with the files that its options name; a plan opens no file."""
    monkeypatch.setattr("contrasweep.tuning.tables.plan.check_available", lambda name, root: None)
    monkeypatch.setattr("contrasweep.tuning.objectives.prepared.dataset_spec", _facts_as_if_there)


def _facts_as_if_there(name: str, data_root: Path | None = None) -> DatasetSpec:
    try:
        return dataset_spec(name, data_root)
    except DatasetMissing:
        family, options = parse_dataset(name)
        files = {"condition": "none", "hierarchy": "none", "textures": "none"}
        known = dataset_spec(
            family.full_name({name: files.get(name, value) for name, value in options.items()})
        )
        groupings = 3 if options.get("textures", "none") != "none" else 0
        condition = {"condition_dim": 512, "condition_name": "the rows of a file"}
        return replace(known, name=name, groupings=groupings, **condition)


@pytest.mark.parametrize("name", RUNNING)
def test_every_cell_that_runs_is_a_valid_experiment(name: str) -> None:
    table = TABLES[name]
    forms = [("paper", False), ("paper", True), ("quick", False), ("quick", True), ("released", False)]
    for scale, tune in forms:
        if (scale != "paper" and table.run.form(scale) is None) or (tune and table.run.tune is None):
            continue
        plan = plan_table(table, scale=scale, tune=tune)
        assert plan.running, name
        for cell in plan.running:
            assert cell.experiment is not None
            assert cell.experiment.method in METHODS
        # A run is one (study, trial): two experiments never share one.
        kept: dict[tuple[str, int], str] = {}
        for cell in plan.running:
            assert cell.experiment is not None
            identity = kept.setdefault((cell.study, cell.trial), cell.experiment.identity())
            assert identity == cell.experiment.identity()


def test_the_settings_are_those_of_the_paper() -> None:
    cells = {(cell.row, cell.column): cell for cell in plan_table(TABLES["fairkl-t3"]).running}
    best = cells["eps-supinfonce+fairkl", "rho99"].experiment
    assert best is not None
    assert best.dataset == "biased-mnist:rho=0.99"
    assert best.hyperparameters["alpha"] == 0.0013  # printed 0.03, which the released script applies twice
    assert best.hyperparameters["lam"] == 0.5
    alone = cells["eps-supcon", "rho995"].experiment
    assert alone is not None
    assert (alone.hyperparameters["lam"], alone.hyperparameters["epsilon"]) == (0.0, 0.5)
    small = {cell.row: cell.experiment for cell in plan_table(TABLES["cacr-t11"]).running}
    assert small["k1-tneg0_5"] is not None
    assert small["k1-tneg0_5"].batch_size == 768
    assert small["k1-tneg0_5"].optimizer.lr == 0.36
    scene = {cell.row: cell.experiment for cell in plan_table(TABLES["herocon-t2"]).running}
    assert scene["herocon-s"] is not None
    assert scene["herocon-s"].hyperparameters == {
        "between_views": "none",
        "between_labels": "herocon",
        "beta": 0.06,  # printed 0.01, which the released code sums over six labels
    }


def test_columns_of_one_run_share_it_and_rows_of_one_method_a_study() -> None:
    plan = plan_table(TABLES["cclk-t5a"])
    assert {study: len(cells) for study, cells in plan.studies.items()} == {
        "table-cclk-t5a-fair-cclk-colormnist": 8
    }
    assert plan.runs == 40, "four kernels at two rates, five seeds"
    assert len(plan.running) == 16
    assert plan_table(TABLES["cclk-t5a"], seeds=2, columns=["acc"]).runs == 8
    assert plan_table(TABLES["cclk-t5a"], seeds=2, columns=["acc"], rows=["rbf", "cosine"]).runs == 4


def test_the_released_command_is_a_form_of_its_own() -> None:
    plan = plan_table(TABLES["cclk-t3"], scale="released")
    cells = {cell.row: cell.experiment for cell in plan.running}
    fair, simple = cells["fair-cclk"], cells["infonce"]
    assert fair is not None
    assert simple is not None
    # cclk_fair.py: --num-epochs 1000 --base-lr 1e-3 --distance_mode RBF; by default temp_z 1.
    assert fair.hyperparameters == {
        "kernel": "rbf",
        "sigma2": 1.0,
        "lam": 0.01,
        "temperature": 0.1,
        "weights": "released",
    }
    assert (fair.epochs, fair.batch_size, fair.encoder.name) == (1000, 256, "lenet5-linear")
    assert (fair.optimizer.lr, fair.optimizer.weight_decay) == (1e-3, 1e-4)
    assert (fair.schedule.name, fair.schedule.warmup_epochs) == ("cosine-min-ramp", 10)
    assert (fair.views.min_crop, fair.views.interpolation) == (0.08, "bicubic")
    # The defaults of simclr_colormnist.py.
    assert (simple.hyperparameters["temperature"], simple.optimizer.weight_decay) == (0.5, 1e-6)
    assert fair.epochs == simple.epochs
    assert plan.running[0].study == "table-cclk-t3-released-infonce-colormnist"
    kernels = {
        cell.row: cell.settings["kernel"] for cell in plan_table(TABLES["cclk-t5a"], scale="released").cells
    }
    assert kernels == {name: name for name in ("rbf", "polynomial", "laplacian", "cosine")}


def test_quick_and_tuned_runs_have_names_and_settings_of_their_own() -> None:
    quick = plan_table(TABLES["cclk-t3"], scale="quick").running[0]
    assert quick.study == "table-cclk-t3-quick-infonce-colour-digits"
    assert quick.experiment is not None
    assert (quick.experiment.epochs, quick.experiment.encoder.name) == (20, "small-conv")
    tuned = plan_table(TABLES["cclk-t5a"], tune=True)
    assert tuned.trials == 24
    assert len(tuned.studies) == 4
    laplacian = next(cell for cell in tuned.running if cell.row == "laplacian")
    assert laplacian.settings["kernel"] == "laplacian"  # what makes the row: not searched
    assert "sigma2" not in laplacian.settings
    assert laplacian.settings["epochs"] == 5


def test_a_form_may_have_columns_and_settings_of_a_row_of_its_own() -> None:
    def cells(name: str, **form: Any) -> dict[tuple[str, str], CellPlan]:
        return {(cell.row, cell.column): cell for cell in plan_table(TABLES[name], **form).cells}

    released = cells("cclk-t7", scale="released")
    assert {column for _, column in released} == {"colormnist", "mse"}
    assert "cub" in {column for _, column in cells("cclk-t7")}
    settings = {row: cell.settings for (row, _), cell in cells("cclk-t3", scale="released").items()}
    assert (settings["fair-cclk"]["kernel"], settings["fair-cclk"]["sigma2"]) == ("rbf", 1.0)
    assert "kernel" not in settings["infonce"]
    assert cells("cclk-t3")["fair-cclk", "acc"].settings["kernel"] == "cosine"


def test_the_ramp_of_a_shortened_run_is_as_long_a_share_of_it() -> None:
    table = TABLES["cclk-t3"]
    quick = table.run.quick
    assert quick is not None

    def ramp(**settings: Any) -> float:
        form = quick.model_copy(update={"set": {"encoder.name": "small-conv", **settings}})
        plan = plan_table(
            table.model_copy(update={"run": table.run.model_copy(update={"quick": form})}), scale="quick"
        )
        experiment = plan.running[0].experiment
        assert experiment is not None
        return experiment.schedule.warmup_epochs

    # The paper's settings: 10 of 5 epochs.
    assert ramp(epochs=2) == pytest.approx(4.0)
    assert ramp(**{"epochs": 2, "schedule.warmup_epochs": 0.5}) == 0.5
    assert ramp(epochs=1000) == 10.0, "a longer run keeps it"


def test_names_of_studies_leave_room_for_their_final_runs() -> None:
    names = {study for name in RUNNING for study in plan_table(TABLES[name]).studies}
    names |= {
        study
        for name in RUNNING
        if TABLES[name].run.quick is not None
        for study in plan_table(TABLES[name], scale="quick").studies
    }
    assert max(len(name + FINAL_SUFFIX) for name in names) <= MAX_NAME_LENGTH
    # A name that fits stays as it is.
    assert "table-cacr-t3-cacr-cifar10-imbalance-linear" in names
    imbalanced = plan_table(TABLES["cacr-t3"])
    datasets = {cell.experiment.dataset for cell in imbalanced.running if cell.experiment is not None}
    assert len(datasets) == 4
    probed = {cell.experiment.probes.images for cell in imbalanced.running if cell.experiment is not None}
    assert probed == {"uncut"}
    cacr = [cell for cell in imbalanced.running if cell.row == "cacr-k4"]
    assert len({cell.study for cell in cacr}) == 4


@pytest.mark.parametrize(
    "name",
    [name for name in RUNNING if (quick := TABLES[name].run.quick) and "cifar" in str(quick.datasets)],
)
def test_quick_forms_take_a_part_of_cifar_and_are_compared_with_nothing(name: str) -> None:
    table = TABLES[name]
    assert table.run.quick is not None
    plan = plan_table(table, scale="quick")
    names = [cell.experiment.dataset for cell in plan.running if cell.experiment is not None]
    assert all("images=5000,test_images=2000" in dataset for dataset in names)
    assert set(names) <= set(table.run.quick.datasets.values())
    assert "5,000 training and 2,000 test images" in table.run.quick.what


def test_the_rows_that_two_tables_share_are_one_experiment() -> None:
    def identity(name: str, row: str) -> set[str]:
        cells = plan_table(TABLES[name]).running
        return {
            c.experiment.identity() for c in cells if (c.row, c.column) == (row, "cifar10") and c.experiment
        }

    assert identity("cacr-t8", "cacr") == identity("cacr-t11", "k4-tneg2_0")
    assert identity("cacr-t2", "cacr-k4") == identity("cacr-t10", "tpos1_0")


def test_a_longer_or_larger_table_differs_from_its_sister_by_that_alone() -> None:
    def settings(name: str, row: str) -> dict[str, object]:
        cells = {(cell.row, cell.column): cell for cell in plan_table(TABLES[name]).running}
        experiment = cells[row, "cifar10"].experiment
        assert experiment is not None
        return flat_settings(experiment.content())

    for row in ("cl", "au-cl", "hn-cl", "cacr-k1", "cmc-k4", "cacr-k4"):
        usual, longer, larger = (settings(name, row) for name in ("cacr-t2", "cacr-t9", "cacr-t7"))
        doubled = {**usual, "epochs": 200 if row in ("cmc-k4", "cacr-k4") else 400}
        assert longer == doubled
        assert larger == usual | ROBINSON
        batches = settings("cacr-fig7", f"{row}-256")
        assert batches == {**usual, "batch_size": 256, "optimizer.lr": 0.12}


def test_hardneg_infonce_in_cclk_runs_by_the_code_that_its_paper_names() -> None:
    own = {"temperature": 0.5, "beta": 1.0, "tau_plus": 0.1}
    for name, column, length in (
        ("cclk-t4", "cifar10", {}),
        ("cclk-t6", "s1", {}),
        ("cclk-t6", "s2", {"batch_size": 512, "epochs": 1000}),
    ):
        cells = {(cell.row, cell.column): cell for cell in plan_table(TABLES[name]).running}
        found = cells["hardneg-infonce", column].planned
        settings = flat_settings(found.content())
        assert {path: settings[path] for path in ROBINSON} == ROBINSON | length
        assert (found.hyperparameters, found.views.interpolation) == (own, "bilinear")
        assert found.encoder.std == (0.2023, 0.1994, 0.2010)


SCALED = ("infonce", "cl-infonce", "supcon", "eps-supinfonce")
"""The methods that the released code of Cl-InfoNCE and FairKL trains by its SupConLoss."""


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("cl-infonce-t2", {"ut_zappos": 0.17, "wider": 0.1, "cub": 0.1}),
        ("cl-infonce-t5", {"acc": 0.03}),
        ("cl-infonce-fig5a", {"imagenet100": 0.03, "": 0.1}),
        ("cl-infonce-fig6a", {"": 0.1}),
        ("fairkl-t2", {"imagenet100": 0.1, "": 0.5}),
        ("fairkl-t8", {"imagenet100": 0.1, "": 0.5}),
    ],
)
def test_only_a_loss_with_the_released_factor_has_a_converted_rate(
    name: str, printed: dict[str, float]
) -> None:
    # losses.py of both: SupConLoss multiplies by temperature / 0.07. CrossEntropyLoss has no factor,
    # nor have the codes of MoCo, PCL, SwAV and CMC.
    cells = plan_table(TABLES[name]).running
    assert {cell.planned.method in SCALED for cell in cells} == {True, False}
    for cell in cells:
        found = cell.planned
        rate = next(rate for column, rate in printed.items() if cell.column.startswith(column))
        scaled = found.method in SCALED
        factor = float(found.hyperparameters["temperature"]) / 0.07 if scaled else 1.0
        assert found.optimizer.lr == pytest.approx(rate * factor, rel=1e-3), cell
        assert found.optimizer.weight_decay == pytest.approx(1e-4 / factor, rel=1e-3), cell


def test_a_cell_that_does_not_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {(cell.row, cell.column): cell for cell in plan_table(TABLES["fairkl-t2"]).cells}
    assert cells["simclr-cited", "cifar10"].state == NEVER
    assert "quoted by the paper from another" in cells["simclr-cited", "cifar10"].why
    assert cells["ce", "cifar10"].state == RUNS
    monkeypatch.undo()
    nowhere = plan_table(TABLES["cclk-t3"], data_root=Path("/nowhere"))
    assert nowhere.state == DATA
    assert nowhere.runs == 0
    assert {cell.why for cell in nowhere.cells} == {next(iter({cell.why for cell in nowhere.cells}))}
    assert nowhere.cells[0].why.startswith("colormnist: ")
    assert needed_data(nowhere) == ([], ["colormnist"])
    # Copies stored in another form stand in for files that are absent, and digits need no file.
    assert plan_table(TABLES["cclk-t3"], scale="quick", data_root=Path("/nowhere")).state == RUNS


def test_a_table_that_never_runs_says_why_in_every_cell() -> None:
    plan = plan_table(TABLES["cacr-t5"])
    assert plan.state == NEVER
    assert all("data are not available here" in cell.why for cell in plan.cells)


def test_a_table_of_archives_runs_with_their_files_and_says_without_them_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = plan_table(TABLES["cclk-t2a"])
    assert plan.state == RUNS
    cells = {(cell.row, cell.column): cell.experiment for cell in plan.running}
    clip, attributes = cells["weaklysup-cclk", "imagenet100"], cells["weaklysup-infonce", "cub"]
    assert clip is not None
    assert attributes is not None
    assert (clip.dataset, clip.batch_size) == ("imagenet100:condition=imagenet100-clip.npy", 128)
    assert clip.hyperparameters["kernel"] == "cosine"
    assert attributes.hyperparameters == {"clusters": 200, "temperature": 0.5}
    texture = {(cell.row, cell.column): cell for cell in plan_table(TABLES["fairkl-t5"]).running}
    biased, unbiased = (texture["eps-supinfonce+fairkl", column] for column in ("biased", "unb"))
    assert (biased.study, biased.trial) == (unbiased.study, unbiased.trial)
    assert (biased.metric, unbiased.metric) == ("classifier_accuracy", "classifier_unbiased_accuracy")
    monkeypatch.undo()
    nowhere = plan_table(TABLES["cclk-t2a"], data_root=Path("/nowhere"))
    assert nowhere.state == DATA
    reasons = {cell.column: cell.why for cell in nowhere.cells}
    assert reasons["cub"].startswith("cub: dataset 'cub' not found: CUB_200_2011")


def test_the_cost_is_that_of_all_runs_or_unknown() -> None:
    table = TABLES["cclk-t3"]
    known = table.run.model_copy(update={"seconds_per_epoch": {"colormnist": 2.0}})
    plan = plan_table(table.model_copy(update={"run": known}))
    assert plan.seconds == 2.0 * 5 * 30
    unknown = table.run.model_copy(update={"seconds_per_epoch": {}})
    assert plan_table(table.model_copy(update={"run": unknown})).seconds is None


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cclk-t3", {"scale": "papr"}, "Did you mean 'paper'"),
        ("cclk-t3", {"columns": ["ac"]}, "Did you mean 'acc'"),
        ("cclk-t3", {"rows": ["fair-cclq"]}, "Did you mean 'fair-cclk'"),
        ("cclk-t3", {"seeds": 0}, "seeds must be at least 1"),
        ("cacr-t8", {"tune": True}, "no searched form"),
        ("cacr-t7", {"scale": "quick"}, "no quick form"),
        ("cacr-t9", {"scale": "released"}, "no released form"),
        ("cclk-t3", {"scale": "released", "tune": True}, "leave one of them out"),
    ],
)
def test_what_is_wrong_is_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_table(TABLES[name], **options)  # type: ignore[arg-type]


def test_a_preset_that_a_row_names_is_taken_whole() -> None:
    cell = plan_table(TABLES["cacr-t2"]).running
    ours = next(one.experiment for one in cell if (one.row, one.column) == ("cacr-k4", "cifar10"))
    assert ours is not None
    assert ours.with_values({"epochs": 200}) == resolve("cacr", "cifar10", use_preset=True)


def test_a_form_has_its_own_seeds_and_a_cell_its_own_definitions() -> None:
    table = load_table("herocon-t2")
    quick = plan_table(table, scale="quick")
    assert (quick.seeds, plan_table(table).seeds) == (3, 5)
    of_row, of_cell = (
        one.defines["between_labels"]
        for one in (table.run.rows["supcon"], table.run.rows["supcon"].columns["nmnist_f1"])
    )
    assert of_row != of_cell
    (cell,) = [one for one in quick.cells if (one.row, one.column) == ("supcon", "nmnist_f1")]
    assert cell.settings["between_labels"] == of_cell
