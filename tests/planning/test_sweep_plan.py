"""A sweep's plan: bad input is refused before any work, and what the store keeps of a plan gives it back."""

from pathlib import Path
from typing import Any

import pytest

from contrasweep.data import DatasetMissing, dataset_spec
from contrasweep.machine import available_cores
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import goals, search_metrics
from contrasweep.tuning.planning.needs import lacking
from contrasweep.tuning.planning.plan import plan_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resources import AskedResources, Resources
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference
from contrasweep.tuning.planning.setup import scored_images
from contrasweep.tuning.planning.spaces import space_of
from contrasweep.tuning.store import FinalRecord, StudyRecord


def _refused(method: str = "infonce", dataset: str = "digits", **options: Any) -> str:
    with pytest.raises(InputError) as refused:
        plan_sweep(method, dataset, **options)
    return str(refused.value)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"method": "infonc"}, ["method", "'infonc'", "'infonce'", "`contrasweep methods` lists them"]),
        ({"dataset": "digit"}, ["dataset", "'digit'", "'digits'", "`contrasweep datasets` lists them"]),
        ({"sampler": "tpee"}, ["sampler", "'tpee'", "'tpe'", "random"]),
        ({"scheduler": "asah"}, ["scheduler", "'asah'", "'asha'", "none"]),
        ({"metric": "val.acuracy"}, ["metric", "'val.acuracy'", "'val.accuracy'"]),
        ({"metric": "val.colour_mse"}, ["digits", "val.colour_mse", "val.accuracy"]),
        ({"trials": 0}, ["trials", "at least 1", "0"]),
        ({"trials": -3}, ["trials", "at least 1", "-3"]),
        ({"epochs": 0}, ["epochs", "at least 1", "0"]),
        ({"concurrency": 0}, ["concurrency", "at least 1", "0"]),
        ({"cpus_per_trial": 0}, ["cpus", "at least 1", "0"]),
        ({"cpus_per_trial": 4096}, ["4,096", str(available_cores())]),
        ({"workers": 0}, ["workers", "at least 1", "0"]),
        ({"workers": 4096}, ["4,096 workers of 1 cpu each", f"this machine has {available_cores()}"]),
        ({"gpus_per_worker": 1.5}, ["gpus-per-worker must be 0 to 1", "1.5"]),
        ({"gpus_per_worker": -1}, ["gpus-per-worker must be 0 to 1", "-1"]),
        ({"values": {"temprature": 0.1}}, ["'temprature'", "'temperature'"]),
        ({"values": {"optimizer.rate": 0.1}}, ["'optimizer.rate'"]),
        ({"values": {"temperature": -1.0}}, ["temperature", "above 0", "-1.0"]),
        ({"values": {"negatives": "some"}}, ["negatives", "'some'", "cross, all"]),
        ({"values": {"seed": -1}}, ["seed", "-1"]),
        ({"method": "fair-cclk"}, ["fair-cclk", "digits", "colour-digits"]),
        ({"use_preset": True}, ["preset", "infonce@digits", "infonce@colormnist"]),
    ],
)
def test_what_is_wrong_is_said_before_any_work(options: dict[str, Any], parts: list[str]) -> None:
    message = _refused(**options)
    for part in parts:
        assert part in message


FINITE = Space.parse(
    {
        "temperature": {"log": [0.1, 1.0], "default": 0.5},
        "negatives": {"choice": ["all", "cross"], "default": "all"},
    }
)


def test_a_grid_has_as_many_trials_as_points() -> None:
    for given in (None, 6, 24):
        plan = plan_sweep("infonce", "digits", space=FINITE, sampler="grid", grid_points=3, trials=given)
        assert plan.search.trials == 6
        assert plan.space["temperature"].values() == (0.1, 0.5, 1.0)
        stored = StudyRecord.model_validate_json(plan.record().model_dump_json())
        assert not plan_of(stored, "results").space.difference(plan.space)
        refuse_difference(plan, stored, Expected(space=FINITE, trials=given, grid_points=3))
    with pytest.raises(InputError, match="grid-points must be at least 2, given 1"):
        plan_sweep("infonce", "digits", space=FINITE, sampler="grid", grid_points=1)
    assert "temperature. --grid-points" in _refused(space=FINITE, sampler="grid")
    message = _refused(space=FINITE, sampler="grid", grid_points=3, trials=5)
    assert "the grid has 6 points, and 5 trials would leave 1 of them out" in message
    assert "grid points go with the sampler grid" in _refused(grid_points=3)


