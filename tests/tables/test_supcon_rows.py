"""On data of one label an object, HeroCon's SupCon rows are its Eq. 6, the runs of HeroCon-s."""

from pathlib import Path

import pytest
import torch

from contrasweep.losses import HeroConSupervised
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.tables.plan import plan_table


@pytest.fixture(autouse=True)
def data_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan every cell as if its files were here."""

    def there(name: str, data_root: Path | None = None) -> None:
        return None

    monkeypatch.setattr("contrasweep.tuning.tables.plan.check_available", there)


@pytest.mark.parametrize(
    ("table", "one_label", "several", "form"),
    [
        ("herocon-t2", "nmnist_", "scene_", {}),
        ("herocon-t2", "nmnist_", "scene_", {"scale": "quick"}),
        ("herocon-t2", "nmnist_", "scene_", {"tune": True}),
        ("herocon-t3", "xrmb_", "celeba_", {}),
    ],
)
def test_supcon_is_herocon_s_where_an_object_has_one_label(
    table: str, one_label: str, several: str, form: dict[str, object]
) -> None:
    cells = {(cell.row, cell.column): cell for cell in plan_table(load_table(table), **form).running}  # type: ignore[arg-type]
    for metric in ("f1", "auc"):
        supcon, own = (cells[row, one_label + metric] for row in ("supcon", "herocon-s"))
        assert supcon.planned.identity() == own.planned.identity()
        assert supcon.settings["between_labels"] == "herocon"
        if ("supcon", several + metric) in cells:
            assert cells["supcon", several + metric].settings["between_labels"] == "supcon"


def test_eq_6_is_the_released_loop_over_classes_without_pairs_of_an_object_with_itself() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(12, 5, generator=generator, dtype=torch.float64)
    labels = torch.arange(12) % 3
    z = torch.nn.functional.normalize(features, dim=1)
    f = (z @ z.T).exp()
    of_classes = []
    for one in range(3):
        own, other = (labels == one).nonzero().flatten(), (labels != one).nonzero().flatten()
        negative = f[own][:, other].sum(1)
        pairs = [
            torch.log((negative[i] + f[a, b]) / f[a, b])
            for i, a in enumerate(own.tolist())
            for b in own.tolist()
            if a != b
        ]
        of_classes.append(torch.stack(pairs).mean())
    expected = torch.stack(of_classes).mean()
    torch.testing.assert_close(HeroConSupervised()(features, labels), expected, rtol=1e-10, atol=0)
