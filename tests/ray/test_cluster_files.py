"""The ready-made files of docs/cluster, checked against the schemas of the tools that read them."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import ray
import yaml
from typer.main import get_command

from contrasweep.tuning.cli import app

FILES = Path(__file__).parents[2] / "docs" / "cluster"
RAY_JOB = Path(__file__).with_name("rayjob_schema.json")
"""The fields of KubeRay's `ray.io/v1` RayJob and their types, as its Go types declare them (pods aside)."""


def test_the_cluster_launcher_takes_our_file() -> None:
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    cluster = yaml.safe_load((FILES / "aws.yaml").read_text())
    jsonschema.validate(cluster, schema)
    assert cluster["head_node_type"] in cluster["available_node_types"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**cluster, "head_nodes": 1}, schema)


def test_kuberay_takes_our_ray_job() -> None:
    job = yaml.safe_load((FILES / "rayjob.yaml").read_text())
    schema = json.loads(RAY_JOB.read_text())
    jsonschema.validate(job, schema)
    cluster = job["spec"]["rayClusterSpec"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**job, "spec": {**job["spec"], "rayCluster": cluster}}, schema)
    assert cluster["rayVersion"] in (FILES.parents[1] / "constraints.txt").read_text()
    for group in cluster["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def test_kubernetes_takes_the_pods_of_our_ray_job() -> None:
    cluster = yaml.safe_load((FILES / "rayjob.yaml").read_text())["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, **group["template"]}
        kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
        mounted = {mount["name"] for one in pod["spec"]["containers"] for mount in one["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}
        wrong = {**pod, "spec": {**pod["spec"], "volume": []}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def test_the_slurm_script_passes_shellcheck() -> None:
    shellcheck = Path(sys.executable).parent / "shellcheck"
    done = subprocess.run([shellcheck, FILES / "slurm.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


TOOLS = {
    "scontrol": "echo first",
    "srun": """while [[ "$1" == --* ]]; do shift; done; exec "$@" """,
    "hostname": "echo 10.0.0.1 10.0.0.2",
    "ray": """[ "$1" != status ] || echo ' 1 node_first'""",
    "contrasweep": """trap 'touch "$STOPPED"; exit 143' TERM
echo started > "$PIPE"
while :; do sleep 0.1; done""",
}
"""Stand-ins for what the Slurm script calls; the sweep waits for SIGTERM and says so."""


def test_the_slurm_script_lets_the_sweep_end_before_the_job_ends(tmp_path: Path) -> None:
    for name, body in TOOLS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    pipe, stopped = tmp_path / "pipe", tmp_path / "stopped"
    os.mkfifo(pipe)
    started = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PIPE": str(pipe), "STOPPED": str(stopped)}
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "first", "SLURM_CPUS_PER_TASK": "2"}
    job = subprocess.Popen(
        # As slurmstepd starts it: a shell that inherits an ignored SIGINT cannot trap it.
        ["env", "--default-signal=INT", "bash", FILES / "slurm.sh"],
        env=os.environ | path | slurm,
        start_new_session=True,
    )
    try:
        assert select.select([started], [], [], 60)[0], "the sweep has not begun"
        job.send_signal(signal.SIGINT)
        assert job.wait(60) == 143
        assert stopped.exists()
    finally:
        os.close(started)
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)


@pytest.mark.parametrize("file", ["slurm.sh", "rayjob.yaml"])
def test_the_commands_in_them_have_options_that_there_are(file: str) -> None:
    command: Any = get_command(app).commands["sweep"]  # type: ignore[attr-defined]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    text = (FILES / file).read_text().replace("\\\n", " ")
    (given,) = re.findall(r"^\W*contrasweep sweep (.+?)(?:&$|\n\s*#)", text, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"--[a-z-]+", given)) <= known