def test_several_metrics_and_the_one_that_stops_trials() -> None:
    plan = plan_sweep("fair-cclk", "colour-digits", metric="accuracy, colour_mse", asha_metric="colour_mse")
    assert plan.search.metrics == ("val.accuracy", "val.colour_mse")
    assert plan.rung_metric == "val.ridge_colour_mse"
    default = plan_sweep("fair-cclk", "colour-digits", metric="colour_mse,accuracy")
    assert default.rung_metric == "val.ridge_colour_mse"
    assert "'acuracy'" in _refused(metric="accuracy,acuracy")
    assert "allowed: each once" in _refused(metric="accuracy,val.accuracy")
    assert "'f2'" in _refused(asha_metric="f2")
    assert "cmaes takes one metric" in _refused(
        "fair-cclk", "colour-digits", metric="accuracy,colour_mse", sampler="cmaes"
    )
    assert "seeds" in _refused(seeds=0)
    assert "--eta and --grace go with --scheduler asha" in _refused(eta=3, scheduler="none")


def test_what_a_resumed_study_is_expected_to_be() -> None:
    plan = plan_sweep("fair-cclk", "colour-digits", metric="accuracy,colour_mse", seeds=2)
    record = plan.record()
    assert record.require_search().validation_images == scored_images(plan.experiment, 2, None)
    same = Expected(metric="accuracy,colour_mse", asha_metric="accuracy", seeds=2)
    refuse_difference(plan, record, same)
    other: dict[str, Any] = {
        "metric": "accuracy",
        "asha_metric": "colour_mse",
        "seeds": 3,
        "warm_start": ["x"],
    }
    for name, value in other.items():
        with pytest.raises(InputError, match=f"{name} was "):
            refuse_difference(plan, record, Expected(**{name: value}))


def test_an_unknown_kernel_is_refused() -> None:
    message = _refused("fair-cclk", "colour-digits", values={"kernel": "rfb"})
    assert "'rfb'" in message
    assert "'rbf'" in message


def test_a_missing_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match="nowhere"):
        plan_sweep("infonce", "mnist", data_root=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"caf\\xe9 cannot be recorded: its path is not UTF-8"):
        plan_sweep("infonce", "colour-digits", data_root=tmp_path / "caf\udce9")


@pytest.mark.parametrize("name", ["a/b", "-x", "x" * 200, "results=1"])
def test_a_name_that_no_study_can_have_is_refused(name: str) -> None:
    assert "name" in _refused(name=name)


def test_a_search_needs_a_validation_split() -> None:
    assert "validation.fraction" in _refused(values={"validation.fraction": 0.0})


@pytest.mark.parametrize(
    ("form", "parts"),
    [
        ({"temperature": {"uniform": [-1.0, 1.0], "default": 0.5}}, ["temperature"]),
        ({"negatives": {"choice": ["all", "none"], "default": "all"}}, ["negatives", "none"]),
        ({"views.min_crop": {"uniform": [0.5, 2.0], "default": 0.6}}, ["views.min_crop"]),
        ({"encoder.name": {"choice": ["small-conv", "lenet5"], "default": "small-conv"}}, ["lenet5"]),
        ({"optimizer.name": {"choice": ["sgd", "rmsprop"], "default": "sgd"}}, ["rmsprop"]),
    ],
)
def test_a_space_that_leaves_what_is_allowed_is_refused(form: dict[str, Any], parts: list[str]) -> None:
    # Its default is fine: without a look at the ends, the first trial to leave it would end the sweep.
    message = _refused(space=Space.parse(form))
    for part in parts:
        assert part in message


def test_a_range_that_leaves_what_another_setting_allows_is_refused() -> None:
    # min_crop is searched up to 0.8: some trial would ask for crops from 0.7 to 0.5 of the area.
    assert "views.max_crop" in _refused(values={"views.max_crop": 0.5})


def test_an_unknown_name_in_a_space_is_refused() -> None:
    space = Space.parse({"temprature": {"log": [0.1, 1.0], "default": 0.5}}, "mine.yaml")
    message = _refused(space=space)
    for part in ("mine.yaml", "'temprature'", "'temperature'"):
        assert part in message


def test_the_defaults_of_a_plan() -> None:
    plan = plan_sweep("fair-cclk", "colour-digits")
    assert plan.space == space_of("fair-cclk", "colour-digits", None)
    search = plan.search
    assert (search.trials, search.sampler, search.scheduler, plan.metric) == (
        24,
        "curves",
        "asha",
        "val.accuracy",
    )
    assert plan.rung_metric == "val.ridge_accuracy"
    assert plan.resources.concurrency == available_cores()
    assert plan.name.startswith("fair-cclk-colour-digits-")


@pytest.mark.parametrize("metric", list(goals(METHODS["infonce"], dataset_spec("colour-digits"))))
def test_what_is_maximised_and_its_fast_form_are_recorded_metrics(metric: str) -> None:
    plan = plan_sweep("infonce", "colour-digits", metric=metric)
    assert {plan.metric, plan.rung_metric} <= set(
        search_metrics(METHODS["fair-cclk"], dataset_spec("colour-digits"))
    )


