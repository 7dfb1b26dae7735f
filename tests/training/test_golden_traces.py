"""The loss of every step of two epochs, by method: no change between an image and its loss stays unseen.

The numbers came from this code. A deliberate change of what a run computes (views, batches, initialisation,
a loss, an optimizer) changes them: print them anew with `python -m pytest -k golden -vv`, and say in the
changelog that results do not compare with earlier ones. Rounding differs between processors: on the same
machine, other instruction sets and thread counts moved them by 3e-6 at most (the small learning rate sees
to that: with a larger one, a pixel that ties in a max-pooling can tip the rest of the run).
"""

from collections.abc import Mapping

import pytest
from rank_runs import Trace

from contrasweep.tuning.methods import METHODS

GOLDEN: dict[str, list[float]] = {
    "infonce": [2.905212, 2.976780, 2.934383, 2.770449, 2.867134, 2.914500],
    "fair-cclk": [1.740848, 1.957789, 1.794429, 1.669810, 1.930871, 1.952241],
    "fair-infonce": [3.053802, 2.560754, 2.953537, 2.772480, 2.762955, 3.302944, 2.877684, 2.497313],
    "cl-infonce": [3.752518, 3.582063, 3.532289, 3.688095, 3.522203, 3.620586],
    "cluster-ce": [1.967018, 1.996242, 1.993049, 2.006854, 1.925127, 1.931211],
    "cmc-attributes": [3.515909, 3.527656, 3.540800, 3.397733, 3.452559, 3.424382],
    "cacr": [-0.586180, -0.612962, -0.576591, -0.728016, -0.632457, -0.652512],
    "cacr-moco": [-0.940300, -0.694089, -0.539611, -0.613428, -0.529242, -0.537569],
    "weaklysup-cclk": [4.871065, 4.690798, 4.886986, 4.831663, 4.576859, 4.676028],
    "weaklysup-infonce": [3.991866, 3.898917, 3.859516, 3.892421, 3.741780, 3.917001],
    "hardneg-cclk": [3.195865, 3.268441, 3.250193, 3.021212, 3.230233, 3.226340],
    "hardneg-infonce": [3.109550, 3.209600, 3.164471, 2.896458, 3.113555, 3.129550],
    "supcon": [4.176672, 4.241604, 4.106297, 4.008696, 4.065337, 4.133340],
    "align-uniform": [-2.712600, -2.599558, -2.663542, -2.898443, -2.765993, -2.681511],
    "cmc": [2.268159, 2.295171, 2.292299, 2.243392, 2.256860, 2.265182],
    "eps-infonce": [2.892440, 2.964559, 2.921582, 2.755602, 2.853593, 2.901257],
    "eps-supcon": [4.143247, 4.214784, 4.068320, 3.972825, 4.033139, 4.100679],
    "eps-supinfonce": [4.033547, 4.131092, 3.936352, 3.856719, 3.930970, 3.993562],
    "fairkl": [2.068061, 2.093762, 1.904642, 2.024797, 1.731946, 1.783913],
    "cross-entropy": [2.361646, 2.373326, 2.331002, 2.362937, 2.314139, 2.355020],
    "end": [2.456032, 2.514302, 2.437317, 2.449047, 2.507932, 2.407231],
    "biascon": [1.992500, 1.352841, 1.978985, 0.545429, 2.788680, 1.749301],
    "biasbal": [0.378002, 0.226776, 0.439482, 0.437833, 0.390370, 0.223828],
    "lff": [1.153259, 1.146584, 1.170833, 1.160069, 1.144544, 1.170054],
    "dfa": [1.166890, 1.162579, 1.155290, 1.763799, 1.724823, 1.739423],
    "rebias": [2.324447, 2.296627, 2.347131, 2.342122, 2.325689, 2.327620],
    "rubi": [4.601286, 4.608867, 4.692514, 4.579294, 4.648055, 4.673069],
    "learned-mixin": [2.364638, 2.292550, 2.382451, 3.082927, 3.145129, 3.234596],
    "softcon": [4.309617, 4.343187, 4.174561, 4.007499, 4.044504, 4.085865],
    "lnl": [2.143444, 2.175851, 2.022057, 2.102062, 2.101830, 2.105388],
    "hex": [2.304857, 2.307071, 2.294054, 2.312808, 2.297452, 2.301129],
    "l-softmax": [3.739859, 3.775567, 3.701147, 6.588603, 6.446961, 6.505967],
    "mmcl": [-2.620635, -2.381155, -2.494244, -3.012920, -2.769392, -2.729080],
    "herocon": [5.134967, 5.139315, 5.167788, 5.138355, 5.141268, 5.126766],
    "mib": [1.123897, 1.126634, 1.132060, 3.283406, 3.023092, 2.594122],
    "deepmtmv": [2.325828, 2.283528, 2.349329, 2.279069, 2.339041, 2.329124],
    "c2ae": [12.874268, 12.565944, 12.464645, 11.652693, 11.722138, 11.688517],
    "moco-v2": [2.784695, 2.971186, 3.009040, 2.894154, 2.983514, 3.001713],
    "align-uniform-moco": [-2.153222, -1.514259, -1.391833, -1.717769, -1.451454, -1.482950],
    "hardneg-moco": [2.373383, 3.033062, 3.276578, 3.178424, 3.299258, 3.271179],
    "cmc-moco": [2.851725, 2.942614, 3.007957, 2.966212, 2.979230, 3.015399],
    "pcl": [2.784695, 2.971186, 3.009040, 4.988393, 5.090391, 5.089295],
    "idfd": [8.934258, 8.959520, 9.042057, 8.042777, 8.102126, 8.131761],
    "wcl": [5.648121, 5.700944, 5.616753, 5.553041, 5.501568, 5.499442],
    "cl-infonce-instances": [5.233368, 5.092114, 5.047758, 5.113956, 4.982216, 5.073927],
    "swav": [2.362829, 2.403475, 2.370176, 2.390328, 2.363318, 2.373544],
}


@pytest.mark.parametrize("method", list(METHODS))
def test_the_golden_trace_holds(method: str, trained: Mapping[str, Trace]) -> None:
    run = trained[method]
    assert run.losses == pytest.approx(GOLDEN[method], rel=1e-4)
    half = len(run.losses) // 2
    means = [sum(GOLDEN[method][:half]) / half, sum(GOLDEN[method][half:]) / half]
    assert [metrics["train.loss"] for metrics in run.metrics[1:]] == pytest.approx(means, rel=1e-4)
