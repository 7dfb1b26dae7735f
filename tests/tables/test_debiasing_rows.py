"""The rows of FairKL's Table 3 that come from other authors run with the settings of those authors' code."""

from pathlib import Path

import pytest

from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.tables.plan import plan_table


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> dict[str, Experiment]:
    """The experiments of Table 3 at rho 0.999, by row."""

    def there(name: str, data_root: Path | None = None) -> None:
        return None

    monkeypatch.setattr("contrasweep.tuning.tables.plan.check_available", there)
    cells = plan_table(load_table("fairkl-t3")).running
    return {cell.row: cell.planned for cell in cells if cell.column == "rho999"}


@pytest.mark.parametrize(
    ("row", "rate", "encoder"),
    [
        ("ce", 1e-3, "simple-conv-relu"),
        ("biasbal", 1e-4, "simple-conv-relu"),
        ("end", 1e-3, "simple-conv"),
        ("lnl", 1e-3, "simple-conv-relu"),
        ("biascon+ce", 1e-3, "simple-conv-relu"),
        ("biascon+biasbal", 1e-3, "simple-conv-relu"),
    ],
)
def test_hong_and_yang_s_rows(row: str, rate: float, encoder: str, rows: dict[str, Experiment]) -> None:
    """The defaults of train_biased_mnist_*.py."""
    found = rows[row]
    assert (found.optimizer.name, found.optimizer.lr, found.optimizer.weight_decay) == ("adam", rate, 1e-4)
    assert (found.batch_size, found.epochs, found.encoder.name) == (128, 80, encoder)
    assert (found.schedule.name, found.schedule.factor) == ("step", 0.1)
    assert [int(share * found.epochs) for share in found.schedule.milestones] == [26, 53]


def test_the_losses_of_these_rows(rows: dict[str, Experiment]) -> None:
    assert rows["lnl"].hyperparameters == {"entropy_weight": 1.0, "reversal": 0.1, "reads": "middle"}
    assert rows["end"].hyperparameters == {"alpha": 1.0, "beta": 1.0, "classifier_input": "normalised"}
    for row, base in (("biascon+ce", "cross-entropy"), ("biascon+biasbal", "biasbal")):
        assert rows[row].hyperparameters == {"temperature": 0.07, "alpha": 0.01, "base": base}
    assert rows["ce+fairkl"].hyperparameters["classifier_input"] == "normalised"
    assert "classifier_input" not in rows["eps-supinfonce+fairkl"].hyperparameters


def test_the_row_of_stylised_images_alone_waits_for_them(tmp_path: Path) -> None:
    cells = {cell.row: cell for cell in plan_table(load_table("fairkl-t5"), data_root=tmp_path).cells}
    assert ",train=stylized-imagenet/train: " in cells["sin"].why
    assert "stylized" not in cells["vanilla"].why


def test_the_rows_of_lee_and_others_have_the_settings_of_their_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The README of DFA's released code; the biased network of Table 5 sees textures."""
    monkeypatch.setattr("contrasweep.tuning.tables.plan.check_available", lambda name, data_root=None: None)
    cells = {(cell.row, cell.column): cell.planned for cell in plan_table(load_table("fairkl-t4")).running}
    commands = {"cc_0_5": (5e-4, 1.0), "cc_1_0": (1e-3, 5.0), "cc_2_0": (1e-3, 5.0), "cc_5_0": (1e-3, 1.0)}
    for column, (rate, weight) in {**commands, "bffhq": (1e-4, 2.0)}.items():
        dfa, lff = cells["dfa", column], cells["lff", column]
        given = dfa.hyperparameters
        assert (dfa.optimizer.lr, given["lambda_dis"], given["lambda_swap_b"]) == (rate, weight, weight)
        assert given["lambda_swap"] == (0.1 if column == "bffhq" else 1.0)
        assert (lff.method, lff.optimizer.lr, lff.epochs) == ("lff", rate, dfa.epochs)
        assert cells["rebias", column].hyperparameters["biased_encoder"] == "bagnet18"
    # The data of Table 5 are not planned without their files.
    rows = load_table("fairkl-t5").run.rows
    for name in ("lm", "rubi", "rebias", "lff"):
        settings = rows[name].set
        assert resolve(str(rows[name].method), "imagenet9", settings).hyperparameters == settings
        assert settings["biased_encoder"] == ("same" if name == "lff" else "bagnet18")