def test_a_clustering_is_maximised_where_one_is_made() -> None:
    with pytest.raises(InputError, match="unknown metric 'cluster_nmi'"):
        plan_sweep("infonce", "digits", metric="cluster_nmi")
    plan = plan_sweep("infonce", "digits", metric="cluster_nmi", values={"probes.kmeans_starts": 5})
    assert plan.metric == plan.rung_metric == "val.cluster_nmi"
    assert {"val.cluster_nmi", "val.cluster_accuracy"} <= set(plan.record().columns.metrics)
    again = plan_of(plan.record(), plan.results)
    assert (again.metric, again.rung_metric) == (plan.metric, plan.rung_metric)


FITTING = [
    (method, dataset)
    for method in METHODS
    for dataset in ("digits", "colour-digits")
    if not lacking(METHODS[method], dataset_spec(dataset))
]


@pytest.mark.parametrize(("method", "dataset"), FITTING)
def test_the_first_trial_is_the_experiment_of_the_defaults(method: str, dataset: str) -> None:
    plan = plan_sweep(method, dataset)
    assert plan.experiment_of(plan.space.defaults()) == plan.experiment


def test_what_is_set_holds_in_every_trial_and_is_searched_no_more() -> None:
    plan = plan_sweep(
        "fair-cclk",
        "colour-digits",
        values={"lam": 2, "kernel": "rbf", "batch_size": 64, "epochs": 3},
    )
    assert {"lam", "kernel"} <= set(plan.space.fixed)
    assert not {"lam", "kernel"} & {parameter.name for parameter in plan.space.searched}
    trial = plan.experiment_of({**plan.space.defaults(), "sigma2": 7.5, "optimizer.lr": 0.2})
    assert (trial.hyperparameters["lam"], trial.hyperparameters["kernel"]) == (2, "rbf")
    assert (trial.hyperparameters["sigma2"], trial.optimizer.lr) == (7.5, 0.2)
    assert (trial.batch_size, trial.epochs) == (64, 3)
    assert plan.experiment.epochs == 3


def test_a_scale_that_is_set_holds_in_the_trials_whose_kernel_has_one() -> None:
    plan = plan_sweep("fair-cclk", "colour-digits", values={"sigma2": 30.0})
    defaults = plan.space.defaults()
    assert plan.experiment_of(defaults).hyperparameters["sigma2"] == 30.0
    cosine = plan.experiment_of(plan.space.complete({**defaults, "kernel": "cosine"}))
    assert "sigma2" not in cosine.hyperparameters


def test_every_trial_of_a_finite_space_is_an_experiment() -> None:
    space = Space.parse(
        {
            "kernel": {"choice": ["rbf", "cosine"], "default": "cosine"},
            "sigma2": {"choice": [10.0, 100.0], "default": 10.0, "when": {"kernel": ["rbf"]}},
            "views.flip": {"choice": [0.0, 0.5], "default": 0.5},
        }
    )
    plan = plan_sweep("fair-cclk", "colour-digits", space=space, values={"temperature": 0.3})
    found = [plan.experiment_of(values) for values in plan.space.grid()]
    assert len({e.identity() for e in found}) == len(found) == 6
    assert all(e.hyperparameters["temperature"] == 0.3 for e in found)


def test_at_most_as_many_at_once_as_there_are_trials() -> None:
    assert plan_sweep("infonce", "digits", trials=1).resources.concurrency == 1
    assert plan_sweep("infonce", "digits", trials=5, concurrency=3).resources.concurrency == 3


def _plan(**options: Any) -> Any:
    return plan_sweep(
        "fair-cclk",
        "colour-digits",
        trials=7,
        epochs=4,
        values={"lam": 2, "kernel": "rbf"},
        sampler="random",
        scheduler="none",
        metric="val.colour_mse",
        seed=11,
        concurrency=1,
        results="some/results",
        name="study-1",
        command="contrasweep sweep ...",
        **options,
    )


def test_the_record_gives_the_plan_back() -> None:
    plan = _plan(data_root=Path("/some/data"))
    stored = StudyRecord.model_validate_json(plan.record().model_dump_json())
    again = plan_of(stored, "some/results")
    for name in vars(plan):
        if name != "space":
            assert getattr(again, name) == getattr(plan, name), name
    assert again.space.parameters == plan.space.parameters
    assert again.space.difference(plan.space) == []
    values = {**plan.space.defaults(), "temperature": 0.7}
    assert again.experiment_of(values) == plan.experiment_of(values)
    assert again.record().columns == plan.record().columns


