"""An encoder that starts from a file: what an experiment keeps of it, and what is refused before work."""

import html
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from contrasweep.models import build_encoder
from contrasweep.search_spaces import Space
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import prepare_data, spec_for
from contrasweep.tuning.planning.plan import plan_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import check_experiment, resolve
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference
from contrasweep.tuning.planning.setup import setup_in_words
from contrasweep.tuning.planning.weights import refuse_other_file
from contrasweep.tuning.training.pretrain import build_objective, pretrain
from tests.studies import PlannedStudy, scored, small_plan


def _save(path: Path, seed: int, name: str = "small-conv") -> Path:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        body = build_encoder(name, 3, 8).body
    torch.save({"state_dict": {f"module.{key}": one for key, one in body.state_dict().items()}}, path)
    return path


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return _save(tmp_path / "weights.pt", 1)


def _experiment(given: str | Path) -> Experiment:
    settings = {"encoder.name": "small-conv", "epochs": 1, "probes.max_steps": 2}
    return resolve("supcon", "colour-digits", {**settings, "encoder.weights": str(given)})


def test_an_experiment_holds_the_file_by_its_whole_path_and_its_digest(weights: Path, tmp_path: Path) -> None:
    e = _experiment("weights.pt")
    assert e.encoder.weights == str(weights)
    assert e.encoder.weights_sha256 is not None
    moved = shutil.copy(weights, tmp_path / "moved.pt")
    assert _experiment(moved).identity() == e.identity()
    assert _experiment(_save(tmp_path / "other.pt", 2)).identity() != e.identity()
    plain = e.with_values({"encoder.weights": None, "encoder.weights_sha256": None})
    assert "weights" not in plain.content()["encoder"]
    assert plain.identity() != e.identity()


def test_training_starts_from_the_file_with_every_seed(weights: Path) -> None:
    e = _experiment(weights)
    data = prepare_data(e, None, torch.device("cpu"))
    start = torch.load(weights, weights_only=True)["state_dict"]
    for seed in (0, 1):
        objective = build_objective(e.with_values({"seed": seed}), data)
        own = objective.encoder.body.state_dict()
        assert all(torch.equal(own[key.removeprefix("module.")], one) for key, one in start.items())
    assert [record.epoch for record in pretrain(e, data=data)] == [0, 1]


def test_another_file_under_the_same_path_is_refused(weights: Path) -> None:
    e = _experiment(weights)
    data = prepare_data(e, None, torch.device("cpu"))
    plan = plan_sweep("supcon", "colour-digits", values={"encoder.weights": str(weights)}, name="one")
    record = plan.record()
    refuse_difference(plan_of(record, "r"), record, Expected(values={"encoder.weights": "weights.pt"}))
    _save(weights, 2)
    for refused in (
        lambda: check_experiment(e),
        lambda: refuse_other_file(e.encoder),
        lambda: build_objective(e, data),
        lambda: plan_of(record, "r"),
        lambda: plan.experiment_of(plan.space.defaults()),
    ):
        with pytest.raises(InputError, match=r"weights\.pt is another file than before"):
            refused()
    weights.unlink()
    with pytest.raises(InputError, match="there is no such file"):
        check_experiment(e)


def test_what_runs_says_where_it_starts_and_what_untrained_is(weights: Path) -> None:
    e = _experiment(weights)
    told = setup_in_words(e, spec_for(e), "cpu")
    assert f"starts from {weights} ('state_dict' unwrapped, prefix 'module.' stripped)" in told
    assert told.endswith("so `untrained` is the encoder as loaded")


@pytest.mark.parametrize(
    ("method", "dataset", "values", "message"),
    [
        ("supcon", "colour-digits", {"encoder.weights": "absent.pt"}, "absent.pt: there is no such file"),
        (
            "supcon",
            "colour-digits",
            {"encoder.weights": "weights.pt", "encoder.name": "simple-conv"},
            r"encoder simple-conv: .*missing: .*; unexpected: .*; of another shape: 0\.weight",
        ),
        ("supcon", "colour-digits", {"encoder.weights_sha256": "0" * 64}, "goes with encoder.weights"),
        (
            "supcon",
            "colour-digits",
            {"encoder.weights": "weights.pt", "encoder.weights_sha256": "0" * 64},
            "another file than before",
        ),
        ("herocon", "two-view-digits", {"encoder.weights": "weights.pt"}, "has views of its own"),
    ],
)
def test_what_cannot_start_from_a_file_is_refused(
    method: str, dataset: str, values: dict[str, str], message: str, weights: Path
) -> None:
    with pytest.raises(InputError, match=message):
        resolve(method, dataset, values)


def test_a_file_of_weights_is_not_searched(weights: Path) -> None:
    space = Space.parse({"encoder.weights": {"choice": ["a.pt", "weights.pt"], "default": "a.pt"}}, "space")
    with pytest.raises(InputError, match=r"encoder\.weights is not searched: use --set"):
        plan_sweep("supcon", "colour-digits", space=space)


def test_the_biased_network_starts_at_random(weights: Path) -> None:
    settings = {"encoder.name": "small-conv", "encoder.weights": str(weights), "biased_encoder": "same"}
    e = resolve("lff", "biased-digits", settings)
    objective = build_objective(e, prepare_data(e, None, torch.device("cpu")))
    own, biased = (one.state_dict()["body.0.weight"] for one in (objective.encoder, objective.biased_encoder))
    assert not torch.equal(own, biased)


def test_every_place_that_shows_untrained_scores_says_what_they_are(weights: Path) -> None:
    plan = small_plan(Path("results"), values={"encoder.weights": str(weights)})
    PlannedStudy(plan).write(scored((0.5, 0.6, 0.7)))
    said = f"Untrained means as loaded from {weights}."
    for command in (["show", plan.name], ["best", plan.name]):
        result = CliRunner().invoke(app, [*command, "--results", "results"])
        assert said in " ".join(result.output.split()), result.output
    assert said in report_sections(plan.name)


def report_sections(study: str) -> str:
    result = CliRunner().invoke(app, ["report", study, "--results", "results", "-o", "report.html"])
    assert result.exit_code == 0, result.output
    return html.unescape(Path("report.html").read_text(encoding="utf-8"))
