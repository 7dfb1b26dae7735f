"""Every loss and its gradient equal their golden values, in float64 and in float32."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contrasweep import losses

GOLDEN = Path(__file__).parents[1] / "golden"
NO_LOSS = ("cluster-information", "corruptions", "lff-weights", "released-deepmtmv-affinity")
CASES = sorted(path.stem for path in GOLDEN.glob("*.npz") if path.stem not in NO_LOSS)
EMBEDDED = ("views", "features", "queries", "means", "scores", "logits")
OF_THE_SAME_TYPE = ("local", "keys", "queue", "memory", "deviations", "noise", "codes", "biased_features")
PARAMETER = "parameter."
PARAMETERS = ("weight", "bias_vector", "prototypes")
NOT_ARGUMENTS = ("expected", *(f"grad_{name}" for name in EMBEDDED), "meta", *PARAMETERS)


def load(case: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    with np.load(GOLDEN / f"{case}.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, json.loads(str(arrays["meta"]))


def evaluate(
    arrays: dict[str, np.ndarray], meta: dict[str, Any], dtype: torch.dtype
) -> tuple[float, np.ndarray]:
    module = getattr(losses, meta["loss"])(**meta["kwargs"]).to(dtype)
    if "weight" in arrays:
        with torch.no_grad():
            module.weight_net.weight.copy_(torch.as_tensor(arrays["weight"]))
            module.weight_net.bias.copy_(torch.as_tensor(arrays["bias_vector"]))
    if "prototypes" in arrays:
        with torch.no_grad():
            module.prototypes.copy_(torch.as_tensor(arrays["prototypes"]))
    parameters = {
        name: torch.as_tensor(value) for name, value in arrays.items() if name.startswith(PARAMETER)
    }
    if parameters:
        module.load_state_dict({name.removeprefix(PARAMETER): value for name, value in parameters.items()})
    given = {
        name: torch.as_tensor(value)
        for name, value in arrays.items()
        if name not in NOT_ARGUMENTS and name not in parameters
    }
    embedded = next(name for name in EMBEDDED if name in given)
    for name in (embedded, *OF_THE_SAME_TYPE):
        if name in given:
            given[name] = given[name].to(dtype)
    given[embedded].requires_grad_()
    value = module(**given)
    (gradient,) = torch.autograd.grad(value, given[embedded])
    return value.item(), gradient.double().numpy()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_loss_and_gradient_agree(case: str, dtype: torch.dtype) -> None:
    arrays, meta = load(case)
    adds_constant = any(
        one in meta["note"] for one in ("1e-6", "1e-9")
    )  # beside the largest score, so that a gradient may differ by more
    tolerance = 1e-9 if dtype == torch.float64 and not adds_constant else 1e-4
    value, gradient = evaluate(arrays, meta, dtype)
    expected_gradient = next(arrays[f"grad_{name}"] for name in EMBEDDED if f"grad_{name}" in arrays)
    assert value == pytest.approx(float(arrays["expected"]), rel=tolerance)
    distance = np.linalg.norm(gradient - expected_gradient) / np.linalg.norm(expected_gradient)
    assert distance < (2 * tolerance if adds_constant else tolerance)


def test_every_golden_loss_is_exported() -> None:
    assert len(CASES) > 90
    assert all(load(case)[1]["loss"] in losses.__all__ for case in CASES)
