"""A sweep on a cluster that starts its nodes when trials wait for them.

    python -m benchmarks.autoscale

starts a Ray head without cores on this machine. Its autoscaler may start two nodes of one core, by Ray's fake
provider: nodes are processes here, no cloud is needed. A sweep with `--autoscale --concurrency 2` runs on it,
then final runs of its best trial. The figures are the nodes that there were before and after, and the rows of
the store.

Ray's own `ray.cluster_utils.AutoscalingCluster` is not used: it begins with `ray stop --force`, which ends
*all* of Ray on the machine, and its configuration is not in Ray's wheels.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from contrasweep.tuning.ray.cluster import cluster_at
from contrasweep.tuning.store import ResultsStore

TINY = "colour-digits:images=300,test_images=100"
STUDY = "autoscaled"


def configuration(address: str, nodes: int, idle_minutes: float) -> dict[str, Any]:
    """Return what the autoscaler of a head without cores needs to start up to so many nodes of one core."""
    return {
        "cluster_name": "autoscaled",
        "max_workers": nodes,
        "idle_timeout_minutes": idle_minutes,
        "upscaling_speed": 1.0,
        "provider": {"type": "fake_multinode", "gcs_address": address, "launch_multiple": True},
        "available_node_types": {
            "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            "one-core": {"resources": {"CPU": 1}, "node_config": {}, "max_workers": nodes},
        },
        "head_node_type": "ray.head.default",
        "auth": {},
        "setup_commands": [],
        "head_setup_commands": [],
        "worker_setup_commands": [],
        "head_start_ray_commands": [],
        "worker_start_ray_commands": [],
        "file_mounts": {},
        "cluster_synced_files": [],
        "initialization_commands": [],
        "rsync_exclude": [],
        "rsync_filter": [],
    }


@contextmanager
def autoscaling_cluster(folder: Path, nodes: int, idle_minutes: float = 0.5) -> Iterator[str]:
    """Run a head without cores whose autoscaler starts nodes; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    file = folder / "autoscaler.json"
    file.write_text(json.dumps(configuration(address, nodes, idle_minutes)), encoding="utf-8")
    command = ["ray", "start", "--head", "--block", "--num-cpus=0", f"--port={port}", "--disable-usage-stats"]
    command += ["--node-ip-address=127.0.0.1", "--include-dashboard=false", f"--temp-dir={folder / 'ray'}"]
    command += [f"--autoscaling-config={file}"]
    environment = {**os.environ, "RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1"}
    with (folder / "head.log").open("w") as log:
        head = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(port, head)
        yield address
    finally:
        head.terminate()
        with suppress(subprocess.TimeoutExpired):
            head.wait(30)
        end_all_of(folder)


def wait_for(port: int, head: "subprocess.Popen[bytes]", seconds: float = 120) -> None:
    """Wait until the head answers."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and head.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise SystemExit("the head did not start")


def end_all_of(folder: Path) -> None:
    """End the processes of the Ray whose files are in a folder, and no others."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (
                str(folder).encode() in (process / "cmdline").read_bytes()
                and int(process.name) != os.getpid()
            ):
                os.kill(int(process.name), signal.SIGKILL)


def nodes_with_cores(address: str) -> int:
    """Return how many nodes with cores the cluster has now."""
    return sum(cores > 0 for cores in cluster_at(address).nodes)


def contrasweep(*words: str) -> float:
    """Run a command, show what it says, and return its seconds."""
    started = time.monotonic()
    print(f"$ contrasweep {' '.join(words)}", flush=True)
    subprocess.run([sys.executable, "-m", "contrasweep", *words], check=True)
    return time.monotonic() - started


def main() -> None:
    """Start the cluster, sweep on it, run its best trial, and print what the nodes and the store say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2, help="the most nodes; default: 2")
    parser.add_argument("--workers", type=int, default=1, help="workers of a trial; default: 1")
    options = parser.parse_args()
    os.environ["RAY_AUTH_MODE"] = "disabled"
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="scale-", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder, results = Path(name), f"{name}/results"
        with autoscaling_cluster(folder, options.nodes) as address:
            print(f"nodes with cores before: {nodes_with_cores(address)}")
            place = ["--results", results, "--address", address, "--autoscale", "--device", "cpu"]
            at_once = str(options.nodes // options.workers)
            place += ["--concurrency", at_once, "--workers", str(options.workers)]
            asked = ["--trials", "4", "--epochs", "2", "--set", "probes.max_steps=5", "--name", STUDY]
            seconds = contrasweep("sweep", "fair-cclk", "--data", TINY, *asked, *place)
            print(f"the sweep took {seconds:.0f} s; nodes with cores after: {nodes_with_cores(address)}")
            seconds = contrasweep("run", STUDY, "--seeds", "2", *place)
            print(f"the final runs took {seconds:.0f} s; nodes with cores after: {nodes_with_cores(address)}")
        for study in (STUDY, f"{STUDY}-final"):
            rows = ResultsStore(results).trials(study).to_pylist()
            print(study, [(row["trial"], row["seed"], row["status"], row["host"]) for row in rows])


if __name__ == "__main__":
    main()