def test_the_data_may_have_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = _plan(data_root=Path("/some/data")).record()
    assert plan_of(stored, "r").data_root == Path("/some/data")
    assert plan_of(stored, "r", data_root=Path("/elsewhere")).data_root == Path("/elsewhere")
    # A worker may start in another folder, and a resumed study in another shell.
    monkeypatch.setenv("CONTRASWEEP_DATA", "/by/environment")
    assert _plan().data_root == Path("/by/environment")
    assert _plan(data_root=Path("here")).data_root == Path.cwd() / "here"


def test_a_resumed_study_takes_what_this_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 64)
    stored = plan_sweep("infonce", "digits", trials=40, concurrency=16, cpus_per_trial=2).record()
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 4)
    assert plan_of(stored, "r").resources == Resources(concurrency=2, cpus=2)
    assert plan_of(stored, "r", AskedResources(1)).resources == Resources(concurrency=1, cpus=2)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 1)
    with pytest.raises(InputError, match="2 cpus"):
        plan_of(stored, "r")


def test_final_runs_are_no_search() -> None:
    record = _plan().record()
    final = record.model_copy(update={"name": "study-1-final", "search": FinalRecord()})
    with pytest.raises(InputError, match="the study that was searched is study-1"):
        plan_of(final, "r")


def test_the_record_declares_every_column() -> None:
    plan = _plan()
    record = plan.record()
    assert record.columns.hyperparameters == plan.space.types()
    assert record.columns.metrics == search_metrics(METHODS["fair-cclk"], dataset_spec("colour-digits"))
    assert plan_sweep("infonce", "digits").record().columns.metrics == search_metrics(
        METHODS["infonce"], dataset_spec("digits")
    )
    assert record.versions["python"]
    assert record.host
    assert record.command == "contrasweep sweep ..."


@pytest.mark.parametrize(
    ("expected", "named"),
    [
        ({"method": "infonce"}, ["method", "fair-cclk", "infonce"]),
        ({"dataset": "colormnist"}, ["dataset", "colour-digits", "colormnist"]),
        ({"trials": 9}, ["trials", "7", "9"]),
        ({"sampler": "tpe"}, ["sampler", "random", "tpe"]),
        ({"values": {"lam": 3}}, ["lam", "2", "3"]),
        ({"values": {"batch_size": 64}}, ["batch_size", "128", "64"]),
        ({"values": {"temperature": 0.1}}, ["temperature", "searched", "0.1"]),
        ({"space": Space.parse({"temperature": 0.2})}, ["temperature"]),
    ],
)
def test_another_study_than_believed_is_refused(expected: dict[str, Any], named: list[str]) -> None:
    plan = _plan()
    with pytest.raises(InputError, match="study-1 cannot go on") as refused:
        refuse_difference(plan, plan.record(), Expected(**expected))
    for part in named:
        assert part in str(refused.value)


def test_the_study_that_is_believed_goes_on() -> None:
    plan = _plan()
    refuse_difference(plan, plan.record(), Expected())
    same = {
        "method": "fair-cclk",
        "dataset": "colour-digits",
        "trials": 7,
        "sampler": "random",
        "metric": None,
    }
    values = {"lam": 2, "kernel": "rbf"}
    plan_space = space_of("fair-cclk", "colour-digits", None)
    refuse_difference(plan, plan.record(), Expected(**same, values=values, space=plan_space))


def test_a_study_without_a_column_for_what_a_trial_reports_now_is_refused() -> None:
    plan = _plan()
    record = plan.record()
    kept = tuple(name for name in record.columns.metrics if name != "train.lr")
    earlier = record.model_copy(update={"columns": record.columns.model_copy(update={"metrics": kept})})
    with pytest.raises(InputError, match=r"fair-cclk now reports train\.lr, for which it has no column"):
        refuse_difference(plan, earlier, Expected())


def test_a_wrong_setting_is_not_blamed_on_a_searched_one() -> None:
    with pytest.raises(InputError) as refused:
        plan_sweep("infonce", "colour-digits", values={"optimizer.lrr": 0.1})
    assert str(refused.value).startswith("unknown setting for infonce: 'optimizer.lrr'")


def test_a_study_of_another_version_is_refused() -> None:
    record = _plan().record()
    foreign = record.model_copy(update={"versions": {**record.versions, "contrasweep": "99.0"}})
    with pytest.raises(InputError, match=r"study-1 was made by contrasweep 99\.0"):
        plan_of(foreign, "r")


def test_a_trial_has_a_seed_for_every_part_that_is_held_out() -> None:
    def seeds(values: dict[str, Any], **given: Any) -> int:
        return plan_sweep("herocon", "two-view-digits", trials=1, values=values, **given).search.seeds

    folds = {"validation.split": "folds", "validation.fraction": 0.25}
    assert seeds({}) == 1
    assert seeds(folds) == 4
    assert seeds(folds, seeds=8) == 8
