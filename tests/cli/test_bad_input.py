"""Wrong input ends with exit code 2 and a helpful message, before anything is started or written."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import Result

from contrasweep.tuning.planning.best_config import best_yaml
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.results.selection import SelectedTrial

Run = Callable[..., Result]


def says(result: Result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    text = " ".join(result.output.split())
    for part in parts:
        assert part in text, text


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["simclr"], ["unknown method 'simclr'", "Did you mean 'infonce'?"]),
        (["mae"], ["unknown method 'mae'. It is not offered", "nothing but images: align-uniform,"]),
        (["infonce", "--data", "."], ["unknown dataset '.'", "image-folder:path=", ",size=32"]),
        (["infonce", "--data", "CIFAR-10"], ["unknown dataset 'CIFAR-10'", "Did you mean 'cifar10'?"]),
        (["infonce", "--set", "encoder.name=ResNet-18"], ["'ResNet-18'", "Did you mean 'resnet18'?"]),
        (["infonce", "--device", "gpu"], ["unknown device 'gpu'. Did you mean 'cuda'?"]),
        (["fair-clk"], ["unknown method 'fair-clk'", "Did you mean 'fair-cclk'?"]),
        (["infonce", "--data", "colour-digit"], ["unknown dataset 'colour-digit'", "'colour-digits'"]),
        (["infonce", "--set", "temprature=0.1"], ["'temprature'", "Did you mean 'temperature'?"]),
        (["infonce", "--set", "optimizer.rl=0.1"], ["'optimizer.rl'", "Did you mean 'optimizer.lr'?"]),
        (["fair-cclk", "--set", "kernel=rfb"], ["kernel", "'rfb'", "'rbf'"]),
        (["fair-cclk", "--set", "kernel=cosine", "--set", "sigma2=3"], ["sigma2", "no effect"]),
        (["fair-cclk", "--set", "lam=-1"], ["lam must be above 0", "-1"]),
        (["fair-cclk", "--set", "lam"], ["PATH=VALUE", "'lam'"]),
        (["fair-cclk", "--set", "lam=1", "--set", "lam=2"], ["lam", "twice"]),
        (["fair-cclk", "--data", "digits"], ["needs a conditioning variable", "colour-digits"]),
        (
            ["fair-cclk", "--data", "cifar10"],
            ["cifar10:condition=... would have one (file with", "colour-digits"],
        ),
        (["fair-cclk", "--trials", "0"], ["trials must be at least 1, given 0"]),
        (["fair-cclk", "--trials", "many"], ["--trials must be a whole number, given 'many'"]),
        (["fair-cclk", "--trials", "1000001"], ["trials must be at most 1,000,000, given 1,000,001"]),
        (["fair-cclk", "--trials", "9" * 4000], ["trials must be at most", "more than 30 digits"]),
        (["fair-cclk", "--seeds", "1000001"], ["seeds must be at most 1,000,000"]),
        (["fair-cclk", "--epochs", "1000001"], ["epochs must be at most 1,000,000"]),
        (["fair-cclk", "--concurrency", "1000001"], ["concurrency must be at most 1,000,000"]),
        (["fair-cclk", "--workers", "1000001"], ["workers must be at most 1,000,000"]),
        (["fair-cclk", "--cpus-per-trial", "1000001"], ["cpus must be at most 1,000,000"]),
        (["fair-cclk", "--max-failures", "1000001"], ["max-failures must be at most 1,000,000"]),
        (["fair-cclk", "--seed", str(2**63)], ["seed must be at most 2^62", "9,223,372,036,854,775,808"]),
        (
            ["fair-cclk", "--set", f"seed={2**62 + 1}"],
            ["'seed'", "equal to 4611686018427387904"],
        ),
        (["fair-cclk", "--set", "seed=" + "9" * 30], ["--set seed", "whole numbers of 64 bits"]),
        (["fair-cclk", "--set", "lam=1e400"], ["lam must be finite"]),
        (["fair-cclk", "--set", "optimizer.lr=.nan"], ["optimizer.lr must be finite"]),
        (["fair-cclk", "--set", "encoder.mean=.nan"], ["encoder.mean"]),
        (["fair-cclk", "--sampler", "grid", "--grid-points", "1001"], ["grid-points", "at most 1,000"]),
        (["fair-cclk", "--sampler", "grid", "--grid-points", "999"], ["a grid over", "points, more than"]),
        (["fair-cclk", "infonce", "fair-cclk"], ["given fair-cclk, infonce, fair-cclk", "each method once"]),
        (["fair-cclk", "--name", ""], ["The study name '' is not allowed"]),
        (
            ["fair-cclk", "--name", "best.yaml"],
            ["'best.yaml' is not allowed: what ends in .yaml,"],
        ),
        (["fair-cclk", "infonce", "--name", ""], ["The study name '' is not allowed"]),
        (["fair-cclk", "--epochs", "0"], ["epochs must be at least 1"]),
        (["fair-cclk", "--sampler", "tp"], ["unknown sampler 'tp'", "'tpe'"]),
        (["fair-cclk", "--scheduler", "ash"], ["unknown scheduler 'ash'", "'asha'"]),
        (["fair-cclk", "--metric", "acuracy"], ["unknown metric 'acuracy'", "'val.accuracy'"]),
        (
            ["infonce", "--data", "digits", "--metric", "val.colour_mse"],
            ["unknown metric 'val.colour_mse'", "on digits"],
        ),
        (["fair-cclk", "--cpus-per-trial", "4000"], ["4,000 cpus", "this machine has"]),
        (["fair-cclk", "--workers", "4000"], ["4,000 workers of 1 cpu each", "this machine has"]),
        (["fair-cclk", "--workers", "0"], ["workers must be at least 1, given 0"]),
        (["fair-cclk", "--gpus-per-worker", "1.5"], ["gpus-per-worker must be 0 to 1", "given 1.5"]),
        (["fair-cclk", "--name", "a b"], ["'a b'", "not allowed"]),
        (
            ["infonce", "--set", "temperature=-1", "--set", "epochs=0", "--set", "optimizer.lr=-2"],
            ["temperature must be above 0", "'epochs'", "Error: setting 'optimizer.lr'"],
        ),
        (["infonc", "--data", "colour-digit"], ["'infonce'", "'colour-digits'"]),
        (["infonce", "--set", "encoder.mean=0.5"], ["'encoder.mean'", "a list, such as [0.5]"]),
        (
            ["infonce", "--set", "encoder.mean=[1, 1]", "--set", "encoder.std=[1, 1]"],
            ["Error: encoder.mean and encoder.std: given 2 numbers each", "colour-digits (3)"],
        ),
        (
            ["infonce", "--preset"],
            ["unknown preset 'infonce@colour-digits'", "Error: unknown", "Known: infonce@colormnist."],
        ),
        (["infonce", "--preset", "foo"], ["'foo' is no method. --preset takes no value"]),
        (["fair-cclk", "--space", "nowhere.yaml"], ["nowhere.yaml"]),
        (["fair-cclk", "--set", "validation.fraction=0"], ["validation.fraction is 0"]),
        (
            ["fair-cclk", "--set", "validation.fraction=1e-5"],
            ["validation.fraction", "fewer than its 10 classes"],
        ),
        (["fair-cclk", "--set", "seed=-1"], ["'seed'", "-1"]),
        (["fair-infonce", "--set", "batch_size=2"], ["batches of at least 3"]),
        (["fair-cclk", "--resume", "--name", "x", "--dry-run"], ["--resume", "leave out --dry-run"]),
        (["fair-cclk", "--resume"], ["need the study's --name"]),
        (["--resume", "--name", "x"], ["no study 'x'"]),
        (["--resume"], ["--resume and --extend need the study's --name; `contrasweep studies` lists them"]),
        (["infonce", "--resume", "--results", "mine"], ["`contrasweep studies --results mine` lists them"]),
        (["infonce", "--set", "lam=1", "views.size=32"], ["views.size=32 is a setting"]),
        (["infonce", "--epochs", "0"], ["No --data was given: the sweep uses colour-digits."]),
        (["fair-cclk", "--resume", "--name", "lost"], ["no study 'lost'"]),
    ],
)
def test_sweep(run: Run, arguments: list[str], parts: list[str]) -> None:
    says(run("sweep", *arguments), *parts)
    assert not Path("results/trials").exists()
    assert not Path("results/studies").exists()


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("lam: {log: [10, 1], default: 5}", ["lam", "10", "1"]),
        ("lam: {log: [0, 1], default: 0.5}", ["lam", "0"]),
        ("lam: {unifrom: [0.1, 1], default: 0.5}", ["'unifrom'", "'uniform'"]),
        ("lambda: {log: [0.1, 1], default: 0.5}", ["'lambda'", "'lam'"]),
        ("kernl: {choice: [rbf, cosine], default: rbf}", ["'kernl'", "'kernel'"]),
        ("kernel: {choice: [rbf, laplace], default: rbf}", ["kernel", "'laplace'", "'laplacian'"]),
        ("optimizer.lrr: {log: [0.1, 1], default: 0.5}", ["'optimizer.lrr'", "'optimizer.lr'"]),
        ("lam: {log: [0.1, 1], default: 5}", ["lam", "5"]),
        ("epochs: {int: [1, 9], default: 5}", ["epochs is not searched"]),
        ("lam: {log: [0, 1], default: 1}\nkernel: {choic: [rbf]}", ["lam: log", "unknown key 'choic'"]),
        (
            "lam: {log: [0, 1], default: 1}\nkernl: {fixed: rbf}",
            ["space.yaml: lam: log", "'kernl'", "'kernel'"],
        ),
        (
            "kernl: {choice: [rbf], default: rbf}\nlam: {uniform: [-1, 1], default: 1}",
            ["'kernl'", "lam must be above 0"],
        ),
        (
            "kernel: {choice: [rbf, laplacian], default: rbf}\n"
            "sigma2: {log: [1, 9], default: 5, when: {kernel: [rbf]}}",
            ["sigma2 is also needed when kernel is laplacian"],
        ),
    ],
)
def test_space_file(run: Run, tmp_path: Path, content: str, parts: list[str]) -> None:
    (tmp_path / "space.yaml").write_text(content)
    says(run("sweep", "fair-cclk", "--space", "space.yaml"), *parts)
    assert not Path("results").exists()


def test_missing_data_folder(run: Run, tmp_path: Path) -> None:
    says(run("sweep", "fair-cclk", "--data", "colormnist"), "no-data", "--data-root")
    says(run("sweep", "fair-cclk", "--data", "colormnist", "--data-root", tmp_path / "empty"), "empty")
    assert not Path("results").exists()


def test_results_folder_that_is_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("mine")
    for command in (["sweep", "fair-cclk"], ["studies"], ["show", "x"], ["best", "x"], ["run", "x"]):
        says(run(*command, "--results", "results"), "results", "is a file")
    assert (tmp_path / "results").read_text() == "mine"


def test_unknown_study_is_named_with_the_nearest(run: Run, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for command in ("show", "best", "run", "compact"):
        says(run(command, "lost", "--results", "results"), "no study 'lost'")


@pytest.fixture
def best(tmp_path: Path) -> dict[str, object]:
    """The content of a good best.yaml."""
    experiment = resolve("fair-cclk", "colour-digits", {"epochs": 1, "lam": 0.01})
    selected = SelectedTrial("s", 3, {"lam": 0.01}, experiment, "val.accuracy", 0.9, 0.8, {})
    content: dict[str, object] = yaml.safe_load(best_yaml(selected, {}))
    return content


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"experimnt": 5}, ["unknown key 'experimnt'", "'experiment'"]),
        ({"contrasweep": "7.0.0"}, ["written by contrasweep 7.0.0", "this is"]),
        (
            {"experiment": {"method": "fair-cclk", "dataset": "colour-digits", "epoch": 3}},
            ["'epoch'", "'epochs'"],
        ),
        ({"experiment": {"method": "fair-cclk"}}, ["'dataset' is missing"]),
        ({"experiment": None}, ["mapping"]),
        (
            {"experiment": {"method": "fair-cclk", "dataset": "colormnist"}},
            ["fair-cclk with {} needs kernel"],
        ),
        ({"trial": "abc"}, ["trial must be a whole number", "'abc'"]),
        ({"values": [1]}, ["values must be", "[1]"]),
        ({"values": {"lam": "much"}}, ["values: lam is 'much', the experiment has 0.01"]),
        ({"values": {"lma": 0.01}}, ["values: unknown setting 'lma'", "'lam'"]),
        ({"seeds": 10**9}, ["seeds must be a whole number from 1 to 1,000,000"]),
        ({"trial": "2024-13-45"}, ["trial must be a whole number", "'2024-13-45'"]),
        ({"study": "a/b"}, ["'a/b' is not allowed"]),
    ],
)
def test_best_yaml(
    run: Run, tmp_path: Path, best: dict[str, object], change: dict[str, object], parts: list[str]
) -> None:
    (tmp_path / "best.yaml").write_text(yaml.safe_dump({**best, **change}))
    says(run("run", "best.yaml"), "best.yaml", *parts)
    assert not Path("results").exists()


def test_best_yaml_that_is_none(run: Run, tmp_path: Path) -> None:
    says(run("run", "best.yaml"), "best.yaml: there is no such file")
    says(run("run", "best.yaml", "-o", "t.docx"), "-o t.docx: give a file that ends in .tex, .md, .csv")
    (tmp_path / "best.yaml").write_text("{")
    says(run("run", "best.yaml"), "best.yaml: is not valid YAML")
    (tmp_path / "best.yaml").write_text("- 1")
    says(run("run", "best.yaml"), "holds list")


def test_run_counts(run: Run, tmp_path: Path, best: dict[str, object]) -> None:
    (tmp_path / "best.yaml").write_text(yaml.safe_dump(best))
    says(run("run", "best.yaml", "--seeds", "0"), "seeds must be at least 1, given 0")
    says(run("run", "study", "--top", "0"), "--top must be at least 1, given 0")
    says(run("run", "best.yaml", "--top", "2"), "--top goes with a study")
    says(run("run", "best.yaml", "--cpus-per-run", "0"), "cpus must be at least 1, given 0")
    says(run("run", "best.yaml", "--concurrency", "0"), "concurrency must be at least 1, given 0")
    says(run("run", "best.yaml", "--cpus-per-run", "4000"), "4,000 cpus", "this machine has")


def test_ablations(run: Run, tmp_path: Path, best: dict[str, object]) -> None:
    (tmp_path / "best.yaml").write_text(yaml.safe_dump(best))
    says(run("run", "best.yaml", "--ablate", "lam"), "--ablate takes PATH=VALUE, given 'lam'")
    says(run("run", "best.yaml", "--ablate", "lam=0.1 lam=1"), "--ablate lam is given twice")
    says(run("run", "best.yaml", "--ablate", "lam=1", "--ablate", "lam=1"), "--ablate lam=1 is given twice")
    says(run("run", "best.yaml", "--ablate", "lma=1"), "'lma'", "'lam'")
    says(run("run", "best.yaml", "--label", "one", "--label", "one"), "each label once")
    says(run("run", "best.yaml", "--label", "untrained net"), "'untrained net'", "begin with untrained")
    says(run("run", "best.yaml", "--label", " "), "a name that is not empty")
    both = ("--ablate", "lam=1", "--label", "one")
    says(run("run", "best.yaml", *both), "--label is given 1 time; give one for each of: trial 3 of")
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("method: infonce", ["dataset missing"]),
        ("study: s\nexperiment: {method: infonce}", ["dataset missing"]),
        ("method: infonce\ndataset: digits\nlr: 3", ["'lr'", "Did you mean 'optimizer.lr'?"]),
        ("method: infonce\ndataset: digits\nhyperparameters: [1]", ["hyperparameters must be", "[1]"]),
        (
            "method: infonce\ndataset: digits\nhyperparameters: {optimizer.lr: 3}",
            ["optimizer.lr is no hyperparameter"],
        ),
        ("method: infonce\ndataset: digits\nhyperparameters: {epochs: 3}", ["epochs is no hyperparameter"]),
        (
            "method: infonce\ndataset: digits\nvalidation: {halves: true, fraction: 0}",
            ["needs validation.fraction"],
        ),
        (
            "method: cl-infonce\ndataset: digits\nhyperparameters: {clusters: 5000}",
            ["clusters must be at most the 1,294 training images"],
        ),
        ("method: infonce\ndataset: digits\nmethod: infonce", ["method", "twice"]),
        ("method: infonce\ndataset: digits\nepoch: 3", ["experiment.yaml: unknown", "'epoch'", "'epochs'"]),
        ("method: infonc\ndataset: digits", ["experiment.yaml: unknown method 'infonc'"]),
        ("method: infonce\ndataset: digits\nviews: 3", ["'views' is a group of settings", "views.size, "]),
        ("# nothing", ["experiment.yaml is empty"]),
        ("method: infonce\ndataset: digits\noptimizer: {name: [sgd]}", ["'optimizer.name'", "['sgd']"]),
        ("method: infonce\ndataset: digits\nseed: 2024-13-45", ["'seed'", "'2024-13-45'"]),
        ("method: infonce\ndataset: digits\noptimizer: {lrr: 3}", ["'optimizer.lrr'", "'optimizer.lr'"]),
        ("method: infonce\ndataset: digits\nencoder: {name: lenet5}", ["lenet5", "32 x 32", "8 x 8"]),
        ("method: infonce\ndataset: digits\nencoder: {name: lenet}", ["unknown encoder 'lenet'", "lenet5"]),
        (
            "method: fair-cclk\ndataset: digits\nlamm: 1\nlam: -1\nepochs: 0\nencoder: {name: lenet}",
            ["'lamm'", "lam must be above 0", "'epochs'", "encoder 'lenet'", "a conditioning variable"],
        ),
    ],
)
def test_experiment_file(run: Run, tmp_path: Path, content: str, parts: list[str]) -> None:
    (tmp_path / "experiment.yaml").write_text(content)
    says(run("train", "experiment.yaml"), *parts)


def test_the_file_is_named_where_it_is_at_fault(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("method: infonce\ndataset: digits")
    says(run("train", "experiment.yaml", "--set", "epoch=3"), "Error: unknown setting for infonce: 'epoch'")
    file.write_text("method: infonce\ndataset: digits\nepoch: 3")
    wrong_file = "Error: experiment.yaml: unknown setting for infonce: 'epoch'"
    says(run("train", "experiment.yaml", "--set", "temperature=1"), wrong_file)


def test_files_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("method: infonce\ndataset: digits")
    under = "experiment.yaml/under"
    says(run("train", "experiment.yaml", "--checkpoint", under), "--checkpoint", under, "cannot be written")
    (tmp_path / "results").mkdir()
    says(run("best", "lost", "--results", "results", "-o", under), under, "cannot be written")
    says(run("best", "lost", "--results", "results", "-o", tmp_path), "folder")


def test_train_from_a_preset_that_is_not_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "experiment.yaml").write_text("method: infonce\ndataset: digits")
    says(run("train", "experiment.yaml", "--preset"), "unknown preset 'infonce@digits'", "infonce@colormnist")


def test_train_given_a_method(run: Run) -> None:
    says(run("train", "infonce"), "infonce is a method, which `contrasweep sweep infonce` searches")
    says(run("train", "mine/infonce"), "which `contrasweep sweep infonce` searches")


def test_train_on_a_device_that_is_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "experiment.yaml").write_text("method: infonce\ndataset: digits")
    says(run("train", "experiment.yaml", "--device", "gpu"), "unknown device 'gpu'", "auto, cpu, cuda")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--workers", "0"], ["workers must be at least 1, given 0"]),
        (["--workers", "9"], ["9 workers of 1 cpu each", "this machine has 8 cpus: room for 0"]),
        (["--workers", "3"], ["batch_size 128 does not divide among 3 workers: give 126 or 129"]),
        (["--workers", "4", "--cpus", "3"], ["4 workers of 3 cpus each", "has 8 cpus"]),
        (["--gpus-per-worker", "2"], ["gpus-per-worker must be 0 to 1", "given 2"]),
        (["--gpus-per-worker", "1"], ["1 GPU each", "has 8 cpus and no GPU that torch can use: room for 0"]),
        (["--workers", "2", "--device", "cuda"], ["--device cuda was asked for", "no GPU"]),
    ],
)
def test_train_on_workers_that_are_not_there(
    arguments: list[str], parts: list[str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: 0)
    (tmp_path / "experiment.yaml").write_text("method: infonce\ndataset: digits")
    says(run("train", "experiment.yaml", *arguments), *parts)


def test_train_on_more_gpus_than_there_are(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: 1)
    (tmp_path / "experiment.yaml").write_text("method: infonce\ndataset: digits")
    arguments = ("--workers", "2", "--gpus-per-worker", "1")
    says(
        run("train", "experiment.yaml", *arguments),
        "2 workers of 1 cpu and 1 GPU each",
        "and 1 GPU",
    )


def test_an_error_is_one_line_without_control_characters(run: Run) -> None:
    found = run("verify", "two\nlines\x1b[31m\u202e.yaml", "runs.csv")
    assert found.stderr == "Error: two lines\\x1b[31m\\u202e.yaml: there is no such file\n"


def test_a_folder_of_datasets_that_cannot_be_is_refused(run: Run) -> None:
    says(run("datasets", "--data-root", "x" * 300), "the folder of the datasets", "File name too long")


def test_spaces_of_an_unknown_method(run: Run) -> None:
    says(run("spaces", "infonc"), "unknown method 'infonc'", "'infonce'")


def test_figure_with_another_ending(run: Run, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    says(run("show", "lost", "--results", "results", "--plot", "x.bmp"), "x.bmp", ".png, .pdf, .svg")
